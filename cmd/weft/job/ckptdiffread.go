package job

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/x448/float16"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/checkpoint/storage"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/models/hf"
)

// Kinds of a DiffSide.
const (
	kindCheckpoint = "checkpoint"
	kindFolder     = "model folder"
)

// diffElements is how many elements of a tensor are held at a time.
const diffElements = 1 << 20

// diffSource is an open side of a comparison: a checkpoint, or a model folder when place is nil.
type diffSource struct {
	side   DiffSide
	place  *ckptPlace
	entry  checkpoint.Entry
	reader *checkpoint.StateReader
	// model is the checkpoint as a model, opened when it is needed and can be.
	model *ckptModel
	set   *safetensors.Set
}

// diffTensor is a tensor of a side.
type diffTensor struct {
	name  string
	dtype safetensors.DType
	shape []int
	read  func(r sharding.Region, dst []byte) error
}

// openDiffSource opens a checkpoint, the newest checkpoint of a run's folder, or a model folder.
func openDiffSource(ctx context.Context, url string) (*diffSource, error) {
	fsys, name, err := storage.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	there, err := fsys.List(name)
	weights := slices.ContainsFunc(there, func(d checkpoint.DirEntry) bool { return strings.HasSuffix(d.Name, ".safetensors") })
	if err == nil && weights && !has(there, checkpoint.ManifestFile) {
		set, err := storage.OpenWeights(ctx, url)
		if err != nil {
			return nil, err
		}
		return &diffSource{side: DiffSide{Path: url, Kind: kindFolder}, set: set}, nil
	}
	p, err := openCheckpoints(ctx, url)
	if err != nil {
		return nil, err
	}
	e, err := p.newest()
	if err != nil {
		return nil, err
	}
	s := &diffSource{place: p, entry: e}
	if s.reader, err = p.manager.OpenState(e); err != nil {
		return nil, err
	}
	m := s.reader.Manifest()
	s.side = DiffSide{Path: p.shown(e), Kind: kindCheckpoint, Step: m.Step, Epoch: m.Epoch}
	s.side.Devices, _ = writtenBy(m)
	return s, nil
}

func (s *diffSource) close() error {
	var errs []error
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.model != nil {
		errs = append(errs, s.model.close())
	}
	if s.set != nil {
		errs = append(errs, s.set.Close())
	}
	return errors.Join(errs...)
}

// pairUp lists the tensors of both sides under names that mean the same.
func pairUp(ctx context.Context, a, b *diffSource, state bool) (listA, listB []diffTensor, notes []string, err error) {
	switch {
	case a.place == nil && b.place == nil:
		return a.files(prefixes{}), b.files(prefixes{}), nil, nil
	case a.place != nil && b.place != nil:
		return pairStates(ctx, a, b, state)
	case a.place == nil:
		listB, listA, notes, err = pairMixed(ctx, b, a)
		return listA, listB, notes, err
	}
	return pairMixed(ctx, a, b)
}

// pairStates lists two train states: by the names of the Hugging Face folder, in which it does not count how layers are
// stacked; by those of the state where the model's configuration is not at hand.
func pairStates(ctx context.Context, a, b *diffSource, state bool) (listA, listB []diffTensor, notes []string, err error) {
	var errA, errB error
	a.model, errA = openCkptNames(ctx, a.place, a.entry)
	b.model, errB = openCkptNames(ctx, b.place, b.entry)
	switch {
	case ctx.Err() != nil:
		return nil, nil, nil, ctx.Err()
	case errA != nil || errB != nil:
		notes = append(notes, "tensors have the names of the train state, since a model's configuration is not at hand: "+OneLine(cmp.Or(errA, errB)))
		a.drop()
		b.drop()
	case a.model.record.Settings.ModelContent != b.model.record.Settings.ModelContent:
		notes = append(notes, "the runs began with different models; frozen tensors are not compared")
	}
	return a.trained(state), b.trained(state), notes, nil
}

// drop closes the model.
func (s *diffSource) drop() {
	if s.model != nil {
		_ = s.model.close()
		s.model = nil
	}
}

// pairMixed lists a checkpoint as a whole model, and a folder's tensors under the names that the model gives them.
func pairMixed(ctx context.Context, ckpt, folder *diffSource) (ofCkpt, ofFolder []diffTensor, notes []string, err error) {
	if ckpt.model, err = openCkptModel(ctx, ckpt.place, ckpt.entry, ""); err != nil {
		return nil, nil, nil, err
	}
	m := ckpt.model
	for _, t := range m.tensors() {
		d := diffTensor{name: t.Name, dtype: t.DType, shape: t.Shape}
		if t.Param == nil {
			d.read = func(r sharding.Region, dst []byte) error {
				return m.source.Set().ReadRegion(t.Name, r.Start, r.Size, dst)
			}
		} else {
			d.dtype = safetensors.F32
			d.read = func(r sharding.Region, dst []byte) error { return m.read(*t.Param, t.Region(r), dst) }
		}
		if m.frozenDType(t) != "" {
			// As it lies in the files: widening would be no change of the model.
			wide := d.read
			d.dtype = m.frozenDType(t)
			d.read = func(r sharding.Region, dst []byte) error {
				raw := make([]byte, r.Elements()*4)
				if err := wide(r, raw); err != nil {
					return err
				}
				return safetensors.Convert(dst, d.dtype, raw, safetensors.F32)
			}
		}
		ofCkpt = append(ofCkpt, d)
	}
	ofFolder = folder.files(m.ownPrefix())
	derived := func(t diffTensor) bool { return m.math.Classify(t.name, "") == arch.Derived }
	if slices.ContainsFunc(ofFolder, derived) {
		ofFolder = slices.DeleteFunc(ofFolder, derived)
		notes = append(notes, "the head in "+folder.side.Path+", which repeats the embedding, is not compared")
	}
	return ofCkpt, ofFolder, notes, nil
}

