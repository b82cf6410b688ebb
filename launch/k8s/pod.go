package k8s

import (
	"strconv"
	"strings"
	"time"

	"weft/engine/tpu"
)

// accelerators are GKE's names of the chips, in the node label gke-tpu-accelerator.
var accelerators = map[string]string{
	"v5e": "tpu-v5-lite-podslice", "v5p": "tpu-v5p-slice", "v6e": "tpu-v6e-slice", "tpu7x": "tpu7x",
}

// hostsOf is the number of hosts of one slice and of the chips of each.
func hostsOf(t tpu.Topology) (hosts, chips int) {
	hosts = t.Hosts() / t.Slices
	return hosts, t.ChipsPerSlice() / hosts
}

// machineTypes are those of GKE's node pools, by chip and chips of a host.
var machineTypes = map[string]map[int]string{
	"v5e":   {1: "ct5lp-hightpu-1t", 4: "ct5lp-hightpu-4t", 8: "ct5lp-hightpu-8t"},
	"v5p":   {4: "ct5p-hightpu-4t"},
	"v6e":   {1: "ct6e-standard-1t", 4: "ct6e-standard-4t", 8: "ct6e-standard-8t"},
	"tpu7x": {4: "tpu7x-standard-4t"},
}

// shape is the topology of one slice in the form of the node label gke-tpu-topology.
func shape(t tpu.Topology) string {
	_, dims, _ := strings.Cut(t.SliceName(), ":")
	return dims
}

// nodeSelector chooses the slice's nodes.
func (o *Options) nodeSelector() map[string]string {
	s := map[string]string{
		"cloud.google.com/gke-tpu-accelerator": accelerators[o.Topology.Chip.Name],
		"cloud.google.com/gke-tpu-topology":    shape(o.Topology),
	}
	if o.Spot {
		s["cloud.google.com/gke-spot"] = "true"
	}
	if o.Reservation != "" {
		s["cloud.google.com/reservation-name"] = o.Reservation
	}
	return s
}

// hostEnv is what weft's own container needs to be told.
func (o *Options) hostEnv() []envVar {
	var env []envVar
	if o.HFSecret != "" {
		env = append(env, envVar{Name: "HF_TOKEN", ValueFrom: &valueFrom{SecretKeyRef: &secretRef{Name: o.HFSecret, Key: o.HFKey}}})
	}
	return env
}

// hostResources are those of a TPU host's container.
func (o *Options) hostResources() resources {
	_, chips := hostsOf(o.Topology)
	return equalResources(map[string]string{"cpu": o.CPU, "memory": o.Memory, "google.com/tpu": strconv.Itoa(chips)})
}

// equalResources asks for just what it may use: a pod that is never the first to be evicted.
func equalResources(r map[string]string) resources { return resources{Limits: r, Requests: r} }

// shm is a memory volume for /dev/shm, whose default of 64 MB libtpu and Ray outgrow.
func (o *Options) shm() ([]volumeMount, []volume) {
	return []volumeMount{{MountPath: "/dev/shm", Name: "dshm"}},
		[]volume{{Name: "dshm", EmptyDir: emptyDir{Medium: "Memory", SizeLimit: o.Shm}}}
}

// stopMargin is what a pod gets beyond the grace period to end its processes.
const stopMargin = 15 * time.Second

func (o *Options) terminationSeconds() int { return int((o.Grace + stopMargin) / time.Second) }

// labels are those of the object itself.
func (o *Options) labels() map[string]string {
	l := map[string]string{"app.kubernetes.io/name": "weft", "app.kubernetes.io/instance": o.Name}
	if o.Queue != "" {
		l["kueue.x-k8s.io/queue-name"] = o.Queue
	}
	return l
}
