package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// derivedBlock bounds, in elements, what of a derived tensor is in memory at once.
const derivedBlock = 256 << 10

// derived tells that the tensor is made of the state.
func (t *Tensor) derived() bool {
	for i := range t.Shards {
		if t.Shards[i].Part != nil {
			return true
		}
	}
	return false
}

// checkBytes checks that every shard says where its bytes come from.
func (t *Tensor) checkBytes(state []Tensor, index map[string]int) error {
	derived := t.derived()
	for i := range t.Shards {
		s := &t.Shards[i]
		switch {
		case !derived && s.Fetch == nil:
			return fmt.Errorf("a shard has no Fetch")
		case derived && (s.Part == nil || s.Fetch != nil):
			return fmt.Errorf("its shards must have either Fetch or Part, all alike")
		case derived:
			if err := t.checkPart(s, state, index); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tensor) checkPart(s *Shard, state []Tensor, index map[string]int) error {
	at, ok := index[s.Part.Tensor]
	if !ok {
		return fmt.Errorf("a shard is part of %q, which the state does not have", s.Part.Tensor)
	}
	of := &state[at]
	if !safetensors.CanConvert(t.DType, of.DType) {
		return fmt.Errorf("%s cannot be made from the %s of %q", t.DType, of.DType, of.Name)
	}
	if s.Part.Shard < 0 || s.Part.Shard >= len(of.Shards) {
		return fmt.Errorf("a shard is part of slice %d of %q, which has %d", s.Part.Shard, of.Name, len(of.Shards))
	}
	need, err := region.Volume(s.Size)
	if err != nil {
		return err
	}
	have, err := region.Volume(of.Shards[s.Part.Shard].Size)
	if err != nil {
		return err
	}
	if s.Part.Offset < 0 || s.Part.Offset > have-need {
		return fmt.Errorf("a shard of %d elements begins at %d of slice %d of %q, which has %d", need, s.Part.Offset, s.Part.Shard, of.Name, have)
	}
	return nil
}

// derivedSource makes the tensor of the state's slices, block by block in the order of its bytes.
func (t *Tensor) derivedSource(state []Tensor, index map[string]int) source {
	return func(ctx context.Context, buf *buffers, emit func([]byte) error) error {
		d := derivation{t: t, held: make([][]byte, len(t.Shards))}
		for i := range t.Shards {
			key, ok := t.partKey(i, index)
			if !ok {
				continue
			}
			b, err := buf.state.use(ctx, key)
			if err != nil {
				return err
			}
			defer buf.state.done(key)
			d.from, d.held[i] = state[key.tensor].DType, b
		}
		for start, size := range blocks(t.Shape, derivedBlock) {
			b, err := d.block(start, size, &buf.block)
			if err != nil {
				return err
			}
			if err := emit(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// partKey names the state's slice that shard i is made of; ok is false for an empty one.
func (t *Tensor) partKey(i int, index map[string]int) (key sliceKey, ok bool) {
	s := &t.Shards[i]
	if v, _ := region.Volume(s.Size); v == 0 {
		return key, false
	}
	return sliceKey{tensor: index[s.Part.Tensor], shard: s.Part.Shard, model: true}, true
}

// derivation is a tensor being made; held are the state's slices, by shard.
type derivation struct {
	t    *Tensor
	from DType
	held [][]byte
}

// block returns the bytes of one box, in buf or, where nothing is to be changed, in the slice itself.
func (d *derivation) block(start, size []int, buf *[]byte) ([]byte, error) {
	n, err := region.Bytes(size, d.t.DType.Size())
	if err != nil {
		return nil, err
	}
	from, to := int64(d.from.Size()), int64(d.t.DType.Size())
	out := grow(buf, n)
	for i := range d.t.Shards {
		s := &d.t.Shards[i]
		at, part, ok := region.Intersect(s.Start, s.Size, start, size)
		if !ok {
			continue
		}
		runs := region.NewRuns(s.Start, s.Size, start, size, at, part, 1)
		for {
			src, dst, count, ok := runs.Next()
			if !ok {
				break
			}
			src += s.Part.Offset
			b := d.held[i][src*from : (src+count)*from]
			if d.from == d.t.DType && int64(len(b)) == n {
				return b, nil
			}
			if err := safetensors.Convert(out[dst*to:(dst+count)*to], d.t.DType, b, d.from); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", d.t.Name, err)
			}
		}
	}
	return out, nil
}

// blocks cuts a shape into boxes of at most limit elements (more only when limit is 0), each one run of the tensor's bytes,
// in their order.
func blocks(shape []int, limit int) iter.Seq2[[]int, []int] {
	return func(yield func(start, size []int) bool) {
		if v, err := region.Volume(shape); err != nil || v == 0 {
			return
		}
		// Dimension cut is taken in chunks, those after it whole, those before it one index at a time.
		cut, inner := len(shape)-1, 1
		for cut > 0 && inner*shape[cut] <= limit {
			inner *= shape[cut]
			cut--
		}
		if cut < 0 {
			yield(nil, nil)
			return
		}
		chunk := max(1, limit/inner)
		index := make([]int, cut)
		for {
			for at := 0; at < shape[cut]; at += chunk {
				start, size := make([]int, len(shape)), make([]int, len(shape))
				copy(size, shape)
				copy(start, index)
				for d := range cut {
					size[d] = 1
				}
				start[cut], size[cut] = at, min(chunk, shape[cut]-at)
				if !yield(start, size) {
					return
				}
			}
			d := cut - 1
			for ; d >= 0; d-- {
				if index[d]++; index[d] < shape[d] {
					break
				}
				index[d] = 0
			}
			if d < 0 {
				return
			}
		}
	}
}

// checkFrom checks that the tensor is a region of the state.
func (t *Tensor) checkFrom(state []Tensor, index map[string]int) error {
	at, ok := index[t.From.Tensor]
	if !ok {
		return fmt.Errorf("it is a region of %q, which the state does not have", t.From.Tensor)
	}
	of := &state[at]
	if len(t.Shards) > 0 {
		return errors.New("it has both shards and a region of the state")
	}
	if of.DType != t.DType && !safetensors.CanConvert(t.DType, of.DType) {
		return fmt.Errorf("%s cannot be made from the %s of %q", t.DType, of.DType, of.Name)
	}
	if err := region.Check(of.Shape, t.From.Start, t.From.Size); err != nil {
		return fmt.Errorf("it is a region of %q: %w", of.Name, err)
	}
	ones := len(t.From.Size) - len(t.Shape)
	if ones < 0 || !slices.Equal(t.From.Size[ones:], t.Shape) || slices.ContainsFunc(t.From.Size[:ones], func(n int) bool { return n != 1 }) {
		return fmt.Errorf("its shape is %v, that of its region of %q is %v", t.Shape, of.Name, t.From.Size)
	}
	return nil
}

// fromBlock bounds, in elements, what of a tensor that is read back is in memory at once.
const fromBlock = 16 << 20

// fromSource reads the tensor's region of the state back, block by block in the order of its bytes.
func (t *Tensor) fromSource() source {
	return func(ctx context.Context, buf *buffers, emit func([]byte) error) error {
		for start, size := range blocks(t.Shape, fromBlock) {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := region.Bytes(size, t.DType.Size())
			if err != nil {
				return err
			}
			ones := len(t.From.Size) - len(t.Shape)
			at, part := slices.Clone(t.From.Start), slices.Clone(t.From.Size)
			for d := range t.Shape {
				at[ones+d] += start[d]
				part[ones+d] = size[d]
			}
			out := grow(&buf.block, n)
			if err := buf.written.ReadRegionAs(t.From.Tensor, t.DType, at, part, out); err != nil {
				return err
			}
			if err := emit(out); err != nil {
				return err
			}
		}
		return nil
	}
}
