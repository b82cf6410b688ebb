package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A save that hangs ends the process at its deadline, with the stacks of what it waits for, and the run goes on from the
// checkpoint before it to the bits of one that was not disturbed.
func TestDeadlineOfASave(t *testing.T) {
	c := newCrash(t)
	storage := filepath.Join(t.TempDir(), "run")
	o := finish(t, c.command(t, storage, nil, "--num-epochs", "1"))
	require.Zero(t, o.code, o.err)
	// Its first save is the one that hangs: a slow disk keeps none before it.
	o = finish(t, c.command(t, storage, []string{"WEFT_FAULT=write/step-00000006:1:hang"}, "--grace-period", "1h", "--save-deadline", "2s"))
	require.Equal(t, 75, o.code, "%s\n%s", o.out, o.err)
	require.Regexp(t, `stood still in the (last save|save of step \d+) for \d+s, longer than its limit of 2s: stacks are in \S+weft-stacks-\S+\.txt; the newest checkpoint is \S+ \(step 4\)`, o.err)
	found, err := filepath.Glob(filepath.Join(storage, "weft-stacks-*.txt"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	raw, err := os.ReadFile(found[0])
	require.NoError(t, err)
	require.Contains(t, string(raw), "goroutine ")
	require.Contains(t, string(raw), "weft/checkpoint", "the stack that hangs")
	require.NoError(t, os.Remove(found[0]))
	c.requireContinues(t, storage)
}

// Compiling longer than its deadline ends the process, too.
func TestDeadlineOfCompiling(t *testing.T) {
	o := weft(t, "finetune", "--demo", "--storage-path", filepath.Join(t.TempDir(), "run"), "--compile-cache", "off", "--compile-deadline", "1s")
	require.Equal(t, 75, o.code, "%s\n%s", o.out, o.err)
	require.Regexp(t, `stood still in the preparation( \(\w+\))? for \d+s, longer than its limit of 1s: stacks are in \S+; no step had ended: run the same command again`, o.err)
}

func TestDeadlinesAreChecked(t *testing.T) {
	for _, flag := range []string{"--step-deadline", "--compile-deadline", "--save-deadline"} {
		o := weft(t, "finetune", "--demo", flag, "10ms")
		require.Equal(t, 2, o.code)
		require.Contains(t, o.err, flag+" is 10ms: give at least 1s, or 0 for no deadline")
	}
}
