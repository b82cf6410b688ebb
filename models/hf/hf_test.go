package hf_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/checkpoint/safetensors"
	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/internal/fixture"
	"weft/internal/property"
	"weft/models/arch"
	"weft/models/gemma"
	"weft/models/hf"
)

var _ engine.ParamFill = (*hf.Source)(nil).Read

// model declares the model of a folder's config.json.
func model(t *testing.T, dir string, o arch.Options) *gemma.Model {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	cfg, err := gemma.ParseConfig(raw)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 4})
	require.NoError(t, err)
	o.Policy = nn.Policy{Mesh: mesh, DataAxes: []string{"fsdp"}, Compute: dtypes.Float32}
	o.MinShardElements = 1
	m, err := gemma.New(cfg, o)
	require.NoError(t, err)
	return m
}

// weights reads all tensors of a folder with the independent reader.
func weights(t *testing.T, dir string) map[string]fixture.Tensor {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	require.NoError(t, err)
	all := map[string]fixture.Tensor{}
	for _, f := range files {
		if filepath.Base(f) != "golden.safetensors" {
			for name, tensor := range fixture.Tensors(t, f) {
				all[name] = tensor
			}
		}
	}
	return all
}

// folder is a copy of a fixture without its golden file, which would be taken for weights.
func folder(t *testing.T, name string) string {
	t.Helper()
	from, to := fixture.Dir(t, name), t.TempDir()
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "golden") {
			require.NoError(t, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
		}
	}
	return to
}

// Any region of any parameter, stacked or not, has the values of the file, whatever the file's and the device's dtype.
func TestReadRegions(t *testing.T) {
	for _, c := range []struct {
		fixture, prefix string
		frozen          dtypes.DType
	}{
		{"gemma4-tiny", "model.", 0},
		{"gemma4-tiny", "model.", dtypes.BFloat16},
		{"gemma4-tiny-multimodal", "model.language_model.", dtypes.Float16},
		{"gemma4-tiny-sharded-bf16", "model.", 0},
		{"gemma4-tiny-sharded-bf16", "model.", dtypes.Float32},
		{"gemma3-tiny", "model.", 0},
	} {
		dir := folder(t, c.fixture)
		want := weights(t, dir)
		for _, scan := range []bool{false, true} {
			m := model(t, dir, arch.Options{Scan: scan, FrozenDType: c.frozen})
			s, err := hf.Load(dir, m)
			require.NoError(t, err)
			property.Check(t, func(rt *rapid.T) {
				p := rapid.SampledFrom(m.Params()).Draw(rt, "parameter")
				r := sharding.Region{}
				for _, d := range p.Dims {
					start := rapid.IntRange(0, d-1).Draw(rt, "start")
					r.Start, r.Size = append(r.Start, start), append(r.Size, rapid.IntRange(1, min(d-start, 9)).Draw(rt, "size"))
				}
				dst := make([]byte, r.Elements()*p.DType.Size())
				require.NoError(rt, s.Read(p, r, dst))
				requireRegion(rt, p, r, dst, func(source string) fixture.Tensor {
					return want[c.prefix+strings.TrimPrefix(source, "model.")]
				})
			})
			require.NoError(t, s.Close())
		}
	}
}

// requireRegion compares element by element.
func requireRegion(t require.TestingT, p engine.Param, r sharding.Region, got []byte, tensor func(source string) fixture.Tensor) {
	index := make([]int, len(p.Dims))
	for at := 0; at < len(got); at += p.DType.Size() {
		source, inner := p.Sources[0], make([]int, 0, len(p.Dims))
		for d := range index {
			inner = append(inner, r.Start[d]+index[d])
		}
		if len(p.Sources) > 1 {
			source, inner = p.Sources[inner[0]], inner[1:]
		}
		want := tensor(source)
		flat := 0
		for d, i := range inner {
			flat = flat*want.Dims[d] + i
		}
		require.Equal(t, encode(want.Floats[flat], p.DType), got[at:at+p.DType.Size()], "%s %v", p.Name, inner)
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < r.Size[d] {
				break
			}
			index[d] = 0
		}
	}
}

