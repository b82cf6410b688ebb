package k8s

import (
	"fmt"
	"strconv"
	"strings"
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
	hosts, chips := hostsOf(o.Topology)
	mounts, volumes := o.shm()
	group := workerGroup{
		GroupName: o.groupName(), Replicas: o.Topology.Slices, MinReplicas: o.Topology.Slices, MaxReplicas: o.Topology.Slices,
		NumOfHosts: hosts, RayStartParams: map[string]string{},
		Template: podTemplate{Spec: podSpec{
			ServiceAccountName: o.ServiceAccount, TerminationGracePeriodSeconds: o.terminationSeconds(),
			Containers: []container{{
				Name: "ray-worker", Image: o.Image, Env: o.rayEnv(), Resources: o.hostResources(), VolumeMounts: mounts,
			}},
			Volumes: volumes, NodeSelector: o.nodeSelector(),
		}},
	}
	if n := o.Topology.Chip.DevicesPerChip; n > 1 {
		group.Resources = map[string]string{"TPU": strconv.Itoa(n * chips)}
	}
	return rayClusterSpec{HeadGroupSpec: o.head(), WorkerGroupSpecs: []workerGroup{group}}
}

// groupName is the pod type that Ray gives such a slice: generation and number of devices.
func (o *Options) groupName() string {
	return fmt.Sprintf("%s-%d", o.Topology.Chip.Name, o.Topology.DevicesPerSlice())
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

// jobTTL keeps a finished job's head for a look at its logs.
const jobTTL = 600

func (o *Options) rayJobSpec() rayJobSpec {
	line := []string{
		o.BinaryPath, "ray", "drive", "--topology", shape(o.Topology), "--accelerator-type", o.Topology.Chip.AcceleratorTypes[0],
		"--max-failures", strconv.Itoa(o.MaxFailures),
	}
	if o.Topology.Slices > 1 {
		line = append(line, "--num-slices", strconv.Itoa(o.Topology.Slices))
	}
	return rayJobSpec{
		Entrypoint:               shellLine(append(append(line, "--"), o.Args...)),
		ShutdownAfterJobFinishes: true, TTLSecondsAfterFinished: jobTTL,
		// The driver restarts the job inside of the cluster; a new cluster is made when the head itself is lost.
		BackoffLimit:   o.MaxFailures,
		RayClusterSpec: o.rayClusterSpec(),
	}
}

// shellLine quotes words for the shell that Ray starts an entry point with.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}

func shellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
