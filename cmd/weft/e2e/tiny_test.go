package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"weft/checkpoint/safetensors"
)

// tinyArgs trains the tiny Gemma 4 of the fixtures on 2 devices, 2 rows a step: one compiled program for many tests.
func tinyArgs(t *testing.T, model, storage string, rows string, more ...string) []string {
	t.Helper()
	return append([]string{"finetune", "--model-id", model, "--dataset", write(t, "rows.jsonl", rows), "--storage-path", storage,
		"--platform", "cpu", "--devices", "2", "--batch-size-per-device", "1", "--max-seq-len", "16", "--compute-dtype", "float32",
		"--num-epochs", "1", "--compile-cache", cache}, more...)
}

// differentRows is n records of different lengths and ids.
func differentRows(n int) string {
	var b strings.Builder
	for i := range n {
		ids := make([]string, 4+i%5)
		for j := range ids {
			ids[j] = fmt.Sprint(2 + (i*7+j*3)%500)
		}
		fmt.Fprintf(&b, `{"input_ids":[%s]}`+"\n", strings.Join(ids, ","))
	}
	return b.String()
}

// With --no-drop-last the rows that do not fill a batch are trained on too, in a batch of which only they count.
func TestRaggedLastBatch(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	for _, c := range []struct {
		flag           string
		steps, targets int
	}{
		{"--drop-last", 2, 4 * 7},
		{"--no-drop-last", 3, 5 * 7},
	} {
		storage := filepath.Join(t.TempDir(), "out")
		must(t, tinyArgs(t, model, storage, rows(5), c.flag, "--no-shuffle")...)
		metrics := readMetrics(t, storage)
		require.Len(t, metrics, c.steps)
		targets := 0
		for _, m := range metrics {
			targets += m.Targets
			require.Equal(t, 32, m.Tokens)
		}
		require.Equal(t, c.targets, targets)
	}
}

// The learning rate of each step is in the metrics: up over the warm-up, then down along a cosine.
func TestCosineSchedule(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	storage := filepath.Join(t.TempDir(), "out")
	must(t, tinyArgs(t, model, storage, rows(12), "--schedule", "cosine", "--warmup-steps", "2", "--learning-rate", "1e-3")...)
	for i, m := range readMetrics(t, storage) {
		want := 1e-3 * float64(i+1) / 2
		if i >= 2 {
			want = 1e-3 * 0.5 * (1 + math.Cos(math.Pi*float64(i-1)/4))
		}
		lr, err := m.LR.Float64()
		require.NoError(t, err)
		require.InDelta(t, want, lr, 1e-12, "step %d", i+1)
	}
}

// A loss that is no number ends the run before anything is saved, and says what to change.
func TestLossThatIsNoNumber(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	storage := filepath.Join(t.TempDir(), "out")
	o := weft(t, tinyArgs(t, model, storage, rows(12), "--learning-rate", "1e30")...)
	require.Equal(t, 1, o.code)
	require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
	require.Regexp(t, `^weft: step \d+ \(epoch 1\): the loss is NaN`, o.err)
	require.Contains(t, o.err, "lower --learning-rate")
	require.Empty(t, checkpoints(t, storage))
}

// From a lone config.json with random weights to a folder, and from that folder on.
func TestRandomInitAndOn(t *testing.T) {
	config := filepath.Join(tinyModel(t, "gemma4-tiny", nil), "config.json")
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	must(t, tinyArgs(t, config, first, differentRows(12), "--random-init")...)
	exported := filepath.Join(checkpoints(t, first)[0], "model")
	out := must(t, tinyArgs(t, exported, second, differentRows(12))...)
	require.Contains(t, out, "Training completed!")
	require.Less(t, lossOf(t, readMetrics(t, second)[0]), lossOf(t, readMetrics(t, first)[0])+0.5, "the second run begins where the first ended")
}

func lossOf(t *testing.T, m metric) float64 {
	t.Helper()
	loss, err := m.Loss.Float64()
	require.NoError(t, err)
	return loss
}

