package gemma_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/nn"
	"weft/engine/plan"
	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/models/arch"
	"weft/models/gemma"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// planned is a Gemma 3 of two layers, of which a plan can be checked by hand. Its rows are short, so that attention, which
// compilers compute again as they see fit, is little of it.
type planned struct {
	hidden, heads, headDim, mlp, vocab, layers int
	rows, seqLen                               int // of one device
}

var handCount = planned{hidden: 256, heads: 4, headDim: 64, mlp: 512, vocab: 1024, layers: 2, rows: 4, seqLen: 32}

func (p planned) config(t *testing.T) *gemma.Config {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"model_type": "gemma3_text", "hidden_size": p.hidden, "num_attention_heads": p.heads, "num_key_value_heads": 1, "head_dim": p.headDim,
		"intermediate_size": p.mlp, "vocab_size": p.vocab, "num_hidden_layers": p.layers, "sliding_window": 1024, "query_pre_attn_scalar": p.headDim,
	})
	require.NoError(t, err)
	cfg, err := gemma.ParseConfig(raw)
	require.NoError(t, err)
	return cfg
}

// matrices is the number of elements of the layers' matrices.
func (p planned) matrices() int {
	return p.layers * p.hidden * (2*p.heads*p.headDim + 2*p.headDim + 3*p.mlp)
}

func (p planned) model(t *testing.T, devices int, compute dtypes.DType, o arch.Options) *gemma.Model {
	t.Helper()
	o.Policy, o.MinShardElements = policy(t, devices, compute), 4096
	m, err := gemma.New(p.config(t), o)
	require.NoError(t, err)
	return m
}

func (p planned) step(devices int) engine.StepConfig {
	return engine.StepConfig{Batch: p.rows * devices, SeqLen: p.seqLen, BatchSpec: nn.Policy{Mesh: sharding.Mesh{Axes: []sharding.Axis{{Name: "fsdp", Size: devices}}}, DataAxes: []string{"fsdp"}}.BatchSpec(2, 0)}
}

// count compiles the step for CPU devices and counts it.
func (p planned) count(t *testing.T, devices int, o arch.Options) (*plan.Counts, *engine.Step) {
	t.Helper()
	rt := runtime(t, devices)
	step, err := rt.NewStep(p.model(t, devices, dtypes.Float32, o), adamw(t), p.step(devices))
	require.NoError(t, err)
	t.Cleanup(step.Destroy)
	format, code, err := step.OptimizedProgram()
	require.NoError(t, err)
	m, err := hlo.Parse(format, code)
	require.NoError(t, err)
	c, err := plan.Count(m, devices)
	require.NoError(t, err)
	require.Empty(t, c.UnknownLoops)
	return c, step
}

// executed is what one device's step executes with products of attention over the whole square: 2 forward and as many
// backward as the compiler makes of 4 and the scores once more.
func (p planned) executed(attention float64) float64 {
	tokens := float64(p.rows * p.seqLen)
	return 6*tokens*float64(p.matrices()+p.vocab*p.hidden) + attention*2*tokens*float64(p.seqLen*p.heads*p.headDim*p.layers)
}

// Executed FLOPs against the analytic count: within 2% of it, and of the useful ones, on one device without remat.
func TestPlannedFLOPsOnOneDevice(t *testing.T) {
	for _, scan := range []bool{false, true} {
		t.Run(fmt.Sprint("scan=", scan), func(t *testing.T) {
			c, _ := handCount.count(t, 1, arch.Options{Scan: scan})
			require.InEpsilon(t, handCount.executed(6.5), c.FLOPs.Executed, 0.02)
			useful := handCount.model(t, 1, dtypes.Float32, arch.Options{}).UsefulFLOPs(handCount.rows, handCount.seqLen)
			require.InEpsilon(t, useful, c.FLOPs.Executed, 0.05)
			require.GreaterOrEqual(t, c.FLOPs.Executed, useful)
		})
	}
}

// With remat the layers' forward pass is done twice: 8N of them.
func TestPlannedFLOPsWithRemat(t *testing.T) {
	c, _ := handCount.count(t, 1, arch.Options{Scan: true, Remat: arch.RematFull})
	again := 2 * float64(handCount.rows*handCount.seqLen) * float64(handCount.matrices())
	require.InEpsilon(t, handCount.executed(9)+again, c.FLOPs.Executed, 0.02)
}

