package process

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"weft/engine/tpu"
)

// FromEnv reads the environment of this process.
func FromEnv() (*View, error) { return Read(os.Getenv) }

// Read reads an environment. Its error names the variables that are wrong or contradict each other.
func Read(getenv func(string) string) (*View, error) {
	r := reader{getenv: getenv, v: &View{Slices: 1, from: map[string]string{}}}
	for _, read := range []func() error{r.names, r.index, r.shape, r.bounds, r.torch, r.megascale, r.whole} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return r.v, nil
}

type reader struct {
	getenv func(string) string
	v      *View
}

// first is the value of the first variable that is set.
func (r *reader) first(names ...string) (name, value string) {
	for _, n := range names {
		if value = strings.TrimSpace(r.getenv(n)); value != "" {
			return n, value
		}
	}
	return "", ""
}

// number reads a number from 0 on.
func (r *reader) number(names ...string) (name string, n int, err error) {
	name, value := r.first(names...)
	if name == "" {
		return "", 0, nil
	}
	n, err = strconv.Atoi(value)
	if err != nil || n < 0 {
		return name, 0, fmt.Errorf("%s=%s is no number from 0 on: unset it, or set it as the slice's host has it", name, value)
	}
	return name, n, nil
}

// names reads the slice's name and its hosts.
func (r *reader) names() error {
	_, r.v.Name = r.first("TPU_NAME")
	name, value := r.first("TPU_WORKER_HOSTNAMES", "TPU_PROCESS_ADDRESSES")
	if name == "" {
		return nil
	}
	for host := range strings.SplitSeq(value, ",") {
		if host = strings.TrimSpace(host); host == "" {
			return fmt.Errorf("%s=%s has an empty name: give the slice's hosts in order, separated by commas", name, value)
		}
		if name == "TPU_PROCESS_ADDRESSES" {
			h, _, err := net.SplitHostPort(host)
			if err != nil {
				return fmt.Errorf("%s=%s: %s is no HOST:PORT", name, value, host)
			}
			host = h
		}
		r.v.Hosts = append(r.v.Hosts, host)
	}
	r.v.from["hosts"] = name
	return nil
}

func (r *reader) index() error {
	name, n, err := r.number("TPU_WORKER_ID", "CLOUD_TPU_TASK_ID")
	if err != nil {
		return err
	}
	hosts := r.v.Hosts
	switch {
	case name == "" && len(hosts) > 1:
		return fmt.Errorf("%s names %d hosts, but TPU_WORKER_ID does not say which of them this is: set it to 0…%d, in the order of the names", r.v.from["hosts"], len(hosts), len(hosts)-1)
	case len(hosts) > 0 && n >= len(hosts):
		return fmt.Errorf("%s=%d, but %s names %d hosts, so it is at most %d", name, n, r.v.from["hosts"], len(hosts), len(hosts)-1)
	}
	r.v.Index, r.v.from["index"] = n, name
	return nil
}

// shape reads TPU_TOPOLOGY and TPU_ACCELERATOR_TYPE.
func (r *reader) shape() error {
	accelerator, kind := r.first("TPU_ACCELERATOR_TYPE")
	topology, dims := r.first("TPU_TOPOLOGY")
	if accelerator == "" {
		return nil
	}
	chip, devices := parseAccelerator(kind)
	if chip == nil || topology == "" {
		return nil
	}
	r.v.from["accelerator"] = accelerator
	top, err := tpu.Parse(chip.Name + ":" + dims)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", topology, dims, err)
	}
	if devices > 0 && top.DevicesPerSlice() != devices {
		return fmt.Errorf("%s=%s is a slice of %d devices, %s=%s one of %d: both must tell of the same slice", topology, dims, top.DevicesPerSlice(), accelerator, kind, devices)
	}
	r.v.Topology, r.v.from["topology"] = &top, topology
	return nil
}

// generations are the beginnings of Cloud TPU's accelerator types, with the number of devices that one unit of the number
// after them is: a v5p-16 has 16 cores, two of which are one device.
var generations = map[string]struct {
	chip      string
	perDevice int
}{
	"v5litepod": {"v5e", 1}, "v5e": {"v5e", 1}, "v5p": {"v5p", 2}, "v6e": {"v6e", 1}, "tpu7x": {"tpu7x", 1}, "v7x": {"tpu7x", 1},
}

// parseAccelerator reads v6e-16, v5p-16, v5litepod-16, tpu7x-16, or a name without a number such as TPU-V6E or tpu7x;
// devices is 0 for those. chip is nil for one that weft has no figures of, whose runtime alone then tells what there is.
func parseAccelerator(kind string) (chip *tpu.Chip, devices int) {
	lower := strings.ToLower(kind)
	if at := strings.LastIndexByte(lower, '-'); at > 0 {
		if g, ok := generations[lower[:at]]; ok {
			n, err := strconv.Atoi(lower[at+1:])
			if err == nil && n >= g.perDevice && n%g.perDevice == 0 {
				chip, _ = tpu.FindChip(g.chip)
				return chip, n / g.perDevice
			}
		}
	}
	if g, ok := generations[lower]; ok {
		lower = g.chip
	}
	chip, _ = tpu.FindChip(lower)
	return chip, 0
}

