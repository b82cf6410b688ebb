package plugin

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// library is what the fake wheel's plugin file holds.
const library = "a library"

// fakeSpec is a plugin whose wheel the fake pip copies.
func fakeSpec(wheelSHA string) spec {
	return spec{name: "cpu", platform: "cpu", pkg: "some-plugin", version: "1.0", member: "some/plugin.so", wheelSHA: wheelSHA, megabyte: 1,
		pip: []string{"--only-binary=:all:"}}
}

// makeWheel writes a wheel with that library and returns its path and sha256.
func makeWheel(t *testing.T, content string) (path, sum string) {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, text := range map[string]string{"some/plugin.so": content, "some/__init__.py": ""} {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	path = filepath.Join(t.TempDir(), "some_plugin-1.0-py3-none-any.whl")
	require.NoError(t, os.WriteFile(path, buf.Bytes(), 0o644))
	digest := sha256.Sum256(buf.Bytes())
	return path, hex.EncodeToString(digest[:])
}

// fakePython is a python3 that only knows "-m pip download … --dest DIR … NAME==VERSION". It notes each call in calls.
const fakePython = `#!/bin/sh
echo "$*" >> "$FAKE_CALLS"
if [ -n "$FAKE_FAIL" ]; then echo "$FAKE_FAIL" >&2; exit 1; fi
if [ "$1" = -c ]; then printf "%s" "$FAKE_SITE"; exit 0; fi
while [ $# -gt 0 ]; do
  if [ "$1" = --dest ]; then dest=$2; fi
  shift
done
sleep "${FAKE_SLEEP:-0}"
cp "$FAKE_WHEEL" "$dest/"
`

// fakePip puts the fake python3 on PATH and returns the file of its calls.
func fakePip(t *testing.T, wheel string) (calls string) {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "python3"), []byte(fakePython), 0o755))
	calls = filepath.Join(bin, "calls")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("FAKE_CALLS", calls)
	t.Setenv("FAKE_WHEEL", wheel)
	t.Setenv(EnvPlugin, "")
	t.Setenv("TPU_LIBRARY_PATH", "")
	return calls
}

func countCalls(t *testing.T, calls string) int {
	t.Helper()
	b, err := os.ReadFile(calls)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

// fakeStore is an empty folder that knows one plugin, and the fake pip's calls.
func fakeStore(t *testing.T) (s *store, calls string) {
	t.Helper()
	wheel, sum := makeWheel(t, library)
	calls = fakePip(t, wheel)
	return &store{dir: filepath.Join(t.TempDir(), "plugins"), specs: []spec{fakeSpec(sum)}}, calls
}

func mustInstall(t *testing.T, s *store) Info {
	t.Helper()
	info, err := s.install(context.Background(), s.specs[0], &bytes.Buffer{})
	require.NoError(t, err)
	return info
}