// Four devices: arguments are the sum of the shards exactly; each matrix is gathered twice and each gradient reduced
// once, and so are the hidden states around the split head.
func TestPlannedBytesOnFourDevices(t *testing.T) {
	const devices, f32 = 4, 4
	c, step := handCount.count(t, devices, arch.Options{Scan: false})
	memory, err := step.MemoryStats()
	require.NoError(t, err)
	model := handCount.model(t, devices, dtypes.Float32, arch.Options{})
	h := plan.Arguments(step.Mesh, model.Params(), adamw(t).Slots(), step.Inputs)
	require.EqualValues(t, memory.Argument, h.ParametersBytes+h.MomentsBytes+h.FrozenBytes+h.BatchBytes)
	require.Equal(t, 2*h.ParametersBytes, h.MomentsBytes)

	payload, wire := map[string]int64{}, map[string]int64{}
	for _, x := range c.Collectives {
		if x.DType == "f32" {
			payload[x.Kind] += x.PayloadBytes
			wire[x.Kind] += x.Bytes
		}
	}
	matrices := int64(f32 * handCount.matrices())
	hidden := int64(f32 * devices * handCount.rows * handCount.seqLen * handCount.hidden)
	t.Logf("payload %v wire %v matrices %d hidden %d", payload, wire, matrices, hidden)
	// Weights forward and backward; hidden states before the head, and the embedding's gradient.
	require.EqualValues(t, 2*matrices+2*hidden, payload[hlo.AllGather])
	require.EqualValues(t, (2*matrices+2*hidden)*3/4, wire[hlo.AllGather])
	// Gradients of the weights; embeddings found and gradients of the hidden states; then norms and metrics.
	reduced := payload[hlo.AllReduce] + payload[hlo.ReduceScatter]
	require.InEpsilon(t, matrices+2*hidden, reduced, 0.02)
	require.EqualValues(t, payload[hlo.ReduceScatter]*3/4, wire[hlo.ReduceScatter])
	require.InDelta(t, 1.5*float64(payload[hlo.AllReduce]), wire[hlo.AllReduce], 8)
}

// The same model for a v6e 4x4 slice that is not there: products that became convolutions, loops without trip counts.
func TestPlannedForTPU(t *testing.T) { pjrttest.TPU(t, plannedForTPU) }

func plannedForTPU(t *testing.T, p *pjrt.Plugin) {
	top, err := tpu.Parse("v6e:4x4")
	require.NoError(t, err)
	const devices = 16
	model := handCount.model(t, devices, dtypes.BFloat16, arch.Options{Scan: true})
	low, err := engine.LowerStep(mesh(t, devices), model, adamw(t), handCount.step(devices))
	require.NoError(t, err)
	c, err := plan.Compile(t.Context(), plan.Plugin{Plugin: p, ID: "test"}, top, low, pjrt.EffortO0)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	useful := model.UsefulFLOPs(handCount.rows*devices, handCount.seqLen)
	r, err := plan.Analyze(c, plan.Facts{Params: model.Params(), Slots: adamw(t).Slots(), UsefulFLOPs: useful, TokensPerStep: devices * handCount.rows * handCount.seqLen})
	require.NoError(t, err)
	raw, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	t.Logf("%s", raw)
	require.True(t, r.Fits)
	require.InEpsilon(t, handCount.executed(7.5), r.FLOPs.Executed, 0.02)
	require.InEpsilon(t, useful/devices, r.FLOPs.Useful, 1e-12)
	require.EqualValues(t, c.Memory.Argument, r.HBM.ParametersBytes+r.HBM.MomentsBytes+r.HBM.FrozenBytes+r.HBM.BatchBytes+r.HBM.PaddingBytes)
	require.GreaterOrEqual(t, r.HBM.PaddingBytes, int64(0))
	require.Less(t, r.HBM.PaddingBytes, r.HBM.ParametersBytes)
	require.Greater(t, r.WireBytes, int64(2*2*handCount.matrices()*15/16), "two gathers in bfloat16 at least")
	require.NotContains(t, strings.Join(r.Assumptions, "\n"), "trip count is unknown")
}
