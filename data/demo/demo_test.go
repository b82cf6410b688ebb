package demo_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/data"
	"weft/data/demo"
	"weft/data/tokenizer"
)

func TestSizeAndCopies(t *testing.T) {
	total := 0
	for _, get := range []func() []byte{demo.Records, demo.TokenizerJSON, demo.ConfigJSON} {
		total += len(get())
		get()[0] = 'X' // a copy: the next call is not changed
		require.NotEqual(t, byte('X'), get()[0])
	}
	require.Less(t, total, 500_000)
}

func TestTokenizer(t *testing.T) {
	tok, err := tokenizer.LoadBytes(demo.TokenizerJSON())
	require.NoError(t, err)
	require.Equal(t, 2048, tok.VocabSize())
	for token, want := range map[string]int32{"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<start_of_turn>": 4, "<end_of_turn>": 5} {
		id, ok := tok.ID(token)
		require.True(t, ok, token)
		require.Equal(t, want, id, token)
	}
	for _, text := range []string{"Instruction: What is 2 + 2?\nResponse: 4", "naïve café 漢字 😀\n\n", "", "  two  spaces"} {
		ids := tok.Encode(text, true)
		require.EqualValues(t, 2, ids[0])
		require.NotContains(t, ids, int32(3), "%q has an unknown token", text)
		require.Equal(t, text, tok.Decode(ids, true))
	}
}

func TestRecords(t *testing.T) {
	tok, err := tokenizer.LoadBytes(demo.TokenizerJSON())
	require.NoError(t, err)
	ds, err := data.OpenBytes("demo", demo.Records(), tok, data.Options{MaxSeqLen: 64, LossOn: data.LossCompletion, VocabSize: 2048})
	require.NoError(t, err)
	stats := ds.Stats()
	t.Logf("%v", stats)
	require.Equal(t, 400, stats.Rows)
	require.Equal(t, "instruction", stats.Format)
	require.Zero(t, stats.Truncated, "every record fits in 64 tokens")
	require.Zero(t, stats.NoTargets)

	seen := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(demo.Records()), []byte("\n")) {
		require.False(t, seen[string(line)], "twice: %s", line)
		seen[string(line)] = true
	}
}

func TestConfig(t *testing.T) {
	var c struct {
		Model  string   `json:"model_type"`
		Vocab  int      `json:"vocab_size"`
		PLE    int      `json:"vocab_size_per_layer_input"`
		Layers int      `json:"num_hidden_layers"`
		Types  []string `json:"layer_types"`
		Shared int      `json:"num_kv_shared_layers"`
		Wide   bool     `json:"use_double_wide_mlp"`
	}
	require.NoError(t, json.Unmarshal(demo.ConfigJSON(), &c))
	require.Equal(t, "gemma4_text", c.Model)
	require.Equal(t, 2048, c.Vocab)
	require.Equal(t, 2048, c.PLE)
	require.Len(t, c.Types, c.Layers)
	require.Equal(t, 3, c.Shared)
	require.True(t, c.Wide)
	for i, layer := range c.Types { // sliding, sliding, full: groups that can be scanned
		require.Equal(t, i%3 == 2, layer == "full_attention", "layer %d", i)
	}
}
