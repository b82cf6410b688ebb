package job

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
	"weft/internal/hfcheck"
	"weft/models"
	"weft/pjrt/pjrttest"
)

// tolLogits is the fixtures' tolerance of float32 logits.
const tolLogits = 2e-4

// testCache keeps the programs that a test compiles more than once.
var testCache = CacheOff

func shareCache(t *testing.T) {
	t.Helper()
	testCache = t.TempDir()
	t.Cleanup(func() { testCache = CacheOff })
}

// family is a fixture that transformers loads.
type family struct {
	name string
	// golden is the fixture with the batch, "" for its own.
	golden string
	// class is what transformers takes it for; "" where weft does not know the architecture yet and says so.
	class string
	// placeholders are the first of the token ids that stand for an image, a video or a sound: the multimodal class puts
	// something else in their place, so the batch has none. 0: there are none.
	placeholders int
}

var families = []family{
	{name: "gemma3-tiny", class: "Gemma3ForCausalLM"},
	{name: "gemma4-tiny", class: "Gemma4ForCausalLM"},
	{name: "gemma4-dense-tiny", class: "Gemma4ForCausalLM"},
	{name: "gemma4-tiny-sharded-bf16", class: "Gemma4ForCausalLM"},
	{name: "gemma4-tiny-multimodal", golden: "gemma4-tiny", class: "Gemma4ForConditionalGeneration", placeholders: 505},
	{name: "gemma1-tiny"},
	{name: "gemma2-tiny"},
	{name: "gemma4-moe-tiny"},
}

// goldenRows is a fixture's batch.
func goldenRows(t *testing.T, f family) hfcheck.Batch {
	t.Helper()
	name := f.name
	if f.golden != "" {
		name = f.golden
	}
	tensors := fixture.Tensors(t, fixture.Dir(t, name, "golden.safetensors"))
	nested := func(key string) (out [][]int) {
		dims := tensors[key].Dims
		for r := range dims[0] {
			row := make([]int, dims[1])
			for i := range row {
				row[i] = int(tensors[key].Ints[r*dims[1]+i])
				if f.placeholders > 0 && row[i] >= f.placeholders {
					row[i] -= 100
				}
			}
			out = append(out, row)
		}
		return out
	}
	return hfcheck.Batch{InputIDs: nested("input_ids"), Labels: nested("labels"), AttentionMask: nested("attention_mask")}
}

// trainOnGolden fine-tunes a fixture for some steps on two devices and returns the run's folder.
func trainOnGolden(t *testing.T, dir string, b hfcheck.Batch, change func(*Config)) string {
	t.Helper()
	var rows strings.Builder
	for i, ids := range b.InputIDs {
		real := 0
		for _, m := range b.AttentionMask[i] {
			real += m
		}
		raw, err := json.Marshal(map[string]any{"input_ids": ids[:real]})
		require.NoError(t, err)
		rows.Write(append(raw, '\n'))
	}
	work := t.TempDir()
	dataset := filepath.Join(work, "rows.jsonl")
	require.NoError(t, os.WriteFile(dataset, []byte(rows.String()), 0o600))
	var c Config
	require.NoError(t, kong.ApplyDefaults(&c))
	c.ModelID, c.Dataset, c.ComputeDType, c.StoragePath = dir, dataset, "float32", filepath.Join(work, "out")
	c.MaxSeqLen, c.BatchSizePerDevice, c.NumEpochs, c.LearningRate = len(b.InputIDs[0]), 1, 2, 1e-3
	c.Platform, c.Devices, c.CompileCache = PlatformCPU, 2, testCache
	if change != nil {
		change(&c)
	}
	var out bytes.Buffer
	result, err := Run(t.Context(), c, nil, Console{Out: &out, Log: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err, out.String())
	require.Equal(t, 4, result.Step)
	return c.StoragePath
}

// exportTo exports the newest checkpoint of a run's folder and returns what was printed.
func exportTo(t *testing.T, storage, out, dtype string) string {
	t.Helper()
	var printed bytes.Buffer
	err := ExportCheckpoint(t.Context(), ExportConfig{
		Checkpoint: storage, Out: out, DType: dtype, MaxShardSize: "200kB", Platform: PlatformCPU, CompileCache: testCache,
	}, Console{Out: &printed, Log: slog.New(slog.NewTextHandler(&printed, nil))})
	require.NoError(t, err, printed.String())
	return printed.String()
}

// logitsHere runs weft's model of the newest checkpoint on a batch: with its float32 masters, and with masters rounded
// as in a folder of dtype.
func logitsHere(t *testing.T, storage, dtype string, b hfcheck.Batch) (masters, rounded []float32) {
	t.Helper()
	ctx := context.Background()
	p, err := openCheckpoints(ctx, storage)
	require.NoError(t, err)
	e, err := p.newest()
	require.NoError(t, err)
	m, err := openCkptModel(ctx, p, e, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, m.close()) }()
	quiet := newReport(Console{Log: slog.New(slog.DiscardHandler)}, true)
	x := &export{ExportConfig: ExportConfig{DType: dtype, Platform: PlatformCPU, CompileCache: testCache}, ckptModel: m, report: quiet, tensors: m.tensors()}
	x.setDTypes()
	proof, err := x.openProof(ctx, func(int) proofBatch {
		out := proofBatch{rows: len(b.InputIDs), tokens: len(b.InputIDs[0])}
		for i, row := range b.InputIDs {
			for j, id := range row {
				out.ids, out.mask = append(out.ids, int32(id)), append(out.mask, int32(b.AttentionMask[i][j]))
			}
		}
		return out
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, proof.close()) }()
	masters, err = proof.logits(ctx, x.read)
	require.NoError(t, err)
	rounded, err = proof.logits(ctx, x.readRounded)
	require.NoError(t, err)
	return masters, rounded
}

