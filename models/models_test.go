package models_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine/nn"
	"weft/internal/fixture"
	"weft/models"
	"weft/models/arch"
)

func TestOpen(t *testing.T) {
	for name, want := range map[string]string{"gemma4-tiny": "Gemma 4", "gemma4-tiny-multimodal": "Gemma 4", "gemma3-tiny": "Gemma 3"} {
		raw, err := os.ReadFile(filepath.Join(fixture.Dir(t, name), "config.json"))
		require.NoError(t, err)
		a, err := models.Open(raw)
		require.NoError(t, err)
		require.Equal(t, arch.Info{Name: want, VocabSize: 512, MaxPositions: 256, BOS: []int{2}, EOS: []int{1}, DType: dtypes.Float32}, a.Info())
		m, err := a.New(arch.Options{Policy: nn.Policy{Compute: dtypes.Float32}})
		require.NoError(t, err)
		require.NotEmpty(t, m.Params())
	}
}

func TestOpenListsTheKnown(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}`, `model_type "llama" (architectures ["LlamaForCausalLM"]) is not supported yet: use one of gemma3, gemma3_text, gemma4, gemma4_text`},
		{`{"model_type": "gemma2"}`, `model_type "gemma2"`},
		{`{}`, `model_type ""`},
		{`[]`, "not a JSON object that describes a model: it is a JSON array: take"},
		{`{"model_type": 5}`, "model_type is a JSON number: take"},
		{`{"model_type": "gemma4_text"}`, `"hidden_size" is missing`},
	} {
		_, err := models.Open([]byte(c.config))
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "config.json: ")
		require.NotContains(t, err.Error(), "\n")
	}
}
