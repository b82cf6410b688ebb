package storage

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs"
	"weft/checkpoint/gcs/gcstest"
	"weft/checkpoint/safetensors"
	"weft/internal/fixture"
)

// All flags share one connection.
func TestOpenShares(t *testing.T) {
	gcstest.Start(t, "bucket").Use(t)
	a, _, err := Open(t.Context(), "gs://bucket/a")
	require.NoError(t, err)
	b, _, err := Open(t.Context(), "gs://bucket/b")
	require.NoError(t, err)
	require.Same(t, a, b)
}

func TestReadFile(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	s.Put("bucket", "f/small", []byte("hello"))
	s.Put("bucket", "f/empty", nil)
	s.Put("bucket", "f/big", big)
	local := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.WriteFile(local, []byte("hello"), 0o600))
	for url, want := range map[string][]byte{local: []byte("hello"), "gs://bucket/f/small": []byte("hello"), "gs://bucket/f/empty": {}, "gs://bucket/f/big": big} {
		got, err := ReadFile(t.Context(), url)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), url)
	}
	for _, c := range []struct {
		url  string
		want error
		text string
	}{
		{local + "x", fs.ErrNotExist, local},
		{"gs://bucket/none", fs.ErrNotExist, "gs://bucket/none"},
		{"gs://none/x", gcs.ErrBucket, "gs://none"},
		{"gs://bucket", nil, "gs://bucket is a bucket, not a file"},
		{"s3://bucket/x", ErrURL, "s3://bucket/x"},
	} {
		_, err := ReadFile(t.Context(), c.url)
		require.ErrorContains(t, err, c.text)
		if c.want != nil {
			require.ErrorIs(t, err, c.want)
		}
		require.NotContains(t, err.Error(), "\n")
	}
}

// spoiled is an FS whose files come back changed.
type spoiled struct {
	checkpoint.FS
	read func(r checkpoint.Reader, p []byte, off int64) (int, error)
}

func (s spoiled) URL(name string) string { return "gs://" + name }

type spoiledReader struct {
	checkpoint.Reader
	read func(r checkpoint.Reader, p []byte, off int64) (int, error)
}

func (s spoiled) Open(name string) (checkpoint.Reader, error) {
	r, err := s.FS.Open(name)
	return spoiledReader{r, s.read}, err
}

func (r spoiledReader) ReadAt(p []byte, off int64) (int, error) { return r.read(r.Reader, p, off) }

func (r spoiledReader) CRC32C() (uint32, bool) {
	return r.Reader.(interface{ CRC32C() (uint32, bool) }).CRC32C()
}

// Bytes that changed and bytes that are missing are errors with names.
func TestReadFileFaults(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	s.Put("bucket", "x", []byte("hello"))
	fsys, name, err := Open(t.Context(), "gs://bucket/x")
	require.NoError(t, err)
	boom := errors.New("boom")
	for what, c := range map[string]struct {
		read func(r checkpoint.Reader, p []byte, off int64) (int, error)
		want error
	}{
		"bit flip": {func(r checkpoint.Reader, p []byte, off int64) (int, error) {
			n, err := r.ReadAt(p, off)
			p[0] ^= 1
			return n, err
		}, ErrChecksum},
		"short": {func(r checkpoint.Reader, p []byte, off int64) (int, error) {
			return r.ReadAt(p[:len(p)-1], off)
		}, io.ErrUnexpectedEOF},
		"error": {func(checkpoint.Reader, []byte, int64) (int, error) { return 0, boom }, boom},
	} {
		_, err := ReadAll(spoiled{fsys, c.read}, name)
		require.ErrorIs(t, err, c.want, what)
		if !errors.Is(err, boom) {
			require.ErrorContains(t, err, "reading gs://bucket/x: ", what)
		}
	}
}

// Answers of the server that are wrong or cut are asked for again.
func TestReadsAreRetried(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	s.Put("bucket", "x", content)
	for _, a := range []gcstest.Action{gcstest.Unavailable, gcstest.Reset, gcstest.HalfRead} {
		s.Inject(gcstest.Fault{Op: gcstest.Read, Do: a})
		in, err := Stream(t.Context(), "gs://bucket/x")
		require.NoError(t, err, a)
		got, err := io.ReadAll(in)
		require.NoError(t, err, a)
		require.True(t, bytes.Equal(content, got), a)
		require.NoError(t, in.Close())
		require.Positive(t, s.Heal()[0], "%s happened", a)
	}
	// A stream has given its bytes away when its checksum is known; a whole file is read again.
	s.Inject(gcstest.Fault{Op: gcstest.Read, Times: 2, Do: gcstest.BitFlip})
	in, err := Stream(t.Context(), "gs://bucket/x")
	require.NoError(t, err)
	_, err = io.ReadAll(in)
	require.ErrorIs(t, err, ErrChecksum)
	require.NoError(t, in.Close())
	got, err := ReadFile(t.Context(), "gs://bucket/x")
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.Equal(t, []int{2}, s.Heal())
}

// Weights on Cloud Storage are those on a disk.
func TestOpenWeights(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	for _, name := range []string{"gemma4-tiny", "gemma4-tiny-sharded-bf16"} {
		dir := fixture.Dir(t, name)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			if b, err := os.ReadFile(filepath.Join(dir, f.Name())); err == nil {
				s.Put("bucket", "models/"+name+"/"+f.Name(), b)
			}
		}
		want, err := OpenWeights(t.Context(), dir)
		require.NoError(t, err)
		got, err := OpenWeights(t.Context(), "gs://bucket/models/"+name)
		require.NoError(t, err)
		require.Equal(t, want.Tensors(), got.Tensors())
		for _, i := range got.Tensors() {
			b := make([]byte, i.Size())
			require.NoError(t, got.ReadRegion(i.Name, make([]int, len(i.Shape)), i.Shape, b))
			require.True(t, bytes.Equal(want.Bytes(i.Name), b), i.Name)
		}
		checked, err := got.Check()
		require.NoError(t, err)
		require.Equal(t, len(got.Files()), checked, "every byte was read, and is the store's")
		require.NoError(t, errors.Join(want.Close(), got.Close()))
	}
	_, err := OpenWeights(t.Context(), "gs://bucket/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = OpenWeights(t.Context(), "gs://bucket/models")
	require.ErrorIs(t, err, safetensors.ErrNoWeights)
	_, err = OpenWeights(t.Context(), "hf://x/y")
	require.ErrorIs(t, err, ErrURL)
}
