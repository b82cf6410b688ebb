package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"path"
	"slices"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// planned is one file to be written, of a size known before the first byte.
type planned struct {
	path    string // inside of the folder
	content []byte // of a plain file
	tensors *tensorFile
}

// tensorFile is a safetensors file to be written.
type tensorFile struct {
	infos    []safetensors.Info
	sources  []source  // one for each of infos
	model    []*Tensor // of a file of weights, one for each of infos
	metadata map[string]string
	size     int64 // with the header
}

// source hands the bytes of a file's tensor to emit, in order.
type source func(ctx context.Context, buf *buffers, emit func([]byte) error) error

// buffers are the host memory of writing one file: a slice being fetched and, for a tensor whose slices are interleaved
// in the file, the whole tensor; a block of a tensor that is made of the state.
type buffers struct {
	slice        *[]byte
	whole, block []byte
	state        stateBytes
	written      *StateReader // of what all processes have written, for a model folder made of that
}

// newBuffers are those for files made of these bytes of the state; a save that fetches by itself lends its own buffer.
func newBuffers(from stateBytes) *buffers {
	if f, ok := from.(*fetched); ok {
		return &buffers{slice: &f.spare, state: from}
	}
	return &buffers{slice: new([]byte), state: from}
}

func grow(b *[]byte, n int64) []byte {
	if int64(cap(*b)) < n {
		*b = nil // the old one must be free before the new one is there
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// statePart is the state file of one shard index: slices of several tensors.
type statePart struct {
	planned
	tensors []int // for each entry of the file, the index in State
	shards  []int // and in that tensor's Shards
}

// stateFileName has the process in it: several write into one checkpoint without meeting.
func stateFileName(process, shard int) string {
	return path.Join(StateDir, fmt.Sprintf("process-%04d-shard-%05d.safetensors", process, shard))
}

// planState puts the i-th shard of every tensor into the i-th file: with one
// shard a device, one file a device.
func planState(state []Tensor, process int) ([]statePart, error) {
	var parts []statePart
	for ti := range state {
		n := 0
		for si, s := range state[ti].Shards {
			if v, _ := region.Volume(s.Size); v == 0 {
				continue
			}
			if n == len(parts) {
				parts = append(parts, statePart{})
			}
			parts[n].tensors = append(parts[n].tensors, ti)
			parts[n].shards = append(parts[n].shards, si)
			n++
		}
	}
	for i := range parts {
		if err := parts[i].layout(stateFileName(process, i), state); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (p *statePart) layout(name string, state []Tensor) error {
	// Larger elements first keeps every slice aligned.
	order := make([]int, len(p.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return state[p.tensors[b]].DType.Size() - state[p.tensors[a]].DType.Size()
	})
	tensors, shards := make([]int, len(order)), make([]int, len(order))
	tf := &tensorFile{}
	for i, o := range order {
		tensors[i], shards[i] = p.tensors[o], p.shards[o]
		t, key := &state[tensors[i]], sliceKey{tensor: tensors[i], shard: shards[i]}
		tf.infos = append(tf.infos, safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shards[shards[i]].Size})
		tf.sources = append(tf.sources, func(ctx context.Context, buf *buffers, emit func([]byte) error) error {
			b, err := buf.state.use(ctx, key)
			if err != nil {
				return err
			}
			defer buf.state.done(key)
			return emit(b)
		})
	}
	p.tensors, p.shards = tensors, shards
	p.planned = planned{path: name, tensors: tf}
	return tf.measure(name)
}

func (f *tensorFile) measure(name string) error {
	h, head, err := safetensors.EncodeHeader(name, f.infos, f.metadata)
	if err != nil {
		return err
	}
	f.size = int64(len(head))
	if n := len(h.Tensors); n > 0 {
		f.size += h.Tensors[n-1].End
	}
	return nil
}

// fetch gets the bytes of one shard of t into buf.
func (t *Tensor) fetch(ctx context.Context, s Shard, buf *[]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, err := region.Bytes(s.Size, t.DType.Size())
	if err != nil {
		return nil, err
	}
	b := grow(buf, n)
	if err := s.Fetch(b); err != nil {
		return nil, fmt.Errorf("fetching slice start %v size %v of tensor %q: %w", s.Start, s.Size, t.Name, err)
	}
	return b, nil
}

// source streams the shards one after the other when that is the order of the
// tensor's bytes, and puts them together in memory otherwise.
func (t *Tensor) source(state []Tensor, index map[string]int) source {
	if t.derived() {
		return t.derivedSource(state, index)
	}
	if t.From != nil {
		return t.fromSource()
	}
	shards := slices.DeleteFunc(slices.Clone(t.Shards), func(s Shard) bool { v, _ := region.Volume(s.Size); return v == 0 })
	slices.SortFunc(shards, func(a, b Shard) int { return slices.Compare(a.Start, b.Start) })
	if contiguous(t.Shape, shards) {
		return func(ctx context.Context, buf *buffers, emit func([]byte) error) error {
			for _, s := range shards {
				b, err := t.fetch(ctx, s, buf.slice)
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
	return func(ctx context.Context, buf *buffers, emit func([]byte) error) error {
		whole := grow(&buf.whole, t.bytes())
		zero := make([]int, len(t.Shape))
		for _, s := range shards {
			b, err := t.fetch(ctx, s, buf.slice)
			if err != nil {
				return err
			}
			region.Copy(whole, b, s.Start, s.Size, zero, t.Shape, s.Start, s.Size, t.DType.Size())
		}
		return emit(whole)
	}
}

// contiguous tells whether every shard is one run of the tensor's bytes: only
// the first dimension longer than 1 is split.
func contiguous(shape []int, shards []Shard) bool {
	for _, s := range shards {
		d := 0
		for d < len(shape) && s.Size[d] == 1 {
			d++
		}
		for d++; d < len(shape); d++ {
			if s.Size[d] != shape[d] {
				return false
			}
		}
	}
	return true
}

// planModel lays out a Hugging Face folder below the folder sub. state is what Parts speak of.
func planModel(m *ModelFolder, sub string, state []Tensor) ([]planned, error) {
	index := byName(state)
	var files []planned
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		files = append(files, planned{path: path.Join(sub, name), content: m.Files[name]})
	}
	groups, total := splitModel(m)
	weightMap := map[string]string{}
	for i, group := range groups {
		name := safetensors.SingleFile
		if len(groups) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(groups))
		}
		tf := &tensorFile{metadata: safetensors.MetadataPT()}
		// Larger elements first keeps every tensor aligned; else the caller's order is the one in which it can give them.
		slices.SortStableFunc(group, func(a, b *Tensor) int { return b.DType.Size() - a.DType.Size() })
		for _, t := range group {
			tf.infos = append(tf.infos, safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shape})
			tf.sources, tf.model = append(tf.sources, t.source(state, index)), append(tf.model, t)
			weightMap[t.Name] = name
		}
		p := planned{path: path.Join(sub, name), tensors: tf}
		if err := tf.measure(p.path); err != nil {
			return nil, err
		}
		files = append(files, p)
	}
	if len(groups) > 1 {
		content, err := encodeIndex(total, weightMap)
		if err != nil {
			return nil, err
		}
		files = append(files, planned{path: path.Join(sub, safetensors.IndexFile), content: content})
	}
	return files, nil
}

// splitModel fills files in the order of the tensors up to the limit.
func splitModel(m *ModelFolder) (groups [][]*Tensor, total int64) {
	limit := m.MaxShardSize
	if limit <= 0 {
		limit = DefaultMaxShardSize
	}
	groups = [][]*Tensor{nil}
	var size int64
	for i := range m.Tensors {
		t := &m.Tensors[i]
		n := t.bytes()
		if last := len(groups) - 1; size+n > limit && len(groups[last]) > 0 {
			groups, size = append(groups, nil), 0
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], t)
		size += n
		total += n
	}
	return groups, total
}

func encodeIndex(total int64, weightMap map[string]string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": weightMap})
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", safetensors.IndexFile, err)
	}
	return b.Bytes(), nil
}

