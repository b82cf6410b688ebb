package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

// raw makes a file from a header's JSON and a number of data bytes.
func raw(js string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(js)))
	return append(append(b, js...), make([]byte, data)...)
}

func read(b []byte) (*Header, error) {
	return ReadHeader(bytes.NewReader(b), int64(len(b)), "x.safetensors")
}

func TestHeaderFaults(t *testing.T) {
	one := func(fields string) string { return `{"a":{` + fields + `}}` }
	for _, c := range []struct {
		name   string
		file   []byte
		kind   error
		tensor string
		say    string
	}{
		{"empty file", nil, ErrTruncated, "", "0 bytes"},
		{"seven bytes", make([]byte, 7), ErrTruncated, "", "7 bytes"},
		{"header length 0", make([]byte, 64), ErrHeader, "", "0 bytes"},
		{"header length huge", bytes.Repeat([]byte{0xff}, 64), ErrHeader, "", "limit"},
		{"not safetensors", []byte("PK\x03\x04 this is a zip file of torch"), ErrHeader, "", "is this a safetensors file"},
		{"header cut", raw(`{"a":1}`, 0)[:12], ErrTruncated, "", "4 are left"},
		{"array", raw(`[]`, 0), ErrHeader, "", "{"},
		{"leading space", raw(` {}`, 0), ErrHeader, "", "{"},
		{"not JSON", raw(`{"a":}`, 0), ErrHeader, "", "not JSON"},
		{"not UTF-8", raw("{\"a\xff\":1}", 0), ErrHeader, "", "UTF-8"},
		{"two objects", raw(`{}{}`, 0), ErrHeader, "", "not JSON"},
		{"trailing newline", raw("{}\n", 0), ErrHeader, "", "follow"},
		{"tensor is a number", raw(`{"a":1}`, 0), ErrHeader, "a", "1 where"},
		{"unknown dtype", raw(one(`"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]`), 1), ErrDType, "a", "F8_E4M3"},
		{"lower-case dtype", raw(one(`"dtype":"f32","shape":[1],"data_offsets":[0,4]`), 4), ErrDType, "a", "f32"},
		{"field of another case", raw(one(`"DType":"F32","shape":[1],"data_offsets":[0,4]`), 4), ErrHeader, "a", "DType"},
		{"field missing", raw(one(`"dtype":"F32","shape":[1]`), 4), ErrHeader, "a", "2 of them"},
		{"field twice", raw(one(`"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]`), 4), ErrDuplicate, "a", "dtype"},
		{"tensor twice", raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), ErrDuplicate, "a", "twice"},
		{"metadata not strings", raw(`{"__metadata__":{"format":1}}`, 0), ErrHeader, "", "1 where"},
		{"metadata twice", raw(`{"__metadata__":{"a":"","a":""}}`, 0), ErrDuplicate, "", "a"},
		{"negative dimension", raw(one(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), 4), ErrHeader, "a", "-1"},
		{"fraction", raw(one(`"dtype":"F32","shape":[1.0],"data_offsets":[0,4]`), 4), ErrHeader, "a", "1.0"},
		{"exponent", raw(one(`"dtype":"F32","shape":[1e0],"data_offsets":[0,4]`), 4), ErrHeader, "a", "1e0"},
		{"shape overflows", raw(one(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]`), 4), ErrShape, "a", "2^63"},
		{"number overflows", raw(one(`"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]`), 4), ErrHeader, "a", "integer"},
		{"three offsets", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4,4]`), 4), ErrHeader, "a", "3 numbers"},
		{"offsets backwards", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), 4), ErrShape, "a", "backwards"},
		{"shape and offsets disagree", raw(one(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`), 4), ErrShape, "a", "8 bytes"},
		{"data cut", raw(one(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), 7), ErrTruncated, "a", "has 7"},
		{"data left over", raw(one(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), 9), ErrTrailing, "", "has 9"},
		{"hole at start", raw(one(`"dtype":"U8","shape":[2],"data_offsets":[1,3]`), 3), ErrHole, "a", "0..1"},
		{"hole", raw(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), ErrHole, "a", "1..2"},
		{"overlap", raw(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), ErrOverlap, "a", `"b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.file)
			var fe *FormatError
			require.ErrorAs(t, err, &fe)
			require.ErrorIs(t, err, c.kind)
			require.Equal(t, "x.safetensors", fe.File)
			require.Equal(t, c.tensor, fe.Tensor)
			require.ErrorContains(t, err, c.say)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestHeaderAccepted(t *testing.T) {
	for _, c := range []struct {
		name, js string
		data     int
		want     []Info
	}{
		{"no tensor", `{}`, 0, nil},
		{"spaces after", `{}      `, 0, nil},
		{"scalar", `{"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}`, 8, []Info{{"s", F64, []int{}, 0, 8}}},
		{"empty tensors share an offset", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}}`, 1,
			[]Info{{"e", F32, []int{0, 7}, 0, 0}, {"a", U8, []int{1}, 0, 1}}},
		{"order of bytes, not of names", `{"a":{"shape":[1],"dtype":"BOOL","data_offsets":[2,3]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 3,
			[]Info{{"b", BF16, []int{1}, 0, 2}, {"a", Bool, []int{1}, 2, 3}}},
	} {
		h, err := read(raw(c.js, c.data))
		require.NoError(t, err, c.name)
		require.Empty(t, cmp.Diff(c.want, h.Tensors), c.name)
		require.Equal(t, int64(8+len(c.js)), h.DataStart, c.name)
	}
}

