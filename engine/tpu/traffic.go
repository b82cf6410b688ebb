package tpu

import (
	"fmt"
	"math"
	"math/bits"
)

// Pattern is how the devices of a group exchange data.
type Pattern int

const (
	// Ring is an all-gather or a reduce-scatter: every device ends with, or begins with, the bytes of the whole group.
	Ring Pattern = iota
	// Exchange is an all-to-all: every device sends each other one an equal part of its bytes.
	Exchange
)

// MaxAxes bounds the axes of a slice.
const MaxAxes = 3

// Traffic is what one communication puts on the network, of the chip that has it worst.
type Traffic struct {
	// ICI are bytes that a chip receives over its links along the axes in Axes, a set of bits, in any split between them.
	ICI  float64
	Axes uint8
	// PerLink are bytes that one link of each axis carries in one direction, whatever the others do.
	PerLink [MaxAxes]float64
	// OnChip are bytes between the two devices of a chip, DCN those of a chip between slices.
	OnChip, DCN float64
	// Hops is the number of links, one after the other, that the first byte takes at least.
	Hops int
}

// spread is how the devices of a group stand.
type spread struct {
	axes          uint8 // along which chips differ
	extent        [MaxAxes]int
	chips, slices int
	cores         int // of each chip
}

// spreadOf looks at where the devices of a group stand.
func (t Topology) spreadOf(group []int64) (spread, error) {
	var s spread
	chips := map[[4]int]bool{}
	slices := map[int]bool{}
	var low, high [MaxAxes]int
	for n, id := range group {
		if id < 0 || id >= int64(t.Devices()) {
			return s, fmt.Errorf("device %d is not one of the %d of %s", id, t.Devices(), t)
		}
		p := t.Place(int(id))
		chips[[4]int{p.Slice, p.Chip[0], p.Chip[1], p.Chip[2]}] = true
		slices[p.Slice] = true
		for a, x := range p.Chip {
			if n == 0 {
				low[a], high[a] = x, x
			}
			low[a], high[a] = min(low[a], x), max(high[a], x)
		}
	}
	s.slices = len(slices)
	s.chips = len(chips) / s.slices
	s.cores = max(1, len(group)/len(chips))
	for a := range MaxAxes {
		s.extent[a] = high[a] - low[a] + 1
		if s.extent[a] > 1 {
			s.axes |= 1 << a
		}
	}
	return s, nil
}

// Group returns the traffic of one communication within groups of devices that all work at once; group is one of them,
// the others being alike. bytes is what one device holds of the whole: the result of an all-gather, the operand of a
// reduce-scatter or of an all-to-all.
//
// Between slices the data goes in parts, each device exchanging its own with its like, after (or before) the exchange
// within the slice. Where a chip is two devices that belong to one group, what arrives over a link serves both.
func (t Topology) Group(pattern Pattern, group []int64, bytes float64) (Traffic, error) {
	if len(group) < 2 {
		return Traffic{}, nil
	}
	s, err := t.spreadOf(group)
	if err != nil {
		return Traffic{}, err
	}
	var f Traffic
	// Groups that share a chip share its links.
	perChip := float64(t.Chip.DevicesPerChip) / float64(s.cores)
	inSlice := bytes
	if s.slices > 1 {
		// Each device exchanges the share that is its own within the slice.
		share := bytes / float64(s.chips*s.cores)
		f.DCN = share * float64(t.Chip.DevicesPerChip) * float64(s.slices-1) / float64(s.slices)
		if pattern == Exchange {
			f.DCN = bytes * float64(t.Chip.DevicesPerChip) * float64(s.slices-1) / float64(s.slices)
			inSlice = bytes / float64(s.slices)
		}
	}
	if s.cores > 1 {
		f.OnChip = inSlice * float64(s.cores-1) / float64(s.cores)
	}
	if s.chips == 1 {
		return f, nil
	}
	for a := range MaxAxes {
		if s.axes&(1<<a) != 0 {
			f.Hops += t.hops(a, s.extent[a])
		}
	}
	switch pattern {
	case Ring:
		f.Axes = s.axes
		f.ICI = inSlice * perChip * float64(s.chips-1) / float64(s.chips)
	case Exchange:
		for a := range MaxAxes {
			if s.axes&(1<<a) != 0 {
				f.PerLink[a] = inSlice * perChip * float64(s.cores) * t.middleLink(a, s.extent[a])
			}
		}
	}
	return f, nil
}

// hops is the number of links between the chips of a group that are farthest from each other along an axis.
func (t Topology) hops(axis, extent int) int {
	if t.wraps(axis, extent) {
		return extent / 2
	}
	return extent - 1
}

// wraps tells whether a group that spans extent chips of an axis has its ends joined.
func (t Topology) wraps(axis, extent int) bool {
	a := t.Axes()[axis]
	return a.Wrap && extent == a.Size
}

// middleLink is the share of a device's bytes that the busiest link of an axis carries in one direction in an
// all-to-all: of n chips in a line, ⌊n/2⌋·⌈n/2⌉ pairs of 1/n each meet in the middle; a ring has two middles.
func (t Topology) middleLink(axis, n int) float64 {
	share := float64(n/2) * float64((n+1)/2) / float64(n)
	if t.wraps(axis, n) {
		return share / 2
	}
	return share
}

