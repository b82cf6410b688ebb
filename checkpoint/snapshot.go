package checkpoint

import (
	"encoding/json"
	"fmt"
	"strings"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// DType is an element type, spelled as in safetensors ("F32", "BF16"…).
type DType = safetensors.DType

// Tensor is a global tensor as this process sees it. The state's tensors are, name for name, the same in all processes that
// save together.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int // global shape, empty for a scalar
	Shards []Shard
	// From, in a tensor of a ModelFolder and instead of Shards, says that it is a region of a tensor of the state, to be
	// converted to this tensor's dtype. It is read back from what was written, so that any process's slices may hold it.
	From *Region
}

// Region is a hyper-rectangle of a tensor of the state. As a model's tensor it has the shape Size, or that without leading
// dimensions of 1.
type Region struct {
	Tensor      string // name in Snapshot.State
	Start, Size []int  // in elements
}

// Shard is one slice of a tensor that this process must write. The caller
// leaves replicas out: together the shards of a tensor cover it exactly once.
type Shard struct {
	Start, Size []int // in elements, of the rank of the tensor
	// Fetch fills dst with the slice's bytes, row-major and little-endian, in
	// the tensor's dtype; dst has exactly their length. It is not called for an
	// empty slice. Manager.Save calls it from one goroutine at a time and once
	// for each use; Async calls those of different slices concurrently, and again
	// when a write is tried again.
	Fetch func(dst []byte) error
	// Part, in a tensor of a ModelFolder and instead of Fetch, says that the
	// slice is a part of the state of the same snapshot, to be converted to the
	// tensor's dtype: so it is taken off the device once. All slices of a tensor
	// have it or none.
	Part *Part
}

// Part is a run of elements of one slice of the state.
type Part struct {
	Tensor string // name in Snapshot.State
	Shard  int    // index in that tensor's Shards
	Offset int64  // of the first element, in elements of that slice
}

// Snapshot is what one checkpoint holds.
type Snapshot struct {
	Step, Epoch int                // optimizer steps and epochs done
	Metrics     map[string]float64 // e.g. "loss", for retention and listing
	Data        json.RawMessage    // position in the data, opaque here
	Config      json.RawMessage    // the run's config, opaque here
	Versions    map[string]string  // of what wrote it
	State       []Tensor           // master weights, moments, counters
	Model       *ModelFolder       // nil: state only
	// Before, when set, makes durable what the checkpoint stands on. It is called ahead of each attempt at writing, from the
	// goroutine that writes; its error is the attempt's.
	Before func() error
}

// ModelFolder is a Hugging Face folder to be written.
type ModelFolder struct {
	// Tensors in the order in which shard files are filled; names and dtypes as
	// they shall be in the files. Fetch converts.
	Tensors []Tensor
	// Files are copied beside the weights: config.json, tokenizer.json…
	Files map[string][]byte
	// MaxShardSize is the limit of one weights file in bytes, without its
	// header; 0 is DefaultMaxShardSize. A larger tensor gets a file of its own.
	MaxShardSize int64
}

// DefaultMaxShardSize is the size at which Hugging Face splits weights: 5 GB.
const DefaultMaxShardSize = 5_000_000_000

// bytes returns the size of the whole tensor.
func (t *Tensor) bytes() int64 {
	n, _ := region.Bytes(t.Shape, t.DType.Size())
	return n
}

// byName maps the names of tensors to their indices.
func byName(tensors []Tensor) map[string]int {
	index := make(map[string]int, len(tensors))
	for i := range tensors {
		index[tensors[i].Name] = i
	}
	return index
}

// checkTensors validates dtypes, shapes, that shards tile each tensor (unless they are only those of one process), and that
// Parts and regions lie in the state.
func checkTensors(what string, tensors, state []Tensor, some bool) error {
	index := byName(state)
	seen := make(map[string]bool, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%w: %s tensor %q: %s", ErrSnapshot, what, t.Name, fmt.Sprintf(format, args...))
		}
		if seen[t.Name] {
			return fail("it is there twice")
		}
		seen[t.Name] = true
		if t.DType.Size() == 0 {
			return fail("unknown dtype %q", string(t.DType))
		}
		if _, err := region.Bytes(t.Shape, t.DType.Size()); err != nil {
			return fail("%v", err)
		}
		if t.From != nil {
			if err := t.checkFrom(state, index); err != nil {
				return fail("%v", err)
			}
			continue
		}
		if err := t.checkShards(some); err != nil {
			return fail("%v", err)
		}
		if err := t.checkBytes(state, index); err != nil {
			return fail("%v", err)
		}
	}
	return nil
}

// checkShards checks that the shards cover the tensor exactly once, or, of some of them, that they lie in it.
func (t *Tensor) checkShards(some bool) error {
	if some {
		for _, s := range t.Shards {
			if err := region.Check(t.Shape, s.Start, s.Size); err != nil {
				return err
			}
		}
		return nil
	}
	err := region.Tiles(t.Shape, len(t.Shards), func(i int) ([]int, []int) { return t.Shards[i].Start, t.Shards[i].Size })
	if err != nil {
		return fmt.Errorf("its shards do not cover it exactly once: %w", err)
	}
	return nil
}

// check validates the snapshot of one of so many processes.
func (s *Snapshot) check(processes int) error {
	if s.Step < 0 || s.Epoch < 0 {
		return fmt.Errorf("%w: step %d, epoch %d", ErrSnapshot, s.Step, s.Epoch)
	}
	for name, raw := range map[string]json.RawMessage{"data": s.Data, "config": s.Config} {
		if len(raw) > 0 && !json.Valid(raw) {
			return fmt.Errorf("%w: its %s is not JSON", ErrSnapshot, name)
		}
	}
	if err := checkTensors("state", s.State, nil, processes > 1); err != nil {
		return err
	}
	if s.Model == nil {
		return nil
	}
	return s.Model.check(s.State)
}

func (m *ModelFolder) check(state []Tensor) error {
	for name := range m.Files {
		if name == "" || strings.ContainsAny(name, "/\\\x00") || name[0] == '.' || strings.HasSuffix(name, ".safetensors") || name == safetensors.IndexFile {
			return fmt.Errorf("%w: model file name %q is not a plain name or belongs to the weights", ErrSnapshot, name)
		}
	}
	return checkTensors("model", m.Tensors, state, false)
}
