package process

import (
	"fmt"
	"strings"

	"weft/engine/tpu"
)

// View is the environment's account of this process. Zero values stand for what it does not say.
type View struct {
	// Name is that of the slice (TPU_NAME).
	Name string
	// Index is the number of this host in its slice (TPU_WORKER_ID, or CLOUD_TPU_TASK_ID), Hosts the names of all hosts of
	// the slice in that order (TPU_WORKER_HOSTNAMES, or the addresses of TPU_PROCESS_ADDRESSES without their ports).
	Index int
	Hosts []string
	// Topology is the slice's shape, with the number of slices; nil when the environment does not give it.
	Topology *tpu.Topology
	// Chips is the number of chips of this host (TPU_CHIPS_PER_HOST_BOUNDS, TPU_CHIPS_PER_PROCESS_BOUNDS).
	Chips int
	// HostGrid is how the hosts stand (TPU_HOST_BOUNDS, TPU_PROCESS_BOUNDS), nil if not said.
	HostGrid []int
	// Slice is the number of this slice of Slices, which is at least 1 (MEGASCALE_SLICE_ID, MEGASCALE_NUM_SLICES).
	Slice, Slices int
	// Coordinator is where the slices meet (MEGASCALE_COORDINATOR_ADDRESS).
	Coordinator string

	// from says which variable gave a figure, for messages.
	from map[string]string
}

// Global is this process's number among those of all slices, the slices one after the other.
func (v *View) Global() int { return v.Slice*v.PerSlice() + v.Index }

// Count is the number of processes of all slices.
func (v *View) Count() int { return v.Slices * v.PerSlice() }

// PerSlice is the number of processes of one slice: the named hosts, else those of the topology, else 1.
func (v *View) PerSlice() int {
	switch {
	case len(v.Hosts) > 0:
		return len(v.Hosts)
	case v.Topology != nil:
		return v.Topology.Hosts() / v.Topology.Slices
	}
	return 1
}

// Single tells that this process is all there is.
func (v *View) Single() bool { return v.Count() == 1 }

// Host is this host's name as the others know it, "" when the environment does not say.
func (v *View) Host() string {
	if v.Index < len(v.Hosts) {
		return v.Hosts[v.Index]
	}
	return ""
}

// String says where the process stands: "host 2 of 4 (NAME), slice 1 of 2".
func (v *View) String() string {
	s := fmt.Sprintf("host %d of %d", v.Index, v.PerSlice())
	if h := v.Host(); h != "" {
		s += " (" + h + ")"
	}
	if v.Slices > 1 {
		s += fmt.Sprintf(", slice %d of %d", v.Slice, v.Slices)
	}
	return s
}

// Seen is what a PJRT client says of the same process.
type Seen struct {
	// Process is its index, Processes the number of different ones among all devices.
	Process, Processes int
	// Local and Devices count this process's devices and all of them.
	Local, Devices int
	// Kind is what the plugin calls a device.
	Kind string
}

// Agree compares the environment with the client. Its error names every difference.
func (v *View) Agree(s Seen) error {
	var diffs []string
	differ := func(what string, env, client any, from string) {
		diffs = append(diffs, fmt.Sprintf("%s: %v by %s, %v by the TPU's runtime", what, env, from, client))
	}
	if len(v.Hosts) > 0 && v.Count() != s.Processes {
		differ("processes", v.Count(), s.Processes, v.source("hosts", "slices"))
	}
	if len(v.Hosts) > 0 && v.Count() == s.Processes && v.Global() != s.Process {
		differ("this process", v.Global(), s.Process, v.source("index", "slice"))
	}
	if t := v.Topology; t != nil {
		if t.Devices() != s.Devices {
			differ("devices of "+t.String(), t.Devices(), s.Devices, v.source("topology", "accelerator"))
		}
		if chip, ok := tpu.ChipOfKind(s.Kind); ok && chip != t.Chip {
			differ("chip", t.Chip.Title, chip.Title, v.source("accelerator"))
		}
	}
	if chip, ok := tpu.ChipOfKind(s.Kind); ok && v.Chips > 0 && v.Chips*chip.DevicesPerChip != s.Local {
		differ("devices of this host", v.Chips*chip.DevicesPerChip, s.Local, v.source("chips"))
	}
	if len(diffs) == 0 {
		return nil
	}
	return fmt.Errorf("the environment and the TPU's runtime disagree (%s): were the variables set for another slice, or is a host missing? Start weft once on each host of the slice, with the environment that the host came with",
		strings.Join(diffs, "; "))
}

// source names the variables that gave the figures.
func (v *View) source(keys ...string) string {
	var names []string
	for _, k := range keys {
		if n := v.from[k]; n != "" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "the environment"
	}
	return strings.Join(names, " and ")
}
