package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/engine/tpu"
)

// accelerators are GKE's names of the chips, in the node label gke-tpu-accelerator.
var accelerators = map[string]string{
	"v5e": "tpu-v5-lite-podslice", "v5p": "tpu-v5p-slice", "v6e": "tpu-v6e-slice", "tpu7x": "tpu7x",
}

// wholeHost are the chips of the largest host, which is a slice by itself, of the chips that have one.
var wholeHost = map[string]int{"v5e": 8, "v6e": 8}

// hosts is the number of hosts of one slice and of the chips of each. A slice of up to 8 chips of v5e or v6e is one host,
// as Ray takes it to be too, unless ChipsPerHost says otherwise.
func (o *Options) hosts() (hosts, chips int) {
	all := o.Topology.ChipsPerSlice()
	chips = o.ChipsPerHost
	if chips == 0 {
		chips = min(all, o.Topology.Chip.ChipsPerHost)
		if all <= wholeHost[o.Topology.Chip.Name] {
			chips = all
		}
	}
	return all / chips, chips
}

// machine is a type of node, and what a pod on it may ask for: well below what GKE leaves to pods.
type machine struct {
	name             string
	cpu, memory, shm string
}

// machines are those of GKE's TPU node pools, by chip and chips of a host. The 4-chip v6e and TPU7x have the published
// guide's figures. vCPUs and memory of the machines: v5e 24 and 48 GB for 1 chip, 112 and 192 for 4, 224 and 384 for 8;
// v5p 208 and 448; v6e 44 and 176, 180 and 720, 180 and 1440; TPU7x 224 and 960.
var machines = map[string]map[int]machine{
	"v5e":   {1: {"ct5lp-hightpu-1t", "16", "32Gi", "16Gi"}, 4: {"ct5lp-hightpu-4t", "64", "140Gi", "64Gi"}, 8: {"ct5lp-hightpu-8t", "128", "300Gi", "128Gi"}},
	"v5p":   {4: {"ct5p-hightpu-4t", "64", "200Gi", "100Gi"}},
	"v6e":   {1: {"ct6e-standard-1t", "32", "140Gi", "64Gi"}, 4: {"ct6e-standard-4t", "64", "200Gi", "100Gi"}, 8: {"ct6e-standard-8t", "128", "400Gi", "200Gi"}},
	"tpu7x": {4: {"tpu7x-standard-4t", "64", "250Gi", "128Gi"}},
}

// machine finds the slice's type of node.
func (o *Options) machine() (machine, error) {
	kinds, all := machines[o.Topology.Chip.Name], o.Topology.ChipsPerSlice()
	var known []string
	for _, n := range slices.Sorted(maps.Keys(kinds)) {
		known = append(known, strconv.Itoa(n))
	}
	if n := o.ChipsPerHost; n < 0 || n > 0 && all%n != 0 {
		return machine{}, fmt.Errorf("--chips-per-host %d: the %d chips of %s are no multiple of that: give one of %s", n, all, o.Topology.SliceName(), strings.Join(known, ", "))
	}
	hosts, chips := o.hosts()
	m, ok := kinds[chips]
	switch {
	case !ok:
		return m, fmt.Errorf("--chips-per-host %d: GKE has no node with %[1]d chips of %s: give one of %s", chips, o.Topology.Chip.Title, strings.Join(known, ", "))
	case hosts > 1 && chips != o.Topology.Chip.ChipsPerHost:
		return m, fmt.Errorf("--chips-per-host %d: the hosts of a slice of several have %d chips: leave it out", chips, o.Topology.Chip.ChipsPerHost)
	case hosts > 1 && o.Kind != JobSet && all <= wholeHost[o.Topology.Chip.Name]:
		return m, fmt.Errorf("--chips-per-host %d: Ray takes %s to be one host of %d chips: leave it out, or render a jobset", chips, o.Topology.SliceName(), all)
	}
	return m, nil
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

// hostEnv is what weft's own container needs to be told. A secret that is not there is no reason not to start: models in a
// bucket need none.
func (o *Options) hostEnv() []envVar {
	var env []envVar
	if o.HFSecret != "" {
		env = append(env, envVar{Name: "HF_TOKEN", ValueFrom: &valueFrom{SecretKeyRef: &secretRef{Name: o.HFSecret, Key: o.HFKey, Optional: true}}})
	}
	return env
}

// hostResources are those of a TPU host's container.
func (o *Options) hostResources() resources {
	_, chips := o.hosts()
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
