package hlo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Collective is one kind of communication of a program: an opcode on a shape.
type Collective struct {
	// Opcode is all-gather, all-reduce, reduce-scatter, all-to-all or collective-permute; an asynchronous pair counts
	// once, under its plain name.
	Opcode string
	// Shape is the result on one device.
	Shape Shape
	// Count is how often it is executed in one run of the program, loops included.
	Count int64
}

var collectiveOpcodes = []string{"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"}

// collectiveName returns the plain opcode of a collective, "" for any other instruction and for the done half of an
// asynchronous pair.
func collectiveName(opcode string) string {
	plain := strings.TrimSuffix(opcode, "-start")
	if slices.Contains(collectiveOpcodes, plain) {
		return plain
	}
	return ""
}

// Collectives counts what a program communicates, sorted by opcode and shape. A loop whose trip count the compiler does
// not know is an error: its collectives cannot be counted.
func (m *Module) Collectives() ([]Collective, error) {
	byID := make(map[int64]*Computation, len(m.Computations))
	for _, c := range m.Computations {
		byID[c.ID] = c
	}
	found := map[string]*Collective{}
	var walk func(c *Computation, times int64) error
	walk = func(c *Computation, times int64) error {
		for _, in := range c.Instructions {
			n := times
			if name := collectiveName(in.Opcode); name != "" {
				key := name + " " + in.Shape.String()
				if found[key] == nil {
					found[key] = &Collective{Opcode: name, Shape: in.Shape}
				}
				found[key].Count += times
				continue // what it calls is its reduction
			}
			if in.Opcode == "while" {
				trips, known := in.TripCount()
				if !known && m.communicates(byID, in) {
					return fmt.Errorf("the loop %s communicates and its trip count is unknown", in.Name)
				}
				n *= trips
			}
			for _, id := range in.Calls {
				if callee := byID[id]; callee != nil {
					if err := walk(callee, n); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	entry := byID[m.EntryID]
	if entry == nil {
		return nil, fmt.Errorf("the module %s has no entry computation %d", m.Name, m.EntryID)
	}
	if err := walk(entry, 1); err != nil {
		return nil, err
	}
	return slices.SortedFunc(func(yield func(Collective) bool) {
		for c := range maps.Values(found) {
			if !yield(*c) {
				return
			}
		}
	}, func(a, b Collective) int {
		return cmp.Or(cmp.Compare(a.Opcode, b.Opcode), cmp.Compare(a.Shape.String(), b.Shape.String()))
	}), nil
}

// communicates tells whether a computation that the instruction calls, at any depth, holds a collective.
func (m *Module) communicates(byID map[int64]*Computation, in *Instruction) bool {
	for _, id := range in.Calls {
		for _, inner := range byID[id].Instructions {
			if collectiveName(inner.Opcode) != "" || m.communicates(byID, inner) {
				return true
			}
		}
	}
	return false
}

// FormatCollectives prints one line a kind: `8 × all-gather f32[64,64]`.
func FormatCollectives(list []Collective) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%d × %s %s\n", c.Count, c.Opcode, c.Shape)
	}
	return b.String()
}
