package k8s

import (
	"fmt"
	"strconv"
)

type jobSetSpec struct {
	FailurePolicy  failurePolicy   `yaml:"failurePolicy"`
	Network        network         `yaml:"network"`
	ReplicatedJobs []replicatedJob `yaml:"replicatedJobs"`
}

type failurePolicy struct {
	MaxRestarts int           `yaml:"maxRestarts"`
	Rules       []failureRule `yaml:"rules"`
}

type failureRule struct {
	Name                        string   `yaml:"name"`
	Action                      string   `yaml:"action"`
	OnJobFailureReasons         []string `yaml:"onJobFailureReasons"`
	OnJobFailureMessagePatterns []string `yaml:"onJobFailureMessagePatterns,omitempty"`
}

type network struct {
	EnableDNSHostnames       bool `yaml:"enableDNSHostnames"`
	PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses"`
}

type replicatedJob struct {
	Name     string      `yaml:"name"`
	Replicas int         `yaml:"replicas"`
	Template jobTemplate `yaml:"template"`
}

type jobTemplate struct {
	Spec jobSpec `yaml:"spec"`
}

type jobSpec struct {
	Parallelism      int         `yaml:"parallelism"`
	Completions      int         `yaml:"completions"`
	CompletionMode   string      `yaml:"completionMode"`
	BackoffLimit     int         `yaml:"backoffLimit"`
	PodFailurePolicy podFailures `yaml:"podFailurePolicy"`
	Template         podTemplate `yaml:"template"`
}

type podFailures struct {
	Rules []podFailureRule `yaml:"rules"`
}

type podFailureRule struct {
	Action          string         `yaml:"action"`
	OnExitCodes     *exitCodes     `yaml:"onExitCodes,omitempty"`
	OnPodConditions []podCondition `yaml:"onPodConditions,omitempty"`
}

type podCondition struct {
	Type   string `yaml:"type"`
	Status string `yaml:"status"`
}

type exitCodes struct {
	ContainerName string `yaml:"containerName"`
	Operator      string `yaml:"operator"`
	Values        []int  `yaml:"values"`
}

const (
	sliceJob = "slice"
	// exclusive puts each slice's pods on one node pool, which is one slice.
	exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	// exitUsage is weft's exit code of wrong usage or input, exitRetry that of a run that was asked to stop and saved.
	exitUsage, exitRetry = 2, 75
	// byPolicy is why Kubernetes fails a job whose pod matched its podFailurePolicy; usageMessage is in what it then says.
	byPolicy, usageMessage = "PodFailurePolicy", "failed with exit code 2 matching"
	// tpuPort is where libtpu of one host meets those of the others, and metricsPort where it tells its figures.
	tpuPort, metricsPort = 8471, 8431
	// megascalePort is where the slices of a job meet, as with Ray.
	megascalePort = 8081
)

// jobSetAnnotations keep slices apart. Nodes of one pool that are slices by themselves are shared as they are free.
func (o *Options) jobSetAnnotations() map[string]string {
	if hosts, _ := o.hosts(); hosts == 1 {
		return nil
	}
	return map[string]string{exclusive: "cloud.google.com/gke-nodepool"}
}

func (o *Options) jobSetSpec() jobSetSpec {
	hosts, _ := o.hosts()
	return jobSetSpec{
		FailurePolicy: failurePolicy{MaxRestarts: o.MaxFailures, Rules: []failureRule{
			// Wrong usage stays wrong.
			{Name: "usage", Action: "FailJobSet", OnJobFailureReasons: []string{byPolicy}, OnJobFailureMessagePatterns: []string{usageMessage}},
			// A pod that was told to stop has saved: that restart is nobody's fault and is not counted.
			{Name: "preempted", Action: "RestartJobSetAndIgnoreMaxRestarts", OnJobFailureReasons: []string{byPolicy}},
		}},
		Network: network{EnableDNSHostnames: true, PublishNotReadyAddresses: true},
		ReplicatedJobs: []replicatedJob{{
			Name: sliceJob, Replicas: o.Topology.Slices,
			Template: jobTemplate{Spec: jobSpec{
				Parallelism: hosts, Completions: hosts, CompletionMode: "Indexed",
				// A slice lives or dies as one: a lost pod fails its job, and the set starts again.
				BackoffLimit: 0, PodFailurePolicy: podFailures{Rules: []podFailureRule{
					{Action: "FailJob", OnExitCodes: &exitCodes{ContainerName: "weft", Operator: "In", Values: []int{exitUsage, exitRetry}}},
					{Action: "FailJob", OnPodConditions: []podCondition{{Type: "DisruptionTarget", Status: "True"}}},
				}},
				Template: podTemplate{Spec: o.jobSetPod()},
			}},
		}},
	}
}

// jobSetPod is that of one host.
func (o *Options) jobSetPod() podSpec {
	mounts, volumes := o.shm()
	return podSpec{
		ServiceAccountName: o.ServiceAccount, RestartPolicy: "Never", TerminationGracePeriodSeconds: o.terminationSeconds(),
		Containers: []container{{
			Name: "weft", Image: o.Image, Command: []string{o.BinaryPath}, Args: o.weftArgs(), Env: o.jobSetEnv(),
			Ports:     []port{{ContainerPort: tpuPort, Name: "tpu"}, {ContainerPort: metricsPort, Name: "metrics"}},
			Resources: o.hostResources(), VolumeMounts: mounts,
		}},
		Volumes: volumes, NodeSelector: o.nodeSelector(),
	}
}

// jobSetEnv adds what a job of several slices needs: which slice a pod belongs to and where the first one is.
func (o *Options) jobSetEnv() []envVar {
	env := o.hostEnv()
	if o.Topology.Slices == 1 {
		return env
	}
	return append(env,
		envVar{Name: "MEGASCALE_NUM_SLICES", Value: strconv.Itoa(o.Topology.Slices)},
		envVar{Name: "MEGASCALE_SLICE_ID", ValueFrom: &valueFrom{FieldRef: &fieldRef{FieldPath: "metadata.labels['jobset.sigs.k8s.io/job-index']"}}},
		envVar{Name: "MEGASCALE_COORDINATOR_ADDRESS", Value: fmt.Sprintf("%[1]s-%[2]s-0-0.%[1]s", o.Name, sliceJob)},
		envVar{Name: "MEGASCALE_PORT", Value: strconv.Itoa(megascalePort)},
	)
}