// A run goes on from a checkpoint in another folder, and on another number of devices: it says so, and the losses are
// those of the run that stayed, up to the order of sums.
func TestResumeElsewhere(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	data := differentRows(12)
	stayed, moved := filepath.Join(t.TempDir(), "stayed"), filepath.Join(t.TempDir(), "moved")
	must(t, tinyArgs(t, model, stayed, data, "--num-epochs", "2", "--keep", "0", "--learning-rate", "1e-3")...)
	other := refused(t, tinyArgs(t, model, moved, data, "--num-epochs", "2", "--learning-rate", "2e-3", "--resume", checkpoints(t, stayed)[0])...)
	require.Contains(t, other, "belongs to a run with other settings: --learning-rate was 0.001, it is 0.002 now")
	o := weft(t, tinyArgs(t, model, moved, data, "--num-epochs", "2", "--learning-rate", "1e-3", "--resume", checkpoints(t, stayed)[0],
		"--devices", "1", "--batch-size-per-device", "2")...)
	require.Zero(t, o.code, o.err)
	require.Contains(t, o.err, "the run continues on other devices")
	raw, err := os.ReadFile(filepath.Join(moved, "metrics.jsonl"))
	require.NoError(t, err)
	want := readMetrics(t, stayed)[6:]
	got := strings.Split(strings.TrimSpace(string(raw)), "\n")
	require.Len(t, got, len(want))
	for i, line := range got {
		var m metric
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		require.Equal(t, want[i].Step, m.Step)
		require.InDelta(t, lossOf(t, want[i]), lossOf(t, m), 1e-4, "step %d", m.Step)
	}
}

// --param-dtype makes the exported tensors, and what config.json says of them, of one dtype.
func TestExportedDType(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	storage := filepath.Join(t.TempDir(), "out")
	must(t, tinyArgs(t, model, storage, rows(4), "--param-dtype", "bfloat16")...)
	folder := filepath.Join(checkpoints(t, storage)[0], "model")
	set, err := safetensors.OpenDir(folder)
	require.NoError(t, err)
	defer set.Close()
	for _, info := range set.Tensors() {
		require.Equal(t, safetensors.BF16, info.DType, info.Name)
	}
	config, err := os.ReadFile(filepath.Join(folder, "config.json"))
	require.NoError(t, err)
	require.Contains(t, string(config), `"dtype": "bfloat16"`)
	require.NotContains(t, string(config), `"float32"`)
}

// smallDisk mounts a file system of the given size, such as "20m", where the machine allows it.
func smallDisk(t *testing.T, size string) (disk string, grow func(size string)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can mount a small disk")
	}
	disk = t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED: no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, 0)) })
	return disk, func(size string) {
		require.NoError(t, unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT, "size="+size))
	}
}

// A disk without room for one checkpoint is found before the first step.
func TestDiskTooSmall(t *testing.T) {
	disk, _ := smallDisk(t, "2m")
	out := filepath.Join(disk, "out")
	o := weft(t, tinyArgs(t, tinyModel(t, "gemma4-tiny", nil), out, differentRows(8))...)
	require.Equal(t, 1, o.code, o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
	require.Contains(t, o.err, "not enough disk space")
	require.Empty(t, readMetrics(t, out), "no step was made")
}

// A disk that fills up in the middle of a save fails the run in one line and costs nothing that was committed: with more
// room the same command goes on to the same bits.
func TestDiskFull(t *testing.T) {
	disk, grow := smallDisk(t, "20m")
	model := tinyModel(t, "gemma4-tiny", nil)
	data := differentRows(8)
	whole, small := filepath.Join(t.TempDir(), "out"), filepath.Join(disk, "out")
	args := func(storage string) []string {
		return tinyArgs(t, model, storage, data, "--num-epochs", "6", "--keep", "0", "--learning-rate", "1e-3")
	}
	must(t, args(whole)...)
	o := weft(t, args(small)...)
	require.Equal(t, 1, o.code, o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
	require.Contains(t, o.err, "not enough disk space")
	require.Contains(t, o.err, "earlier checkpoints are untouched")
	before := checkpoints(t, small)
	require.NotEmpty(t, before)
	require.Less(t, len(before), 6)
	grow("200m")
	require.Contains(t, must(t, args(small)...), "resuming from "+before[len(before)-1])
	require.Equal(t, readMetrics(t, whole), readMetrics(t, small))
	want, got := checkpoints(t, whole), checkpoints(t, small)
	require.Len(t, got, 6)
	requireSameCheckpoint(t, want[5], got[5])
}
