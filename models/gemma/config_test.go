package gemma_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
	"weft/models/gemma"
)

// edited reads a fixture's configuration and applies changes; a nil value removes the field.
func edited(t *testing.T, fix, file string, changes map[string]any) []byte {
	t.Helper()
	var fields map[string]any
	fixture.JSON(t, filepath.Join(fixture.Dir(t, fix), file), &fields)
	for key, v := range changes {
		if v == nil {
			delete(fields, key)
		} else {
			fields[key] = v
		}
	}
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	return raw
}

// Each fault of a configuration is one line that names the field.
func TestConfigErrors(t *testing.T) {
	type changes = map[string]any
	for _, c := range []struct {
		name, fixture, file string
		changes             changes
		want                string
	}{
		{"unknown architecture", "gemma4-tiny", "config.json", changes{"model_type": "llama"}, `unknown architecture (model_type "llama"`},
		{"no architecture", "gemma4-tiny", "config.json", changes{"model_type": nil, "architectures": nil}, `unknown architecture (model_type ""`},
		{"Gemma 2", "gemma2-tiny", "config.json", nil, `"model_type" is "gemma2", which is not supported yet`},
		{"Gemma 1", "gemma1-tiny", "config.json", nil, `"model_type" is "gemma", which is not supported yet`},
		{"mixture of experts", "gemma4-moe-tiny", "config.json", nil, `"enable_moe_block" is true: a mixture of experts is not supported yet`},
		{"no hidden size", "gemma4-tiny", "config.json", changes{"hidden_size": nil}, `"hidden_size" is missing`},
		{"no hidden size, Gemma 3", "gemma3-tiny", "config.json", changes{"hidden_size": nil}, `"hidden_size" is missing`},
		{"no layers", "gemma3-tiny", "config.json", changes{"num_hidden_layers": nil}, `"num_hidden_layers" is missing`},
		{"no layer types", "gemma4-tiny", "config.json", changes{"layer_types": nil}, `"layer_types" is missing`},
		{"no global head dimension", "gemma4-tiny", "config.released-style.json", changes{"global_head_dim": nil}, `"global_head_dim" is missing`},
		{"no text config", "gemma4-tiny", "config.json", changes{"model_type": "gemma4"}, `"text_config" is missing`},
		{"a string for a number", "gemma4-tiny", "config.json", changes{"hidden_size": "64"}, `"hidden_size" is "64", not an integer`},
		{"a negative size", "gemma4-tiny", "config.json", changes{"vocab_size": -1}, `"vocab_size" is -1: it must be at least 1`},
		{"layer types too short", "gemma4-tiny", "config.json", changes{"layer_types": []string{"full_attention"}}, `"layer_types" has 1 entries, num_hidden_layers is 8`},
		{"an unknown layer type", "gemma3-tiny", "config.json", changes{"num_hidden_layers": 1, "layer_types": []string{"chunked_attention"}}, `"layer_types" has "chunked_attention" at layer 0`},
		{"a sliding last layer", "gemma4-tiny", "config.json", changes{"num_hidden_layers": 1, "num_kv_shared_layers": 0, "per_layer_config": changes{}, "layer_types": []string{"sliding_attention"}}, `"layer_types" ends with sliding_attention`},
		{"heads that do not divide", "gemma3-tiny", "config.json", changes{"num_attention_heads": 3}, `"num_attention_heads" is 3, layer 0 has 2 key/value heads`},
		{"an odd head dimension", "gemma3-tiny", "config.json", changes{"head_dim": 23}, `"head_dim" is 23 at layer 0`},
		{"sharing without an owner", "gemma4-tiny", "config.json", changes{"num_kv_shared_layers": 7}, `"num_kv_shared_layers" makes layer 1 share keys and values`},
		{"all layers share", "gemma4-tiny", "config.json", changes{"num_kv_shared_layers": 8}, `"num_kv_shared_layers" is 8 of 8 layers`},
		{"disagreeing head dimensions", "gemma4-tiny", "config.json", changes{"global_head_dim": 64}, `head_dim" is 32, global_head_dim makes it 64`},
		{"a layer out of range", "gemma4-tiny", "config.json", changes{"per_layer_config": changes{"9": changes{}}}, `"per_layer_config.9" names no layer of 8`},
		{"an unknown field of a layer", "gemma4-tiny", "config.json", changes{"per_layer_config": changes{"1": changes{"mlp": 1}}}, `"per_layer_config.1.mlp" is 1`},
		{"an unknown rotary embedding", "gemma4-tiny", "config.json", changes{"rope_parameters": changes{"full_attention": changes{"rope_type": "yarn"}, "sliding_attention": changes{}}}, `"rope_parameters.full_attention.rope_type" is "yarn"`},
		{"scaling without a factor", "gemma3-tiny", "config.released-style.json", changes{"rope_scaling": changes{"rope_type": "linear"}}, `"rope_scaling.factor" is missing`},
		{"a bias", "gemma3-tiny", "config.json", changes{"attention_bias": true}, `"attention_bias" is true`},
		{"dropout", "gemma3-tiny", "config.json", changes{"attention_dropout": 0.1}, `"attention_dropout" is 0.1: dropout is not supported yet`},
		{"an untied head", "gemma3-tiny", "config.json", changes{"tie_word_embeddings": false}, `"tie_word_embeddings" is false`},
		{"a cap on scores", "gemma3-tiny", "config.json", changes{"attn_logit_softcapping": 50.0}, `"attn_logit_softcapping" is 50`},
		{"another activation", "gemma3-tiny", "config.json", changes{"hidden_activation": "silu"}, `"hidden_activation" is "silu"`},
		{"bidirectional attention", "gemma4-tiny", "config.json", changes{"use_bidirectional_attention": "all"}, `"use_bidirectional_attention" is "all"`},
		{"an unknown dtype", "gemma4-tiny", "config.json", changes{"dtype": "float8"}, `"dtype" is "float8"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := gemma.ParseConfig(edited(t, c.fixture, c.file, c.changes))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "config.json: ")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	_, err := gemma.ParseConfig([]byte(`{"model_type": `))
	require.ErrorContains(t, err, "config.json: not a JSON object")
}

// What released files leave out has the defaults of transformers.
func TestReleasedGemma3Defaults(t *testing.T) {
	cfg, err := gemma.ParseConfig([]byte(`{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
		"eos_token_id": [1, 106], "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
		"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}}`))
	require.NoError(t, err)
	require.True(t, cfg.Multimodal)
	require.Equal(t, 262208, cfg.VocabSize)
	require.Equal(t, 8, cfg.NumHeads)
	require.Len(t, cfg.Layers, 34)
	require.Equal(t, gemma.Layer{Sliding: true, HeadDim: 256, KVHeads: 4, MLPDim: 10240}, cfg.Layers[0])
	require.False(t, cfg.Layers[5].Sliding)
	require.Equal(t, 1.0/16, cfg.AttentionScale)
	require.Equal(t, gemma.RoPE{Theta: 1e6, Factor: 8, Rotated: 1}, cfg.FullRoPE)
	require.Equal(t, gemma.RoPE{Theta: 1e4, Factor: 1, Rotated: 1}, cfg.SlidingRoPE)
	require.Equal(t, []int{1, 106}, cfg.EOS)
	require.Equal(t, dtypes.BFloat16, cfg.DType)
}

// The released sizes have the number of parameters that their page states, however the layers are run.
func TestParameterCounts(t *testing.T) {
	for name, want := range map[string]int{
		"gemma-4-E2B":  4628569379,
		"gemma-3-1b":   999885952,
		"gemma-3-270m": 268098176,
	} {
		raw, err := os.ReadFile(fixture.Shared(t, "configs", name, "config.json"))
		require.NoError(t, err)
		cfg, err := gemma.ParseConfig(raw)
		require.NoError(t, err)
		for _, scan := range []bool{false, true} {
			m, err := gemma.New(cfg, gemma.Options{Policy: policy(t, 16, dtypes.BFloat16), Scan: scan})
			require.NoError(t, err)
			n := 0
			for _, p := range m.Params() {
				require.NoError(t, p.Spec.Check(mesh(t, 16), p.Dims), p.Name)
				size := 1
				for _, d := range p.Dims {
					size *= d
				}
				n += size
			}
			require.Equal(t, want, n, "%s, scan %v", name, scan)
		}
	}
}