// Permute returns the traffic of sending bytes from each pair's first device to its second, all at once: routed along x,
// then y, then z, the shorter way round, it is what the busiest link of each axis carries.
func (t Topology) Permute(pairs [][2]int64, bytes float64) (Traffic, error) {
	var f Traffic
	type link struct {
		slice, axis int
		at          [3]int
		up          bool
	}
	load := map[link]float64{}
	dcn := map[[4]int]float64{}
	for _, pair := range pairs {
		for _, id := range pair {
			if id < 0 || id >= int64(t.Devices()) {
				return f, fmt.Errorf("device %d is not one of the %d of %s", id, t.Devices(), t)
			}
		}
		from, to := t.Place(int(pair[0])), t.Place(int(pair[1]))
		switch {
		case from.Slice != to.Slice:
			chip := [4]int{from.Slice, from.Chip[0], from.Chip[1], from.Chip[2]}
			dcn[chip] += bytes
			f.DCN = math.Max(f.DCN, dcn[chip])
			continue
		case from.Chip == to.Chip && from.Core != to.Core:
			f.OnChip = math.Max(f.OnChip, bytes)
		}
		at, hops := from.Chip, 0
		for axis, a := range t.Axes() {
			distance, up := route(a, at[axis], to.Chip[axis])
			for range distance {
				l := link{from.Slice, axis, at, up}
				load[l] += bytes
				f.PerLink[axis] = math.Max(f.PerLink[axis], load[l])
				at[axis] = step(a, at[axis], up)
				hops++
			}
		}
		f.Hops = max(f.Hops, hops)
	}
	return f, nil
}

// route is the number of links from one position on an axis to another, and the direction.
func route(a Axis, from, to int) (distance int, up bool) {
	distance = to - from
	if a.Wrap {
		if distance < 0 {
			distance += a.Size
		}
		if distance > a.Size/2 {
			distance -= a.Size
		}
	}
	if distance < 0 {
		return -distance, false
	}
	return distance, true
}

func step(a Axis, at int, up bool) int {
	if up {
		return (at + 1) % a.Size
	}
	return (at + a.Size - 1) % a.Size
}

// linksOf is the number of links along a set of axes of the chip that has the fewest.
func (t Topology) linksOf(axes uint8) int {
	n := 0
	for i, a := range t.Axes() {
		if axes&(1<<i) != 0 {
			n += a.Links()
		}
	}
	return n
}

// Load adds up the traffic of a program.
type Load struct {
	topology Topology
	// byAxes are the bytes of Traffic.ICI for each set of axes.
	byAxes      [1 << MaxAxes]float64
	perLink     [MaxAxes]float64
	onChip, dcn float64
}

// NewLoad returns an empty load.
func (t Topology) NewLoad() *Load { return &Load{topology: t} }

// Add adds the traffic of a communication that is done a number of times.
func (l *Load) Add(f Traffic, times float64) {
	l.byAxes[f.Axes] += times * f.ICI
	for a := range MaxAxes {
		l.perLink[a] += times * f.PerLink[a]
	}
	l.onChip += times * f.OnChip
	l.dcn += times * f.DCN
}

// Seconds is the least time in which the links can carry the load, when every communication overlaps every other and
// each chip's links along the axes that it may use are shared without a gap: for each set of axes, the bytes that can go
// nowhere else over the links that the chip with the fewest has there.
func (l *Load) Seconds() float64 {
	t := l.topology
	worst := l.onChip / math.Max(t.Chip.OnChipBandwidth, 1)
	if t.Chip.OnChipBandwidth == 0 {
		worst = 0
	}
	for set := uint8(1); set < 1<<MaxAxes; set++ {
		links := t.linksOf(set)
		if links == 0 {
			continue
		}
		var bytes float64
		for axes := uint8(1); axes < 1<<MaxAxes; axes++ {
			if axes&^set == 0 {
				bytes += l.byAxes[axes]
			}
		}
		for a := range t.Axes() {
			if set&(1<<a) != 0 {
				bytes += l.perLink[a] * float64(t.linksOf(1<<a))
			}
		}
		worst = math.Max(worst, bytes/(float64(links)*t.Chip.LinkBandwidth))
	}
	return worst
}

// DCNSeconds is the time that the data center network takes.
func (l *Load) DCNSeconds() float64 { return l.dcn / l.topology.Chip.DCNBandwidth }

// Bytes is what a chip receives over ICI.
func (l *Load) Bytes() float64 {
	var n float64
	for _, b := range l.byAxes {
		n += b
	}
	for a := range l.topology.Axes() {
		n += l.perLink[a] * float64(l.topology.linksOf(1<<a))
	}
	return n
}

// HopSeconds is about how long a byte takes from a chip to its neighbour, half a microsecond to one.
const HopSeconds = 1e-6

// Seconds is how long one communication takes by itself within a slice, at the given share of the links' nominal
// bandwidth, the time to the farthest chip included.
func (t Topology) Seconds(f Traffic, efficiency float64) float64 {
	seconds := float64(f.Hops) * HopSeconds
	if t.Chip.OnChipBandwidth > 0 {
		seconds += f.OnChip / (t.Chip.OnChipBandwidth * efficiency)
	}
	if links := t.linksOf(f.Axes); links > 0 && bits.OnesCount8(f.Axes) > 0 {
		seconds += f.ICI / (float64(links) * t.Chip.LinkBandwidth * efficiency)
	}
	var worst float64
	for _, b := range f.PerLink {
		worst = math.Max(worst, b)
	}
	return seconds + worst/(t.Chip.LinkBandwidth*efficiency) + f.DCN/(t.Chip.DCNBandwidth*efficiency)
}
