package k8s

import (
	"fmt"
	"strconv"

	"weft/launch/ray"
)

type rayClusterSpec struct {
	HeadGroupSpec    headGroup     `yaml:"headGroupSpec"`
	WorkerGroupSpecs []workerGroup `yaml:"workerGroupSpecs"`
}

type headGroup struct {
	RayStartParams map[string]string `yaml:"rayStartParams"`
	Template       podTemplate       `yaml:"template"`
}

type workerGroup struct {
	GroupName   string            `yaml:"groupName"`
	Replicas    int               `yaml:"replicas"`
	MinReplicas int               `yaml:"minReplicas"`
	MaxReplicas int               `yaml:"maxReplicas"`
	NumOfHosts  int               `yaml:"numOfHosts"`
	Resources   map[string]string `yaml:"resources,omitempty"`
	// RayStartParams may be empty, but not absent in older versions of the operator.
	RayStartParams map[string]string `yaml:"rayStartParams"`
	Template       podTemplate       `yaml:"template"`
}

type rayJobSpec struct {
	Entrypoint               string         `yaml:"entrypoint"`
	ShutdownAfterJobFinishes bool           `yaml:"shutdownAfterJobFinishes"`
	TTLSecondsAfterFinished  int            `yaml:"ttlSecondsAfterFinished"`
	BackoffLimit             int            `yaml:"backoffLimit"`
	RuntimeEnvYAML           string         `yaml:"runtimeEnvYAML"`
	RayClusterSpec           rayClusterSpec `yaml:"rayClusterSpec"`
}

// perChip tells Ray how many TPU resources a chip is, where that is not 1.
const perChip = "RAY_TPU_RESOURCE_PER_CHIP"

func (o *Options) rayEnv() []envVar {
	env := o.hostEnv()
	if n := o.Topology.Chip.DevicesPerChip; n > 1 {
		env = append(env, envVar{Name: perChip, Value: strconv.Itoa(n)})
	}
	return env
}

func (o *Options) rayClusterSpec() rayClusterSpec {
	hosts, chips := o.hosts()
	mounts, volumes := o.shm()
	group := workerGroup{
		GroupName: o.groupName(), Replicas: o.Topology.Slices, MinReplicas: o.Topology.Slices, MaxReplicas: o.Topology.Slices,
		NumOfHosts: hosts, RayStartParams: map[string]string{},
		Template: podTemplate{Spec: podSpec{
			ServiceAccountName: o.ServiceAccount, TerminationGracePeriodSeconds: o.terminationSeconds(),
			Containers: []container{{
				Name: "ray-worker", Image: o.Image, Env: o.rayEnv(), Resources: o.hostResources(), VolumeMounts: mounts,
				Lifecycle: &lifecycle{PreStop: handler{Exec: execAction{Command: []string{"/bin/sh", "-c", stopScript(ray.BinaryName)}}}},
			}},
			Volumes: volumes, NodeSelector: o.nodeSelector(),
		}},
	}
	if n := o.Topology.Chip.DevicesPerChip; n > 1 {
		group.Resources = map[string]string{"TPU": strconv.Itoa(n * chips)}
	}
	return rayClusterSpec{HeadGroupSpec: o.head(), WorkerGroupSpecs: []workerGroup{group}}
}

// groupName is what Cloud TPU calls such a slice: generation and number of cores for v5p, of devices for the others.
func (o *Options) groupName() string {
	n := o.Topology.DevicesPerSlice()
	if o.Topology.Chip.Name == "v5p" {
		n *= 2
	}
	return fmt.Sprintf("%s-%d", o.Topology.Chip.Name, n)
}

// stopScript asks the processes of that name in a pod to stop, and waits for them: the container ends with Ray, which knows
// no grace period, and a preStop hook is what runs before. It needs no program but grep beyond the shell.
func stopScript(name string) string {
	return fmt.Sprintf(`for f in $(grep -lx %s /proc/[0-9]*/comm 2>/dev/null); do p=${f#/proc/}; kill -TERM ${p%%/comm}; done; while grep -qx %[1]s /proc/[0-9]*/comm 2>/dev/null; do sleep 1; done`, name)
}

// head is the Ray head: it runs the job's driver and no training, so it offers no CPU to Ray.
func (o *Options) head() headGroup {
	return headGroup{
		RayStartParams: map[string]string{"num-cpus": "0"},
		Template: podTemplate{Spec: podSpec{
			ServiceAccountName: o.ServiceAccount,
			Containers: []container{{
				Name: "ray-head", Image: o.Image, Env: o.rayEnv(),
				Ports: []port{
					{ContainerPort: 6379, Name: "gcs"}, {ContainerPort: 8265, Name: "dashboard"}, {ContainerPort: 10001, Name: "client"},
				},
				Resources: equalResources(map[string]string{"cpu": o.HeadCPU, "memory": o.HeadMemory}),
			}},
		}},
	}
}

const (
	// jobTTL is how many seconds a finished job keeps its nodes, which are paid for: its log is in the submitter's pod too.
	jobTTL = 60
	// remakeTime is how long the driver waits for a slice: a lost host's node is made anew in minutes.
	remakeTime = "15m"
	// headRetries is how often a new cluster is made, which is when the head is lost: the driver starts weft again by itself. Each
	// wrong command line costs as many clusters, since an operator cannot tell why a job failed.
	headRetries = 1
)

func (o *Options) rayJobSpec() rayJobSpec {
	line := []string{
		o.BinaryPath, "ray", "drive", "--topology", shape(o.Topology),
		"--accelerator-type", ray.AcceleratorType(o.Topology.Chip),
		"--max-failures", strconv.Itoa(o.MaxFailures), graceFlag, o.Grace.String(),
		"--reserve-timeout", remakeTime,
	}
	if o.Topology.Slices > 1 {
		line = append(line, "--num-slices", strconv.Itoa(o.Topology.Slices))
	}
	return rayJobSpec{
		Entrypoint:               ray.Quote(append(append(line, "--"), o.weftArgs()...)),
		ShutdownAfterJobFinishes: true, TTLSecondsAfterFinished: jobTTL,
		BackoffLimit: min(headRetries, o.MaxFailures),
		// Ray kills a job that was asked to stop after 3 s, in which no state is saved.
		RuntimeEnvYAML: fmt.Sprintf("env_vars: {RAY_JOB_STOP_WAIT_TIME_S: '%d'}", o.terminationSeconds()),
		RayClusterSpec: o.rayClusterSpec(),
	}
}
