package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/data"
	"weft/data/tokenizer"
	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/internal/fixture"
	"weft/internal/hfcheck"
	"weft/models"
	"weft/models/arch"
	"weft/models/hf"
)

// narrowGemma4 is a Gemma 4 with the features and the vocabulary of E2B, at a small width.
const narrowGemma4 = `{
  "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "dtype": "bfloat16",
  "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "hidden_size": 32, "hidden_size_per_layer_input": 8,
  "intermediate_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 1,
  "head_dim": 8, "global_head_dim": 16, "num_kv_shared_layers": 2, "use_double_wide_mlp": true, "attention_k_eq_v": false,
  "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
  "sliding_window": 32, "max_position_embeddings": 512, "rms_norm_eps": 1e-06, "final_logit_softcapping": 30.0,
  "rope_parameters": {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}
  },
  "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, "attention_dropout": 0.0, "initializer_range": 0.02,
  "tie_word_embeddings": true, "enable_moe_block": false, "use_bidirectional_attention": null, "use_cache": false,
  "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1
}`

// randomModel writes a Hugging Face folder with random bfloat16 weights.
func randomModel(t *testing.T, config string) string {
	t.Helper()
	a, err := models.Open([]byte(config))
	require.NoError(t, err)
	m, err := a.New(arch.Options{Policy: nn.Policy{Compute: a.Info().DType}, Scan: true, Remat: arch.RematFull})
	require.NoError(t, err)
	folder := &checkpoint.ModelFolder{Files: map[string][]byte{"config.json": []byte(config)}}
	for _, tensor := range hf.Export(m, nil, safetensors.BF16) {
		whole := sharding.Region{Start: make([]int, len(tensor.Shape)), Size: tensor.Shape}
		folder.Tensors = append(folder.Tensors, checkpoint.Tensor{
			Name: tensor.Name, DType: tensor.DType, Shape: tensor.Shape,
			Shards: []checkpoint.Shard{{Start: whole.Start, Size: whole.Size, Fetch: func(dst []byte) error {
				return initBF16(m, *tensor.Param, tensor.Region(whole), dst)
			}}},
		})
	}
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.WriteModelFolder(t.Context(), checkpoint.OS{}, dir, folder))
	return dir
}

func initBF16(m arch.Model, p engine.Param, r sharding.Region, dst []byte) error {
	have := safetensors.F32
	if p.DType.Size() == 2 {
		have = safetensors.BF16
	}
	raw := make([]byte, r.Elements()*have.Size())
	if err := m.Init(p, r, 7, raw); err != nil {
		return err
	}
	if have == safetensors.BF16 {
		copy(dst, raw)
		return nil
	}
	return hf.Convert(dst, safetensors.BF16, raw, have)
}

// window is the tokens of a row, and batchRows the rows of the batch whose loss is compared. The logits of 262,144 words
// are what a step costs, so both are small.
const window, batchRows = 32, 8

// The main job: real records, the real tokenizer and vocabulary, four devices. The loss falls every epoch, and the
// checkpoint is one that transformers reads and computes the same loss with.
func TestFinetuneOnRealRecords(t *testing.T) {
	dir := randomModel(t, narrowGemma4)
	records := filepath.Join(fixture.Dir(t, "dolly"), "dolly-1024.jsonl")
	tokenizerFile := filepath.Join(fixture.Dir(t, "tokenizer"), "tokenizer.json.gz")
	storage := filepath.Join(t.TempDir(), "out")
	out := must(t, "finetune", "--model-id", dir, "--dataset", records, "--tokenizer", tokenizerFile,
		"--dataset-split", "train[:256]", "--num-epochs", "3", "--platform", "cpu", "--devices", "4", "--max-seq-len", strconv.Itoa(window),
		"--batch-size-per-device", "4", "--learning-rate", "2e-3", "--compute-dtype", "float32",
		"--storage-path", storage, "--compile-cache", cache)
	t.Log(out)
	for _, want := range []string{
		"mesh fsdp=4", "256 rows", "16 an epoch × 3 epochs, global batch 16 × 32 tokens", "rows cut to the window",
		"12,582,9", // of the per-layer table, frozen
		"Epoch 1/3 | loss=", "Epoch 3/3 | loss=", "Training completed! Final metrics: {\"epoch\": 3, ",
	} {
		require.Contains(t, out, want)
	}
	metrics := readMetrics(t, storage)
	require.Len(t, metrics, 48)
	requireFalling(t, metrics)

	exported := filepath.Join(checkpoints(t, storage)[0], "model")
	requireSameTensors(t, dir, exported)
	rows := batchOf(t, records, tokenizerFile)
	here := benchLoss(t, exported, rows)
	result := hfcheck.Loss(t, exported, []hfcheck.Batch{rows})
	require.Equal(t, "Gemma4ForCausalLM", result.ModelClass)
	require.Empty(t, result.MissingKeys)
	require.Empty(t, result.UnexpectedKeys)
	require.Empty(t, result.MismatchedKeys)
	require.NotNil(t, result.Tokenizer)
	require.InDelta(t, here, result.Loss, 1e-4)
	t.Logf("loss here %.6f, in transformers %.6f", here, result.Loss)
}

