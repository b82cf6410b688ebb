package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// demoArgs is the demo on few rows: 8 steps an epoch of 16 rows, 3 epochs.
func demoArgs(storage string, more ...string) []string {
	return append([]string{"finetune", "--demo", "--dataset-split", "train[:130]", "--compile-cache", cache, "--storage-path", storage}, more...)
}

const demoSteps, demoStepsPerEpoch = 24, 8

// lines counts the lines of metrics.jsonl.
func lines(storage string) int {
	raw, err := os.ReadFile(filepath.Join(storage, "metrics.jsonl"))
	if err != nil {
		return 0
	}
	return strings.Count(string(raw), "\n")
}

// A run killed in the middle, or asked to stop there, and started again gives the same bits as one that was
// never stopped: in every step's metrics, in the exported weights and in the train state.
func TestInterruptedRunGivesTheSameBits(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	out := must(t, demoArgs(whole, "--keep", "0")...)
	require.Contains(t, out, "Training completed! Final metrics: ")
	require.Contains(t, out, "Epoch 3/3 | loss=")
	require.Contains(t, out, "weft finetune --model-id DIR")
	want := readMetrics(t, whole)
	require.Len(t, want, demoSteps)
	all := checkpoints(t, whole)
	require.Len(t, all, 3, "--keep 0 keeps every epoch's")
	last := all[2]
	require.Equal(t, "epoch-0003-step-00000024", filepath.Base(last))
	requireFalling(t, want)

	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{
		{"SIGKILL", syscall.SIGKILL, -1},
		{"SIGTERM", syscall.SIGTERM, 75},
	} {
		t.Run(c.name, func(t *testing.T) {
			storage := filepath.Join(t.TempDir(), "run")
			cmd := withFaults(t, command(t, demoArgs(storage, "--grace-period", "1h")...))
			// The second epoch's save began when the first's was done.
			cmd.Env = append(cmd.Env, fmt.Sprintf("WEFT_FAULT=write/metrics.jsonl:%d:stop", 2*demoStepsPerEpoch+3))
			log := begin(t, cmd)
			standsStill(t, cmd, log)
			require.NotEmpty(t, checkpoints(t, storage))
			require.Contains(t, refused(t, demoArgs(storage)...), "is locked by process")
			goOn(t, cmd, c.signal)
			_ = cmd.Wait()
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), log.String())
			done := lines(storage)
			require.Less(t, done, demoSteps, "the signal came too late to be within the run")
			if c.code == 75 {
				require.Contains(t, log.String(), "weft: stopped before the end at step ")
				require.Contains(t, log.String(), "run the same command again to continue\n")
			}

			out := must(t, demoArgs(storage)...)
			require.Contains(t, out, "resuming from ")
			require.Equal(t, want, readMetrics(t, storage))
			again := checkpoints(t, storage)
			require.Len(t, again, 1, "--keep 1 --keep-by loss: the last is the best")
			requireSameCheckpoint(t, last, again[0])
		})
	}
	t.Run("afterwards", func(t *testing.T) { afterARun(t, whole, last) })
}

func requireSameCheckpoint(t *testing.T, want, got string) {
	t.Helper()
	require.Equal(t, filepath.Base(want), filepath.Base(got))
	requireSameFiles(t, filepath.Join(want, "model"), filepath.Join(got, "model"))
	requireSameFiles(t, filepath.Join(want, "state"), filepath.Join(got, "state"))
}

// requireFalling wants each epoch's loss, over its targets, below that of the one before.
func requireFalling(t *testing.T, metrics []metric) {
	t.Helper()
	sums, targets := map[int]float64{}, map[int]float64{}
	for _, m := range metrics {
		loss, err := m.Loss.Float64()
		require.NoError(t, err)
		sums[m.Epoch] += loss * float64(m.Targets)
		targets[m.Epoch] += float64(m.Targets)
	}
	for epoch := 2; epoch <= len(sums); epoch++ {
		require.Less(t, sums[epoch]/targets[epoch], sums[epoch-1]/targets[epoch-1], "epoch %d", epoch)
	}
}

// afterARun checks what a storage path with a finished run accepts and refuses.
func afterARun(t *testing.T, storage, last string) {
	t.Run("again", func(t *testing.T) {
		before := readMetrics(t, storage)
		out := must(t, demoArgs(storage)...)
		require.Contains(t, out, "All 3 epochs of this run are done already")
		require.Contains(t, out, "Saved checkpoint: "+last)
		require.Equal(t, before, readMetrics(t, storage))
	})
	t.Run("other settings", func(t *testing.T) {
		before := readMetrics(t, storage)
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"--learning-rate", "1e-4"}, "--learning-rate was 0.003, it is 0.0001 now"},
			{[]string{"--dataset-split", "train[:128]"}, "--dataset-split was train[:130], it is train[:128] now"},
			{[]string{"--seed", "1"}, "--seed was 42, it is 1 now"},
			{[]string{"--devices", "2"}, "was 16, it is 8 now (give --batch-size-per-device 8 to keep it on 2 devices)"},
			{[]string{"--freeze", "embed_tokens*"}, "--freeze was auto"},
			{[]string{"--schedule", "cosine"}, "--schedule was constant, it is cosine now"},
			{[]string{"--no-shuffle"}, "--shuffle was true, it is false now"},
		} {
			message := refused(t, demoArgs(storage, c.args...)...)
			require.Contains(t, message, c.want)
			require.Contains(t, message, "another --storage-path")
		}
		require.Equal(t, before, readMetrics(t, storage), "a refused run changes nothing")
		require.DirExists(t, last)
	})
	t.Run("resume never", func(t *testing.T) {
		require.Contains(t, refused(t, demoArgs(storage, "--resume", "never")...), "holds a run already")
	})
	t.Run("resume from a folder that is no checkpoint", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other")
		require.Contains(t, refused(t, demoArgs(other, "--resume", storage)...), "is no checkpoint")
	})
	t.Run("resume from an older checkpoint of the same path", func(t *testing.T) {
		require.Contains(t, refused(t, demoArgs(storage, "--resume", checkpoints(t, storage)[0])...), "is newer")
	})
	t.Run("damaged", func(t *testing.T) { damagedCheckpoint(t, storage, last) })
	t.Run("more epochs", func(t *testing.T) {
		out := must(t, demoArgs(storage, "--num-epochs", "4")...)
		require.Contains(t, out, "resuming from "+last+": epoch 4, step 25")
		require.Len(t, readMetrics(t, storage), demoSteps+demoStepsPerEpoch)
	})
}

