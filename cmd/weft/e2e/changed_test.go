package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readChanges is what run.json says of where a run began and of what changed.
func readChanges(t *testing.T, storage string) (from string, changes []map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(storage, "run.json"))
	require.NoError(t, err)
	var record struct {
		From    string           `json:"from"`
		Changes []map[string]any `json:"changes"`
	}
	require.NoError(t, json.Unmarshal(raw, &record))
	return record.From, record.Changes
}

// A run that goes from 4 devices to 2 and to 8 takes the rows that it would have taken, step by step, and has the losses up to the
// order of sums. The flag that keeps the global batch is named.
func TestDevicesChange(t *testing.T) {
	model, data := tinyModel(t, "gemma4-tiny", nil), differentRows(24)
	args := func(storage string, more ...string) []string {
		return tinyArgs(t, model, storage, data, append([]string{"--learning-rate", "1e-3"}, more...)...)
	}
	stayed, moved := filepath.Join(t.TempDir(), "stayed"), filepath.Join(t.TempDir(), "moved")
	must(t, args(stayed, "--devices", "4", "--batch-size-per-device", "2", "--num-epochs", "3")...)
	must(t, args(moved, "--devices", "4", "--batch-size-per-device", "2")...)
	require.Contains(t, refused(t, args(moved, "--devices", "2", "--batch-size-per-device", "2", "--num-epochs", "2")...),
		"was 8, it is 4 now (give --batch-size-per-device 4 to keep it on 2 devices)")
	must(t, args(moved, "--devices", "2", "--batch-size-per-device", "4", "--num-epochs", "2")...)
	must(t, args(moved, "--devices", "8", "--batch-size-per-device", "1", "--num-epochs", "3")...)
	want, got := readMetrics(t, stayed), readMetrics(t, moved)
	require.Len(t, want, 9)
	require.Equal(t, want[:3], got[:3], "on the same devices: the same bits")
	for i := range want {
		require.Equal(t, want[i].Targets, got[i].Targets, "step %d", i+1)
		require.Equal(t, want[i].Epoch, got[i].Epoch)
		require.InDelta(t, lossOf(t, want[i]), lossOf(t, got[i]), 1e-4, "step %d", i+1)
	}
}

// Settings that changed are refused together, and gone on with where that is allowed: once, and then for good. A run that begins
// from another's checkpoint is a run of its own, that the same command continues.
func TestAllowChanged(t *testing.T) {
	model, data, storage := tinyModel(t, "gemma4-tiny", nil), differentRows(12), filepath.Join(t.TempDir(), "out")
	args := func(name, epochs string, more ...string) []string {
		return tinyArgs(t, model, storage, data, append([]string{"--run-name", name, "--keep", "0", "--num-epochs", epochs}, more...)...)
	}
	first, branch := filepath.Join(storage, "first"), filepath.Join(storage, "branch")
	must(t, args("first", "1", "--learning-rate", "1e-3")...)
	changed := []string{"--learning-rate", "2e-3", "--seed", "7", "--schedule", "cosine"}
	message := refused(t, args("first", "2", changed...)...)
	for _, want := range []string{
		"--learning-rate was 0.001, it is 0.002 now", "--seed was 42, it is 7 now", "--schedule was constant, it is cosine now",
		"add --allow-changed seed,learning-rate,schedule to go on",
	} {
		require.Contains(t, message, want)
	}
	allowed := append(changed, "--allow-changed", "seed,learning-rate,schedule")
	origin := checkpoints(t, first)[0]
	out := must(t, args("branch", "2", append(allowed, "--resume", origin)...)...)
	require.Contains(t, out, "changed   --seed was 42, it is 7 now")
	require.Contains(t, out, "resuming from "+origin+": epoch 2, step 7")
	from, changes := readChanges(t, branch)
	require.Equal(t, origin, from)
	require.Len(t, changes, 4, "the length of the schedule follows from it")
	require.Equal(t, map[string]any{"field": "seed", "was": 42.0, "now": 7.0, "step": 6.0, "from_epoch": 1.0}, changes[0])

	must(t, args("first", "2", allowed...)...)
	require.NotContains(t, must(t, args("first", "2", changed...)...), "changed   ", "permission is given once")
	_, same := readChanges(t, first)
	require.Equal(t, changes, same)
	again := must(t, args("branch", "2", append(changed, "--resume", origin)...)...)
	require.Contains(t, again, "All 2 epochs of this run are done already")
	require.Contains(t, again, "Saved checkpoint: "+filepath.Join(branch, "checkpoints", "epoch-0002-step-00000012"))
	requireSameCheckpoint(t, checkpoints(t, first)[1], checkpoints(t, branch)[0])

	metrics := readMetrics(t, first)
	require.Len(t, metrics, 12)
	lr, err := metrics[6].LR.Float64()
	require.NoError(t, err)
	require.InDelta(t, 1e-3*(1+math.Cos(math.Pi*7/12)), lr, 1e-12, "a cosine as if it had been one from the first step on")
	require.NoError(t, os.Remove(filepath.Join(branch, "run.json")))
	require.Contains(t, refused(t, args("branch", "2", append(changed, "--resume", checkpoints(t, first)[1])...)...), "did not begin from that one")
	require.Contains(t, refused(t, args("first", "2", append(changed, "--resume", origin)...)...), "give a new --run-name")
}

