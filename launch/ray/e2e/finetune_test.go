package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
)

// The real program trains on a slice of one host to its checkpoint; submitted again with more epochs it goes on.
func TestFinetune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, storage := filepath.Join(dir, "rows.jsonl"), filepath.Join(dir, "run")
	var rows strings.Builder
	for i := range 8 {
		fmt.Fprintf(&rows, `{"input_ids":[%d,%d,%d,%d,%d]}`+"\n", 2+i, 40+i, 7*i+3, 11, 12)
	}
	require.NoError(t, os.WriteFile(data, []byte(rows.String()), 0o644))
	train := func(epochs int) outcome {
		return weft(t, submit("--topology", "2x2", "--", "finetune", "--model-id", filepath.Join(fixture.Dir(t, "gemma4-tiny"), "config.json"),
			"--random-init", "--dataset", data, "--storage-path", storage, "--platform", "cpu", "--devices", "4", "--batch-size-per-device", "1",
			"--max-seq-len", "16", "--compute-dtype", "float32", "--num-epochs", fmt.Sprint(epochs), "--compile-cache", filepath.Join(dir, "compile"))...)
	}
	first := train(1)
	require.Zero(t, first.code, first)
	require.Regexp(t, `(?m)^\[(one|two)/0\] .*Training completed!`, first.out)
	require.Equal(t, 2, steps(t, storage))
	saved, err := filepath.Glob(filepath.Join(storage, "checkpoints", "epoch-*"))
	require.NoError(t, err)
	require.Len(t, saved, 1)

	second := train(2)
	require.Zero(t, second.code, second)
	require.Equal(t, 4, steps(t, storage), "it goes on from step 2")
	require.NotContains(t, second.out, "step 1/")
}

// steps counts the lines of a run's metrics, which are numbered.
func steps(t *testing.T, storage string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(storage, "metrics.jsonl"))
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(raw)) {
		var m struct{ Step int }
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		n++
		require.Equal(t, n, m.Step)
	}
	return n
}
