package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// TensorInfo describes a tensor of the train state.
type TensorInfo struct {
	Name  string
	DType DType
	Shape []int // global
}

// StateReader reads the train state of one checkpoint in any slicing. Its
// methods may be called concurrently, Close last.
type StateReader struct {
	fs       FS
	dir      string
	shown    string // dir, for messages
	manifest *Manifest
	tensors  map[string]*StateTensor
	slices   map[*Slice]*sliceState
	files    map[string]*stateFile
}

// stateFile opens on first use.
type stateFile struct {
	entry FileEntry
	mu    sync.Mutex
	r     Reader
}

// sliceState remembers that a slice's checksum was seen to be right.
type sliceState struct {
	mu       sync.Mutex
	verified bool
}

// OpenState opens the train state of a checkpoint. It checks the manifest and
// that the state files are there in their sizes; checksums are checked as
// regions are read. Faults are [*DamagedError].
func (m *Manager) OpenState(e Entry) (*StateReader, error) {
	man, err := readManifest(m.fs, e.Dir)
	if err != nil {
		return nil, err
	}
	return openState(m.fs, e.Dir, man)
}

// openState is OpenState of a checkpoint in dir that has, or will have, this manifest.
func openState(fsys FS, dir string, man *Manifest) (*StateReader, error) {
	r := &StateReader{fs: fsys, dir: dir, shown: where(fsys, dir), manifest: man, tensors: map[string]*StateTensor{}, slices: map[*Slice]*sliceState{}, files: map[string]*stateFile{}}
	var state []FileEntry
	for _, f := range man.Files {
		if f.HeaderSize > 0 {
			state = append(state, f)
			r.files[f.Path] = &stateFile{entry: f}
		}
	}
	if err := checkSizes(fsys, dir, state); err != nil {
		return nil, err
	}
	for i := range man.State {
		t := &man.State[i]
		r.tensors[t.Name] = t
		for j := range t.Slices {
			r.slices[&t.Slices[j]] = &sliceState{}
		}
	}
	return r, nil
}

// Manifest returns the checkpoint's manifest; do not change it.
func (r *StateReader) Manifest() *Manifest { return r.manifest }

// Tensors lists the state in the order in which it was saved.
func (r *StateReader) Tensors() []TensorInfo {
	list := make([]TensorInfo, len(r.manifest.State))
	for i, t := range r.manifest.State {
		list[i] = TensorInfo{t.Name, t.DType, t.Shape}
	}
	return list
}

// Lookup finds a tensor by its name.
func (r *StateReader) Lookup(name string) (TensorInfo, bool) {
	t, ok := r.tensors[name]
	if !ok {
		return TensorInfo{}, false
	}
	return TensorInfo{t.Name, t.DType, t.Shape}, true
}

// ReadRegion reads the hyper-rectangle (start, size), in elements, of a tensor
// into dst, row-major and in the tensor's dtype; dst has exactly its bytes. Only
// slices that share elements with it are touched: the first time a slice is
// read whole and its checksum compared, later only the bytes asked for. After
// an error dst holds no data to be used; a damaged file is a [*DamagedError].
func (r *StateReader) ReadRegion(name string, start, size []int, dst []byte) error {
	t, ok := r.tensors[name]
	if !ok {
		return fmt.Errorf("reading state of checkpoint %s: no tensor %q in it", r.shown, name)
	}
	if err := region.Check(t.Shape, start, size); err != nil {
		return fmt.Errorf("reading state tensor %q of checkpoint %s: %w", name, r.shown, err)
	}
	if n, err := region.Bytes(size, t.DType.Size()); err != nil || n != int64(len(dst)) {
		return fmt.Errorf("reading state tensor %q of checkpoint %s: %s %v is %d bytes, the buffer has %d", name, r.shown, t.DType, size, n, len(dst))
	}
	for i := range t.Slices {
		s := &t.Slices[i]
		from, part, ok := region.Intersect(s.Start, s.Size, start, size)
		if !ok {
			continue
		}
		newRuns := func() *region.Runs {
			return region.NewRuns(s.Start, s.Size, start, size, from, part, t.DType.Size())
		}
		if err := r.readSlice(t, s, newRuns, dst); err != nil {
			return err
		}
	}
	return nil
}

// ReadRegionAs is ReadRegion into another dtype than the tensor's, between F32, BF16 and F16: to a narrower one it rounds to
// nearest with ties to even, to a wider one it is exact. The host holds the region in both dtypes meanwhile.
func (r *StateReader) ReadRegionAs(name string, dtype DType, start, size []int, dst []byte) error {
	t, ok := r.tensors[name]
	if !ok || t.DType == dtype {
		return r.ReadRegion(name, start, size, dst)
	}
	if !safetensors.CanConvert(dtype, t.DType) {
		return fmt.Errorf("reading state tensor %q of checkpoint %s: its %s cannot be read as %q", name, r.shown, t.DType, string(dtype))
	}
	n, err := region.Bytes(size, t.DType.Size())
	if err != nil {
		return fmt.Errorf("reading state tensor %q of checkpoint %s: %w", name, r.shown, err)
	}
	raw := make([]byte, n)
	if err := r.ReadRegion(name, start, size, raw); err != nil {
		return err
	}
	if err := safetensors.Convert(dst, dtype, raw, t.DType); err != nil {
		return fmt.Errorf("reading state tensor %q of checkpoint %s: %w", name, r.shown, err)
	}
	return nil
}

