package data

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/data/demo"
	"weft/data/tokenizer"
)

// fixture returns the path of a file of the shared fixtures, or skips the test, saying so.
func fixture(t testing.TB, name ...string) string {
	t.Helper()
	shared := os.Getenv("WEFT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	path := filepath.Join(append([]string{shared, "fixtures"}, name...)...)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("SKIPPED: fixture %s is absent; set WEFT_SHARED to the folder that holds fixtures/", path)
	}
	return path
}

var small = sync.OnceValues(func() (*tokenizer.Tokenizer, error) { return tokenizer.LoadBytes(demo.TokenizerJSON()) })

// smallTokenizer is the demo's, of 2,048 tokens.
func smallTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := small()
	require.NoError(t, err)
	return tok
}

var gemma = sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
	shared := os.Getenv("WEFT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	return tokenizer.Load(filepath.Join(shared, "fixtures", "tokenizer", "tokenizer.json.gz"))
})

// gemmaTokenizer is Gemma 3's, of 262,144 tokens.
func gemmaTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	fixture(t, "tokenizer", "tokenizer.json.gz")
	tok, err := gemma()
	require.NoError(t, err)
	return tok
}

// openLines opens lines as a data set.
func openLines(t testing.TB, o Options, lines ...string) (*Dataset, error) {
	t.Helper()
	return OpenBytes("x.jsonl", []byte(strings.Join(lines, "\n")), smallTokenizer(t), o)
}

func mustOpen(t testing.TB, o Options, lines ...string) *Dataset {
	t.Helper()
	ds, err := openLines(t, o, lines...)
	require.NoError(t, err)
	return ds
}

func example(t testing.TB, ds *Dataset, i int) Example {
	t.Helper()
	e, err := ds.Example(i)
	require.NoError(t, err)
	return e
}

// targetText is the text of the tokens that are targets, as the tokenizer spells it.
func targetText(t testing.TB, tok *tokenizer.Tokenizer, e Example) string {
	t.Helper()
	var ids []int32
	for i, label := range e.Labels {
		if label != Ignore {
			require.Equal(t, e.IDs[i], label)
			ids = append(ids, label)
		}
	}
	return tok.Decode(ids, false)
}
