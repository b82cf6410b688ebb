package safetensors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
)

func TestEveryFixtureOpens(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(fixture.Dir(t), "*", "*.safetensors"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		f, err := Open(p)
		require.NoError(t, err)
		require.NotEmpty(t, f.Tensors(), p)
		var bytes int64
		for _, i := range f.Tensors() {
			require.Len(t, f.Bytes(i.Name), int(i.Size()))
			bytes += i.Size()
		}
		st, err := os.Stat(p)
		require.NoError(t, err)
		require.Equal(t, st.Size(), f.header.DataStart+bytes)
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
	}
	t.Logf("%d files", len(paths))
}

func TestShardedFixture(t *testing.T) {
	root := fixture.Dir(t)
	s, err := OpenDir(filepath.Join(root, "gemma4-tiny-sharded-bf16"))
	require.NoError(t, err)
	defer s.Close()
	single, err := OpenDir(filepath.Join(root, "gemma4-tiny"))
	require.NoError(t, err)
	defer single.Close()
	require.Len(t, s.Files(), 3)
	require.Equal(t, len(single.Tensors()), len(s.Tensors()))
	var total int64
	for _, i := range s.Tensors() {
		require.Equal(t, BF16, i.DType)
		total += i.Size()
		// The bf16 weights are those of gemma4-tiny, rounded.
		want := make([]byte, i.Size())
		require.NoError(t, F32ToBF16(want, single.Bytes(i.Name)))
		require.Equal(t, want, s.Bytes(i.Name), i.Name)
		got := make([]byte, i.Size())
		require.NoError(t, s.ReadRegion(i.Name, make([]int, len(i.Shape)), i.Shape, got))
		require.Equal(t, want, got, i.Name)
	}
	require.Equal(t, int64(730864), total, "total_size of the index")
	require.ErrorIs(t, s.ReadRegion("none", nil, nil, nil), ErrMissingTensor)
	require.Nil(t, s.Bytes("none"))
}

// writeShard writes a file with U8 tensors of two bytes.
func writeShard(t *testing.T, dir, file string, names ...string) {
	infos := make([]Info, len(names))
	for i, n := range names {
		infos[i] = Info{Name: n, DType: U8, Shape: []int{2}}
	}
	writeRandom(t, filepath.Join(dir, file), infos, nil)
}

func TestOpenDir(t *testing.T) {
	index := func(m map[string]string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			b, err := json.Marshal(map[string]any{"weight_map": m})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, IndexFile), b, 0o644))
		}
	}
	text := func(name, s string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(s), 0o644))
		}
	}
	shard := func(file string, names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { writeShard(t, dir, file, names...) }
	}
	type steps = []func(*testing.T, string)
	for _, c := range []struct {
		name   string
		make   steps
		want   int // tensors
		kind   error
		tensor string
		file   string
	}{
		{"single", steps{shard("model.safetensors", "a"), shard("golden.safetensors", "x", "y")}, 1, nil, "", ""},
		{"single wins over index, as in transformers", steps{shard("model.safetensors", "a"), index(map[string]string{"q": "gone"})}, 1, nil, "", ""},
		{"any single", steps{shard("weights.safetensors", "a", "b"), text("config.json", "{}")}, 2, nil, "", ""},
		{"sharded", steps{shard("m1.safetensors", "a"), shard("m2.safetensors", "b"), index(map[string]string{"a": "m1.safetensors", "b": "m2.safetensors"})}, 2, nil, "", ""},
		{"not in the index", steps{shard("m1.safetensors", "a", "stray"), index(map[string]string{"a": "m1.safetensors"})}, 2, nil, "", ""},
		{"nothing", steps{text("pytorch_model.bin", "")}, 0, ErrNoWeights, "", ""},
		{"two without index", steps{shard("m1.safetensors", "a"), shard("m2.safetensors", "b")}, 0, ErrNoWeights, "", ""},
		{"file of the index missing", steps{shard("m1.safetensors", "a"), index(map[string]string{"a": "m1.safetensors", "b": "m2.safetensors"})}, 0, ErrMissingFile, "", "m2.safetensors"},
		{"tensor in another shard", steps{shard("m1.safetensors", "a", "b"), shard("m2.safetensors", "c"), index(map[string]string{"a": "m1.safetensors", "b": "m2.safetensors"})}, 0, ErrMissingTensor, "b", "m2.safetensors"},
		{"tensor nowhere", steps{shard("m1.safetensors", "a"), index(map[string]string{"a": "m1.safetensors", "b": "m1.safetensors"})}, 0, ErrMissingTensor, "b", "m1.safetensors"},
		{"tensor in two shards", steps{shard("m1.safetensors", "a"), shard("m2.safetensors", "a", "b"), index(map[string]string{"a": "m1.safetensors", "b": "m2.safetensors"})}, 0, ErrDuplicate, "a", "m2.safetensors"},
		{"index twice", steps{shard("m1.safetensors", "a"), text(IndexFile, `{"weight_map":{"a":"m1.safetensors","a":"m1.safetensors"}}`)}, 0, ErrDuplicate, "a", IndexFile},
		{"index outside", steps{text(IndexFile, `{"weight_map":{"a":"../m1.safetensors"}}`)}, 0, ErrIndex, "a", IndexFile},
		{"index cut", steps{text(IndexFile, `{"weight_map":{"a":"m1.saf`)}, 0, ErrIndex, "", IndexFile},
		{"index without map", steps{text(IndexFile, `{}`)}, 0, ErrIndex, "", IndexFile},
		{"index with empty map", steps{text(IndexFile, `{"weight_map":{}}`)}, 0, ErrIndex, "", IndexFile},
		{"index map of numbers", steps{text(IndexFile, `{"weight_map":{"a":1}}`)}, 0, ErrIndex, "", IndexFile},
		{"shard cut", steps{text("model.safetensors", "123")}, 0, ErrTruncated, "", "model.safetensors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, m := range c.make {
				m(t, dir)
			}
			s, err := OpenDir(dir)
			if c.kind == nil {
				require.NoError(t, err)
				require.Len(t, s.Tensors(), c.want)
				require.NoError(t, s.Close())
				return
			}
			require.ErrorIs(t, err, c.kind)
			var fe *FormatError
			require.ErrorAs(t, err, &fe)
			require.Equal(t, c.tensor, fe.Tensor)
			require.Equal(t, filepath.Join(dir, c.file), fe.File)
		})
	}
	_, err := OpenDir(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
