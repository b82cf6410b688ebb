package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"weft/checkpoint/internal/region"
	"weft/internal/property"
	"weft/internal/pyenv"
)

func sum(b []byte) uint32 { return crc32.Checksum(b, Castagnoli) }

// writeRandom writes a file of random tensors in random pieces.
func writeRandom(t require.TestingT, path string, infos []Info, meta map[string]string) (map[string][]byte, *Writer) {
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	w, err := NewWriter(out, path, infos, meta)
	require.NoError(t, err)
	data := map[string][]byte{}
	for i, in := range infos {
		n, err := region.Bytes(in.Shape, in.DType.Size())
		require.NoError(t, err)
		data[in.Name] = randomBytes(int64(i), n)
		for rest := data[in.Name]; len(rest) > 0; {
			k := min(len(rest), 1+i*5)
			require.NoError(t, w.Write(in.Name, rest[:k]))
			rest = rest[k:]
		}
		require.NoError(t, w.Write(in.Name, nil))
	}
	require.NoError(t, w.Finish())
	return data, w
}

func TestReadRegion(t *testing.T) {
	dir := t.TempDir()
	property.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(t, "shape")
		dtype := rapid.SampledFrom([]DType{U8, BF16, F32, F64}).Draw(t, "dtype")
		// A byte before makes the tensor unaligned.
		path := filepath.Join(dir, "r.safetensors")
		data, _ := writeRandom(t, path, []Info{{Name: "pad", DType: U8, Shape: []int{1}}, {Name: "x", DType: dtype, Shape: shape}}, nil)
		f, err := Open(path)
		require.NoError(t, err)
		defer f.Close()
		start, size := make([]int, len(shape)), make([]int, len(shape))
		for d, n := range shape {
			start[d] = rapid.IntRange(0, n).Draw(t, "start")
			size[d] = rapid.IntRange(0, n-start[d]).Draw(t, "size")
		}
		elem := dtype.Size()
		n, _ := region.Bytes(size, elem)
		got := make([]byte, n)
		require.NoError(t, f.ReadRegion("x", start, size, got))
		for i := range int(n) / elem {
			rest, off, stride := i, 0, 1
			for d := len(shape) - 1; d >= 0; d-- {
				off += (rest%size[d] + start[d]) * stride
				rest /= size[d]
				stride *= shape[d]
			}
			require.Equal(t, data["x"][off*elem:(off+1)*elem], got[i*elem:(i+1)*elem])
		}
	})
}

func TestReadRegionFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.safetensors")
	writeRandom(t, path, []Info{{Name: "x", DType: F32, Shape: []int{4, 6}}}, nil)
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, c := range []struct {
		name, tensor string
		start, size  []int
		dst          int
		kind         error
		say          string
	}{
		{"no tensor", "y", nil, nil, 0, ErrMissingTensor, `"y"`},
		{"rank", "x", []int{0}, []int{1}, 4, ErrRegion, "rank"},
		{"outside", "x", []int{3, 0}, []int{2, 6}, 48, ErrRegion, "outside"},
		{"negative", "x", []int{-1, 0}, []int{2, 6}, 48, ErrRegion, "outside"},
		{"short buffer", "x", []int{0, 0}, []int{1, 6}, 23, ErrRegion, "24 bytes, the buffer has 23"},
	} {
		err := f.ReadRegion(c.tensor, c.start, c.size, make([]byte, c.dst))
		require.ErrorIs(t, err, c.kind, c.name)
		require.ErrorContains(t, err, c.say, c.name)
		require.ErrorContains(t, err, path, c.name)
	}
	require.Nil(t, f.Bytes("y"))
}

// A file cut after it was mapped would end the process with SIGBUS.
func TestCutWhileMapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut.safetensors")
	writeRandom(t, path, []Info{{Name: "x", DType: U8, Shape: []int{1 << 20}}}, nil)
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Truncate(path, 4096))
	err = f.ReadRegion("x", []int{0}, []int{1 << 20}, make([]byte, 1<<20))
	require.ErrorIs(t, err, ErrTruncated)
	require.ErrorContains(t, err, "cut.safetensors")
}

