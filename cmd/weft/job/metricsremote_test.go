package job

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/gcs/gcstest"
	"weft/engine/trainer"
)

// On Cloud Storage the file is the same as on a disk, from one checkpoint to the next.
func TestRemoteMetrics(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := openPlace(t.Context(), "gs://bucket/run")
	require.NoError(t, err)
	require.True(t, folder.remote())
	object := func() string { return string(s.Objects("bucket")["run/"+metricsName]) }
	step := func(n int) stepLine { return stepLine{StepRecord: trainer.StepRecord{Step: n, Epoch: 1, Loss: 0.25}} }
	line := func(n int) string { return metricsLinesOf(t, step(n)) }
	owned := func() error { return nil }

	s.Put("bucket", "run/"+metricsName, []byte(metricsLines(1, 2, 3)+`{"step":4,"ep`))
	log, err := openRunMetrics(folder, owned, trainer.Position{Step: 2})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, log.kept)
	require.Equal(t, metricsLines(1, 2), object(), "cut at once")
	require.NoError(t, log.add(step(3)))
	require.Equal(t, metricsLines(1, 2), object())
	later, err := log.beforeSave()
	require.NoError(t, err)
	require.Equal(t, metricsLines(1, 2), object(), "the training does not wait for it")
	require.NoError(t, log.add(step(4)))
	require.NoError(t, later())
	require.Equal(t, metricsLines(1, 2)+line(3), object(), "the lines of the checkpoint")
	require.NoError(t, log.close())
	require.Equal(t, metricsLines(1, 2)+line(3)+line(4), object(), "written at the end")

	s.Requests()
	log, err = openRunMetrics(folder, owned, trainer.Position{Step: 9})
	require.NoError(t, err)
	later, err = log.beforeSave()
	require.NoError(t, err)
	require.NoError(t, later())
	require.NoError(t, log.close())
	for _, r := range s.Requests() {
		require.NotEqual(t, gcstest.Insert, r.Op, "what is right is not written again")
	}

	// A folder that somebody else took is left alone.
	lost := errors.New("the lock was lost")
	before := object()
	log, err = openRunMetrics(folder, func() error { return lost }, trainer.Position{Step: 9})
	require.NoError(t, err)
	require.NoError(t, log.add(step(10)))
	later, err = log.beforeSave()
	require.NoError(t, err)
	require.ErrorIs(t, later(), lost)
	require.ErrorIs(t, log.close(), lost)
	require.Equal(t, before, object())

	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "the temporary file has no name")

	s.Inject(gcstest.Fault{Op: gcstest.Stat, Name: metricsName, Times: gcstest.Always, Do: gcstest.Forbidden("storage.objects.get")})
	_, err = openRunMetrics(folder, owned, trainer.Position{Step: 9})
	require.ErrorContains(t, err, "continue gs://bucket/run/metrics.jsonl after step 9: reading gs://bucket/run/metrics.jsonl: no permission storage.objects.get")
}

// metricsLinesOf is what a log of these steps is.
func metricsLinesOf(t *testing.T, records ...stepLine) string {
	t.Helper()
	dir := t.TempDir()
	log, err := openMetrics(dir, trainer.Position{})
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, log.add(r))
	}
	require.NoError(t, log.close())
	raw, err := os.ReadFile(dir + "/" + metricsName)
	require.NoError(t, err)
	return string(raw)
}
