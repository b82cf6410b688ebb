package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/trainer"
)

func metricsLines(steps ...int) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, `{"step":%d,"epoch":1,"loss":1.5}`+"\n", s)
	}
	return b.String()
}

// A resumed run's file is that of a run which was never stopped, whatever the kill left behind.
func TestMetricsContinueAfterACheckpoint(t *testing.T) {
	for _, c := range []struct {
		name, before, want string
		step               int
	}{
		{"no file", "", "", 0},
		{"a fresh run drops another's lines", metricsLines(1, 2), "", 0},
		{"lines after the checkpoint go", metricsLines(1, 2, 3, 4), metricsLines(1, 2), 2},
		{"a torn line goes", metricsLines(1, 2) + `{"step":3,"ep`, metricsLines(1, 2), 3},
		{"all are kept", metricsLines(1, 2), metricsLines(1, 2), 2},
		{"what is no metrics line goes", metricsLines(1) + "hello\n" + metricsLines(2), metricsLines(1, 2), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, metricsName)
			if c.before != "" {
				require.NoError(t, os.WriteFile(path, []byte(c.before), 0o644))
			}
			log, err := openMetrics(dir, trainer.Position{Step: c.step})
			require.NoError(t, err)
			require.NoError(t, log.add(trainer.StepRecord{
				Step: 9, Epoch: 1, Loss: 0.25, GradNorm: 2, LR: 2e-5, Tokens: 8, Targets: 7, StepTime: 0.5, TokensPerSec: 16,
			}))
			later, err := log.beforeSave()
			require.NoError(t, err)
			require.Nil(t, later, "they are durable")
			require.NoError(t, log.close())
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.want+`{"step":9,"epoch":1,"loss":0.25,"grad_norm":2,"lr":0.00002,"tokens":8,"targets":7,"step_time_s":0.5,"tokens_per_s":16}`+"\n", string(got))
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, files, 1, "no temporary file stays")
		})
	}
}

// Steps that have no line any more are told.
func TestLostMetrics(t *testing.T) {
	for _, c := range []struct {
		kept         []int
		first, start int
		want         string
	}{
		{[]int{1, 2, 3}, 1, 3, ""},
		{nil, 1, 0, ""},
		{nil, 1, 1, "1"},
		{nil, 1, 4, "1-4"},
		{[]int{2, 5}, 1, 8, "1, 3-4, 6-8"},
		{[]int{5, 7}, 5, 8, "6, 8"},
		{[]int{1, 2, 2, 3}, 1, 4, "4"},
	} {
		require.Equal(t, c.want, (&metricsLog{kept: c.kept}).lost(c.first, c.start), "%+v", c)
	}
}

func TestMetricsFolderThatCannotBeWritten(t *testing.T) {
	_, err := openMetrics(filepath.Join(t.TempDir(), "missing"), trainer.Position{Step: 3})
	require.ErrorContains(t, err, "after step 3")
}
