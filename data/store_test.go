package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// memoryStore is a Store that counts what is transferred and fails at the end of a file where it has an error for it.
type memoryStore struct {
	files map[string][]byte
	fail  error
	sent  int
}

func (s *memoryStore) Open(url string) (io.ReadCloser, error) {
	content, ok := s.files[url]
	if !ok {
		return nil, &fs.PathError{Op: "reading", Path: url, Err: fs.ErrNotExist}
	}
	return io.NopCloser(&sending{store: s, r: bytes.NewReader(content)}), nil
}

type sending struct {
	store *memoryStore
	r     *bytes.Reader
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.store.sent += n
	if errors.Is(err, io.EOF) && s.store.fail != nil {
		err = s.store.fail
	}
	return n, err
}

// A data set in a store gives the rows of the same file on a disk, and is transferred once, whatever part is asked for.
func TestOpenStore(t *testing.T) {
	tok := smallTokenizer(t)
	text := strings.Repeat(dollyLine+"\n", 300)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	files := map[string][]byte{
		"gs://b/d.jsonl": []byte(text), "gs://b/d.jsonl.gz": packed.Bytes(),
		"gs://b/f/train.jsonl": []byte(text), "gs://b/f/test.jsonl.gz": packed.Bytes(),
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct{ url, split, file string }{
		{"gs://b/d.jsonl", "", "gs://b/d.jsonl"},
		{"gs://b/d.jsonl", "train[:10]", "gs://b/d.jsonl"},
		{"gs://b/d.jsonl.gz", "train", "gs://b/d.jsonl.gz"},
		{"gs://b/d.jsonl.gz", "train[10%:20%]", "gs://b/d.jsonl.gz"},
		{"gs://b/f", "train[-3:]", "gs://b/f/train.jsonl"},
		{"gs://b/f/", "test", "gs://b/f/test.jsonl.gz"},
	} {
		store := &memoryStore{files: files}
		got, err := OpenStore(store, c.url, tok, Options{Split: c.split})
		require.NoError(t, err, "%s %s", c.url, c.split)
		want, err := OpenBytes("x", files[c.file], tok, Options{Split: strings.Replace(c.split, "test", "train", 1)})
		require.NoError(t, err)
		require.Equal(t, want.Fingerprint(), got.Fingerprint())
		require.Equal(t, len(files[c.file]), store.sent, "%s %s is transferred once", c.url, c.split)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "temporary copies have no name")

	for _, c := range []struct{ url, split, want string }{
		{"gs://b/none.jsonl", "", "dataset gs://b/none.jsonl: there is no such file, and no train.jsonl or train.jsonl.gz in a folder of that name"},
		{"gs://b/f", "dev", "and no dev.jsonl or dev.jsonl.gz in a folder"},
		{"gs://b/d.jsonl", "test", `a single file has the split train only, not "test"`},
	} {
		_, err := OpenStore(&memoryStore{files: files}, c.url, tok, Options{Split: c.split})
		require.ErrorContains(t, err, c.want)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	_, err = OpenStore(&memoryStore{files: files}, "gs://b/d.jsonl", tok, Options{Split: "train[:1]"})
	require.ErrorContains(t, err, "set TMPDIR to a folder with room")
}

// An error of the transfer is not one of the file.
func TestOpenStoreFails(t *testing.T) {
	tok := smallTokenizer(t)
	gone := errors.New("reading gs://b/d.jsonl: Cloud Storage does not answer")
	for _, split := range []string{"train", "train[:1]"} {
		store := &memoryStore{files: map[string][]byte{"gs://b/d.jsonl": []byte(dollyLine + "\n" + dollyLine)}, fail: gone}
		_, err := OpenStore(store, "gs://b/d.jsonl", tok, Options{Split: split})
		require.ErrorIs(t, err, gone)
		require.NotContains(t, err.Error(), "damaged")
		require.NotContains(t, err.Error(), "\n")
	}
	// A line that cannot be read is the transfer's fault when the store says so at the end.
	for _, content := range []string{"{\n" + dollyLine, dollyLine + "\n{\n" + strings.Repeat(dollyLine+"\n", 3*chunkRows), "\x1f\x8b\x08\x00nonsense"} {
		store := &memoryStore{files: map[string][]byte{"gs://b/d.jsonl": []byte(content)}, fail: gone}
		_, err := OpenStore(store, "gs://b/d.jsonl", tok, Options{})
		require.ErrorIs(t, err, gone)
		require.Equal(t, len(content), store.sent)
		store.fail = nil
		_, err = OpenStore(store, "gs://b/d.jsonl", tok, Options{})
		require.Error(t, err)
		require.NotErrorIs(t, err, gone)
	}
	store := &memoryStore{files: map[string][]byte{"gs://b/d.jsonl.gz": {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2}}}
	_, err := OpenStore(store, "gs://b/d.jsonl.gz", tok, Options{})
	require.ErrorContains(t, err, "the file is cut off or damaged")
}