// A run with a first moment in bfloat16 learns as one in float32 does, resumes to the bit, and changes from one to the other where
// that is allowed.
func TestFirstMomentDType(t *testing.T) {
	model, data, storage := tinyModel(t, "gemma4-tiny", nil), differentRows(12), filepath.Join(t.TempDir(), "out")
	args := func(name, epochs string, more ...string) []string {
		return tinyArgs(t, model, storage, data, append([]string{"--run-name", name, "--num-epochs", epochs, "--learning-rate", "1e-3"}, more...)...)
	}
	folder := func(name string) string { return filepath.Join(storage, name) }
	bf16 := []string{"--first-moment-dtype", "bfloat16"}
	must(t, args("wide", "2")...)
	require.Contains(t, must(t, args("whole", "2", bf16...)...), "moments bfloat16 and float32")
	must(t, args("parts", "1", bf16...)...)
	must(t, args("parts", "2", bf16...)...)
	whole := readMetrics(t, folder("whole"))
	require.Equal(t, whole, readMetrics(t, folder("parts")))
	requireSameCheckpoint(t, checkpoints(t, folder("whole"))[0], checkpoints(t, folder("parts"))[0])
	wide := readMetrics(t, folder("wide"))
	require.Equal(t, wide[:2], whole[:2], "the first update uses the moment before it is rounded")
	require.NotEqual(t, wide, whole)
	for i := range wide {
		require.InDelta(t, lossOf(t, wide[i]), lossOf(t, whole[i]), 5e-3, "step %d", i+1)
	}
	moments := func(name string) map[string]int {
		out := map[string]int{}
		manager := localDisk{folder(name)}.manager(t)
		newest, ok, err := manager.Latest()
		require.NoError(t, err)
		require.True(t, ok)
		state, err := manager.OpenState(newest)
		require.NoError(t, err)
		defer state.Close()
		for _, info := range state.Tensors() {
			if _, slot, ok := strings.Cut(info.Name, "/"); ok {
				out[slot+" "+string(info.DType)]++
			}
		}
		return out
	}
	n := moments("wide")["exp_avg F32"]
	require.Positive(t, n)
	require.Equal(t, map[string]int{"exp_avg BF16": n, "exp_avg_sq F32": n}, moments("whole"))

	message := refused(t, args("wide", "3", bf16...)...)
	require.Contains(t, message, "--first-moment-dtype was float32, it is bfloat16 now")
	require.Contains(t, message, "--allow-changed first-moment-dtype")
	must(t, args("wide", "3", append(bf16, "--allow-changed", "first-moment-dtype")...)...)
	require.Equal(t, moments("whole"), moments("wide"))
	must(t, args("wide", "4", "--allow-changed", "first-moment-dtype")...)
	require.Equal(t, map[string]int{"exp_avg F32": n, "exp_avg_sq F32": n}, moments("wide"))
	require.Len(t, readMetrics(t, folder("wide")), 2*len(wide))
}

