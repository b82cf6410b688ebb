package optim

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/internal/fixture"
)

var _ engine.Optimizer = (*AdamW)(nil)

type adamwFixture struct {
	Steps   int
	Shapes  map[string][]int
	Configs map[string]struct {
		LR          float64
		Betas       [2]float64
		Eps         float64
		WeightDecay float64 `json:"weight_decay"`
	}
}

// Every parameter after every one of 20 updates, and both moments at the end, are torch's.
func TestAdamWIsTorchs(t *testing.T) {
	dir := fixture.Dir(t, "adamw")
	var fix adamwFixture
	fixture.JSON(t, filepath.Join(dir, "adamw.json"), &fix)
	golden := fixture.Tensors(t, filepath.Join(dir, "adamw.safetensors"))
	require.Len(t, fix.Configs, 4)
	for name, c := range fix.Configs {
		t.Run(name, func(t *testing.T) {
			opt, err := NewAdamW(Constant(c.LR), c.Betas[0], c.Betas[1], c.Eps, c.WeightDecay)
			require.NoError(t, err)
			update, err := graph.NewExec(gobackend.GetBackend(), func(in []*graph.Node) []*graph.Node {
				p, slots := opt.Update(in[4:], in[0], in[1], in[2:4])
				return append([]*graph.Node{p}, slots...)
			})
			require.NoError(t, err)
			for param, dims := range fix.Shapes {
				trajectory(t, opt, update, golden, name, param, dims, fix.Steps)
			}
		})
	}
}

func trajectory(t *testing.T, opt *AdamW, update *graph.Exec, golden map[string]fixture.Tensor, config, param string, dims []int, steps int) {
	tensor := func(key string) *tensors.Tensor {
		g, ok := golden[key]
		require.True(t, ok, key)
		return tensors.FromFlatDataAndDimensions(g.Floats, dims...)
	}
	p := tensor(config + ".init." + param)
	zero := make([]float32, p.Size())
	m, v := tensors.FromFlatDataAndDimensions(zero, dims...), tensors.FromFlatDataAndDimensions(zero, dims...)
	for step := range steps {
		args := []any{p, tensor(fmt.Sprintf("%s.grad.%d.%s", config, step, param)), m, v}
		for _, h := range opt.Hyper(step + 1) {
			args = append(args, h)
		}
		out, err := update.Call(args...)
		require.NoError(t, err)
		p, m, v = out[0], out[1], out[2]
		requireNear(t, golden[fmt.Sprintf("%s.param.%d.%s", config, step, param)].Floats, p, fmt.Sprintf("%s after update %d", param, step+1))
	}
	requireNear(t, golden[config+".exp_avg."+param].Floats, m, "exp_avg of "+param)
	requireNear(t, golden[config+".exp_avg_sq."+param].Floats, v, "exp_avg_sq of "+param)
}

func requireNear(t *testing.T, want []float32, got *tensors.Tensor, what string) {
	t.Helper()
	values := tensors.MustCopyFlatData[float32](got)
	require.Len(t, values, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], values[i], 2e-6, "%s, element %d", what, i)
	}
}

func TestNewAdamWNamesTheNumberAtFault(t *testing.T) {
	for _, c := range []struct {
		b1, b2, eps, decay float64
		want               string
	}{
		{1, 0.999, 1e-8, 0, "beta1 is 1"},
		{0.9, -0.1, 1e-8, 0, "beta2 is -0.1"},
		{0.9, 0.999, -1, 0, "eps is -1"},
		{0.9, 0.999, 1e-8, math.NaN(), "weight decay is NaN"},
	} {
		_, err := NewAdamW(Constant(1), c.b1, c.b2, c.eps, c.decay)
		require.ErrorContains(t, err, c.want)
	}
	_, err := NewAdamW(nil, 0.9, 0.999, 1e-8, 0)
	require.ErrorContains(t, err, "schedule")
}

// The first moment is kept as asked, the second always as float32.
func TestSlots(t *testing.T) {
	opt, err := NewAdamW(Constant(1), 0.9, 0.999, 1e-8, 0)
	require.NoError(t, err)
	require.Equal(t, []engine.Slot{{Name: "exp_avg", DType: dtypes.Float32}, {Name: "exp_avg_sq", DType: dtypes.Float32}}, opt.Slots())
	opt.FirstMomentDType = dtypes.BFloat16
	require.Equal(t, []engine.Slot{{Name: "exp_avg", DType: dtypes.BFloat16}, {Name: "exp_avg_sq", DType: dtypes.Float32}}, opt.Slots())
}

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		name          string
		final         float64
		warmup, total int
		want          map[int]float64
	}{
		{"constant", 0, 0, 0, map[int]float64{1: 2, 1000: 2}},
		{"cosine", 0.5, 4, 12, map[int]float64{1: 0.5, 2: 1, 4: 2, 8: 1.25, 12: 0.5, 99: 0.5}},
		{"cosine", 0, 0, 2, map[int]float64{1: 1, 2: 0}},
		{"cosine", 0, 3, 3, map[int]float64{3: 2, 4: 0}},
	} {
		s, err := NewSchedule(c.name, 2, c.final, c.warmup, c.total)
		require.NoError(t, err)
		for step, want := range c.want {
			require.InDelta(t, want, s.LR(step), 1e-15, "%s, update %d", c.name, step)
		}
	}
	for _, c := range []struct {
		name          string
		lr, final     float64
		warmup, total int
		want          string
	}{
		{"step", 1, 0, 0, 1, "unknown learning-rate schedule"},
		{"constant", 0, 0, 0, 1, "learning rate 0"},
		{"cosine", 1, 2, 0, 1, "ending at"},
		{"cosine", 1, 0, 5, 4, "warm-up"},
	} {
		_, err := NewSchedule(c.name, c.lr, c.final, c.warmup, c.total)
		require.ErrorContains(t, err, c.want)
	}
}
