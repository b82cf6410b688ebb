package safetensors

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/checkpoint/internal/region"
	"weft/internal/fixture"
	"weft/internal/property"
)

// object is a file in memory that counts what is read of it; change may spoil a read.
type object struct {
	content []byte
	change  func(p []byte, off int64) (int, error)
	noSum   bool

	mu         sync.Mutex
	reads      int
	bytes      int64
	underWay   int
	mostAtOnce int
	closed     int
}

func (o *object) Size() int64 { return int64(len(o.content)) }

func (o *object) Close() error { o.closed++; return nil }

func (o *object) CRC32C() (uint32, bool) { return crc32.Checksum(o.content, Castagnoli), !o.noSum }

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	o.mu.Lock()
	o.reads++
	o.bytes += int64(len(p))
	o.underWay++
	o.mostAtOnce = max(o.mostAtOnce, o.underWay)
	change := o.change
	o.mu.Unlock()
	defer func() { o.mu.Lock(); o.underWay--; o.mu.Unlock() }()
	n := copy(p, o.content[off:])
	if change != nil {
		return change(p[:n], off)
	}
	return n, nil
}

func (o *object) reset() { o.reads, o.bytes = 0, 0 }

// objects is a folder of them.
type objects map[string]*object

func (f objects) Names() ([]string, error) {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (f objects) Open(name string) (Reader, error) {
	o, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return o, nil
}

// upload makes objects of a folder's files.
func upload(t testing.TB, dir string) objects {
	t.Helper()
	out := objects{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = &object{content: b}
	}
	return out
}

// big is a file with one tensor of 3000 × 2048 float32, 24 MB, behind a small one.
func big(t testing.TB) (path string, raw []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "big.safetensors")
	var out bytes.Buffer
	w, err := NewWriter(&out, path, []Info{{Name: "pad", DType: U8, Shape: []int{3}}, {Name: "x", DType: F32, Shape: []int{3000, 2048}}}, nil)
	require.NoError(t, err)
	require.NoError(t, w.Write("pad", []byte{1, 2, 3}))
	require.NoError(t, w.Write("x", randomBytes(1, 3000*2048*4)))
	require.NoError(t, w.Finish())
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	return path, out.Bytes()
}

func readRegion(t testing.TB, f *File, name string, start, size []int) []byte {
	t.Helper()
	info, ok := f.Lookup(name)
	require.True(t, ok)
	n, err := region.Bytes(size, info.DType.Size())
	require.NoError(t, err)
	dst := make([]byte, n)
	require.NoError(t, f.ReadRegion(name, start, size, dst))
	return dst
}

// Every region that is read by ranges is that of the mapped file.
func TestRangesAreTheFile(t *testing.T) {
	path, raw := big(t)
	local, err := Open(path)
	require.NoError(t, err)
	defer local.Close()
	remote, err := OpenReader("gs://b/big.safetensors", &object{content: raw})
	require.NoError(t, err)
	require.Equal(t, local.Tensors(), remote.Tensors())
	require.Nil(t, remote.Bytes("x"))
	property.Check(t, func(rt *rapid.T) {
		start, size := make([]int, 2), make([]int, 2)
		for d, n := range []int{3000, 2048} {
			start[d] = rapid.IntRange(0, n).Draw(rt, "start")
			size[d] = rapid.IntRange(0, n-start[d]).Draw(rt, "size")
		}
		require.Equal(rt, readRegion(t, local, "x", start, size), readRegion(t, remote, "x", start, size))
		info, _ := local.Lookup("x")
		off := rapid.Int64Range(0, info.Size()).Draw(rt, "off")
		a := make([]byte, rapid.Int64Range(0, min(1<<16, info.Size()-off)).Draw(rt, "n"))
		b := make([]byte, len(a))
		require.NoError(rt, local.ReadAt("x", a, off))
		require.NoError(rt, remote.ReadAt("x", b, off))
		require.Equal(rt, a, b)
	})
	require.ErrorIs(t, remote.ReadAt("x", make([]byte, 2), 3000*2048*4-1), ErrRegion)
	require.ErrorIs(t, local.ReadAt("x", make([]byte, 2), -1), ErrRegion)
	require.ErrorIs(t, remote.ReadAt("y", nil, 0), ErrMissingTensor)
	require.ErrorIs(t, remote.ReadRegion("y", nil, nil, nil), ErrMissingTensor)
	require.NoError(t, remote.Close())
	require.NoError(t, remote.Close())
}

