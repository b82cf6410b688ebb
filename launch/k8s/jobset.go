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
	Name                string   `yaml:"name"`
	Action              string   `yaml:"action"`
	OnJobFailureReasons []string `yaml:"onJobFailureReasons"`
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
	Action      string    `yaml:"action"`
	OnExitCodes exitCodes `yaml:"onExitCodes"`
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
	// exitRetry is weft's exit code of a run that was asked to stop and saved.
	exitRetry = 75
	// tpuPort is where libtpu of one host meets those of the others, and metricsPort where it tells its figures.
	tpuPort, metricsPort = 8471, 8431
	// megascalePort is where the slices of a multislice job meet.
	megascalePort = 8080
)

func (o *Options) jobSetAnnotations() map[string]string {
	return map[string]string{exclusive: "cloud.google.com/gke-nodepool"}
}

func (o *Options) jobSetSpec() jobSetSpec {
	hosts, _ := hostsOf(o.Topology)
	mounts, volumes := o.shm()
	return jobSetSpec{
		FailurePolicy: failurePolicy{
			MaxRestarts: o.MaxFailures,
			// A pod that was told to stop has saved: that restart is nobody's fault and is not counted.
			Rules: []failureRule{{
				Name: "preempted", Action: "RestartJobSetAndIgnoreMaxRestarts", OnJobFailureReasons: []string{"PodFailurePolicy"},
			}},
		},
		Network: network{EnableDNSHostnames: true, PublishNotReadyAddresses: true},
		ReplicatedJobs: []replicatedJob{{
			Name: sliceJob, Replicas: o.Topology.Slices,
			Template: jobTemplate{Spec: jobSpec{
				Parallelism: hosts, Completions: hosts, CompletionMode: "Indexed",
				// A slice lives or dies as one: a lost pod fails its job, and the set starts again.
				BackoffLimit: 0,
				PodFailurePolicy: podFailures{Rules: []podFailureRule{{
					Action: "FailJob", OnExitCodes: exitCodes{ContainerName: "weft", Operator: "In", Values: []int{exitRetry}},
				}}},
				Template: podTemplate{Spec: podSpec{
					ServiceAccountName: o.ServiceAccount, RestartPolicy: "Never", TerminationGracePeriodSeconds: o.terminationSeconds(),
					Containers: []container{{
						Name: "weft", Image: o.Image, Command: []string{o.BinaryPath}, Args: o.Args, Env: o.jobSetEnv(),
						Ports:     []port{{ContainerPort: tpuPort, Name: "tpu"}, {ContainerPort: metricsPort, Name: "metrics"}},
						Resources: o.hostResources(), VolumeMounts: mounts,
					}},
					Volumes: volumes, NodeSelector: o.nodeSelector(),
				}},
			}},
		}},
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
		envVar{Name: "MEGASCALE_COORDINATOR_ADDRESS", Value: fmt.Sprintf("%[1]s-%[2]s-0-0.%[1]s:%[3]d", o.Name, sliceJob, megascalePort)},
	)
}
