package data

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/data/demo"
	"weft/data/tokenizer"
	"weft/internal/fixture"
)

var small = sync.OnceValues(func() (*tokenizer.Tokenizer, error) { return tokenizer.LoadBytes(demo.TokenizerJSON()) })

// smallTokenizer is the demo's, of 2,048 tokens.
func smallTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := small()
	require.NoError(t, err)
	return tok
}

var gemma struct {
	once sync.Once
	tok  *tokenizer.Tokenizer
	err  error
}

// gemmaTokenizer is Gemma 3's, of 262,144 tokens.
func gemmaTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	path := fixture.Dir(t, "tokenizer", "tokenizer.json.gz")
	gemma.once.Do(func() { gemma.tok, gemma.err = tokenizer.Load(path) })
	require.NoError(t, gemma.err)
	return gemma.tok
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