// furthest is the largest difference of logits of real tokens.
func furthest(b hfcheck.Batch, here, there []float32) float64 {
	far := 0.0
	vocab := len(here) / (len(b.InputIDs) * len(b.InputIDs[0]))
	for i, row := range b.AttentionMask {
		for j, real := range row {
			at := (i*len(row) + j) * vocab
			for k := at; real == 1 && k < at+vocab; k++ {
				far = max(far, math.Abs(float64(here[k])-float64(there[k])))
			}
		}
	}
	return far
}

// Every family of the fixtures, trained for some steps on two devices and exported as float32 and as bfloat16: the real
// transformers loads the folder without a missing or unexpected tensor and gives weft's logits of the checkpoint. An
// architecture that weft does not know is refused by name.
func TestExportsLoadInTransformers(t *testing.T) {
	pjrttest.Path(t, "cpu")
	shareCache(t)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			dir := fixture.Dir(t, f.name)
			if f.class == "" {
				config, err := os.ReadFile(filepath.Join(dir, "config.json"))
				require.NoError(t, err)
				_, err = models.Open(config)
				require.Error(t, err, "weft knows this architecture now: give its class in the table")
				t.Logf("not exported, weft does not train it: %v", err)
				return
			}
			b := goldenRows(t, f)
			storage := trainOnGolden(t, dir, b, nil)
			for _, dtype := range []string{"float32", "bfloat16"} {
				folder := filepath.Join(t.TempDir(), dtype)
				printed := exportTo(t, storage, folder, dtype)
				masters, rounded := logitsHere(t, storage, dtype, b)
				result, there := hfcheck.Logits(t, folder, []hfcheck.Batch{b})
				require.Equal(t, f.class, result.ModelClass)
				require.Empty(t, result.MissingKeys)
				require.Empty(t, result.UnexpectedKeys)
				require.Empty(t, result.MismatchedKeys)
				require.Len(t, there, len(rounded))
				far := furthest(b, rounded, there)
				require.LessOrEqual(t, far, tolLogits, dtype)
				if dtype == "float32" {
					require.Zero(t, differing(masters, rounded))
					require.Contains(t, printed, "max |Δ| 0,")
				} else {
					require.Positive(t, differing(masters, rounded))
					require.Contains(t, printed, "all of the difference is rounding to bfloat16")
				}
				t.Logf("%s: logits differ from transformers' by at most %.2g; from the masters' by %.2g", dtype, far, furthest(b, masters, there))
			}
		})
	}
}
