package tpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Topology is a slice, or several equal ones: how many chips stand along each axis.
type Topology struct {
	Chip *Chip
	// Dims are the chips along each axis, x first; 2 or 3 of them.
	Dims []int
	// Slices is the number of such slices, joined by the data center network; at least 1.
	Slices int
}

// Axis is one dimension of a slice.
type Axis struct {
	// Size is the number of chips along it. Wrap tells whether the last is joined to the first.
	Size int
	Wrap bool
}

// Links is the number of links along the axis of the chip that has the fewest: the one at the end.
func (a Axis) Links() int {
	switch {
	case a.Size == 1:
		return 0
	case a.Wrap:
		return 2
	}
	return 1
}

// Parse reads a name such as v6e:4x4 or tpu7x:2x2x2, for one slice. An unknown chip, or a shape that its slices do not
// have, is an error that lists the known.
func Parse(name string) (Topology, error) {
	chip, shape, ok := strings.Cut(name, ":")
	if !ok {
		return Topology{}, fmt.Errorf("topology %q: give the chip and the chips along each side, such as v6e:4x4 or tpu7x:2x2x2; the known are %s", name, Known())
	}
	c, err := FindChip(chip)
	if err != nil {
		return Topology{}, fmt.Errorf("topology %q: %w; the known topologies are %s", name, err, Known())
	}
	return c.slice(shape)
}

// ParseJob reads the two flags of a published job: the chips along each side, such as 4x4, and the accelerator type, such
// as TPU-V6E.
func ParseJob(shape, acceleratorType string) (Topology, error) {
	c, err := FindChip(acceleratorType)
	if err != nil {
		return Topology{}, fmt.Errorf("accelerator type: %w", err)
	}
	return c.slice(shape)
}

func (c *Chip) slice(shape string) (Topology, error) {
	t := Topology{Chip: c, Slices: 1}
	for part := range strings.SplitSeq(strings.ToLower(shape), "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return t, fmt.Errorf("topology %s:%s: give the chips along each side, such as %s", c.Name, shape, text(c.shapes[2]))
		}
		t.Dims = append(t.Dims, n)
	}
	if !c.has(t.Dims) {
		return t, fmt.Errorf("topology %s:%s: there is no such slice of %s; its slices are %s", c.Name, shape, c.Title, c.known())
	}
	return t, nil
}

// has tells whether a slice of this shape can be had.
func (c *Chip) has(dims []int) bool {
	if slices.ContainsFunc(c.shapes, func(s []int) bool { return slices.Equal(s, dims) }) {
		return true
	}
	return len(c.largest) == len(dims) && len(dims) == 3 && wholeCubes(dims) &&
		dims[0] <= c.largest[0] && dims[1] <= c.largest[1] && dims[2] <= c.largest[2]
}

// wholeCubes tells whether a slice is made of cubes of 4x4x4 chips, which are joined by optical switches.
func wholeCubes(dims []int) bool {
	return !slices.ContainsFunc(dims, func(d int) bool { return d%4 != 0 })
}

func (c *Chip) known() string {
	var names []string
	for _, s := range c.shapes {
		names = append(names, text(s))
	}
	list := strings.Join(names, ", ")
	if c.largest != nil {
		list += ", and others in multiples of 4 up to " + text(c.largest)
	}
	return list
}

// Known lists the names that Parse accepts.
func Known() string {
	var parts []string
	for _, c := range Chips {
		parts = append(parts, c.Name+": "+c.known())
	}
	return strings.Join(parts, "; ")
}

func text(dims []int) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, "x")
}

// WithSlices returns the topology of n such slices.
func (t Topology) WithSlices(n int) (Topology, error) {
	if n < 1 || n > 1024 {
		return t, fmt.Errorf("%d slices of %s: give a number from 1 to 1024", n, t.SliceName())
	}
	t.Slices = n
	return t, nil
}

// SliceName is the name of one slice, as libtpu and Parse read it: v6e:4x4.
func (t Topology) SliceName() string { return t.Chip.Name + ":" + text(t.Dims) }

// String is the slice's name, and their number where there are several: 2 × v6e:4x4.
func (t Topology) String() string {
	if t.Slices > 1 {
		return fmt.Sprintf("%d × %s", t.Slices, t.SliceName())
	}
	return t.SliceName()
}

// ChipsPerSlice is the number of chips of one slice.
func (t Topology) ChipsPerSlice() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Devices is the number of PJRT devices of all slices.
func (t Topology) Devices() int { return t.Slices * t.DevicesPerSlice() }

// DevicesPerSlice is the number of PJRT devices of one slice.
func (t Topology) DevicesPerSlice() int { return t.ChipsPerSlice() * t.Chip.DevicesPerChip }

// Hosts is the number of hosts of all slices, each of which runs one process.
func (t Topology) Hosts() int {
	return t.Slices * ((t.ChipsPerSlice() + t.Chip.ChipsPerHost - 1) / t.Chip.ChipsPerHost)
}

// Axes are the dimensions of a slice, x first.
func (t Topology) Axes() []Axis {
	torus := len(t.Dims) == 3 && wholeCubes(t.Dims)
	axes := make([]Axis, len(t.Dims))
	for i, d := range t.Dims {
		axes[i] = Axis{Size: d, Wrap: torus || t.Chip.wrapAt > 0 && d >= t.Chip.wrapAt}
	}
	return axes
}

// Links is the number of links of the chip that has the fewest: the one in a corner.
func (t Topology) Links() int {
	n := 0
	for _, a := range t.Axes() {
		n += a.Links()
	}
	return n
}

// PluginOptions are the options with which libtpu describes the topology under SliceName.
func (t Topology) PluginOptions() map[string]any {
	options := map[string]any{}
	wrap := make([]int64, 3)
	for i, a := range t.Axes() {
		if a.Wrap {
			wrap[i] = 1
			options["wrap"] = wrap
		}
	}
	if t.Slices > 1 {
		options["num_slices"] = int64(t.Slices)
	}
	return options
}

// Place is where a device stands.
type Place struct {
	// Slice counts from 0, Chip is the position along each axis, x first, and Core the device's number on its chip.
	Slice int
	Chip  [3]int
	Core  int
}

// Place returns where device i stands, counted in the order of the plugin's ids: the devices of a chip one after the
// other, then along x, y, z, then from slice to slice.
func (t Topology) Place(i int) Place {
	var p Place
	p.Core, i = i%t.Chip.DevicesPerChip, i/t.Chip.DevicesPerChip
	for axis, d := range t.Dims {
		p.Chip[axis], i = i%d, i/d
	}
	p.Slice = i
	return p
}
