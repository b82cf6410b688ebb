package gemma_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
	"weft/models/arch"
)

// requireLogits compares the logits of real tokens: those of padding mean nothing.
func requireLogits(t *testing.T, g *reference, want fixture.Tensor, got []float32, tolerance float64) {
	t.Helper()
	mask, vocab := g.tensors["attention_mask"].Ints, want.Dims[len(want.Dims)-1]
	worst := 0.0
	for i, w := range want.Floats {
		if mask[i/vocab] != 0 {
			worst = math.Max(worst, math.Abs(float64(w)-float64(got[i])))
		}
	}
	t.Logf("logits: worst difference %.3g", worst)
	require.LessOrEqual(t, worst, tolerance, "logits")
}

// requireGrads compares every golden gradient, each relative to its tensor's largest entry.
func requireGrads(t *testing.T, g *reference, got map[string][]float32, tolerance float64) {
	t.Helper()
	n, worst, where := 0, 0.0, ""
	for key, want := range g.tensors {
		name, ok := strings.CutPrefix(key, "grad.")
		if !ok {
			continue
		}
		n++
		require.Contains(t, got, name)
		largest, diff := 0.0, 0.0
		for i, w := range want.Floats {
			largest = math.Max(largest, math.Abs(float64(w)))
			diff = math.Max(diff, math.Abs(float64(w)-float64(got[name][i])))
		}
		if relative := diff / math.Max(largest, math.SmallestNonzeroFloat32); !(relative <= worst) { // a NaN is the worst
			worst, where = relative, name
		}
	}
	require.Equal(t, n, len(got), "tensors with a gradient")
	t.Logf("gradients of %d tensors: worst relative difference %.3g at %s", n, worst, where)
	require.LessOrEqual(t, worst, tolerance, "gradient of %s", where)
}

// requireFinal compares parameters after training: all but a small share of the entries are near. An entry whose gradient
// is about 0 may differ more, by up to twice the length of every step.
func requireFinal(t *testing.T, g *reference, got map[string][]float32, tolerance, share float64) {
	t.Helper()
	const far = 2 * fixtureLR * goldenSteps
	all, near := 0, 0
	for key, want := range g.tensors {
		name, ok := strings.CutPrefix(key, "final.")
		if !ok {
			continue
		}
		if _, trained := got[name]; !trained {
			require.Contains(t, g.meta.Frozen.Names, name, "final parameter")
			continue
		}
		for i, w := range want.Floats {
			all++
			diff := math.Abs(float64(w) - float64(got[name][i]))
			require.True(t, diff <= far, "entry %d of %s differs by %g", i, name, diff)
			if diff <= tolerance {
				near++
			}
		}
	}
	t.Logf("final parameters: %d of %d entries within %g", near, all, tolerance)
	require.Positive(t, all)
	require.GreaterOrEqual(t, float64(near), share*float64(all), "entries of final parameters within %g", tolerance)
}

func requireSeries(t *testing.T, what string, want, got []float64, tolerance float64) {
	t.Helper()
	require.Len(t, got, len(want), what)
	worst := 0.0
	for i := range want {
		worst = math.Max(worst, math.Abs(want[i]-got[i]))
	}
	t.Logf("%s: worst difference %.3g", what, worst)
	require.LessOrEqual(t, worst, tolerance, "%s: want %v, got %v", what, want, got)
}

// variant is a way to build the same mathematics.
type variant struct {
	scan  bool
	remat string
}

var variants = []variant{{false, arch.RematNone}, {false, arch.RematFull}, {true, arch.RematNone}, {true, arch.RematFull}}

func (v variant) String() string {
	layers := "unrolled"
	if v.scan {
		layers = "scanned"
	}
	return fmt.Sprintf("%s/remat %s", layers, v.remat)
}
