package storage

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs/gcstest"
)

func TestOpenRemote(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	for url, want := range map[string]string{"gs://bucket": "bucket", "gs://bucket/": "bucket", "gs://bucket/a//b/../c/": "bucket/a/c"} {
		fsys, name, err := Open(t.Context(), url)
		require.NoError(t, err)
		require.Equal(t, want, name)
		require.Equal(t, "gs://"+want, URL(fsys, name))
		require.True(t, IsRemote(url))
		require.NoError(t, fsys.Replace(name+"/x", []byte("y")))
	}
	require.Equal(t, map[string][]byte{"x": []byte("y"), "a/c/x": []byte("y")}, s.Objects("bucket"))
}

func TestOpenLocal(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for url, want := range map[string]string{".": dir, "a/../b": filepath.Join(dir, "b"), "/x/y/": "/x/y", "./gs:/b": filepath.Join(dir, "gs:/b")} {
		fsys, name, err := Open(t.Context(), url)
		require.NoError(t, err)
		require.Equal(t, checkpoint.OS{}, fsys)
		require.Equal(t, want, name)
		require.Equal(t, want, URL(fsys, name))
		require.False(t, IsRemote(url))
	}
}

func TestRefusedURLs(t *testing.T) {
	for _, url := range []string{"gs://", "gs:///a", "s3://b/x", "file:///x", "http://x/y", "GS://b", "gs:/b/x", "gs:b", "https:/x"} {
		_, _, err := Open(t.Context(), url)
		require.ErrorIs(t, err, ErrURL, url)
		require.ErrorContains(t, err, url)
		require.ErrorIs(t, Check(url), ErrURL, url)
	}
}

func TestCheck(t *testing.T) {
	for _, url := range []string{"gs://b", "gs://b/x", "a", "/a/b", "./gs:/b", "C", "x:y"} {
		require.NoError(t, Check(url), url)
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		want, url string
		elem      []string
	}{
		{"gs://b/p/x", "gs://b/p/", []string{"x"}},
		{"gs://b/x/y", "gs://b", []string{"x", "y"}},
		{"gs://b", "gs://b/", nil},
		{"a/x", "a", []string{"x"}},
		{"/a/x", "/a/", []string{"x"}},
	} {
		require.Equal(t, c.want, Join(c.url, c.elem...))
	}
}