// A state that does not fit the model is refused by the name of a tensor, whatever is allowed.
func TestChangedModelMustFit(t *testing.T) {
	model, storage := tinyModel(t, "gemma4-tiny", nil), filepath.Join(t.TempDir(), "out")
	args := func(more ...string) []string {
		return tinyArgs(t, model, storage, differentRows(12), append([]string{"--num-epochs", "2"}, more...)...)
	}
	must(t, append(args(), "--num-epochs", "1")...)
	require.Regexp(t, "holds the trained tensor .*, which this model does not train", refused(t, args("--freeze", "embed_tokens*", "--allow-changed", "freeze")...))
	require.Regexp(t, "lacks the tensor .*, which this model trains", refused(t, args("--freeze", "none", "--allow-changed", "freeze")...))
	require.Regexp(t, "the tensor|the trained tensor", refused(t, args("--no-scan", "--allow-changed", "scan")...))
	require.NotEmpty(t, checkpoints(t, storage))
}

func TestRunName(t *testing.T) {
	for name, want := range map[string]string{
		"a/b": "letters, digits", "..": "letters, digits", ".x": "letters, digits", "-x": "letters, digits", "checkpoints": "its own files", "run.json": "its own files",
	} {
		require.Contains(t, refused(t, tinyArgs(t, "model", filepath.Join(t.TempDir(), "out"), rows(4), "--run-name="+name)...), want, name)
	}
}

// Within an epoch a run goes on with another batch where the rows that are done are whole batches of it: each row is taken once. The
// order of the epoch stays that of the seed it began with; other data must wait for the epoch's end.
func TestChangedWithinAnEpoch(t *testing.T) {
	model, data, storage := tinyModel(t, "gemma4-tiny", nil), differentRows(12), filepath.Join(t.TempDir(), "out")
	args := func(name string, more ...string) []string {
		return tinyArgs(t, model, storage, data, append([]string{"--run-name", name, "--keep", "0", "--num-epochs", "2", "--save-every-steps", "3"}, more...)...)
	}
	must(t, args("whole")...)
	whole := readMetrics(t, filepath.Join(storage, "whole"))
	within := checkpoints(t, filepath.Join(storage, "whole"))[0]
	require.Equal(t, "epoch-0000-step-00000003", filepath.Base(within))
	branch := func(name string, more ...string) []metric {
		must(t, args(name, append(more, "--resume", within)...)...)
		raw, err := os.ReadFile(filepath.Join(storage, name, "metrics.jsonl"))
		require.NoError(t, err)
		var out []metric
		for line := range strings.Lines(string(raw)) {
			var m metric
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			out = append(out, m)
		}
		return out
	}
	targets := func(metrics []metric, epoch int) (sum int) {
		for _, m := range metrics {
			if m.Epoch == epoch {
				sum += m.Targets
			}
		}
		return sum
	}
	first := 0
	for _, m := range whole[:3] {
		first += m.Targets
	}
	message := refused(t, args("four", "--resume", within, "--batch-size-per-device", "2", "--allow-changed", "batch")...)
	require.Contains(t, message, "it stands within epoch 1, after 6 rows, which are no whole number of global batches of 4")
	larger := branch("six", "--batch-size-per-device", "3", "--allow-changed", "batch")
	require.Len(t, larger, 1+2, "6 rows are left, and 12 in the next epoch")
	require.Equal(t, targets(whole, 1), first+targets(larger, 1))
	require.Equal(t, targets(whole, 2), targets(larger, 2))

	seeded := branch("seeded", "--seed", "7", "--allow-changed", "seed")
	require.Equal(t, whole[3:6], seeded[:3], "the epoch ends in its order, to the bit")
	require.NotEqual(t, whole[6].Loss, seeded[3].Loss, "the next has another")
	require.Equal(t, targets(whole, 2), targets(seeded, 2))

	data = differentRows(14)
	require.Contains(t, refused(t, args("data", "--resume", within, "--allow-changed", "data")...), "other data can begin at an epoch's end")
	epochEnd := checkpoints(t, filepath.Join(storage, "whole"))[1]
	require.Contains(t, must(t, args("data", "--resume", epochEnd, "--allow-changed", "data")...), "the content of --dataset is another")
	require.Empty(t, checkpoints(t, filepath.Join(storage, "four")))
}
