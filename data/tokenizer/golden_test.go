package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
)

var gemma3 struct {
	once sync.Once
	tok  *Tokenizer
	err  error
}

// loadGemma3 loads the 262,144-word vocabulary once for all tests.
func loadGemma3(t testing.TB) *Tokenizer {
	t.Helper()
	path := fixture.Dir(t, "tokenizer", "tokenizer.json.gz")
	gemma3.once.Do(func() { gemma3.tok, gemma3.err = Load(path) })
	require.NoError(t, gemma3.err)
	return gemma3.tok
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

// goldenRow is a text with what the tokenizers library made of it.
type goldenRow struct {
	Category, Text, Decoded string
	IDs                     []int32
	Plain                   []int32 `json:"ids_no_special"`
	Skipped                 string  `json:"decoded_skip_special"`
}

// goldenRows is the number of rows in the fixture file (its tokenizer-info.json counts 315, before it was cut down).
const goldenRows = 240

func TestGoldenRows(t *testing.T) {
	tok := loadGemma3(t)
	file, err := os.Open(fixture.Dir(t, "tokenizer", "tokenizer-golden.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	rows := 0
	for lines.Scan() {
		var row goldenRow
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		rows++
		require.Equal(t, row.IDs, tok.Encode(row.Text, true), "row %d (%s): ids of %q", rows, row.Category, row.Text)
		require.Equal(t, row.Plain, append([]int32{}, tok.Encode(row.Text, false)...), "row %d: ids without specials", rows)
		require.Equal(t, row.Decoded, tok.Decode(row.Plain, false), "row %d: decoded", rows)
		require.Equal(t, row.Skipped, tok.Decode(row.IDs, true), "row %d: decoded without specials", rows)
	}
	require.NoError(t, lines.Err())
	var info struct {
		Bytes int    `json:"tokenizer_json_bytes"`
		Sum   string `json:"tokenizer_json_sha256"`
		Vocab int    `json:"vocab_size_with_added"`
	}
	readJSON(t, fixture.Dir(t, "tokenizer", "tokenizer-info.json"), &info)
	require.Equal(t, goldenRows, rows)
	require.Equal(t, info.Vocab, tok.VocabSize())
	require.Len(t, tok.Bytes(), info.Bytes)
	require.Equal(t, info.Sum, tok.Fingerprint())
}

// TestLibraryGolden compares with the tokenizers library on random small files: every behaviour of Split, every flag of
// added tokens, unknown and byte tokens, templates and decoders. testdata/library_golden.py rewrites the golden.
func TestLibraryGolden(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "library-golden.json.gz"))
	require.NoError(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	var golden []struct {
		Tokenizer json.RawMessage
		Rows      []goldenRow
	}
	require.NoError(t, json.NewDecoder(plain).Decode(&golden))
	require.Len(t, golden, 40)
	for i, g := range golden {
		tok, err := LoadBytes(g.Tokenizer)
		require.NoError(t, err, "tokenizer %d", i)
		require.Len(t, g.Rows, 30)
		for _, row := range g.Rows {
			require.Equal(t, row.IDs, append([]int32{}, tok.Encode(row.Text, true)...), "tokenizer %d: ids of %q", i, row.Text)
			require.Equal(t, row.Plain, append([]int32{}, tok.Encode(row.Text, false)...), "tokenizer %d: plain ids of %q", i, row.Text)
			require.Equal(t, row.Decoded, tok.Decode(row.IDs, false), "tokenizer %d: %v decoded", i, row.IDs)
			require.Equal(t, row.Skipped, tok.Decode(row.IDs, true), "tokenizer %d: %v decoded without specials", i, row.IDs)
		}
	}
}

func TestGemmaSpecialIDs(t *testing.T) {
	tok := loadGemma3(t)
	for name, get := range map[string]func() (int32, bool){"pad": tok.PAD, "eos": tok.EOS, "bos": tok.BOS, "unk": tok.UNK} {
		id, ok := get()
		require.True(t, ok, name)
		require.Equal(t, map[string]int32{"pad": 0, "eos": 1, "bos": 2, "unk": 3}[name], id, name)
	}
}
