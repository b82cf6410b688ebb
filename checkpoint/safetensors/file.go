package safetensors

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"weft/checkpoint/internal/region"
)

// File is an open safetensors file, mapped into memory or read by ranges. Its
// methods may be called from several goroutines at once; none may run during or
// after Close.
type File struct {
	path    string
	stat    unix.Stat_t // of a mapped file, when it was opened
	mapping []byte      // nil for
	ranges  *ranges     // a file that is not mapped
	header  *Header
	byName  map[string]int
}

// Open maps the file at path and checks its header completely; the tensors'
// bytes are not read. A fault of the file is a [*FormatError].
func Open(path string) (*File, error) {
	mapping, stat, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	h, err := ReadHeader(bytes.NewReader(mapping), int64(len(mapping)), path)
	if err != nil {
		_ = unix.Munmap(mapping)
		return nil, err
	}
	return newFile(&File{path: path, stat: stat, mapping: mapping, header: h}), nil
}

// OpenReader is Open for a file elsewhere, whose tensors are read by ranges; path
// stands for it in errors. Close closes r, and so does an error.
func OpenReader(path string, r Reader) (*File, error) { return openRanges(path, r, newPool()) }

func openRanges(path string, r Reader, p *pool) (*File, error) {
	ranged := &ranges{Reader: r, path: path, pool: p}
	h, err := ReadHeader(ranged, r.Size(), path)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return newFile(&File{path: path, ranges: ranged, header: h}), nil
}

func newFile(f *File) *File {
	f.byName = make(map[string]int, len(f.header.Tensors))
	for i, t := range f.header.Tensors {
		f.byName[t.Name] = i
	}
	return f
}

func mapFile(path string) (m []byte, st unix.Stat_t, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe, which is refused below, would hold the call
	if err != nil {
		return nil, st, fmt.Errorf("opening weights: %w", err)
	}
	defer f.Close()
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, st, fmt.Errorf("opening weights: %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, fmt.Errorf("opening weights: %s is not a regular file", path)
	}
	if st.Size < prefixSize {
		return nil, st, fault(path, "", ErrTruncated, "%d bytes, a header length needs %d", st.Size, prefixSize)
	}
	m, err = unix.Mmap(int(f.Fd()), 0, int(st.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, st, fmt.Errorf("mapping %s into memory: %w", path, err)
	}
	return m, st, nil
}

// Path returns the path given to Open or OpenReader.
func (f *File) Path() string { return f.path }

// Tensors lists the tensors in the order of their bytes. The list is the
// file's own: do not change it.
func (f *File) Tensors() []Info { return f.header.Tensors }

// Metadata returns the file's __metadata__, nil when it has none.
func (f *File) Metadata() map[string]string { return f.header.Metadata }

// Lookup finds a tensor by its name.
func (f *File) Lookup(name string) (Info, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Info{}, false
	}
	return f.header.Tensors[i], true
}

// Bytes returns the tensor's bytes, row-major and little-endian, as a slice of
// the mapping: read-only, valid until Close, perhaps not aligned to the
// element size. It is nil when there is no such tensor, and for a file that is
// not mapped: see ReadAt.
func (f *File) Bytes(name string) []byte {
	i, ok := f.byName[name]
	if !ok || f.mapping == nil {
		return nil
	}
	t := f.header.Tensors[i]
	start, end := f.header.DataStart+t.Start, f.header.DataStart+t.End
	return f.mapping[start:end:end]
}

// ReadAt copies len(p) of the tensor's bytes, from the offset off on.
func (f *File) ReadAt(name string, p []byte, off int64) (err error) {
	info, ok := f.Lookup(name)
	if !ok {
		return fault(f.path, name, ErrMissingTensor, "")
	}
	if off < 0 || off > info.Size() || int64(len(p)) > info.Size()-off {
		return fault(f.path, name, ErrRegion, "bytes %d..%d of %d", off, off+int64(len(p)), info.Size())
	}
	if f.ranges != nil {
		return f.ranges.read(p, f.header.DataStart+info.Start+off)
	}
	defer f.mapFault(name, &err)()
	copy(p, f.Bytes(name)[off:])
	return nil
}

// mapFault makes an error of a page of the mapping that cannot be read, which
// raises SIGBUS: defer what it returns.
func (f *File) mapFault(name string, err *error) (end func()) {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fault(f.path, name, ErrTruncated, "reading the mapped file failed (%v): it was cut or its disk fails", r)
		}
	}
}

// ReadRegion copies the hyper-rectangle (start, size), in elements, of a tensor
// to dst, row-major; dst must have exactly its bytes. A file that was cut or
// cannot be read any more gives an error, not a crash.
func (f *File) ReadRegion(name string, start, size []int, dst []byte) (err error) {
	info, ok := f.Lookup(name)
	if !ok {
		return fault(f.path, name, ErrMissingTensor, "")
	}
	if err := region.Check(info.Shape, start, size); err != nil {
		return fault(f.path, name, ErrRegion, "%v", err)
	}
	if n, err := region.Bytes(size, info.DType.Size()); err != nil || n != int64(len(dst)) {
		return fault(f.path, name, ErrRegion, "%s %v is %d bytes, the buffer has %d", info.DType, size, n, len(dst))
	}
	if f.ranges != nil {
		return f.ranges.readRegion(info, f.header.DataStart+info.Start, start, size, dst)
	}
	defer f.mapFault(name, &err)()
	zero := make([]int, len(start))
	region.Copy(dst, f.Bytes(name), zero, info.Shape, start, size, start, size, info.DType.Size())
	return nil
}

// Check compares the checksum of the file with its store's, when all of its bytes
// have been read; ok is false when not all were, or the store has no checksum.
// Bytes of a mapped file are not checked.
func (f *File) Check() (ok bool, err error) {
	if f.ranges == nil {
		return false, nil
	}
	want, stored := storedSum(f.ranges.Reader)
	got, read := f.ranges.seen.whole(f.ranges.Size())
	if !stored || !read {
		return false, nil
	}
	if got != want {
		return false, fault(f.path, "", ErrChecksum, "crc32c is %08x, the store has %08x; %s", got, want, changedOnTheWay)
	}
	return true, nil
}

// Close unmaps or closes the file: slices from Bytes must not be used any more. A
// second Close does nothing.
func (f *File) Close() error {
	if r := f.ranges; r != nil && !r.closed.Swap(true) {
		r.pool.drop()
		return r.Reader.Close()
	}
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping = nil
	if err := unix.Munmap(m); err != nil {
		return fmt.Errorf("unmapping %s: %w", f.path, err)
	}
	return nil
}