// damagedCheckpoint flips one bit of the newest checkpoint's state, in a copy. Named, it is refused; by itself, the run
// goes back to the one before and comes to the same bits.
func damagedCheckpoint(t *testing.T, storage, last string) {
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(copied, os.DirFS(storage)))
	broken := filepath.Join(copied, "checkpoints", filepath.Base(last))
	shards, err := filepath.Glob(filepath.Join(broken, "state", "*.safetensors"))
	require.NoError(t, err)
	raw, err := os.ReadFile(shards[0])
	require.NoError(t, err)
	raw[len(raw)/2] ^= 1
	require.NoError(t, os.WriteFile(shards[0], raw, 0o644))

	o := weft(t, demoArgs(filepath.Join(t.TempDir(), "run"), "--num-epochs", "4", "--resume", broken)...)
	require.NotZero(t, o.code)
	require.Contains(t, o.err, "is damaged: state/")
	require.NotContains(t, o.out, "step 25/")

	o = weft(t, demoArgs(copied, "--num-epochs", "4")...)
	require.Zero(t, o.code, o.err)
	require.Contains(t, o.err, "checkpoint cannot be used, trying an older one")
	require.Contains(t, o.out, "resuming from "+filepath.Join(copied, "checkpoints", "epoch-0002-step-00000016")+": epoch 3, step 17")
	require.Equal(t, readMetrics(t, storage), readMetrics(t, copied)[:demoSteps])
}

// signalWhileCompiling starts a run, sends it a signal when it says that it compiles, and waits for its end; out is what it
// printed after that line.
func signalWhileCompiling(t testing.TB, cmd *exec.Cmd, sig os.Signal) outcome {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs strings.Builder
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	reader := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "program   compiling"); {
		line, err = reader.ReadString('\n')
		require.NoError(t, err, errs.String())
	}
	require.NoError(t, cmd.Process.Signal(sig))
	rest, err := io.ReadAll(reader)
	require.NoError(t, err)
	_ = cmd.Wait()
	return outcome{cmd.ProcessState.ExitCode(), string(rest), errs.String()}
}

// A request to stop while the step is being compiled is answered at once: there is nothing to save.
func TestStopWhileCompiling(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "run")
	o := signalWhileCompiling(t, command(t, demoArgs(storage, "--compile-cache", "off")...), syscall.SIGINT)
	require.Equal(t, 75, o.code, o.err)
	require.Empty(t, o.out)
	require.Equal(t, "weft: stopped before the end: no step had begun; run the same command again\n", o.err)
	require.Empty(t, checkpoints(t, storage))

	// A run that never made a step binds nobody: other settings are welcome.
	again := demoArgs(storage, "--seed", "1", "--num-epochs", "1", "--dataset-split", "train[:16]")
	require.Contains(t, must(t, again...), "Epoch 1/1 | loss=")
}

// A request to stop is answered at once while the inputs are read, which may take long, and while a plugin is downloaded.
func TestStopWhilePreparing(t *testing.T) {
	dir := t.TempDir()
	pipe, pip := filepath.Join(dir, "rows.jsonl"), filepath.Join(dir, "python3")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	require.NoError(t, os.WriteFile(pip, []byte("#!/bin/sh\nexec /bin/sleep 300\n"), 0o755))
	began := filepath.Join(dir, "cache", "plugins")
	for _, c := range []struct {
		name string
		args []string
		wait func()
	}{
		{"reading", []string{"--model-id", tinyModel(t, "gemma4-tiny", nil), "--dataset", pipe, "--max-seq-len", "16"}, func() {
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the run has opened it, and keeps it open
			require.NoError(t, err)
			t.Cleanup(func() { _ = w.Close() })
		}},
		{"installing a plugin", []string{"--demo"}, func() {
			require.Eventually(t, func() bool { _, err := os.Stat(began); return err == nil }, time.Minute, 10*time.Millisecond)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := command(t, append([]string{"finetune", "--platform", "cpu", "--storage-path", filepath.Join(t.TempDir(), "run")}, c.args...)...)
			cmd.Env = append(cmd.Env, "WEFT_CACHE="+filepath.Join(dir, "cache"), "PATH="+dir, "WEFT_PJRT_PLUGIN=")
			var errs strings.Builder
			cmd.Stderr, cmd.WaitDelay = &errs, 10*time.Second // what it started may live on, with its standard error
			require.NoError(t, cmd.Start())
			c.wait()
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			_ = cmd.Wait()
			require.Equal(t, 75, cmd.ProcessState.ExitCode(), errs.String())
			require.Equal(t, "weft: stopped before the end: no step had begun; run the same command again\n", errs.String())
		})
	}
}