// grid reads "2,2,1".
func (r *reader) grid(names ...string) (name string, dims []int, err error) {
	name, value := r.first(names...)
	if name == "" {
		return "", nil, nil
	}
	for part := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return name, nil, fmt.Errorf("%s=%s: give the number along each side, such as 2,2,1", name, value)
		}
		dims = append(dims, n)
	}
	return name, dims, nil
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// bounds reads how the chips of a host and the hosts of the slice stand.
func (r *reader) bounds() error {
	name, chips, err := r.grid("TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS")
	if err != nil {
		return err
	}
	if name != "" {
		r.v.Chips, r.v.from["chips"] = product(chips), name
	}
	name, hosts, err := r.grid("TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS")
	if err != nil {
		return err
	}
	if name == "" {
		return nil
	}
	if n := len(r.v.Hosts); n > 0 && product(hosts) != n {
		return fmt.Errorf("%s gives %d hosts, %s names %d: both must tell of the same slice", name, product(hosts), r.v.from["hosts"], n)
	}
	r.v.HostGrid, r.v.from["grid"] = hosts, name
	return nil
}

// torch compares what KubeRay's webhook says for TorchTPU: TORCH_TPU_TOPOLOGY=4,4,1 counts devices (a TPU7x has a fourth
// side of 2), and TORCH_TPU_SLICEBUILDER_ADDRESSES has an address a device.
func (r *reader) torch() error {
	name, sides, err := r.grid("TORCH_TPU_TOPOLOGY")
	if err != nil {
		return err
	}
	devices := product(sides)
	if top := r.v.Topology; name != "" && top != nil && top.DevicesPerSlice() != devices {
		return fmt.Errorf("%s is a slice of %d devices, %s one of %d: both must tell of the same slice", name, devices, r.v.from["topology"], top.DevicesPerSlice())
	}
	list, value := r.first("TORCH_TPU_SLICEBUILDER_ADDRESSES")
	if list == "" {
		return nil
	}
	var hosts []string
	addresses := strings.Split(value, ",")
	for _, a := range addresses {
		host, _, err := net.SplitHostPort(strings.TrimSpace(a))
		if err != nil {
			return fmt.Errorf("%s: %s is no HOST:PORT", list, a)
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if name != "" && len(addresses) != devices {
		return fmt.Errorf("%s has %d addresses, %s is a slice of %d devices: there is one address a device", list, len(addresses), name, devices)
	}
	if len(r.v.Hosts) > 0 && !slices.Equal(hosts, r.v.Hosts) {
		return fmt.Errorf("%s tells of the hosts %s, %s of %s: both must tell of the same slice, in the same order",
			list, strings.Join(hosts, ","), r.v.from["hosts"], strings.Join(r.v.Hosts, ","))
	}
	return nil
}

// megascale reads which slice of several this is.
func (r *reader) megascale() error {
	number, n, err := r.number("MEGASCALE_NUM_SLICES")
	if err != nil {
		return err
	}
	id, slice, err := r.number("MEGASCALE_SLICE_ID")
	if err != nil {
		return err
	}
	_, r.v.Coordinator = r.first("MEGASCALE_COORDINATOR_ADDRESS")
	switch {
	case number == "" && id == "" && r.v.Coordinator == "":
		return nil
	case number == "" || n < 1:
		return fmt.Errorf("MEGASCALE_NUM_SLICES must be set to the number of slices where MEGASCALE_SLICE_ID or MEGASCALE_COORDINATOR_ADDRESS is")
	case n > 1 && id == "":
		return fmt.Errorf("MEGASCALE_NUM_SLICES=%d, but MEGASCALE_SLICE_ID does not say which of them this is: set it to 0…%d", n, n-1)
	case slice >= n:
		return fmt.Errorf("MEGASCALE_SLICE_ID=%d, but there are %d slices (MEGASCALE_NUM_SLICES), so it is at most %d", slice, n, n-1)
	case n > 1 && r.v.Coordinator == "":
		return fmt.Errorf("MEGASCALE_NUM_SLICES=%d, but MEGASCALE_COORDINATOR_ADDRESS is not set: give the first host of slice 0, the same on every host", n)
	}
	r.v.Slice, r.v.Slices = slice, n
	r.v.from["slices"], r.v.from["slice"] = number, id
	return nil
}

// whole compares the parts once all are read.
func (r *reader) whole() error {
	v := r.v
	if v.Topology == nil {
		return nil
	}
	top, err := v.Topology.WithSlices(v.Slices)
	if err != nil {
		return fmt.Errorf("%s: %w", v.source("slices"), err)
	}
	v.Topology = &top
	chips := top.ChipsPerSlice()
	if v.Chips > 0 && len(v.Hosts) > 0 && v.Chips*len(v.Hosts) != chips {
		return fmt.Errorf("%s gives %d chips a host and %s %d hosts, but %s is a slice of %d chips: they must tell of the same slice",
			v.from["chips"], v.Chips, v.from["hosts"], len(v.Hosts), v.from["topology"], chips)
	}
	if len(v.Hosts) > 0 && chips%len(v.Hosts) != 0 {
		return fmt.Errorf("%s names %d hosts, but the %d chips of %s are no multiple of that", v.from["hosts"], len(v.Hosts), chips, v.from["topology"])
	}
	if v.Chips > 0 && len(v.HostGrid) > 0 && v.Chips*product(v.HostGrid) != chips {
		return fmt.Errorf("%s gives %d chips a host and %s %d hosts, but %s is a slice of %d chips: they must tell of the same slice",
			v.from["chips"], v.Chips, v.from["grid"], product(v.HostGrid), v.from["topology"], chips)
	}
	return nil
}
