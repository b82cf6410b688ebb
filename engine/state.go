package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"golang.org/x/sync/errgroup"

	"weft/engine/sharding"
)

// State is the train state of a model on the devices: its parameters, and for each trained one the optimizer's slots.
type State struct {
	// Step is the number of updates done.
	Step int

	params []Param
	values []*Array   // by index of params
	slots  [][]*Array // by index of params, nil for frozen ones
	kept   []Slot     // of each trained one
}

// ParamFill writes the bytes of one region of a parameter, row-major, in the parameter's dtype.
type ParamFill func(p Param, r sharding.Region, dst []byte) error

// Entry is one tensor of the train state: a parameter, or a slot of one.
type Entry struct {
	// Name is the parameter's name, for a slot followed by "/" and the slot's name.
	Name  string
	Param Param
	// Slot is the slot's name, "" for the parameter itself.
	Slot  string
	Array *Array
}

// NewState sends every parameter to the devices and makes its slots, all zeros, there.
func (rt *Runtime) NewState(model Model, opt Optimizer, fill ParamFill) (*State, error) {
	s := &State{params: model.Params(), kept: opt.Slots()}
	s.values = make([]*Array, len(s.params))
	s.slots = make([][]*Array, len(s.params))
	for i, p := range s.params {
		a, err := rt.NewArray(p.DType, p.Dims, p.Spec, func(r sharding.Region, dst []byte) error { return fill(p, r, dst) })
		if err != nil {
			s.Destroy()
			return nil, fmt.Errorf("load parameter %s: %w", p.Name, err)
		}
		s.values[i] = a
	}
	if err := rt.zeroSlots(s); err != nil {
		s.Destroy()
		return nil, err
	}
	return s, nil
}

// zeroSlots makes the slots by a program, so that no zeros travel from the host.
func (rt *Runtime) zeroSlots(s *State) error {
	var trained []int
	for i, p := range s.params {
		if p.Trainable {
			trained = append(trained, i)
		}
	}
	if len(trained) == 0 || len(s.kept) == 0 {
		return nil
	}
	// The input only gives the graph a node to begin with.
	seed := Input{Name: "zero", DType: dtypes.Float32}
	program, err := rt.Compile("zero_slots", []Input{seed}, func(in []*graph.Node) []Output {
		var out []Output
		for _, i := range trained {
			for _, slot := range s.kept {
				zeros := graph.BroadcastToShape(graph.ConvertDType(in[0], slot.DType), shapes.Make(slot.DType, s.params[i].Dims...))
				out = append(out, Output{Node: zeros, Spec: s.params[i].Spec})
			}
		}
		return out
	})
	if err != nil {
		return err
	}
	defer program.Destroy()
	zero, err := rt.NewArray(seed.DType, seed.Dims, seed.Spec, func(sharding.Region, []byte) error { return nil })
	if err != nil {
		return err
	}
	defer zero.Destroy()
	arrays, err := program.Run(zero)
	if err != nil {
		return err
	}
	for n, i := range trained {
		s.slots[i] = arrays[n*len(s.kept) : (n+1)*len(s.kept)]
	}
	return nil
}

// Entries lists every tensor of the state in a fixed order: each parameter followed by its slots.
func (s *State) Entries() []Entry {
	var out []Entry
	for i, p := range s.params {
		out = append(out, Entry{Name: p.Name, Param: p, Array: s.values[i]})
		for j, slot := range s.slots[i] {
			out = append(out, Entry{Name: p.Name + "/" + s.kept[j].Name, Param: p, Slot: s.kept[j].Name, Array: slot})
		}
	}
	return out
}

// restoreWorkers is how many tensors Restore fills and sends at a time: while one is sent, others are read.
const restoreWorkers = 4

// Restore replaces every tensor for which want is true with bytes from elsewhere, such as a checkpoint. fill is called for
// several tensors at a time, from their own goroutines, and must write all of dst, which holds something else before. The
// host holds a region for each of up to four tensors. On an error some tensors are replaced and some are not.
func (s *State) Restore(want func(Entry) bool, fill func(e Entry, r sharding.Region, dst []byte) error) error {
	work := make(chan func(*sendBuffer) error)
	group, ctx := errgroup.WithContext(context.Background())
	for range restoreWorkers {
		group.Go(func() error {
			buf := &sendBuffer{}
			for job := range work {
				if ctx.Err() != nil {
					continue
				}
				if err := job(buf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	s.eachRestored(want, func(e Entry, at **Array) bool {
		select {
		case work <- func(buf *sendBuffer) error { return s.restore(at, e, fill, buf) }:
			return true
		case <-ctx.Done():
			return false
		}
	})
	close(work)
	return group.Wait()
}

// eachRestored calls restore for every tensor that is wanted, with its place, until it returns false.
func (s *State) eachRestored(want func(Entry) bool, restore func(e Entry, at **Array) bool) {
	for i, p := range s.params {
		places := []**Array{&s.values[i]}
		for j := range s.slots[i] {
			places = append(places, &s.slots[i][j])
		}
		for j, at := range places {
			e := Entry{Name: p.Name, Param: p, Array: *at}
			if j > 0 {
				e.Slot = s.kept[j-1].Name
				e.Name += "/" + e.Slot
			}
			if want(e) && !restore(e, at) {
				return
			}
		}
	}
}

func (s *State) restore(at **Array, e Entry, fill func(Entry, sharding.Region, []byte) error, buf *sendBuffer) error {
	old := *at
	a, err := old.rt.newArray(old.DType, old.Dims, old.Spec, func(r sharding.Region, dst []byte) error { return fill(e, r, dst) }, buf)
	if err != nil {
		return fmt.Errorf("restore %s: %w", e.Name, err)
	}
	old.Destroy()
	*at = a
	return nil
}

// Sizes are the bytes of the train state on one device.
type Sizes struct{ Params, Slots int }

// LocalBytes returns what the state occupies on each device, in bytes.
func (s *State) LocalBytes() Sizes {
	var n Sizes
	for _, e := range s.Entries() {
		if e.Slot == "" {
			n.Params += e.Array.LocalBytes()
		} else {
			n.Slots += e.Array.LocalBytes()
		}
	}
	return n
}

// Params returns the declarations of the parameters.
func (s *State) Params() []Param { return slices.Clone(s.params) }

// Destroy releases the device memory.
func (s *State) Destroy() {
	DestroyAll(s.values)
	for _, slots := range s.slots {
		DestroyAll(slots)
	}
}
