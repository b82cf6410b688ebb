package job

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"weft/engine/trainer"
	"weft/models/hf"
)

// blame finds the cause of a first step whose loss or gradient norm is not finite in the weights that it was given, if it is there:
// then no setting helps. Only a run that has failed already pays for reading them again; of several hosts the first does.
func (r *run) blame(ctx context.Context, err error) error {
	var e *trainer.NonFiniteError
	if !errors.As(err, &e) || e.Step != r.start().Step+1 || r.model.source == nil || r.process() > 0 {
		return err
	}
	r.enterPhase("the search for a weight that is not finite", r.CompileDeadline)
	var tensors []hf.Tensor
	for _, t := range r.model.exported {
		// What is trained comes from the checkpoint where there is one, and was compared with its checksum.
		if t.Param != nil && (r.from == nil || !t.Param.Trainable) {
			tensors = append(tensors, t)
		}
	}
	found, scanErr := r.model.nonFinite(ctx, tensors)
	switch {
	case scanErr != nil:
		return fmt.Errorf("%w; looking for the cause in the weights: %w", err, scanErr)
	case len(found) == 0:
		return err
	}
	more := ""
	if n := len(found) - 1; n > 0 {
		more = fmt.Sprintf(", and %s too", plural(n, "other tensor", "other tensors"))
	}
	return fmt.Errorf("step %d (epoch %d): the loss is %v and the gradient norm %v, since the weights are: tensor %s of --model-id %s holds %s NaN or infinite as %s%s: get the model again, or one that is whole",
		e.Step, e.Epoch, e.Loss, e.GradNorm, found[0].tensor.Name, r.ModelID, plural(found[0].values, "value that is", "values that are"), strings.ToLower(found[0].tensor.Param.DType.String()), more)
}

// badTensor is a tensor with values that are NaN or infinite.
type badTensor struct {
	tensor hf.Tensor
	values int
}

// nonFiniteElements bounds how much of a tensor is held at a time.
const nonFiniteElements = 1 << 22

// nonFinite looks at the values of tensors as the devices got them, and returns those tensors that have one which is not finite.
func (m *model) nonFinite(ctx context.Context, tensors []hf.Tensor) (out []badTensor, err error) {
	var buf []byte
	for _, t := range tensors {
		bad := badTensor{tensor: t}
		for region := range regionsOf(t.Shape, nonFiniteElements) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			n := region.Elements() * t.Param.DType.Size()
			if n > len(buf) {
				buf = make([]byte, n)
			}
			if err := m.fill(*t.Param, t.Region(region), buf[:n]); err != nil {
				return nil, err
			}
			bad.values += countNonFinite(t.Param.DType, buf[:n])
		}
		if bad.values > 0 {
			out = append(out, bad)
		}
	}
	return out, nil
}

// countNonFinite counts the values, of a dtype of parameters, whose exponent has all bits set.
func countNonFinite(d dtypes.DType, values []byte) (n int) {
	if d == dtypes.Float32 {
		const exponent = 0xff << 23
		for ; len(values) > 0; values = values[4:] {
			if binary.LittleEndian.Uint32(values)&exponent == exponent {
				n++
			}
		}
		return n
	}
	exponent := uint16(0xff << 7) // bfloat16
	if d == dtypes.Float16 {
		exponent = 0x1f << 10
	}
	for ; len(values) > 0; values = values[2:] {
		if binary.LittleEndian.Uint16(values)&exponent == exponent {
			n++
		}
	}
	return n
}
