package hfcheck

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
)

// rows returns an integer tensor of shape [rows, tokens] as nested slices.
func rows(t *testing.T, tensors map[string]fixture.Tensor, name string) [][]int {
	t.Helper()
	tensor, ok := tensors[name]
	require.True(t, ok, name)
	require.Len(t, tensor.Dims, 2)
	var out [][]int
	for row := range slices.Chunk(tensor.Ints, tensor.Dims[1]) {
		ints := make([]int, len(row))
		for i, v := range row {
			ints[i] = int(v)
		}
		out = append(out, ints)
	}
	return out
}

func goldenBatch(t *testing.T, dir string) Batch {
	t.Helper()
	golden := fixture.Tensors(t, filepath.Join(dir, "golden.safetensors"))
	return Batch{InputIDs: rows(t, golden, "input_ids"), Labels: rows(t, golden, "labels"), AttentionMask: rows(t, golden, "attention_mask")}
}

func TestLossEqualsGolden(t *testing.T) {
	for _, tc := range []struct{ fixture, class string }{
		{"gemma3-tiny", "Gemma3ForCausalLM"},
		{"gemma4-tiny", "Gemma4ForCausalLM"},
	} {
		t.Run(tc.fixture, func(t *testing.T) {
			dir := fixture.Dir(t, tc.fixture)
			var golden struct {
				Loss struct {
					Value   float64 `json:"value"`
					Targets int     `json:"num_target_tokens"`
				} `json:"loss"`
			}
			fixture.JSON(t, filepath.Join(dir, "golden.json"), &golden)
			batch := goldenBatch(t, dir)
			whole := Loss(t, dir, []Batch{batch})
			require.Equal(t, tc.class, whole.ModelClass)
			require.InDelta(t, golden.Loss.Value, whole.Loss, 1e-5)
			require.Equal(t, golden.Loss.Targets, whole.NumTargets)
			require.Empty(t, whole.MissingKeys)
			require.Empty(t, whole.UnexpectedKeys)
			require.Empty(t, whole.MismatchedKeys)
			require.Nil(t, whole.Tokenizer)
			require.Regexp(t, `^2\.15\.0`, whole.Versions["torch"])
			require.Equal(t, "5.24.0", whole.Versions["transformers"])

			// The mean is over all targets, not a mean of the batches' means.
			var single []Batch
			for i := range batch.InputIDs {
				single = append(single, Batch{batch.InputIDs[i : i+1], batch.Labels[i : i+1], batch.AttentionMask[i : i+1]})
			}
			split := Loss(t, dir, single)
			require.InDelta(t, whole.Loss, split.Loss, 1e-5)
			require.Equal(t, whole.NumTargets, split.NumTargets)
		})
	}
}

// editedCopy copies the fixture into a new folder with its tensors changed by edit, which sees the safetensors header.
func editedCopy(t *testing.T, source string, edit func(header map[string]json.RawMessage)) string {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join(source, "config.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
	raw, err := os.ReadFile(filepath.Join(source, "model.safetensors"))
	require.NoError(t, err)
	n := binary.LittleEndian.Uint64(raw)
	var header map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw[8:8+n], &header))
	edit(header)
	edited, err := json.Marshal(header)
	require.NoError(t, err)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(edited)))
	out = append(append(out, edited...), raw[8+n:]...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), out, 0o644))
	return dir
}

func TestKeysAreReported(t *testing.T) {
	const from, to = "model.layers.3.mlp.up_proj.weight", "model.layers.3.mlp.misnamed.weight"
	source := fixture.Dir(t, "gemma3-tiny")
	dir := editedCopy(t, source, func(header map[string]json.RawMessage) {
		header[to] = header[from]
		delete(header, from)
	})
	result := Loss(t, dir, []Batch{goldenBatch(t, source)})
	require.Equal(t, []string{from}, result.MissingKeys)
	require.Equal(t, []string{to}, result.UnexpectedKeys)
}

func TestRefusalsAreErrors(t *testing.T) {
	source := fixture.Dir(t, "gemma3-tiny")
	batch := goldenBatch(t, source)
	t.Run("truncated file", func(t *testing.T) {
		dir := editedCopy(t, source, func(map[string]json.RawMessage) {})
		require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 100_000))
		_, err := check(t, dir, []Batch{batch}, nil)
		require.ErrorContains(t, err, "SafetensorError")
	})
	t.Run("shapes of a batch disagree", func(t *testing.T) {
		_, err := check(t, source, []Batch{{batch.InputIDs, batch.Labels[:3], batch.AttentionMask}}, nil)
		require.ErrorContains(t, err, "input_ids [4, 48], labels [3, 48] and attention_mask [4, 48] must have one shape")
	})
}

func TestTokenizerOfTheFolder(t *testing.T) {
	source := fixture.Dir(t, "gemma3-tiny")
	dir := editedCopy(t, source, func(map[string]json.RawMessage) {})
	tokenizers := fixture.Dir(t, "tokenizer")
	gunzip(t, filepath.Join(tokenizers, "tokenizer.json.gz"), filepath.Join(dir, "tokenizer.json"))

	result := Loss(t, dir, nil)
	require.NotNil(t, result.Tokenizer)
	require.Zero(t, result.NumTargets)
	t.Logf("AutoTokenizer picks %s, %d tokens", result.Tokenizer.AutoClass, result.Tokenizer.VocabSize)

	texts, ids, decoded := goldenTexts(t, filepath.Join(tokenizers, "tokenizer-golden.jsonl"))
	got := Check(t, dir, nil, texts).Tokenizer.Rows
	require.Len(t, got, len(texts))
	for i := range texts {
		require.Equal(t, ids[i], got[i].IDs, "%q", texts[i])
		require.Equal(t, decoded[i], got[i].Decoded, "%q", texts[i])
	}
}

func gunzip(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	z, err := gzip.NewReader(in)
	require.NoError(t, err)
	out, err := os.Create(to)
	require.NoError(t, err)
	_, err = io.Copy(out, z)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// goldenTexts returns the texts of the tokenizer fixture, their ids, and the text of these without special tokens.
func goldenTexts(t *testing.T, path string) (texts []string, ids [][]int, decoded []string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct {
			Text string `json:"text"`
			IDs  []int  `json:"ids"`
			Skip string `json:"decoded_skip_special"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		texts, ids, decoded = append(texts, row.Text), append(ids, row.IDs), append(decoded, row.Skip)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, texts)
	return texts, ids, decoded
}
