package engine

import (
	"slices"

	"weft/engine/sharding"
	"weft/pjrt"
)

// Devices describes the device of every mesh position, those of other processes too.
func (rt *Runtime) Devices() []*pjrt.DeviceDescription { return descriptions(rt.devices) }

// Owners returns the process, as Process counts them, that each mesh position's device belongs to.
func (rt *Runtime) Owners() []int { return slices.Clone(rt.owners) }

// Wait returns once every local shard is computed, with the error of the program that makes it.
func (a *Array) Wait() error {
	ready := make([]*pjrt.Event, 0, len(a.shards))
	for _, b := range a.shards {
		e, err := b.ReadyEvent()
		if err != nil {
			_ = pjrt.AwaitAll(ready)
			return err
		}
		ready = append(ready, e)
	}
	return pjrt.AwaitAll(ready)
}

// FromText wraps a program that was written by hand: StableHLO text with Shardy annotations for the mesh, whose main
// function takes the inputs and gives the outputs. It donates nothing.
func FromText(mesh sharding.Mesh, name string, text []byte, inputs, outputs []Input) *Lowered {
	return &Lowered{Name: name, Text: text, Mesh: mesh, Inputs: inputs, Outputs: outputs, consumed: make([]bool, len(inputs))}
}
