package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// requireContinues lets a stopped run go on by the same command, and wants it to come to the uninterrupted run's bits with
// nothing temporary left.
func (c *crash) requireContinues(t *testing.T, storage string) {
	t.Helper()
	o := finish(t, c.command(t, storage, nil))
	require.Zero(t, o.code, o.err)
	c.requireWhole(t, storage)
}

// requireWhole wants a storage path to hold the uninterrupted run.
func (c *crash) requireWhole(t *testing.T, storage string) {
	t.Helper()
	have := localDisk{storage}.files(t)
	require.Equal(t, c.want, lineValues(t, have["metrics.jsonl"]))
	whole, list := checkpoints(t, c.whole), checkpoints(t, storage)
	require.Equal(t, filepath.Base(whole[len(whole)-1]), filepath.Base(list[len(list)-1]))
	sameBits(t, c.whole, have, filepath.Base(list[len(list)-1]), "continued")
	temporary, err := filepath.Glob(filepath.Join(storage, "checkpoints", ".weft-tmp-*"))
	require.NoError(t, err)
	require.Empty(t, temporary)
}

// lastLine is the one line of an error, the last of standard error.
func lastLine(o outcome) string {
	text := strings.TrimSuffix(o.err, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// SIGTERM in every part of a save and around it: the run ends with code 75 and a line that says what was saved, or goes to its
// end where all steps are done; the same command then comes to the uninterrupted run's bits. 12 steps of 3 epochs, with saves at
// steps 3, 4, 6, 8, 9 and 12.
func TestTermAroundASave(t *testing.T) {
	c := newCrash(t)
	const saved = `^weft: stopped before the end at step (\d+) of 12, everything is saved in (\S+): run the same command again to continue$`
	for _, d := range []struct {
		name, fault string
		args        []string
		code        int
		says        string
	}{
		// Nothing is done since the save that the signal meets, so that none follows.
		{"staging", "sync/metrics.jsonl:1:term", nil, 75, `^weft: stopped before the end at step 3 of 12, everything is saved in \S+epoch-0000-step-00000003: run`},
		{"writing the state", "write/step-00000003:1:term", nil, 75, saved},
		{"syncing the state", "sync/step-00000006:1:term", nil, 75, saved},
		{"writing the model folder", "write/model.safetensors:1:term", nil, 75, saved},
		{"the commit", "rename/checkpoints/epoch-0000-step-00000003:1:term", nil, 75, saved},
		{"pruning", "rename/.weft-tmp-delete:1:term", nil, 75, saved},
		{"removing", "remove/.weft-tmp-delete:2:term", nil, 75, saved},
		{"the last save", "write/step-00000012:1:term", nil, 0, ""},
		{
			"a grace period that is too short", "write/step-00000006:1:hang", []string{"--grace-period", "1s"}, 75,
			`^weft: stopped before the end: the grace period of 1s ended before a save did; the newest checkpoint is \S+epoch-0001-step-00000004 \(step 4\), and \d+ steps? (is|are) lost since: run the same command again to continue from it$`,
		},
		{
			"and no checkpoint yet", "write/step-00000003:1:hang", []string{"--grace-period", "1s"}, 75,
			`^weft: stopped before the end: the grace period of 1s ended before a save did; there is no checkpoint, and \d+ steps? (is|are) lost: run the same command again to begin again$`,
		},
	} {
		t.Run(d.name, func(t *testing.T) {
			storage := filepath.Join(t.TempDir(), "run")
			if d.args == nil {
				d.args = []string{"--grace-period", "1h"}
			}
			o := finish(t, c.command(t, storage, []string{"WEFT_FAULT=" + d.fault}, d.args...))
			require.Equal(t, d.code, o.code, "%s\n%s", o.out, o.err)
			if d.code == 0 {
				require.Contains(t, o.out, "Training completed!")
				c.requireWhole(t, storage)
				return
			}
			require.Regexp(t, d.says, lastLine(o))
			if d.says == saved {
				list := checkpoints(t, storage)
				at, where := stoppedAt(t, lastLine(o))
				require.Equal(t, list[len(list)-1], where, "the newest checkpoint is the one that it names")
				require.Contains(t, where, fmt.Sprintf("step-%08d", at))
				require.Equal(t, at, lines(storage))
			}
			if d.name == "staging" {
				require.Equal(t, []string{"epoch-0000-step-00000003"}, names(checkpoints(t, storage)))
			}
			c.requireContinues(t, storage)
		})
	}
	t.Run("a second signal", func(t *testing.T) { c.secondSignal(t) })
	t.Run("loading a checkpoint", func(t *testing.T) { c.termWhileLoading(t) })
	t.Run("without a reader", func(t *testing.T) { c.readerGone(t) })
	t.Run("under nohup", func(t *testing.T) { c.nohup(t) })
}

// Saves between steps change no bit of a run: not of the metrics, not of the last checkpoint.
func TestSavesBetweenStepsChangeNothing(t *testing.T) {
	c := newCrash(t, "--save-every-steps", "0")
	require.Len(t, checkpoints(t, c.whole), 3, "one an epoch")
	for _, d := range []struct {
		args  []string
		steps []int
	}{
		{[]string{"--save-every-steps", "3"}, []int{3, 4, 6, 8, 9, 12}},
		{[]string{"--save-every", "1ns"}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{[]string{"--save-every", "1h", "--save-every-steps", "5"}, []int{4, 5, 8, 10, 12}},
	} {
		storage := filepath.Join(t.TempDir(), "run")
		o := finish(t, c.command(t, storage, nil, append(d.args, "--keep", "0")...))
		require.Zero(t, o.code, o.err)
		var steps []int
		for _, dir := range checkpoints(t, storage) {
			var epoch, step int
			_, err := fmt.Sscanf(filepath.Base(dir), "epoch-%d-step-%d", &epoch, &step)
			require.NoError(t, err)
			steps = append(steps, step)
			_, err = os.Stat(filepath.Join(dir, "model"))
			require.Equal(t, step%4 == 0, err == nil, "the model folder is written at epoch ends: %s", dir)
		}
		require.Equal(t, d.steps, steps, "%v", d.args)
		c.requireWhole(t, storage)
	}
}

// A save that cannot be written ends the run with code 1, at a step after it, and names what there is to continue from.
func TestFailedSaveNamesTheNewest(t *testing.T) {
	c := newCrash(t)
	for _, d := range []struct{ fault, says string }{
		{"create/step-00000006:*:eacces", `; the newest checkpoint is \S+epoch-0001-step-00000004 \(step 4\)$`},
		{"create/step-00000003:*:eacces", `; there is no checkpoint yet$`},
	} {
		storage := filepath.Join(t.TempDir(), "run")
		o := finish(t, c.command(t, storage, []string{"WEFT_FAULT=" + d.fault}))
		require.Equal(t, 1, o.code, o.err)
		require.Contains(t, lastLine(o), "permission denied")
		require.Regexp(t, d.says, lastLine(o))
		c.requireContinues(t, storage)
	}
}

func names(paths []string) []string {
	out := slices.Clone(paths)
	for i, p := range out {
		out[i] = filepath.Base(p)
	}
	return out
}

func stoppedAt(t *testing.T, line string) (step int, where string) {
	t.Helper()
	_, err := fmt.Sscanf(line, "weft: stopped before the end at step %d of 12, everything is saved in %s", &step, &where)
	require.NoError(t, err, line)
	return step, strings.TrimSuffix(where, ":")
}

// A second signal does not wait for a save that hangs.
func (c *crash) secondSignal(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "run")
	cmd := c.command(t, storage, []string{"WEFT_FAULT=write/step-00000006:1:hang"}, "--grace-period", "1h")
	log := begin(t, cmd)
	// The first is that of the write; those within a second of it are taken for the same.
	for state(t, cmd, unix.WEXITED|unix.WNOHANG) == 0 {
		if lines(storage) >= 6 {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
		time.Sleep(300 * time.Millisecond)
	}
	_ = cmd.Wait()
	require.Equal(t, 75, cmd.ProcessState.ExitCode(), log.String())
	require.Regexp(t, `^weft: stopped before the end: the save was skipped at the second request; the newest checkpoint is \S+epoch-0001-step-00000004 \(step 4\), and \d+ steps? (is|are) lost since: `, lastLine(outcome{err: log.String()}))
	c.requireContinues(t, storage)
}

// While a checkpoint is loaded there is nothing to save: the run ends at once, though the disk hangs.
func (c *crash) termWhileLoading(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "run")
	o := finish(t, c.command(t, storage, nil, "--num-epochs", "1"))
	require.Zero(t, o.code, o.err)
	before := names(checkpoints(t, storage))
	o = finish(t, c.command(t, storage, []string{"WEFT_FAULT=read/state/:1:hang"}, "--grace-period", "1h"))
	require.Equal(t, 75, o.code, o.err)
	require.Equal(t, "weft: stopped before the end: no step had begun; run the same command again", lastLine(o))
	require.Equal(t, before, names(checkpoints(t, storage)))
	c.requireContinues(t, storage)
}

// A run goes on when the reader of its report goes away, also with its last line.
func (c *crash) readerGone(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "run")
	cmd := c.command(t, storage, nil)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_, err = bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, cmd.Wait())
	c.requireWhole(t, storage)

	cmd = c.command(t, storage, nil, "--learning-rate", "1")
	r, w, err = os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_ = cmd.Wait()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), "refused, though nobody reads why")
}