// Rows are read as they are and in several pieces at once; columns over blocks, each of which is read once for all
// devices; a sample of a few bytes costs a few bytes.
func TestRangesReadWhatIsNeeded(t *testing.T) {
	_, raw := big(t)
	o := &object{content: raw}
	f, err := OpenReader("big", o)
	require.NoError(t, err)
	const row = 2048 * 4
	for _, c := range []struct {
		name        string
		start, size []int
		reads       int
		bytes       int64
	}{
		{"rows", []int{1000, 0}, []int{10, 2048}, 1, 10 * row},
		{"many rows", []int{0, 0}, []int{2999, 2048}, 3, 2999 * row},
		{"one column block", []int{0, 5}, []int{500, 1}, 1, blockSize},
		{"again", []int{0, 9}, []int{500, 1}, 0, 0},
		{"half of the columns", []int{0, 0}, []int{3000, 1024}, 5, 3000*row - blockSize},
		{"the other half", []int{0, 1024}, []int{3000, 1024}, 0, 0},
		{"nothing", []int{3, 3}, []int{0, 1}, 0, 0},
	} {
		o.reset()
		readRegion(t, f, "x", c.start, c.size)
		require.Equal(t, c.reads, o.reads, c.name)
		require.Equal(t, c.bytes, o.bytes, c.name)
	}
	o.reset()
	require.NoError(t, f.ReadAt("x", make([]byte, 100), 5000))
	require.Equal(t, int64(100), o.bytes)
	f.ranges.pool.drop()
	readRegion(t, f, "x", []int{0, 0}, []int{1, 1})
	require.Equal(t, int64(104), o.bytes)
	require.LessOrEqual(t, o.mostAtOnce, parallelReads)
}

// What is kept in host memory has a bound, whatever is read.
func TestRangesMemoryIsBounded(t *testing.T) {
	_, raw := big(t)
	f, err := OpenReader("big", &object{content: raw})
	require.NoError(t, err)
	p := f.ranges.pool
	p.keep = 2
	for _, column := range []int{0, 1024, 0} {
		got := readRegion(t, f, "x", []int{0, column}, []int{3000, 1024})
		require.Len(t, got, 3000*1024*4)
		require.LessOrEqual(t, p.order.Len(), 2)
		require.Len(t, p.blocks, p.order.Len())
	}
	p.drop()
	require.Empty(t, p.blocks)
}

// A folder elsewhere opens as one on a disk, with the same faults and names of its own.
func TestOpenFolder(t *testing.T) {
	dir := filepath.Join(fixture.Dir(t), "gemma4-tiny-sharded-bf16")
	want, err := OpenDir(dir)
	require.NoError(t, err)
	defer want.Close()
	folder := upload(t, dir)
	s, err := OpenFolder("gs://b/m/", folder)
	require.NoError(t, err)
	require.Equal(t, want.Tensors(), s.Tensors())
	require.Equal(t, "gs://b/m/model-00001-of-00003.safetensors", s.Files()[0].Path())
	checked, err := s.Check()
	require.NoError(t, err)
	require.Zero(t, checked, "nothing but headers was read")
	for _, i := range s.Tensors() {
		got := make([]byte, i.Size())
		require.NoError(t, s.ReadRegion(i.Name, make([]int, len(i.Shape)), i.Shape, got))
		require.Equal(t, want.Bytes(i.Name), got, i.Name)
	}
	checked, err = s.Check()
	require.NoError(t, err)
	require.Equal(t, 3, checked)
	s.Release()
	require.NoError(t, s.Close())
	for name, o := range folder {
		require.LessOrEqual(t, o.closed, 1, name)
	}

	delete(folder, "model-00002-of-00003.safetensors")
	_, err = OpenFolder("gs://b/m", folder)
	require.ErrorIs(t, err, ErrMissingFile)
	require.ErrorContains(t, err, "gs://b/m/model-00002-of-00003.safetensors: ")
	_, err = OpenFolder("gs://b/m", objects{"config.json": {}})
	require.ErrorIs(t, err, ErrNoWeights)
}