func (r *StateReader) readSlice(t *StateTensor, s *Slice, newRuns func() *region.Runs, dst []byte) error {
	file, err := r.open(s.File)
	if err != nil {
		return err
	}
	st := r.slices[s]
	st.mu.Lock()
	if st.verified {
		st.mu.Unlock()
		return r.readRuns(file, s, newRuns(), dst)
	}
	defer st.mu.Unlock()
	n, _ := region.Bytes(s.Size, t.DType.Size())
	crc, err := r.readWhole(file, s, n, newRuns, dst)
	if err == nil && CRC32C(crc) != s.CRC32C && isRemote(r.fs) {
		crc, err = r.readWhole(file, s, n, newRuns, dst) // was it the way here?
	}
	if err != nil {
		return err
	}
	if CRC32C(crc) != s.CRC32C {
		return damaged(r.shown, s.File, "the slice start %v size %v of tensor %q has crc32c %08x, the manifest says %08x", s.Start, s.Size, t.Name, crc, uint32(s.CRC32C))
	}
	st.verified = true
	return nil
}

// open gives the file's reader, with its header checked.
func (r *StateReader) open(file string) (Reader, error) {
	f := r.files[file]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.r != nil {
		return f.r, nil
	}
	rd, err := openFile(r.fs, r.dir, f.entry)
	if err != nil {
		return nil, err
	}
	err = r.checkHeader(rd, f.entry)
	if errors.Is(err, ErrDamaged) && isRemote(r.fs) {
		err = r.checkHeader(rd, f.entry) // was it the way here?
	}
	if err != nil {
		_ = rd.Close()
		return nil, err
	}
	f.r = rd
	return rd, nil
}

func (r *StateReader) checkHeader(rd Reader, f FileEntry) error {
	head := make([]byte, f.HeaderSize)
	if err := readFull(rd, head, 0, r.shown, f.Path); err != nil {
		return err
	}
	if crc := crc32.Checksum(head, safetensors.Castagnoli); CRC32C(crc) != f.HeaderCRC32C {
		return damaged(r.shown, f.Path, "its header has crc32c %08x, the manifest says %08x", crc, uint32(f.HeaderCRC32C))
	}
	h, err := safetensors.ReadHeader(bytes.NewReader(head), f.Size, r.shown+"/"+f.Path)
	if err != nil {
		return damaged(r.shown, f.Path, "%v", err)
	}
	if h.DataStart != f.HeaderSize {
		return damaged(r.shown, f.Path, "its header has %d bytes, the manifest says %d", h.DataStart, f.HeaderSize)
	}
	return nil
}

// pieces holds read buffers.
var pieces = sync.Pool{New: func() any { b := make([]byte, readPiece); return &b }}

// inTurn is a Reader of a disk that likes one stream better than several: slices are read one after the other, where their n bytes
// at off are not in memory already.
type inTurn interface {
	InTurn(off, n int64, read func() error) error
}

// readWhole streams the n bytes of a slice once, copies what falls into the
// runs to dst and returns the checksum of all of it.
func (r *StateReader) readWhole(file Reader, s *Slice, n int64, newRuns func() *region.Runs, dst []byte) (crc uint32, err error) {
	turn, ok := file.(inTurn)
	if !ok {
		return r.stream(file, s, n, readPiece, newRuns(), dst)
	}
	err = turn.InTurn(s.Offset, n, func() (err error) {
		crc, err = r.stream(file, s, n, diskPiece, newRuns(), dst)
		return err
	})
	return crc, err
}

// stream is readWhole by pieces of so many bytes.
func (r *StateReader) stream(file Reader, s *Slice, n, piece int64, runs *region.Runs, dst []byte) (crc uint32, err error) {
	src, d, left, ok := runs.Next()
	direct := ok && src == 0 && left == n // the bytes are dst's own, no copy
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	for off := int64(0); off < n; {
		p := (*buf)[:min(piece, n-off)]
		if direct {
			p = dst[d+off : d+off+int64(len(p))]
		}
		if err := readFull(file, p, s.Offset+off, r.shown, s.File); err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, safetensors.Castagnoli, p)
		end := off + int64(len(p))
		for !direct && ok && src < end {
			k := min(left, end-src)
			copy(dst[d:d+k], p[src-off:])
			src, d, left = src+k, d+k, left-k
			if left == 0 {
				src, d, left, ok = runs.Next()
			}
		}
		off = end
	}
	return crc, nil
}

// maxGap is the distance up to which two runs are fetched in one read.
const maxGap = 64 << 10

// readRuns reads only the runs, neighbours together.
func (r *StateReader) readRuns(file Reader, s *Slice, runs *region.Runs, dst []byte) error {
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	type run struct{ src, dst, n int64 }
	var group []run
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		first, last := group[0], group[len(group)-1]
		if len(group) == 1 {
			err := readFull(file, dst[first.dst:first.dst+first.n], s.Offset+first.src, r.shown, s.File)
			group = group[:0]
			return err
		}
		span := (*buf)[:last.src+last.n-first.src]
		if err := readFull(file, span, s.Offset+first.src, r.shown, s.File); err != nil {
			return err
		}
		for _, g := range group {
			copy(dst[g.dst:g.dst+g.n], span[g.src-first.src:])
		}
		group = group[:0]
		return nil
	}
	for {
		src, d, n, ok := runs.Next()
		if !ok {
			return flush()
		}
		if k := len(group); k > 0 {
			last := group[k-1]
			if src-(last.src+last.n) > maxGap || src+n-group[0].src > readPiece {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		group = append(group, run{src, d, n})
	}
}

// Close closes the files.
func (r *StateReader) Close() error {
	var errs []error
	for _, f := range r.files {
		f.mu.Lock()
		if f.r != nil {
			errs = append(errs, f.r.Close())
			f.r = nil
		}
		f.mu.Unlock()
	}
	return errors.Join(errs...)
}