// frozenDType is the dtype in the files of a parameter that is not trained, "" for others.
func (m *ckptModel) frozenDType(t hf.Tensor) safetensors.DType {
	if t.Param == nil || t.Param.Trainable {
		return ""
	}
	return t.DType
}

// ownPrefix is what the names of the text model begin with in the checkpoint's folder.
func (m *ckptModel) ownPrefix() prefixes {
	first := m.math.Params()[0].Sources[0]
	own := m.math.TextPrefixes()[0]
	if m.source != nil {
		own = strings.TrimSuffix(m.source.Name(first), strings.TrimPrefix(first, "model."))
	}
	return prefixes{own: own, all: m.math.TextPrefixes(), first: strings.TrimPrefix(first, "model.")}
}

// trained lists what the train state has: the trained parameters, with slots also the optimizer's.
func (s *diffSource) trained(slots bool) []diffTensor {
	var out []diffTensor
	for _, t := range s.reader.Tensors() {
		name, slot, isSlot := strings.Cut(t.Name, "/")
		if isSlot && !slots {
			continue
		}
		whole := func(r sharding.Region, dst []byte) error { return s.reader.ReadRegion(t.Name, r.Start, r.Size, dst) }
		if s.model == nil {
			out = append(out, diffTensor{name: t.Name, dtype: t.DType, shape: t.Shape, read: whole})
			continue
		}
		for _, x := range s.model.tensors() {
			if x.Param == nil || x.Param.Name != name {
				continue
			}
			d := diffTensor{name: x.Name, dtype: t.DType, shape: x.Shape}
			if isSlot {
				d.name += "/" + slot
			}
			d.read = func(r sharding.Region, dst []byte) error { return whole(x.Region(r), dst) }
			out = append(out, d)
		}
	}
	return out
}

// prefixes say how names of a text model are spelled in one folder and may be in another.
type prefixes struct {
	own, first string
	all        []string
}

// files lists a model folder. With prefixes the names are spelled as in the other folder.
func (s *diffSource) files(p prefixes) []diffTensor {
	theirs := p.own
	for _, candidate := range p.all {
		if _, ok := s.set.Lookup(candidate + p.first); ok {
			theirs = candidate
			break
		}
	}
	var out []diffTensor
	for _, info := range s.set.Tensors() {
		name := info.Name
		if rest, ok := strings.CutPrefix(name, theirs); ok && theirs != "" {
			name = p.own + rest
		}
		out = append(out, diffTensor{name: name, dtype: info.DType, shape: info.Shape, read: func(r sharding.Region, dst []byte) error {
			return s.set.ReadRegion(info.Name, r.Start, r.Size, dst)
		}})
	}
	return out
}

// regionsOf cuts a tensor into regions of at most limit elements, in row-major order.
func regionsOf(shape []int, limit int) iter.Seq[sharding.Region] {
	return func(yield func(sharding.Region) bool) {
		cutRegion(sharding.Region{Start: make([]int, len(shape)), Size: slices.Clone(shape)}, 0, limit, yield)
	}
}

func cutRegion(r sharding.Region, dim, limit int, yield func(sharding.Region) bool) bool {
	n := r.Elements()
	if n == 0 {
		return true
	}
	if n <= limit || dim == len(r.Size) {
		return yield(r)
	}
	rows := max(1, limit/(n/r.Size[dim]))
	for at := 0; at < r.Size[dim]; at += rows {
		part := sharding.Region{Start: slices.Clone(r.Start), Size: slices.Clone(r.Size)}
		part.Start[dim], part.Size[dim] = r.Start[dim]+at, min(rows, r.Size[dim]-at)
		if !cutRegion(part, dim+1, limit, yield) {
			return false
		}
	}
	return true
}

// decoder gives the value of an element of a dtype.
func decoder(d safetensors.DType) func([]byte) float64 {
	le := binary.LittleEndian
	switch d {
	case safetensors.F32:
		return func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case safetensors.BF16:
		return func(b []byte) float64 { return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)) }
	case safetensors.F16:
		return func(b []byte) float64 { return float64(float16.Frombits(le.Uint16(b)).Float32()) }
	case safetensors.F64:
		return func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }
	case safetensors.I64:
		return func(b []byte) float64 { return float64(int64(le.Uint64(b))) }
	case safetensors.I32:
		return func(b []byte) float64 { return float64(int32(le.Uint32(b))) }
	case safetensors.I16:
		return func(b []byte) float64 { return float64(int16(le.Uint16(b))) }
	case safetensors.I8:
		return func(b []byte) float64 { return float64(int8(b[0])) }
	case safetensors.U64:
		return func(b []byte) float64 { return float64(le.Uint64(b)) }
	case safetensors.U32:
		return func(b []byte) float64 { return float64(le.Uint32(b)) }
	case safetensors.U16:
		return func(b []byte) float64 { return float64(le.Uint16(b)) }
	}
	return func(b []byte) float64 { return float64(b[0]) }
}