func TestOpenFaults(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none.safetensors"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "none.safetensors")
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
}

func TestWriterFaults(t *testing.T) {
	two := []Info{{Name: "a", DType: U8, Shape: []int{2}}, {Name: "b", DType: U8, Shape: []int{1}}}
	for _, c := range []struct {
		name  string
		infos []Info
		write func(w *Writer) error
		kind  error
		say   string
	}{
		{"reserved name", []Info{{Name: "__metadata__", DType: U8}}, nil, ErrDuplicate, "taken"},
		{"name twice", []Info{two[0], two[0]}, nil, ErrDuplicate, `"a"`},
		{"name not UTF-8", []Info{{Name: "\xff", DType: U8}}, nil, ErrHeader, "UTF-8"},
		{"dtype", []Info{{Name: "a", DType: "F31"}}, nil, ErrDType, "F31"},
		{"shape", []Info{{Name: "a", DType: U8, Shape: []int{-2}}}, nil, ErrShape, "negative"},
		{"wrong order", two, func(w *Writer) error { return w.Write("b", []byte{1}) }, ErrShape, `those of tensor "a"`},
		{"too many bytes", two, func(w *Writer) error { return w.Write("a", []byte{1, 2, 3}) }, ErrShape, "2 are left"},
		{"not complete", two, func(w *Writer) error { return errors.Join(w.Write("a", []byte{1}), w.Finish()) }, ErrTruncated, "1 of 2"},
		{"after the end", two[1:], func(w *Writer) error { return errors.Join(w.Write("b", []byte{1}), w.Write("b", []byte{1})) }, ErrShape, "complete"},
	} {
		var buf bytes.Buffer
		w, err := NewWriter(&buf, "out.safetensors", c.infos, nil)
		if c.write != nil {
			require.NoError(t, err, c.name)
			err = c.write(w)
			require.Error(t, w.Finish(), c.name)
		}
		require.ErrorIs(t, err, c.kind, c.name)
		require.ErrorContains(t, err, c.say, c.name)
		require.ErrorContains(t, err, "out.safetensors", c.name)
	}
}

// Files of ours must load in the reference implementation.
func TestReferenceImplementationReadsOurs(t *testing.T) {
	python := pyenv.Ensure(t, "safetensors", []string{"safetensors==0.8.0", "numpy==2.4.6"})
	path := filepath.Join(t.TempDir(), "ours.safetensors")
	infos := []Info{{Name: "é\"<&>", DType: F32, Shape: []int{3, 2}}, {Name: "s", DType: I64}, {Name: "e", DType: F16, Shape: []int{0, 3}}, {Name: "b", DType: Bool, Shape: []int{5}}}
	SortForFile(infos)
	data, _ := writeRandom(t, path, infos, MetadataPT())
	script := `
import json, sys
from safetensors import safe_open
with safe_open(sys.argv[1], "np") as f:
    print(json.dumps({"meta": f.metadata(), "t": {k: [list(f.get_tensor(k).shape), f.get_tensor(k).tobytes().hex()] for k in f.keys() if k != "b"}}))
`
	out, err := exec.Command(python, "-c", script, path).CombinedOutput()
	require.NoError(t, err, string(out))
	var got struct {
		Meta map[string]string
		T    map[string][2]any
	}
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	require.Equal(t, MetadataPT(), got.Meta)
	require.Len(t, got.T, 3)
	for name, v := range got.T {
		require.Equal(t, hexOf(data[name]), v[1], name)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	out := []byte{}
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// A pipe is refused at once, instead of waiting for somebody to write to it.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, unix.Mkfifo(path, 0o644))
	_, err := Open(path)
	require.ErrorContains(t, err, "not a regular file")
}
