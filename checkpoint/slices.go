package checkpoint

import (
	"context"

	"weft/checkpoint/internal/region"
)

// stateBytes gives the bytes of the state's slices while a checkpoint is written.
type stateBytes interface {
	// use returns the bytes of a slice. They are valid until the done that belongs to this use.
	use(ctx context.Context, key sliceKey) ([]byte, error)
	done(key sliceKey)
}

// sliceKey names a slice of the state: indices in Snapshot.State and in that tensor's Shards, and what it is used for.
type sliceKey struct {
	tensor, shard int
	model         bool // for the model folder, not for the state
}

// load is a slice that writing needs, in the order in which it needs them.
type load struct {
	key   sliceKey
	bytes int64
	uses  int // how often
}

// loadPlan is what writing needs of the state.
type loadPlan struct {
	loads []load // first those for the state's files, then those for the model's
	// together are the loads that one tensor uses at once, as indices, in the order of writing.
	together [][]int
}

func planLoads(state []Tensor, parts []statePart, model []planned) *loadPlan {
	p := &loadPlan{}
	add := func(k sliceKey) int {
		n, _ := region.Bytes(state[k.tensor].Shards[k.shard].Size, state[k.tensor].DType.Size())
		p.loads = append(p.loads, load{key: k, bytes: n})
		return len(p.loads) - 1
	}
	use := func(at ...int) {
		for _, i := range at {
			p.loads[i].uses++
		}
		p.together = append(p.together, at)
	}
	for _, part := range parts {
		for i := range part.tensors {
			use(add(sliceKey{tensor: part.tensors[i], shard: part.shards[i]}))
		}
	}
	index, seen := byName(state), map[sliceKey]int{}
	for _, f := range model {
		if f.tensors == nil {
			continue
		}
		for _, t := range f.tensors.model {
			if !t.derived() {
				continue
			}
			var at []int
			for i := range t.Shards {
				k, ok := t.partKey(i, index)
				if !ok {
					continue
				}
				if _, ok := seen[k]; !ok {
					seen[k] = add(k)
				}
				at = append(at, seen[k])
			}
			use(at...)
		}
	}
	return p
}

// fetched is the stateBytes of a save that blocks: a slice is fetched at its first use and let go after its last.
type fetched struct {
	state []Tensor
	left  map[sliceKey]int
	held  map[sliceKey][]byte
	spare []byte // of a slice let go
}

func newFetched(state []Tensor, loads []load) *fetched {
	f := &fetched{state: state, left: map[sliceKey]int{}, held: map[sliceKey][]byte{}}
	for _, l := range loads {
		f.left[l.key] = l.uses
	}
	return f
}

func (f *fetched) use(ctx context.Context, key sliceKey) ([]byte, error) {
	if b, ok := f.held[key]; ok {
		return b, nil
	}
	t := &f.state[key.tensor]
	buf := f.spare
	f.spare = nil
	b, err := t.fetch(ctx, t.Shards[key.shard], &buf)
	if err != nil {
		return nil, err
	}
	f.held[key] = b
	return b, nil
}

func (f *fetched) done(key sliceKey) {
	if f.left[key]--; f.left[key] > 0 {
		return
	}
	if b := f.held[key]; cap(b) > cap(f.spare) {
		f.spare = b
	}
	delete(f.held, key)
}
