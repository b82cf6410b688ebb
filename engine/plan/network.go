package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"weft/engine/hlo"
	"weft/engine/tpu"
)

// Collective is one kind of communication of a step, as one device sees it.
type Collective struct {
	// Kind is all-gather, reduce-scatter, all-reduce, all-to-all, collective-permute or collective-broadcast.
	Kind  string `json:"kind"`
	DType string `json:"dtype"`
	// Count is how often it is done in a step.
	Count int64 `json:"count"`
	// Bytes is what a device receives in a step, which is what it sends: with rings, (n−1)/n of the whole for an
	// all-gather or a reduce-scatter among n devices, twice that for an all-reduce; (n−1)/n of its own for an
	// all-to-all; all of it for a permute.
	Bytes int64 `json:"bytes"`
	// Async tells that the compiler lets the devices compute meanwhile.
	Async bool `json:"async"`
	// PayloadBytes is the whole that the devices of a group make or share, all counts together.
	PayloadBytes int64 `json:"payload_bytes"`
	// GroupSize is the number of devices of a group. Axes are those of the slice along which a group lies, such as xy,
	// core for the halves of a chip and slice for several slices; "" when the topology is not known.
	GroupSize int    `json:"group_size"`
	Axes      string `json:"axes,omitempty"`
	// Algorithm is the compiler's name of how it is done, "" when it does not say.
	Algorithm string `json:"algorithm,omitempty"`
}

// exchange is a communication with what is needed to lay it on a network.
type exchange struct {
	*hlo.Communication
	times   int64
	async   bool
	group   []int64
	pairs   [][2]int64
	perKind []Collective // one for each dtype, for one time
}

// newExchange describes a communication among the devices of a program.
func newExchange(x *hlo.Communication, times int64, async bool, devices int) exchange {
	e := exchange{Communication: x, times: times, async: async}
	in := x.Instruction
	n := 2 // a permute is between two
	switch {
	case x.Slices > 0:
		n = x.Slices
	case x.Kind == hlo.Permute:
		e.pairs = in.Pairs
	default:
		e.group = longest(in.Groups, devices)
		n = len(e.group)
	}
	payload := map[string]int64{}
	for _, a := range e.whole().Arrays() {
		payload[a.DType] += a.Bytes()
	}
	for dtype, b := range payload {
		if b > 0 {
			e.perKind = append(e.perKind, Collective{
				Kind: x.Kind, DType: dtype, Count: 1, Bytes: onWire(x.Kind, b, n), Async: async,
				PayloadBytes: b, GroupSize: n, Algorithm: x.Algorithm,
			})
		}
	}
	slices.SortFunc(e.perKind, func(a, b Collective) int { return cmp.Compare(a.DType, b.DType) })
	return e
}

// longest returns the largest group; no groups are one of all devices.
func longest(groups [][]int64, devices int) []int64 {
	if len(groups) == 0 {
		all := make([]int64, devices)
		for i := range all {
			all[i] = int64(i)
		}
		return all
	}
	return slices.MaxFunc(groups, func(a, b []int64) int { return len(a) - len(b) })
}

// whole is what the group makes (all-gather) or shares (others), as one device holds it.
func (e exchange) whole() hlo.Shape {
	if e.Kind == hlo.AllGather {
		return e.Result
	}
	return e.Operand
}

// onWire is what a device receives of a whole of b bytes in a group of n.
func onWire(kind string, b int64, n int) int64 {
	others := int64(n - 1)
	switch kind {
	case hlo.AllReduce:
		return 2 * b * others / int64(n)
	case hlo.Permute:
		return b
	case hlo.Broadcast:
		return min(b, b*others)
	}
	return b * others / int64(n)
}

// traffic lays the communication on the links of a topology.
func (e exchange) traffic(t tpu.Topology) (tpu.Traffic, error) {
	if e.Slices > 0 {
		return tpu.Traffic{DCN: float64(t.Chip.DevicesPerChip) * float64(onWire(e.Kind, e.whole().Bytes(), e.Slices))}, nil
	}
	b := float64(e.whole().Bytes())
	switch e.Kind {
	case hlo.Permute:
		return t.Permute(e.pairs, b)
	case hlo.AllToAll:
		return t.Group(tpu.Exchange, e.group, b)
	case hlo.AllReduce: // a reduce-scatter and an all-gather
		f, err := t.Group(tpu.Ring, e.group, b)
		f.ICI, f.OnChip, f.DCN, f.Hops = 2*f.ICI, 2*f.OnChip, 2*f.DCN, 2*f.Hops
		return f, err
	}
	return t.Group(tpu.Ring, e.group, b)
}

// axesOf names the axes that traffic goes along.
func axesOf(f tpu.Traffic) string {
	name := ""
	for a, letter := range []string{"x", "y", "z"} {
		if f.Axes&(1<<a) != 0 || f.PerLink[a] > 0 {
			name += letter
		}
	}
	for _, part := range []struct {
		bytes float64
		name  string
	}{{f.OnChip, "core"}, {f.DCN, "slice"}} {
		if part.bytes > 0 {
			if name != "" {
				name += "+"
			}
			name += part.name
		}
	}
	return name
}

// network is all communication of a step.
type network struct {
	topology *tpu.Topology // nil when not known
	load     *tpu.Load
	found    map[string]*Collective
	// syncSeconds and asyncSeconds are those that communications take one after the other at the sustained rate.
	syncSeconds, asyncSeconds float64
}

func newNetwork(t *tpu.Topology) *network {
	n := &network{topology: t, found: map[string]*Collective{}}
	if t != nil {
		n.load = t.NewLoad()
	}
	return n
}

func (n *network) add(e exchange) error {
	axes := ""
	if n.topology != nil {
		f, err := e.traffic(*n.topology)
		if err != nil {
			return fmt.Errorf("%s %s: %w", e.Kind, e.Instruction.Name, err)
		}
		n.load.Add(f, float64(e.times))
		seconds := float64(e.times) * n.topology.Seconds(f, sustainedLinks)
		if e.async {
			n.asyncSeconds += seconds
		} else {
			n.syncSeconds += seconds
		}
		axes = axesOf(f)
	}
	for _, c := range e.perKind {
		c.Axes = axes
		key := fmt.Sprint(c.Kind, " ", c.DType, " ", c.Async, " ", c.GroupSize, " ", c.Axes, " ", c.Algorithm)
		if n.found[key] == nil {
			n.found[key] = &Collective{Kind: c.Kind, DType: c.DType, Async: c.Async, GroupSize: c.GroupSize, Axes: axes, Algorithm: c.Algorithm}
		}
		sum := n.found[key]
		sum.Count += e.times
		sum.Bytes += e.times * c.Bytes
		sum.PayloadBytes += e.times * c.PayloadBytes
	}
	return nil
}

// collectives lists what was added, the most bytes first.
func (n *network) collectives() []Collective {
	out := make([]Collective, 0, len(n.found))
	for _, key := range slices.Sorted(maps.Keys(n.found)) {
		out = append(out, *n.found[key])
	}
	slices.SortStableFunc(out, func(a, b Collective) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}
