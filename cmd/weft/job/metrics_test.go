package job

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
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
			require.NoError(t, log.add(stepLine{StepRecord: trainer.StepRecord{
				Step: 9, Epoch: 1, Loss: 0.25, GradNorm: 2, LR: 2e-5, Tokens: 8, Targets: 7, StepTime: 0.5, TokensPerSec: 16,
			}}))
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

// The figures of a save are on the first line of a step after they are known, behind the step's own; those of writes on a
// line each. Other lines have none.
func TestSaveFiguresInTheMetrics(t *testing.T) {
	dir := t.TempDir()
	log, err := openMetrics(dir, trainer.Position{})
	require.NoError(t, err)
	s := &saver{folder: place{checkpoint.OS{}, dir}, report: newReport(Console{Log: slog.New(slog.DiscardHandler)}, true)}
	staged := func(seconds, peak int) {
		s.staged(checkpoint.AsyncStats{Stall: time.Duration(seconds) * time.Second, PeakBytes: int64(peak), LimitBytes: 64, StateBytes: 60})
	}
	wrote := func(seconds int, err error) {
		s.saved(checkpoint.Saved{Err: err, Stats: checkpoint.AsyncStats{Write: time.Duration(seconds) * time.Second}})
	}
	var want strings.Builder
	for i, c := range []struct {
		before func()
		line   string
	}{
		{nil, ""},
		{func() { staged(1, 60) }, `,"save_stall_s":1,"save_host_bytes":60,"save_host_limit_bytes":64`},
		{nil, ""},
		{func() { wrote(7, nil) }, `,"save_write_s":7`},
		{func() { staged(2, 60); wrote(8, nil) }, `,"save_stall_s":2,"save_host_bytes":60,"save_host_limit_bytes":64,"save_write_s":8`},
		{func() { staged(3, 48) }, `,"save_stall_s":3,"save_host_bytes":48,"save_host_limit_bytes":64`},
		{func() { wrote(9, checkpoint.ErrPrune); staged(4, 60); wrote(10, nil) }, `,"save_stall_s":4,"save_host_bytes":60,"save_host_limit_bytes":64,"save_write_s":9`},
		{nil, `,"save_write_s":10`},
		{func() { wrote(11, errors.New("the disk is full")) }, ""},
	} {
		if c.before != nil {
			c.before()
		}
		require.NoError(t, log.add(s.stepLine(trainer.StepRecord{Step: i + 1, Epoch: 1, Loss: 0.5, GradNorm: 2, LR: 1, Tokens: 8, Targets: 7, StepTime: 0.5, TokensPerSec: 16})))
		fmt.Fprintf(&want, `{"step":%d,"epoch":1,"loss":0.5,"grad_norm":2,"lr":1,"tokens":8,"targets":7,"step_time_s":0.5,"tokens_per_s":16%s}`+"\n", i+1, c.line)
	}
	require.NoError(t, log.close())
	got, err := os.ReadFile(filepath.Join(dir, metricsName))
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
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