func (p *planned) size() int64 {
	if p.tensors != nil {
		return p.tensors.size
	}
	return int64(len(p.content))
}

// write makes the file in the folder dir and syncs it. w is the finished
// safetensors writer, nil for a plain file.
func (p *planned) write(ctx context.Context, fsys FS, dir string, buf *buffers) (e FileEntry, w *safetensors.Writer, err error) {
	if err := ctx.Err(); err != nil {
		return e, nil, err
	}
	f, err := fsys.Create(path.Join(dir, p.path))
	if err != nil {
		return e, nil, err
	}
	e = FileEntry{Path: p.path, Size: p.size()}
	if p.tensors != nil {
		w, err = p.tensors.write(ctx, f, where(fsys, path.Join(dir, p.path)), buf)
	} else {
		e.CRC32C = CRC32C(crc32.Checksum(p.content, safetensors.Castagnoli))
		_, err = f.Write(p.content)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return e, nil, fmt.Errorf("writing %s: %w", where(fsys, path.Join(dir, p.path)), err)
	}
	if w != nil {
		e.CRC32C = CRC32C(w.CRC32C())
	}
	return e, w, nil
}

func (f *tensorFile) write(ctx context.Context, out File, name string, buf *buffers) (*safetensors.Writer, error) {
	w, err := safetensors.NewWriter(out, name, f.infos, f.metadata)
	if err != nil {
		return nil, err
	}
	for i, src := range f.sources {
		emit := func(p []byte) error { return writePieces(ctx, w, f.infos[i].Name, p) }
		if err := src(ctx, buf, emit); err != nil {
			return nil, err
		}
	}
	return w, w.Finish()
}

// writePieces looks at the context now and then: a slice can be gigabytes.
func writePieces(ctx context.Context, w *safetensors.Writer, name string, p []byte) error {
	const piece = 64 << 20
	for len(p) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(p), piece)
		if err := w.Write(name, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