// A hangup asks a run to stop as SIGTERM does, unless the run was started to ignore it.
func (c *crash) nohup(t *testing.T) {
	// Who listens does not hand on that the tests themselves were started to ignore it.
	listening := make(chan os.Signal, 1)
	signal.Notify(listening, syscall.SIGHUP)
	defer signal.Stop(listening)
	for _, ignored := range []bool{false, true} {
		storage := filepath.Join(t.TempDir(), fmt.Sprint("run-", ignored))
		cmd := c.command(t, storage, []string{"WEFT_FAULT=write/metrics.jsonl:5:stop"}, "--grace-period", "1h")
		if ignored {
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...)
			sh, err := exec.LookPath("sh")
			require.NoError(t, err)
			cmd.Path = sh
		}
		log := begin(t, cmd)
		standsStill(t, cmd, log)
		goOn(t, cmd, syscall.SIGHUP)
		_ = cmd.Wait()
		if ignored {
			require.Zero(t, cmd.ProcessState.ExitCode(), log.String())
			c.requireWhole(t, storage)
			continue
		}
		require.Equal(t, 75, cmd.ProcessState.ExitCode(), log.String())
		require.Less(t, lines(storage), 12)
		c.requireContinues(t, storage)
	}
}

// SIGTERM during an evaluation leaves it and saves the state; the next start evaluates again, and comes to the same bits.
func TestTermDuringAnEvaluation(t *testing.T) {
	c := &crash{args: crashArgs(t, "--eval-dataset", write(t, "eval.jsonl", differentRows(40)), "--eval-every-steps", "2", "--num-epochs", "1"), whole: filepath.Join(t.TempDir(), "whole")}
	o := finish(t, c.command(t, c.whole, nil, "--keep", "0"))
	require.Zero(t, o.code, o.err)
	c.want = lineValues(t, localDisk{c.whole}.files(t)["metrics.jsonl"])

	for _, batch := range []int{1, 10, 20} { // of 20
		storage := filepath.Join(t.TempDir(), "run")
		o = finish(t, c.command(t, storage, []string{fmt.Sprintf("WEFT_FAULT=evaluate/after step 2:%d:term", batch)}, "--grace-period", "1h"))
		require.Equal(t, 75, o.code, o.err)
		require.Regexp(t, `^weft: stopped before the end at step 2 of 4, everything is saved in \S+epoch-0000-step-00000002: run the same command again to continue$`, lastLine(o))
		require.Equal(t, 2, lines(storage), "the evaluation did not end")
		c.requireContinues(t, storage)
	}
}