// failingReader stands for a disk that gives an error.
type failingReader struct{}

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, errors.New("disk on fire") }

func TestHeaderReadError(t *testing.T) {
	_, err := ReadHeader(failingReader{}, 100, "x.safetensors")
	require.ErrorContains(t, err, "x.safetensors: disk on fire")
}

// drawInfos draws tensors of every dtype with small shapes.
func drawInfos(t *rapid.T) []Info {
	names := rapid.SliceOfNDistinct(rapid.StringN(0, 12, -1), 0, 6, rapid.ID[string]).Draw(t, "names")
	all := []DType{F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool}
	infos := make([]Info, len(names))
	for i, n := range names {
		infos[i] = Info{Name: n, DType: rapid.SampledFrom(all).Draw(t, "dtype"), Shape: rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")}
	}
	return infos
}

func TestWriterRoundTrip(t *testing.T) {
	dir := t.TempDir()
	property.Check(t, func(t *rapid.T) {
		infos := drawInfos(t)
		if rapid.Bool().Draw(t, "sorted") {
			SortForFile(infos)
		}
		meta := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata")
		path := filepath.Join(dir, "t.safetensors")
		data, w := writeRandom(t, path, infos, meta)
		f, err := Open(path)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, int64(0), f.header.DataStart%8)
		if len(meta) > 0 {
			require.Equal(t, meta, f.Metadata())
		}
		require.Empty(t, cmp.Diff(w.Header().Tensors, f.Tensors(), cmp.Transformer("len", func(x []Info) string { return fmt.Sprint(x) })))
		for i, in := range infos {
			require.True(t, bytes.Equal(data[in.Name], f.Bytes(in.Name)))
			require.Equal(t, sum(data[in.Name]), w.TensorCRC32C(i))
			whole := make([]byte, len(data[in.Name]))
			require.NoError(t, f.ReadRegion(in.Name, make([]int, len(in.Shape)), in.Shape, whole))
			require.True(t, bytes.Equal(data[in.Name], whole))
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, int64(len(b)), w.Size())
		require.Equal(t, sum(b), w.CRC32C())
		require.Equal(t, sum(b[:f.header.DataStart]), w.HeaderCRC32C())
	})
}

func FuzzReadHeader(f *testing.F) {
	f.Add([]byte(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}  `), uint16(12))
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"BOOL","shape":[0],"data_offsets":[4,4]}}`), uint16(4))
	f.Add([]byte(`{"a":{"dtype":"I8","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,9223372036854775807]}}`), uint16(1))
	f.Add([]byte(`{"\u00e9":{"dtype":"U8","shape":[1e1],"data_offsets":[-1,0]}}`), uint16(0))
	f.Add([]byte(strings.Repeat(`{"a":`, 50)), uint16(0))
	f.Fuzz(func(t *testing.T, js []byte, data uint16) {
		h, err := read(raw(string(js), int(data)))
		if err != nil {
			var fe *FormatError
			require.ErrorAs(t, err, &fe)
			return
		}
		// What is accepted tiles the data and survives our own writer.
		var end int64
		for _, i := range h.Tensors {
			require.Equal(t, end, i.Start)
			end = i.End
		}
		require.Equal(t, int64(data), end)
		_, again, err := EncodeHeader("again", h.Tensors, h.Metadata)
		require.NoError(t, err)
		h2, err := read(append(again, make([]byte, data)...))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(h.Tensors, h2.Tensors))
	})
}

// randomBytes is a fixed pseudo-random buffer.
func randomBytes(seed int64, n int64) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(seed)).Read(b)
	return b
}
