package gemma_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine/nn"
	"weft/internal/fixture"
	"weft/models/arch"
	"weft/models/gemma"
)

func usefulFLOPs(t *testing.T, config string, freeze []string, batch, seqLen int) float64 {
	t.Helper()
	m, err := gemma.New(parse(t, config), arch.Options{Policy: nn.Policy{Compute: dtypes.BFloat16}, Freeze: freeze})
	require.NoError(t, err)
	return m.UsefulFLOPs(batch, seqLen)
}

// The design: 13.94 G a token for Gemma 4 E2B at 512 tokens, 6N with N = 2.2795e9 plus causal attention.
func TestUsefulFLOPsOfE2B(t *testing.T) {
	config := filepath.Join(fixture.Shared(t, "configs", "gemma-4-E2B"), "config.json")
	const tokens = 64 * 512
	got := usefulFLOPs(t, config, nil, 64, 512)
	require.InDelta(t, 13.94e9, got/tokens, 0.005e9)
	attention := 3 * 2 * 2 * 256.5 * (28*8*256 + 7*8*512)
	require.InDelta(t, 6*2.2795e9, got/tokens-attention, 0.001e9)
	require.InEpsilon(t, 2*got, usefulFLOPs(t, config, nil, 128, 512), 1e-12, "linear in the batch")
	require.InEpsilon(t, got, usefulFLOPs(t, config, []string{}, 64, 512), 1e-12, "a looked-up table costs nothing, frozen or not")
}

func TestUsefulFLOPsOfFrozenParts(t *testing.T) {
	config := filepath.Join(fixture.Dir(t, "gemma3-tiny"), "config.json")
	cfg := parse(t, config)
	h, v := float64(cfg.HiddenSize), float64(cfg.VocabSize)
	const batch, seqLen, tokens = 2, 7, 14.0
	var matrices, attention float64
	for _, l := range cfg.Layers {
		q, kv := float64(cfg.NumHeads*l.HeadDim), float64(l.KVHeads*l.HeadDim)
		matrices += h * (2*q + 2*kv + 3*float64(l.MLPDim))
		pairs := 0.0
		for query := range seqLen {
			for key := range query + 1 {
				if !l.Sliding || query-key < cfg.SlidingWindow {
					pairs++
				}
			}
		}
		attention += 2 * 2 * batch * pairs * q
	}
	require.InEpsilon(t, tokens*6*(matrices+v*h)+3*attention, usefulFLOPs(t, config, []string{}, batch, seqLen), 1e-12, "everything is trained")
	require.InEpsilon(t, tokens*(2*matrices+2*v*h)+attention, usefulFLOPs(t, config, []string{"*", "layers.*"}, batch, seqLen), 1e-12, "nothing is trained: forward only")
	require.InEpsilon(t, tokens*(4*matrices+6*v*h)+3*attention, usefulFLOPs(t, config, []string{"layers.*"}, batch, seqLen), 1e-12,
		"the embedding is trained: every frozen matrix still passes gradients down")
	require.InEpsilon(t, tokens*(2*matrices+4*v*h)+attention, usefulFLOPs(t, config, []string{"embed_tokens", "layers.*"}, batch, seqLen), 1e-12,
		"only the last norm is trained: the head alone passes gradients down")
}
