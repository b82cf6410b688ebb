package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that gathers each weight once gives the metrics and the checkpoint of one that gathers it twice, and either goes on
// from the other's checkpoint, with a warning.
func TestFinetuneGathersOnce(t *testing.T) {
	twice, once := filepath.Join(t.TempDir(), "twice"), filepath.Join(t.TempDir(), "once")
	must(t, demoArgs(twice, "--num-epochs", "1")...)
	must(t, demoArgs(once, "--num-epochs", "1", "--gathers", "1")...)
	want := readMetrics(t, twice)
	require.Len(t, want, demoStepsPerEpoch)
	require.Equal(t, want, readMetrics(t, once))
	requireSameCheckpoint(t, checkpoints(t, twice)[0], checkpoints(t, once)[0])

	o := finish(t, command(t, demoArgs(once, "--num-epochs", "2")...))
	require.Zero(t, o.code, o.err)
	require.Regexp(t, `the run continues on other devices or with another --remat or --gathers.* before="4 × cpu, --remat full, --gathers 1" now="4 × cpu, --remat full, --gathers 2"`, o.err)
	require.Len(t, readMetrics(t, once), 2*demoStepsPerEpoch)
}
