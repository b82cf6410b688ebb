package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/build"
	"weft/pjrt/plugin"
)

// binary is the weft that the tests run, and cache the compile cache that they share: a program is compiled once.
var binary, cache string

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "weft-e2e-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // another user runs the binary in one test
		return 1, err
	}
	binary, cache = filepath.Join(dir, "weft"), filepath.Join(dir, "compile")
	if err := build.Weft(context.Background(), binary, "-ldflags", "-s -w"); err != nil {
		return 1, err
	}
	// Outside of the runs, whose output is compared.
	if _, err := plugin.Ensure(context.Background(), "cpu", os.Stderr); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// outcome is how a run of the binary ended.
type outcome struct {
	code     int
	out, err string
}

// command is the binary with arguments, in an empty folder, without the variables that change what it does.
func command(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = t.TempDir()
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "STORAGE_PATH=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd
}

// weft runs the binary.
func weft(t testing.TB, args ...string) outcome {
	t.Helper()
	return finish(t, command(t, args...))
}

func finish(t testing.TB, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.True(t, errors.As(err, &exit), "%v", err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must runs the binary and wants it to end well; it returns its output.
func must(t testing.TB, args ...string) string {
	t.Helper()
	o := weft(t, args...)
	require.Zero(t, o.code, "weft %s\n%s\n%s", strings.Join(args, " "), o.out, o.err)
	return o.out
}

// refused runs the binary and wants one line on standard error with exit code 2, and nothing trained.
func refused(t testing.TB, args ...string) string {
	t.Helper()
	o := weft(t, args...)
	require.Equal(t, 2, o.code, "weft %s\n%s\n%s", strings.Join(args, " "), o.out, o.err)
	require.True(t, strings.HasPrefix(o.err, "weft: "), o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), "one line: %s", o.err)
	require.NotContains(t, o.out, "step 1/")
	return strings.TrimSuffix(strings.TrimPrefix(o.err, "weft: "), "\n")
}

// metric is a line of metrics.jsonl; times differ from run to run and are left out.
type metric struct {
	Step     int         `json:"step"`
	Epoch    int         `json:"epoch"`
	Loss     json.Number `json:"loss"`
	GradNorm json.Number `json:"grad_norm"`
	LR       json.Number `json:"lr"`
	Tokens   int         `json:"tokens"`
	Targets  int         `json:"targets"`
}

func readMetrics(t testing.TB, storage string) []metric {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(storage, "metrics.jsonl"))
	require.NoError(t, err)
	var out []metric
	for line := range strings.Lines(string(raw)) {
		var m metric
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		require.Equal(t, len(out)+1, m.Step)
		out = append(out, m)
	}
	return out
}

// checkpoints lists the checkpoint folders of a run, oldest first.
func checkpoints(t testing.TB, storage string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(storage, "checkpoints", "epoch-*"))
	require.NoError(t, err)
	return dirs
}

// requireSameFiles compares every file of two folders, byte by byte.
func requireSameFiles(t testing.TB, want, got string) {
	t.Helper()
	list := func(dir string) map[string]string {
		out := map[string]string{}
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
			require.NoError(t, err)
			out[f.Name()] = string(raw)
		}
		return out
	}
	a, b := list(want), list(got)
	require.NotEmpty(t, a, want)
	require.Len(t, b, len(a))
	for name := range a {
		require.True(t, a[name] == b[name], "%s differs between %s and %s", name, want, got)
	}
}