// A short read, a failing one, and bytes that changed on their way are errors.
func TestRangesFaults(t *testing.T) {
	_, raw := big(t)
	boom := errors.New("connection reset")
	whole := func(f *File) error {
		err := f.ReadRegion("x", []int{0, 0}, []int{3000, 2048}, make([]byte, 3000*2048*4))
		if err == nil {
			err = f.ReadRegion("pad", []int{0}, []int{3}, make([]byte, 3))
		}
		if err == nil {
			_, err = f.Check()
		}
		return err
	}
	for _, c := range []struct {
		name   string
		change func(p []byte, off int64) (int, error)
		noSum  bool
		want   error
	}{
		{"nothing", nil, false, nil},
		{"short", func(p []byte, off int64) (int, error) { return len(p) - min(1, int(off>>22)), nil }, false, ErrTruncated},
		{"error", func(p []byte, off int64) (int, error) {
			if off > 1<<22 {
				return 0, boom
			}
			return len(p), nil
		}, false, boom},
		{"bit flip", func(p []byte, off int64) (int, error) {
			if off > 1<<22 {
				p[77] ^= 4
			}
			return len(p), nil
		}, false, ErrChecksum},
		{"bit flip that the store cannot tell", func(p []byte, off int64) (int, error) {
			if off > 1<<22 {
				p[77] ^= 4
			}
			return len(p), nil
		}, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &object{content: raw, noSum: c.noSum}
			f, err := OpenReader("gs://b/big", o)
			require.NoError(t, err)
			o.change = c.change
			err = whole(f)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "gs://b/big: ")
		})
	}
	t.Run("a failed block is read again", func(t *testing.T) {
		o := &object{content: raw}
		f, err := OpenReader("gs://b/big", o)
		require.NoError(t, err)
		o.change = func([]byte, int64) (int, error) { return 0, boom }
		require.ErrorIs(t, f.ReadRegion("x", []int{0, 3}, []int{9, 1}, make([]byte, 36)), boom)
		o.change = nil
		require.NoError(t, f.ReadRegion("x", []int{0, 3}, []int{9, 1}, make([]byte, 36)))
	})
	t.Run("two reads that differ", func(t *testing.T) {
		o := &object{content: raw, noSum: true}
		f, err := OpenReader("gs://b/big", o)
		require.NoError(t, err)
		require.NoError(t, f.ReadAt("x", make([]byte, 64), 0))
		o.change = func(p []byte, _ int64) (int, error) { p[3] ^= 1; return len(p), nil }
		require.ErrorIs(t, f.ReadAt("x", make([]byte, 64), 0), ErrChecksum)
	})
	t.Run("header and index", func(t *testing.T) {
		_, err := OpenReader("gs://b/big", &object{content: raw[:100]})
		require.ErrorIs(t, err, ErrTruncated)
		folder := upload(t, filepath.Join(fixture.Dir(t), "gemma4-tiny-sharded-bf16"))
		folder[IndexFile].change = func(p []byte, _ int64) (int, error) { p[len(p)-2] ^= 1; return len(p), nil }
		_, err = OpenFolder("gs://b/m", folder)
		require.ErrorIs(t, err, ErrChecksum)
		require.ErrorContains(t, err, "gs://b/m/"+IndexFile)
	})
}

// Many devices read at once.
func TestRangesConcurrently(t *testing.T) {
	path, raw := big(t)
	local, err := Open(path)
	require.NoError(t, err)
	defer local.Close()
	remote, err := OpenReader("big", &object{content: raw})
	require.NoError(t, err)
	remote.ranges.pool.keep = 3
	var wg sync.WaitGroup
	for d := range 8 {
		wg.Go(func() {
			start, size := []int{0, d * 256}, []int{3000, 256}
			require.Equal(t, readRegion(t, local, "x", start, size), readRegion(t, remote, "x", start, size))
		})
	}
	wg.Wait()
	require.NoError(t, remote.Close())
}
