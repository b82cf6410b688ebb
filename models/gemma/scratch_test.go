package gemma_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/models/gemma"
)

func TestScratch(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	rt := runtime(t, n)
	compute := dtypes.Float32
	if os.Getenv("BF16") != "" {
		compute = dtypes.BFloat16
	}
	model, err := gemma.New(parse(t, os.Getenv("CFG")), arch.Options{Policy: policy(t, n, compute), Scan: os.Getenv("SCAN") != "", Remat: os.Getenv("REMAT"), MinShardElements: 4096})
	require.NoError(t, err)
	step, err := rt.NewStep(model, fixtureAdamW(t), engine.StepConfig{Batch: 4 * n, SeqLen: 512, BatchSpec: sharding.Split(2, 0, "fsdp")})
	require.NoError(t, err)
	t.Logf("compiled in %s", step.CompileTime)
	require.NoError(t, os.WriteFile("/tmp/step.mlir", step.Text, 0o600))
	ms, err := step.MemoryStats()
	require.NoError(t, err)
	t.Logf("%+v", ms)
	f, b, err := step.OptimizedProgram()
	require.NoError(t, err)
	m, err := hlo.Parse(f, b)
	require.NoError(t, err)
	list, err := m.Collectives()
	require.NoError(t, err)
	t.Log("\n" + hlo.FormatCollectives(list))
	step.Destroy()
}
