package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomlx/compute/dtypes"

	"weft/engine/sharding"
)

// Batch is this process's rows of one global batch, row-major int32 [rows, SeqLen]; Rows lists which rows they are.
type Batch struct {
	InputIDs, Labels, Mask []int32
	Rows                   []RowRange
	// Request is what this process asks all for with this step. An evaluation leaves it aside.
	Request Request
}

// RowRange is the rows [Start, End) of a global batch.
type RowRange struct{ Start, End int }

// batchNames are in the order in which a program takes its batch.
var batchNames = []string{"input_ids", "labels", "mask"}

// batchInputs declares the batch as arguments of a program.
func (c StepConfig) batchInputs() []Input {
	var inputs []Input
	for _, name := range batchNames {
		inputs = append(inputs, Input{Name: name, DType: dtypes.Int32, Dims: []int{c.Batch, c.SeqLen}, Spec: c.BatchSpec})
	}
	return inputs
}

// sendBatch sends a batch to the devices. The arrays are those sent, also when it fails.
func (rt *Runtime) sendBatch(c StepConfig, batch Batch) ([]*Array, error) {
	var out []*Array
	for i, values := range [][]int32{batch.InputIDs, batch.Labels, batch.Mask} {
		a, err := rt.NewArray(dtypes.Int32, []int{c.Batch, c.SeqLen}, c.BatchSpec, rowFill(batch.Rows, c.SeqLen, values))
		if err != nil {
			return out, fmt.Errorf("send %s: %w", batchNames[i], err)
		}
		out = append(out, a)
	}
	return out, nil
}

// rowFill serves regions of whole rows, of a width, of the global batch from this process's rows.
func rowFill(rows []RowRange, width int, values []int32) Fill {
	return func(r sharding.Region, dst []byte) error {
		first, end := r.Start[0], r.Start[0]+r.Size[0]
		local := 0
		for _, have := range rows {
			if first >= have.Start && end <= have.End && r.Size[1] == width {
				from := (local + first - have.Start) * width
				_, err := binary.Encode(dst, binary.NativeEndian, values[from:from+r.Size[0]*width])
				return err
			}
			local += have.End - have.Start
		}
		return errors.New("this process's batch lacks rows " + strconv.Itoa(first) + " to " + strconv.Itoa(end))
	}
}

// EmptyBatch is this process's rows without a token: they have no target and add nothing to a step.
func (s *Step) EmptyBatch() Batch {
	b := Batch{Rows: s.BatchRows()}
	for _, r := range b.Rows {
		n := (r.End - r.Start) * s.config.SeqLen
		b.InputIDs, b.Mask = append(b.InputIDs, make([]int32, n)...), append(b.Mask, make([]int32, n)...)
		for range n {
			b.Labels = append(b.Labels, noTarget)
		}
	}
	return b
}

// noTarget is the label of a position that is not learned from.
const noTarget = -100

// BatchRows returns the rows of the global batch that this process's devices hold, in order.
func (s *Step) BatchRows() []RowRange { return s.rt.BatchRows(s.config) }

// BatchRows returns the rows of a global batch that this process's devices hold, merged and in order.
func (rt *Runtime) BatchRows(c StepConfig) []RowRange {
	var out []RowRange
	for _, p := range rt.local {
		r := c.BatchSpec.ShardOf(rt.mesh, []int{c.Batch, c.SeqLen}, p)
		next := RowRange{Start: r.Start[0], End: r.Start[0] + r.Size[0]}
		switch last := len(out) - 1; {
		case last >= 0 && next.Start >= out[last].Start && next.End <= out[last].End:
		case last >= 0 && next.Start == out[last].End:
			out[last].End = next.End
		default:
			out = append(out, next)
		}
	}
	return out
}
