package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
)

// evalMetric is a line of an evaluation in metrics.jsonl.
type evalMetric struct {
	Step    int      `json:"step"`
	Epoch   int      `json:"epoch"`
	Loss    *float64 `json:"eval_loss"`
	Targets int      `json:"eval_targets"`
}

// readEvals are the evaluations of a run; the lines of its steps are checked to be those of all steps, in order.
func readEvals(t *testing.T, storage string) (evals []evalMetric, steps []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(storage, "metrics.jsonl"))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		var e evalMetric
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Loss == nil {
			steps = append(steps, line)
			require.Equal(t, len(steps), e.Step)
			continue
		}
		require.Equal(t, len(steps), e.Step, "an evaluation comes after its step")
		evals = append(evals, e)
	}
	return evals, steps
}

// goldenRows are the records of a fixture's batch, without its padding.
func goldenRows(t *testing.T, name string) string {
	t.Helper()
	tensors := fixture.Tensors(t, filepath.Join(fixture.Dir(t, name), "golden.safetensors"))
	ids, labels, mask := tensors["input_ids"], tensors["labels"], tensors["attention_mask"]
	var b strings.Builder
	for row := range ids.Dims[0] {
		var r struct {
			IDs    []int64 `json:"input_ids"`
			Labels []int64 `json:"labels"`
		}
		for i := row * ids.Dims[1]; i < (row+1)*ids.Dims[1] && mask.Ints[i] == 1; i++ {
			r.IDs, r.Labels = append(r.IDs, ids.Ints[i]), append(r.Labels, labels.Ints[i])
		}
		line, err := json.Marshal(r)
		require.NoError(t, err)
		fmt.Fprintln(&b, string(line))
	}
	return b.String()
}

// The evaluation of a model that learns nothing is transformers' loss of the fixture's batch, whose rows do not fill the global
// batch. It is in the epoch's line, in metrics.jsonl and in the checkpoint.
func TestEvalLossIsTheFixtures(t *testing.T) {
	var golden struct {
		Loss struct {
			Value   float64 `json:"value"`
			Targets int     `json:"num_target_tokens"`
		} `json:"loss"`
	}
	fixture.JSON(t, filepath.Join(fixture.Dir(t, "gemma4-tiny"), "golden.json"), &golden)
	storage := filepath.Join(t.TempDir(), "out")
	out := must(t, "finetune", "--model-id", tinyModel(t, "gemma4-tiny", nil), "--dataset", write(t, "rows.jsonl", rows(6)),
		"--eval-dataset", write(t, "eval.jsonl", goldenRows(t, "gemma4-tiny")), "--learning-rate", "1e-30", "--weight-decay", "0",
		"--platform", "cpu", "--devices", "2", "--batch-size-per-device", "3", "--max-seq-len", "48", "--compute-dtype", "float32",
		"--num-epochs", "1", "--storage-path", storage, "--compile-cache", cache, "--keep-by", "eval_loss")
	evals, steps := readEvals(t, storage)
	require.Len(t, steps, 1)
	require.Len(t, evals, 1)
	require.InDelta(t, golden.Loss.Value, *evals[0].Loss, 5e-5)
	require.Equal(t, golden.Loss.Targets, evals[0].Targets)
	require.Regexp(t, fmt.Sprintf(`Epoch 1/1 \| loss=.* \| eval_loss=%.4f\n`, *evals[0].Loss), out)
	require.Contains(t, out, fmt.Sprintf(`"eval_loss": %.4f}`, *evals[0].Loss))
	require.Equal(t, *evals[0].Loss, checkpointMetrics(t, checkpoints(t, storage)[0])["eval_loss"])
}

func checkpointMetrics(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	var manifest struct {
		Body struct {
			Metrics map[string]float64 `json:"metrics"`
		} `json:"body"`
	}
	require.NoError(t, json.Unmarshal(raw, &manifest))
	return manifest.Body.Metrics
}

// Evaluations are at each epoch's end and every few steps, and neither lost nor done twice by a run that is stopped within one:
// the metrics are those of a run that was never stopped.
func TestEvalOfAnInterruptedRun(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	train, eval := differentRows(12), write(t, "eval.jsonl", differentRows(40))
	args := func(storage string, epochs string) []string {
		return tinyArgs(t, model, storage, train, "--learning-rate", "1e-3", "--eval-dataset", eval, "--eval-every-steps", "4", "--num-epochs", epochs)
	}
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	must(t, args(whole, "2")...)
	want, wantSteps := readEvals(t, whole)
	var at []int
	for _, e := range want {
		at = append(at, e.Step)
	}
	require.Equal(t, []int{4, 6, 8, 12}, at)
	require.Less(t, *want[3].Loss, *want[0].Loss)

	interrupted := func(at string) outcome {
		cmd := withFaults(t, command(t, append(args(parts, "2"), "--grace-period", "1h")...))
		cmd.Env = append(cmd.Env, "WEFT_FAULT=evaluate/"+at+":10:term")
		o := finish(t, cmd)
		require.Equal(t, 75, o.code, "%s\n%s", o.out, o.err)
		return o
	}
	// Four steps are done, and the next line is that of the evaluation, of 20 batches.
	o := interrupted("after step 4")
	require.Equal(t, 4, lines(parts), "the evaluation was stopped: %s", o.err)
	// It is done now; then come two steps, and the evaluation of the epoch's end is stopped too.
	o = interrupted("after step 6")
	require.Contains(t, o.out, "resuming from "+filepath.Join(parts, "checkpoints", "epoch-0000-step-00000004"))
	require.Equal(t, 7, lines(parts), "the evaluation was stopped: %s", o.err)
	require.Contains(t, must(t, args(parts, "2")...), "resuming from "+filepath.Join(parts, "checkpoints", "epoch-0000-step-00000006"))
	got, gotSteps := readEvals(t, parts)
	require.Equal(t, want, got)
	require.Len(t, gotSteps, len(wantSteps))
	require.Equal(t, readStepLosses(t, wantSteps), readStepLosses(t, gotSteps))
	wantDirs, gotDirs := checkpoints(t, whole), checkpoints(t, parts)
	requireSameCheckpoint(t, wantDirs[len(wantDirs)-1], gotDirs[len(gotDirs)-1])
}

func readStepLosses(t *testing.T, lines []string) (out []metric) {
	t.Helper()
	for _, line := range lines {
		var m metric
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		out = append(out, m)
	}
	return out
}
