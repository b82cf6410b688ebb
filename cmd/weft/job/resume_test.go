package job

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
)

// A file of the same name that weft did not write is not written over.
func TestForeignMetricsAreLeftAlone(t *testing.T) {
	const foreign = "epoch,loss\n1,2.5\n"
	dir := t.TempDir()
	path := filepath.Join(dir, metricsName)
	require.NoError(t, os.WriteFile(path, []byte(foreign), 0o644))
	for _, resume := range []string{ResumeAuto, ResumeNever} {
		c := &Config{StoragePath: dir, Resume: resume}
		folder, m, err := openStorage(c, newReport(Console{}, true), checkpoint.Options{})
		require.NoError(t, err)
		_, err = readHistory(c, folder, m)
		require.NoError(t, m.Close())
		require.ErrorContains(t, err, "metrics.jsonl")
		require.ErrorContains(t, err, "another --storage-path")
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, foreign, string(got))
}

// Wrong input leaves nothing behind.
func TestWrongInputMakesNoFolder(t *testing.T) {
	dir := t.TempDir()
	c := Config{
		ModelFlags: ModelFlags{ModelID: filepath.Join(dir, "model")}, BatchFlags: BatchFlags{MaxSeqLen: 8, BatchSizePerDevice: 1},
		Dataset: filepath.Join(dir, "rows.jsonl"), StoragePath: filepath.Join(dir, "out"), Resume: ResumeAuto,
		NumEpochs: 1, LearningRate: 1e-3, Schedule: "constant", Keep: 1, KeepBy: "loss", DeviceFlags: DeviceFlags{Platform: PlatformCPU}, GracePeriod: time.Minute,
	}
	_, err := Run(context.Background(), c, nil, Console{Out: io.Discard})
	var input *InputError
	require.ErrorAs(t, err, &input)
	require.ErrorContains(t, err, "no such folder")
	require.NoDirExists(t, c.StoragePath)
}
