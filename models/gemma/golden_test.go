package gemma_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
	"weft/models/arch"
)

// The tolerances of the fixtures' README, for float32.
const (
	tolLogits = 2e-4
	tolLoss   = 5e-5
	tolGrad   = 3e-5
	tolLosses = 1e-4
	tolFinal  = 2e-5
	finalNear = 0.999
)

const goldenSteps = 10

// requireGolden compares a float32 training run with the fixture.
func requireGolden(t *testing.T, g *reference, a answer) {
	t.Helper()
	requireLogits(t, g, g.tensors["logits"], a.logits, tolLogits)
	require.InDelta(t, g.meta.Loss.Value, a.losses[0], tolLoss, "loss")
	require.Equal(t, g.meta.Loss.Targets, a.targets, "targets")
	requireGrads(t, g, a.grads, tolGrad)
	requireSeries(t, "losses", g.meta.Losses, a.losses, tolLosses)
	requireFinal(t, g, a.final, tolFinal, finalNear)
}

// Logits, loss, every gradient (the frozen per-layer table's too), ten losses and the final parameters are
// transformers', however the layers are run.
func TestTraining(t *testing.T) {
	rt := runtime(t, 1)
	for _, name := range []string{"gemma4-tiny", "gemma3-tiny", "gemma4-dense-tiny"} {
		g := loadGolden(t, name)
		ways := variants
		if name == "gemma4-dense-tiny" {
			ways = []variant{{false, arch.RematNone}, {true, arch.RematFull}}
		}
		for _, v := range ways {
			t.Run(name+"/"+v.String(), func(t *testing.T) {
				p := open(t, rt, g.dir, "config.json", arch.Options{Scan: v.scan, Remat: v.remat})
				requireGolden(t, g, p.train(t, g, goldenSteps))
			})
		}
	}
}

// The engine's own step, on four devices with everything split that can be, gives the same.
func TestShardedStep(t *testing.T) {
	rt := runtime(t, 4)
	for _, name := range []string{"gemma4-tiny", "gemma3-tiny"} {
		g := loadGolden(t, name)
		p := open(t, rt, g.dir, "config.released-style.json", arch.Options{Scan: true, Remat: arch.RematFull})
		a := p.steps(t, g, goldenSteps)
		requireSeries(t, "losses", g.meta.Losses, a.losses, tolLosses)
		requireFinal(t, g, a.final, tolFinal, finalNear)
		require.InDelta(t, g.meta.GradNorms[0], a.norms[0], 1e-3*g.meta.GradNorms[0], "gradient norm")
	}
}

// Released and transformers-5 files describe the same model.
func TestConfigStylesAgree(t *testing.T) {
	for _, name := range []string{"gemma4-tiny", "gemma3-tiny", "gemma4-dense-tiny", "gemma4-tiny-multimodal"} {
		dir := fixture.Dir(t, name)
		require.Equal(t, parse(t, filepath.Join(dir, "config.json")), parse(t, filepath.Join(dir, "config.released-style.json")), name)
	}
}

// The text model of a multimodal checkpoint is the text-only one: its logits, and in training all else.
func TestMultimodal(t *testing.T) {
	rt := runtime(t, 1)
	g := loadGolden(t, "gemma4-tiny")
	dir := fixture.Dir(t, "gemma4-tiny-multimodal")
	a := open(t, rt, dir, "config.json", arch.Options{}).train(t, g, 0)
	requireLogits(t, g, g.tensors["logits"], a.logits, tolLogits)
	require.InDelta(t, g.meta.Loss.Value, a.losses[0], tolLoss)
	requireGolden(t, g, open(t, rt, dir, "config.released-style.json", arch.Options{Scan: true, Remat: arch.RematFull}).train(t, g, goldenSteps))
}

// bfloat16 weights in three files, computed in float32 and in bfloat16. The second differs from transformers by where
// it rounds: as much as transformers' own two results differ.
func TestShardedBF16Checkpoint(t *testing.T) {
	rt := runtime(t, 1)
	dir := fixture.Dir(t, "gemma4-tiny-sharded-bf16")
	g := &reference{dir: dir, tensors: fixture.Tensors(t, filepath.Join(dir, "golden.safetensors"))}
	var meta struct {
		FP32 float64 `json:"loss_fp32"`
		BF16 float64 `json:"loss_bf16"`
	}
	fixture.JSON(t, filepath.Join(dir, "golden.json"), &meta)
	a := open(t, rt, dir, "config.json", arch.Options{}).train(t, g, 0)
	requireLogits(t, g, g.tensors["logits_row0_fp32"], a.logits, tolLogits)
	require.InDelta(t, meta.FP32, a.losses[0], tolLoss)

	a = open(t, rt, dir, "config.json", arch.Options{Policy: policy(t, 1, dtypes.BFloat16)}).train(t, g, 0)
	want := g.tensors["logits_row0_bf16"].Floats
	torch := rms(want, g.tensors["logits_row0_fp32"].Floats)
	require.LessOrEqual(t, rms(a.logits[:len(want)], want), 1.5*torch, "root mean square difference of the logits")
	require.InDelta(t, meta.BF16, a.losses[0], 0.05)
}

// Gemma 3's linear scaling of the rotary positions of full layers.
func TestRoPEScaling(t *testing.T) {
	rt := runtime(t, 1)
	g := loadGolden(t, "gemma3-tiny")
	dir := withConfig(t, g.dir, "config.released-style.json", `"rope_scaling": null`, `"rope_scaling": {"rope_type": "linear", "factor": 8.0}`)
	a := open(t, rt, dir, "config.json", arch.Options{}).train(t, g, 0)
	requireLogits(t, g, g.tensors["variant.rope_linear8.logits_row0"], a.logits, tolLogits)
	require.InDelta(t, g.meta.Linear8Loss, a.losses[0], tolLoss)
}

// bfloat16 products with float32 masters stay as near to float32 as torch's autocast does: the two round at different
// places, so the sizes of the errors are compared, over ten updates.
func TestBF16Training(t *testing.T) {
	rt := runtime(t, 1)
	for _, name := range []string{"gemma4-tiny", "gemma3-tiny"} {
		g := loadGolden(t, name)
		p := open(t, rt, g.dir, "config.json", arch.Options{Policy: policy(t, 1, dtypes.BFloat16), Scan: true})
		a := p.steps(t, g, goldenSteps)
		ours, torch := rms(a.losses, g.meta.Losses), rms(g.meta.LossesAutocast, g.meta.Losses)
		t.Logf("%s: error %.4f, torch autocast %.4f; losses %.4f", name, ours, torch, a.losses)
		require.LessOrEqual(t, ours, 2*torch, name)
	}
}

// rms is the root of the mean squared difference.
func rms[F float32 | float64](a, b []F) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

// The rotary frequencies are torch's.
func TestFrequencies(t *testing.T) {
	for _, name := range []string{"gemma4-tiny", "gemma3-tiny", "gemma4-dense-tiny"} {
		g := loadGolden(t, name)
		cfg := parse(t, filepath.Join(g.dir, "config.json"))
		for _, l := range cfg.Layers {
			rope, key := cfg.FullRoPE, "rope.full_attention_inv_freq"
			if l.Sliding {
				rope, key = cfg.SlidingRoPE, "rope.sliding_attention_inv_freq"
			}
			require.InDeltaSlice(t, g.tensors[key].Floats, rope.Frequencies(l.HeadDim), 1e-7, "%s %s", name, key)
		}
	}
}