func encode(v float32, d dtypes.DType) []byte {
	b := make([]byte, 4)
	binary.LittleEndian.PutUint32(b, math.Float32bits(v))
	switch d {
	case dtypes.BFloat16:
		out := make([]byte, 2)
		if err := safetensors.F32ToBF16(out, b); err != nil {
			panic(err)
		}
		return out
	case dtypes.Float16:
		out := make([]byte, 2)
		if err := safetensors.F32ToF16(out, b); err != nil {
			panic(err)
		}
		return out
	}
	return b
}

// tensorFile is a tensor to be written.
type tensorFile struct {
	info  safetensors.Info
	bytes []byte
}

// rewrite makes a folder like a fixture of one file, its tensors changed by edit.
func rewrite(t *testing.T, name string, edit func(map[string]tensorFile)) string {
	t.Helper()
	from := fixture.Dir(t, name)
	f, err := safetensors.Open(filepath.Join(from, "model.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	all := map[string]tensorFile{}
	for _, info := range f.Tensors() {
		all[info.Name] = tensorFile{info, f.Bytes(info.Name)}
	}
	edit(all)
	var infos []safetensors.Info
	for key, tensor := range all {
		tensor.info.Name = key
		infos = append(infos, tensor.info)
	}
	safetensors.SortForFile(infos)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(from, "config.json"), filepath.Join(dir, "config.json")))
	out, err := os.Create(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	defer out.Close()
	w, err := safetensors.NewWriter(out, "model.safetensors", infos, safetensors.MetadataPT())
	require.NoError(t, err)
	for _, info := range infos {
		require.NoError(t, w.Write(info.Name, all[info.Name].bytes))
	}
	require.NoError(t, w.Finish())
	return dir
}

// A folder that does not fit is one line that names the tensor.
func TestLoadNamesTheTensor(t *testing.T) {
	const norm = "model.norm.weight"
	add := func(name string) func(map[string]tensorFile) {
		return func(m map[string]tensorFile) { m[name] = m[norm] }
	}
	reshape := func(shape ...int) func(map[string]tensorFile) {
		return func(m map[string]tensorFile) {
			tensor := m[norm]
			tensor.info.Shape = shape
			m[norm] = tensor
		}
	}
	for _, c := range []struct {
		name, fixture string
		edit          func(map[string]tensorFile)
		want          string
	}{
		{"missing", "gemma4-tiny", func(m map[string]tensorFile) { delete(m, norm) }, "tensor model.norm.weight is missing: download the folder again"},
		{"many missing", "gemma4-tiny", func(m map[string]tensorFile) {
			clear(m)
			m["x"] = tensorFile{info: safetensors.Info{DType: safetensors.F32, Shape: []int{0}}}
		}, "tensor model.embed_tokens.weight is missing (and 131 more)"},
		{"of another shape", "gemma4-tiny", reshape(8, 8), "tensor model.norm.weight has shape [8 8], config.json makes it [64]"},
		{"unexpected", "gemma4-tiny", add("model.layers.8.input_layernorm.weight"), "tensor model.layers.8.input_layernorm.weight is unexpected: config.json describes a model without it"},
		{"a vision tensor beside a text model", "gemma4-tiny", add("model.vision_tower.x.weight"), "tensor model.vision_tower.x.weight is unexpected"},
		{"keys of a layer that owns its own", "gemma4-tiny", add("model.layers.0.self_attn.v_norm.weight"), "tensor model.layers.0.self_attn.v_norm.weight is unexpected"},
		{"of an unknown dtype", "gemma4-tiny", func(m map[string]tensorFile) {
			tensor := m[norm]
			tensor.info.DType = safetensors.F64
			tensor.bytes = append(bytes.Clone(tensor.bytes), tensor.bytes...)
			m[norm] = tensor
		}, "tensor model.norm.weight has dtype F64: F32, BF16 and F16 are supported"},
		{"a tied head is no fault", "gemma4-tiny", add("lm_head.weight"), ""},
		{"keys of a sharing layer are no fault", "gemma4-tiny", add("model.layers.5.self_attn.k_proj.weight"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := rewrite(t, c.fixture, c.edit)
			s, err := hf.Load(dir, model(t, dir, arch.Options{}))
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, s.Close())
				return
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, dir)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	_, err := hf.Load(filepath.Join(t.TempDir(), "absent"), model(t, folder(t, "gemma4-tiny"), arch.Options{}))
	require.ErrorContains(t, err, "no such file")
}

// Exporting gives every tensor back under the name that it came with, vision and stray tensors too, but for a tied head.
func TestExportIsComplete(t *testing.T) {
	for _, name := range []string{"gemma4-tiny", "gemma4-tiny-multimodal", "gemma4-tiny-sharded-bf16"} {
		for _, scan := range []bool{false, true} {
			dir := folder(t, name)
			m := model(t, dir, arch.Options{Scan: scan})
			s, err := hf.Load(dir, m)
			require.NoError(t, err)
			var names, want []string
			for _, info := range s.Set().Tensors() {
				want = append(want, info.Name)
			}
			for _, tensor := range hf.Export(m, s, safetensors.F32) {
				names = append(names, tensor.Name)
				info, _ := s.Set().Lookup(tensor.Name)
				require.Equal(t, info.Shape, tensor.Shape, tensor.Name)
				require.Equal(t, info.DType, tensor.DType, tensor.Name)
				requireSameBytes(t, s, tensor)
			}
			slices.Sort(names)
			slices.Sort(want)
			require.Equal(t, want, names)
			require.NoError(t, s.Close())
		}
	}
}

// requireSameBytes reads the tensor through its parameter and compares it with the file.
func requireSameBytes(t *testing.T, s *hf.Source, tensor hf.Tensor) {
	t.Helper()
	if tensor.Param == nil {
		got := make([]byte, len(s.Set().Bytes(tensor.Name)))
		require.NoError(t, s.Set().ReadRegion(tensor.Name, make([]int, len(tensor.Shape)), tensor.Shape, got))
		require.Equal(t, s.Set().Bytes(tensor.Name), got)
		return
	}
	r := tensor.Region(sharding.Region{Start: make([]int, len(tensor.Shape)), Size: tensor.Shape})
	got := make([]byte, r.Elements()*tensor.Param.DType.Size())
	require.NoError(t, s.Read(*tensor.Param, r, got))
	want := s.Set().Bytes(tensor.Name)
	if tensor.DType == safetensors.BF16 && tensor.Param.DType == dtypes.Float32 {
		wide := make([]byte, 2*len(want))
		require.NoError(t, safetensors.BF16ToF32(wide, want))
		want = wide
	}
	require.Equal(t, want, got, tensor.Name)
}

// Without a source, the names are those that transformers expects of the model's kind.
func TestExportWithoutSource(t *testing.T) {
	m := model(t, folder(t, "gemma4-tiny-multimodal"), arch.Options{Scan: true})
	out := hf.Export(m, nil, safetensors.BF16)
	require.Equal(t, "model.language_model.embed_tokens.weight", out[0].Name)
	require.Equal(t, safetensors.BF16, out[0].DType)
	require.Len(t, out, 132)
	m = model(t, folder(t, "gemma3-tiny"), arch.Options{})
	require.Equal(t, "model.embed_tokens.weight", hf.Export(m, nil, safetensors.F32)[0].Name)
}

// A tied head that was saved beside the embedding would be stale after training.
func TestExportLeavesATiedHeadOut(t *testing.T) {
	dir := rewrite(t, "gemma3-tiny", func(m map[string]tensorFile) { m["lm_head.weight"] = m["model.embed_tokens.weight"] })
	m := model(t, dir, arch.Options{})
	s, err := hf.Load(dir, m)
	require.NoError(t, err)
	defer s.Close()
	for _, tensor := range hf.Export(m, s, safetensors.F32) {
		require.NotEqual(t, "lm_head.weight", tensor.Name)
	}
}

// Gemma 3 checkpoints put the text model below language_model.model.
func TestGemma3Multimodal(t *testing.T) {
	for _, prefix := range []string{"language_model.model.", "model.language_model."} {
		dir := rewrite(t, "gemma3-tiny", func(m map[string]tensorFile) {
			text := maps.Clone(m)
			clear(m)
			for name, tensor := range text {
				m[prefix+strings.TrimPrefix(name, "model.")] = tensor
			}
			m["vision_tower.vision_model.x.weight"] = tensorFile{info: safetensors.Info{DType: safetensors.F32, Shape: []int{0}}}
		})
		text, err := os.ReadFile(filepath.Join(dir, "config.json"))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, "config.json")))
		config := `{"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "text_config": ` + string(text) + `}`
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
		s, err := hf.Load(dir, model(t, dir, arch.Options{}))
		require.NoError(t, err)
		require.Equal(t, prefix+"norm.weight", s.Name("model.norm.weight"))
		require.NoError(t, s.Close())
	}
}
