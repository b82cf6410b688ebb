package pyenv

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a pure-Python package of 14 kB without dependencies.
var small = []string{"iniconfig==2.1.0"}

// freshCache gives the test an empty cache folder, and the machine's own package index.
func freshCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("WEFT_CACHE", dir)
	return dir
}

func TestEnsureInstallsOnceAndRunsIsolated(t *testing.T) {
	cache := freshCache(t)
	t.Setenv("HOME", t.TempDir())
	python := Ensure(t, "small", small)
	require.True(t, strings.HasPrefix(python, filepath.Join(cache, "pyenv", "small-")), python)
	out, err := exec.Command(python, "-I", "-c",
		"import importlib.metadata as m; print(m.version('iniconfig'))").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "2.1.0\n", string(out))

	// The second call neither installs nor needs the index.
	t.Setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
	var log bytes.Buffer
	again, err := Install(t.Context(), &log, "small", small)
	require.NoError(t, err)
	require.Equal(t, python, again)
	require.Empty(t, log.String())
	require.NoDirExists(t, filepath.Dir(filepath.Dir(python))+".pip", "pip's cache is not kept")
}

func TestInterruptedInstallIsRedone(t *testing.T) {
	freshCache(t)
	python := Ensure(t, "small", small)
	dir := filepath.Dir(filepath.Dir(python))
	require.NoError(t, os.Remove(filepath.Join(dir, marker)))
	leftover := filepath.Join(dir, "half-written")
	require.NoError(t, os.WriteFile(leftover, nil, 0o644))
	require.Equal(t, python, Ensure(t, "small", small))
	require.NoFileExists(t, leftover)
	require.FileExists(t, filepath.Join(dir, marker))
}

func TestEnvironmentWhoseBasePythonIsGoneIsRedone(t *testing.T) {
	freshCache(t)
	python := Ensure(t, "small", small)
	require.NoError(t, os.Remove(python))
	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "gone"), python))
	require.Equal(t, python, Ensure(t, "small", small))
	require.NoError(t, exec.Command(python, "-I", "-c", "import iniconfig").Run())
}

func TestConcurrentInstallsInstallOnce(t *testing.T) {
	freshCache(t)
	Ensure(t, "probe", small) // skips here, on the test's own goroutine, if no index answers
	var logs [3]bytes.Buffer
	var errs [3]error
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() { _, errs[i] = Install(t.Context(), &logs[i], "shared", small) })
	}
	wg.Wait()
	installs := 0
	for i := range logs {
		require.NoError(t, errs[i])
		if logs[i].Len() > 0 {
			installs++
		}
	}
	require.Equal(t, 1, installs)
}

func TestInstallErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name         string
		ctx          context.Context
		requirements []string
		env          map[string]string
		want         string
		unavailable  bool
	}{
		{name: "not pinned", requirements: []string{"numpy>=2"}, want: `requirement "numpy>=2" is not pinned: write NAME==VERSION`},
		{name: "a pip option", requirements: []string{"--pre"}, want: `requirement "--pre" is not pinned`},
		{name: "nothing", want: "no requirements given"},
		{name: "no Python", requirements: small, env: map[string]string{"PATH": "/nonexistent"},
			want: "python3 (not on PATH); install one or set WEFT_PYTHON", unavailable: true},
		{name: "wrong WEFT_PYTHON", requirements: small, env: map[string]string{"WEFT_PYTHON": "/bin/false"},
			want: "/bin/false (does not run: exit status 1)", unavailable: true},
		{name: "no index", requirements: small, env: map[string]string{"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""},
			want: "the package index does not answer", unavailable: true},
		{name: "cancelled", ctx: cancelled, requirements: small, want: "context canceled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			freshCache(t)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err := Install(ctx, os.Stderr, "x", tc.requirements)
			require.ErrorContains(t, err, tc.want)
			if tc.unavailable {
				require.ErrorIs(t, err, ErrUnavailable)
			} else if ctx.Err() == nil {
				require.NotErrorIs(t, err, ErrUnavailable)
			}
		})
	}
}

func TestWrongPinIsNotTakenForAnAbsentIndex(t *testing.T) {
	freshCache(t)
	Ensure(t, "probe", small)
	_, err := Install(t.Context(), os.Stderr, "x", []string{"iniconfig==0.0.999"})
	require.ErrorContains(t, err, "No matching distribution found for iniconfig==0.0.999")
	require.NotErrorIs(t, err, ErrUnavailable)
}

func TestParseRequirements(t *testing.T) {
	require.Equal(t, []string{"a==1", "b==2; sys_platform == 'linux'"},
		ParseRequirements("# head\n\na==1  # why\n  b==2; sys_platform == 'linux'\n"))
}
