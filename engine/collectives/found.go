package collectives

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/engine/hlo"
)

// Found is a kind of communication in an optimised program: what the compiler made of what was asked for.
type Found struct {
	Kind  string `json:"kind"`
	DType string `json:"dtype"`
	// Count is how often it is done in one run.
	Count int64 `json:"count"`
	// Bytes is the whole that the devices of a group make or share, each time.
	Bytes int64 `json:"bytes"`
	// GroupSize is the number of devices that exchange data, 2 for a permute.
	GroupSize int `json:"group_size"`
	// Async tells that the compiler lets the devices compute meanwhile.
	Async bool `json:"async"`
}

// String prints 1 × all-reduce.
func (f Found) String() string { return fmt.Sprintf("%d × %s", f.Count, f.Kind) }

// Find counts what a program of so many devices communicates, by kind, dtype, size, group and whether it is asynchronous.
func Find(m *hlo.Module, devices int) ([]Found, error) {
	counts := map[Found]int64{}
	err := m.Walk(func(s hlo.Site) error {
		x := s.Computation.Communication(s.Instruction)
		if x == nil {
			return nil
		}
		f := Found{Kind: x.Kind, GroupSize: devices, Async: x.Async || s.Async != nil}
		switch {
		case x.Slices > 0:
			f.GroupSize = x.Slices
		case x.Kind == hlo.Permute:
			f.GroupSize = 2
		case len(x.Instruction.Groups) > 0:
			f.GroupSize = 0
			for _, g := range x.Instruction.Groups {
				f.GroupSize = max(f.GroupSize, len(g))
			}
		}
		whole := x.Operand
		if x.Kind == hlo.AllGather {
			whole = x.Result
		}
		f.Bytes = whole.Bytes()
		if arrays := whole.Arrays(); len(arrays) > 0 {
			f.DType = arrays[0].DType
		}
		counts[f] += s.Times
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the collectives of %s: %w", m.Name, err)
	}
	out := make([]Found, 0, len(counts))
	for f, n := range counts {
		f.Count = n
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.DType, b.DType), cmp.Compare(a.GroupSize, b.GroupSize), cmp.Compare(a.Count, b.Count))
	})
	return out, nil
}

// FormatFound prints a list on one line, "nothing" for an empty one.
func FormatFound(list []Found) string {
	if len(list) == 0 {
		return "nothing"
	}
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = f.String()
	}
	return strings.Join(parts, " + ")
}