// requireSameTensors wants the names, shapes and dtypes of the exported folder to be those of the source, and frozen
// tensors to be the same bits.
func requireSameTensors(t *testing.T, source, exported string) {
	t.Helper()
	a, err := safetensors.OpenDir(source)
	require.NoError(t, err)
	defer a.Close()
	b, err := safetensors.OpenDir(exported)
	require.NoError(t, err)
	defer b.Close()
	require.Len(t, b.Tensors(), len(a.Tensors()))
	for _, info := range a.Tensors() {
		got, ok := b.Lookup(info.Name)
		require.True(t, ok, info.Name)
		require.Equal(t, info.DType, got.DType, info.Name)
		require.Equal(t, info.Shape, got.Shape, info.Name)
	}
	const frozen = "model.embed_tokens_per_layer.weight"
	require.True(t, slices.Equal(a.Bytes(frozen), b.Bytes(frozen)), "the frozen table changed")
	const trained = "model.layers.0.mlp.up_proj.weight"
	require.False(t, slices.Equal(a.Bytes(trained), b.Bytes(trained)), "nothing was trained")
}

// batchOf is the first records as one batch, padded.
func batchOf(t *testing.T, records, tokenizerFile string) hfcheck.Batch {
	t.Helper()
	tok, err := tokenizer.Load(tokenizerFile)
	require.NoError(t, err)
	ds, err := data.Open(records, tok, data.Options{Split: "train[:8]", MaxSeqLen: window})
	require.NoError(t, err)
	require.Equal(t, batchRows, ds.Len())
	var b hfcheck.Batch
	for i := range batchRows {
		e, err := ds.Example(i)
		require.NoError(t, err)
		ids, labels, mask := make([]int, window), make([]int, window), make([]int, window)
		for j := range window {
			labels[j] = int(data.Ignore)
			if j < len(e.IDs) {
				ids[j], labels[j], mask[j] = int(e.IDs[j]), int(e.Labels[j]), 1
			}
		}
		b.InputIDs, b.Labels, b.AttentionMask = append(b.InputIDs, ids), append(b.Labels, labels), append(b.AttentionMask, mask)
	}
	return b
}

// benchLoss is the loss that weft computes with the weights of a folder: that of a step before its update.
func benchLoss(t *testing.T, dir string, batch hfcheck.Batch) float64 {
	t.Helper()
	raw, err := json.Marshal(batch)
	require.NoError(t, err)
	file := write(t, "batch.json", string(raw))
	out := must(t, "bench", "step", "--config", filepath.Join(dir, "config.json"), "--weights", dir, "--batch-file", file,
		"--platform", "cpu", "--steps", "1", "--warmup", "0", "--json", "--compile-cache", cache)
	var result struct {
		Loss          []float64
		Batch, Seq    int
		NumParameters int `json:"num_parameters"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &result), out)
	require.Len(t, result.Loss, 1)
	require.Equal(t, []int{batchRows, window}, []int{result.Batch, result.Seq})
	require.Positive(t, result.NumParameters)
	return result.Loss[0]
}

// A multimodal folder keeps the names it came with, and what the model does not touch: the vision tensors.
func TestExportKeepsWhatTheFolderHad(t *testing.T) {
	dir := tinyModel(t, "gemma4-tiny-multimodal", nil)
	storage := filepath.Join(t.TempDir(), "out")
	out := must(t, "finetune", "--model-id", dir, "--dataset", write(t, "rows.jsonl", rows(8)), "--platform", "cpu", "--devices", "2",
		"--batch-size-per-device", "1", "--num-epochs", "1", "--max-seq-len", "16", "--learning-rate", "1e-2", "--compute-dtype", "float32",
		"--storage-path", storage, "--compile-cache", cache)
	require.Contains(t, out, "Epoch 1/1 | loss=")
	source, err := safetensors.OpenDir(dir)
	require.NoError(t, err)
	defer source.Close()
	exported, err := safetensors.OpenDir(filepath.Join(checkpoints(t, storage)[0], "model"))
	require.NoError(t, err)
	defer exported.Close()
	same, changed := 0, 0
	for _, info := range source.Tensors() {
		got, ok := exported.Lookup(info.Name)
		require.True(t, ok, info.Name)
		require.Equal(t, info.DType, got.DType)
		require.Equal(t, info.Shape, got.Shape)
		if slices.Equal(source.Bytes(info.Name), exported.Bytes(info.Name)) {
			same++
		} else {
			changed++
			require.Contains(t, info.Name, "model.language_model.")
		}
	}
	require.Len(t, exported.Tensors(), len(source.Tensors()))
	require.Positive(t, same)
	require.Greater(t, changed, 50)
	config, err := os.ReadFile(filepath.Join(checkpoints(t, storage)[0], "model", "config.json"))
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(config))
}
