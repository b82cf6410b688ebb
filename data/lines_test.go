package data

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func tokenize(t *testing.T, in string, o TokenizeOptions) (string, error) {
	var out bytes.Buffer
	err := TokenizeLines(context.Background(), strings.NewReader(in), &out, smallTokenizer(t), o)
	return out.String(), err
}

func TestTokenizeLines(t *testing.T) {
	in := "\"What is\"\n\n\"a <b>\\n\\u00e9\"\n\"\""
	ids, err := tokenize(t, in, TokenizeOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(ids, "\n"))
	require.True(t, strings.HasPrefix(ids, "[2,"), ids)
	require.True(t, strings.HasSuffix(ids, "\n[2]\n"), ids)
	bare, err := tokenize(t, in, TokenizeOptions{NoSpecial: true})
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(strings.ReplaceAll(ids, "[2,", "["), "[2]", "[]"), bare)

	text, err := tokenize(t, ids, TokenizeOptions{Decode: true})
	require.NoError(t, err)
	require.Equal(t, "\"<bos>What is\"\n\"<bos>a <b>\\né\"\n\"<bos>\"\n", text)
	text, err = tokenize(t, ids, TokenizeOptions{Decode: true, NoSpecial: true})
	require.NoError(t, err)
	require.Equal(t, "\"What is\"\n\"a <b>\\né\"\n\"\"\n", text)
}

func TestTokenizeLinesErrors(t *testing.T) {
	for _, c := range []struct {
		in   string
		o    TokenizeOptions
		want string
	}{
		{"\"a\"\nb\n", TokenizeOptions{}, "line 2: it is not a JSON string; write one a line, in double quotes"},
		{"\"\xff\"\n", TokenizeOptions{}, "line 1: it is not UTF-8 text"},
		{`"\ud800"`, TokenizeOptions{}, `line 1: \ud800 is half of a character`},
		{"null\n", TokenizeOptions{}, "line 1: it is not a JSON string; write one a line, in double quotes"},
		{"\"a\"\n", TokenizeOptions{Decode: true}, "line 1: it is not a JSON array of token ids, such as [2, 9259]"},
		{"[2, 2048]\n", TokenizeOptions{Decode: true}, "line 1: id 2048 at 1 is not in the vocabulary of 2048"},
	} {
		_, err := tokenize(t, c.in, c.o)
		require.EqualError(t, err, c.want)
	}
	out, err := tokenize(t, "\"a\"\nb\n", TokenizeOptions{})
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(out, "\n"), "what was done before the error is written")

	broken := errors.New("broken")
	err = TokenizeLines(context.Background(), iotest.ErrReader(broken), io.Discard, smallTokenizer(t), TokenizeOptions{})
	require.ErrorIs(t, err, broken)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, TokenizeLines(ctx, strings.NewReader("\"a\""), io.Discard, smallTokenizer(t), TokenizeOptions{}), context.Canceled)
}

// TestTokenizeLinesAnswersAtOnce writes a line and waits for its answer before the next.
func TestTokenizeLinesAnswersAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	tok := smallTokenizer(t)
	go func() {
		err := TokenizeLines(context.Background(), inR, outW, tok, TokenizeOptions{NoSpecial: true})
		outW.Close()
		done <- err
	}()
	buf := make([]byte, 100)
	for range 2 {
		_, err := inW.Write([]byte("\"a\"\n"))
		require.NoError(t, err)
		n, err := outR.Read(buf)
		require.NoError(t, err)
		require.Equal(t, byte('\n'), buf[n-1])
	}
	require.NoError(t, inW.Close())
	require.NoError(t, <-done)
}
