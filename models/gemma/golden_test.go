package gemma_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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

// Logits, loss and every gradient, of the per-layer embedding table too, are transformers', however the layers are run.
func TestForwardAndGradients(t *testing.T) {
	rt := runtime(t, 1)
	for _, name := range []string{"gemma4-tiny", "gemma3-tiny", "gemma4-dense-tiny"} {
		g := loadGolden(t, name)
		for _, v := range variants {
			t.Run(name+"/"+v.String(), func(t *testing.T) {
				p := open(t, rt, g.dir, "config.json", arch.Options{Scan: v.scan, Remat: v.remat, Freeze: []string{}})
				e := p.evaluate(t, g, true)
				requireLogits(t, g, g.tensors["logits"], e.logits, tolLogits)
				require.InDelta(t, g.meta.Loss.Value, e.loss, tolLoss)
				require.EqualValues(t, g.meta.Loss.Targets, e.count)
				requireGrads(t, g, e.grads, tolGrad)
			})
		}
	}
}
