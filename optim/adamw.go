// Package optim holds optimizers: the mathematics of one update of one tensor, and learning-rate schedules.
package optim

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine"
)

// Defaults of AdamW, as torch.optim.AdamW has them.
const (
	DefaultBeta1       = 0.9
	DefaultBeta2       = 0.999
	DefaultEps         = 1e-8
	DefaultWeightDecay = 0.01
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101), in the order of operations of
// torch.optim.AdamW's single-tensor implementation, all in float32:
//
//	p ← p·(1 − lr·λ);  m ← m + (g − m)·(1 − β₁);  v ← v·β₂ + (1 − β₂)·g²
//	p ← p − lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
//
// Every trained tensor is decayed, norms and embeddings too, as torch does without parameter groups.
type AdamW struct {
	// Schedule gives the learning rate lr of each update.
	Schedule Schedule
	// Beta1 and Beta2 are the decay rates of the two moments, in [0, 1).
	Beta1, Beta2 float64
	// Eps is added to the root after the bias correction.
	Eps float64
	// WeightDecay is λ.
	WeightDecay float64
	// FirstMomentDType is what m is kept as between steps, Float32 after NewAdamW. With BFloat16 the update itself uses m
	// before it is rounded, as optax.adamw with mu_dtype. v has no such choice: β₂ near 1 changes it by less than half of
	// a bfloat16's last place a step, so it would never fall.
	FirstMomentDType dtypes.DType
}

// NewAdamW checks the numbers, each error naming the one at fault, and returns the optimizer.
func NewAdamW(s Schedule, beta1, beta2, eps, weightDecay float64) (*AdamW, error) {
	for _, c := range []struct {
		name   string
		v      float64
		ok     bool
		wanted string
	}{
		{"beta1", beta1, beta1 >= 0 && beta1 < 1, "a number in [0, 1)"},
		{"beta2", beta2, beta2 >= 0 && beta2 < 1, "a number in [0, 1)"},
		{"eps", eps, eps >= 0 && !math.IsInf(eps, 0), "a number that is not negative"},
		{"weight decay", weightDecay, weightDecay >= 0 && !math.IsInf(weightDecay, 0), "a number that is not negative"},
	} {
		if !c.ok {
			return nil, fmt.Errorf("AdamW: %s is %v: give %s", c.name, c.v, c.wanted)
		}
	}
	if s == nil {
		return nil, fmt.Errorf("AdamW: no learning-rate schedule: give one")
	}
	return &AdamW{Schedule: s, Beta1: beta1, Beta2: beta2, Eps: eps, WeightDecay: weightDecay, FirstMomentDType: dtypes.Float32}, nil
}

// Slots are the two moments, named as torch does.
func (a *AdamW) Slots() []engine.Slot {
	return []engine.Slot{{Name: "exp_avg", DType: a.FirstMomentDType}, {Name: "exp_avg_sq", DType: dtypes.Float32}}
}

// The positions of the scalars that Hyper returns. None is a constant of the graph, so that a change of a
// hyperparameter does not compile the step again.
const (
	hyperDecay    = iota // 1 − lr·λ
	hyperLerp            // 1 − β₁
	hyperBeta1           // β₁
	hyperBeta2           // β₂
	hyperOneBeta2        // 1 − β₂
	hyperRootBias        // √(1 − β₂ᵗ)
	hyperEps
	hyperStepSize // lr / (1 − β₁ᵗ)
	numHyper
)

// Hyper returns the scalars of update number step (1-based), computed in float64 and rounded once.
func (a *AdamW) Hyper(step int) []float32 {
	lr, t := a.Schedule.LR(step), float64(step)
	h := make([]float32, numHyper)
	h[hyperDecay] = float32(1 - lr*a.WeightDecay)
	h[hyperLerp] = float32(1 - a.Beta1)
	h[hyperBeta1] = float32(a.Beta1)
	h[hyperBeta2] = float32(a.Beta2)
	h[hyperOneBeta2] = float32(1 - a.Beta2)
	h[hyperRootBias] = float32(math.Sqrt(1 - math.Pow(a.Beta2, t)))
	h[hyperEps] = float32(a.Eps)
	h[hyperStepSize] = float32(lr / (1 - math.Pow(a.Beta1, t)))
	return h
}

// Update returns the new parameter and moments. All nodes are float32; hyper are the scalars of Hyper.
func (a *AdamW) Update(hyper []*graph.Node, param, grad *graph.Node, slots []*graph.Node) (*graph.Node, []*graph.Node) {
	m, v := slots[0], slots[1]
	p := graph.Mul(param, hyper[hyperDecay])
	diff := graph.Sub(grad, m)
	if 1-a.Beta1 < 0.5 {
		m = graph.Add(m, graph.Mul(diff, hyper[hyperLerp]))
	} else {
		// torch.lerp changes its form here, to be exact at weight 1.
		m = graph.Sub(grad, graph.Mul(diff, hyper[hyperBeta1]))
	}
	v = graph.Add(graph.Mul(v, hyper[hyperBeta2]), graph.Mul(graph.Mul(grad, grad), hyper[hyperOneBeta2]))
	denom := graph.Add(graph.Div(graph.Sqrt(v), hyper[hyperRootBias]), hyper[hyperEps])
	p = graph.Sub(p, graph.Mul(graph.Div(m, denom), hyper[hyperStepSize]))
	return p, []*graph.Node{m, v}
}
