package gemma_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/internal/fixture"
	"weft/models/arch"
	"weft/models/gemma"
	"weft/models/hf"
	"weft/optim"
	"weft/pjrt/pjrttest"
	"weft/pjrt/plugin"
)

// golden is a fixture: its folder, its reference values and its batch.
type golden struct {
	dir     string
	tensors map[string]fixture.Tensor
	meta    goldenMeta
}

type goldenMeta struct {
	Loss struct {
		Value   float64
		Targets int `json:"num_target_tokens"`
	}
	Losses         []float64 `json:"losses_fp32"`
	LossesAutocast []float64 `json:"losses_bf16_autocast_fp32_params"`
	GradNorms      []float64 `json:"grad_norms_fp32"`
	Frozen         struct {
		Names []string `json:"frozen"`
	} `json:"optimizer"`
	Linear8Loss float64 `json:"variant.rope_linear8.loss"`
}

func loadGolden(t *testing.T, name string) *golden {
	t.Helper()
	g := &golden{dir: fixture.Dir(t, name)}
	g.tensors = fixture.Tensors(t, filepath.Join(g.dir, "golden.safetensors"))
	fixture.JSON(t, filepath.Join(g.dir, "golden.json"), &g.meta)
	return g
}

func (g *golden) batch() engine.Batch {
	ids := g.tensors["input_ids"]
	return engine.Batch{
		InputIDs: ids.Int32(), Labels: g.tensors["labels"].Int32(), Mask: g.tensors["attention_mask"].Int32(),
		Rows: []engine.RowRange{{Start: 0, End: ids.Dims[0]}},
	}
}

func (g *golden) dims() []int { return g.tensors["input_ids"].Dims }

// runtime opens n virtual CPU devices on one axis, without a compile cache.
func runtime(t *testing.T, n int) *engine.Runtime {
	t.Helper()
	p := pjrttest.Plugin(t, "cpu")
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	rt, err := engine.Open(engine.Options{
		Plugin: p, PluginID: info.SHA256, Mesh: mesh(t, n), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		ClientOptions: map[string]any{"cpu_device_count": int64(n)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

func mesh(t testing.TB, n int) sharding.Mesh {
	m, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: n})
	require.NoError(t, err)
	return m
}

func policy(t testing.TB, n int, compute dtypes.DType) nn.Policy {
	return nn.Policy{Mesh: mesh(t, n), DataAxes: []string{"fsdp"}, Compute: compute}
}

// parse reads a config.json.
func parse(t testing.TB, path string) *gemma.Config {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma.ParseConfig(raw)
	require.NoError(t, err)
	return cfg
}

// program is a model with its weights on the devices.
type program struct {
	rt     *engine.Runtime
	model  arch.Model
	source *hf.Source
}

func open(t *testing.T, rt *engine.Runtime, dir, config string, o arch.Options) *program {
	t.Helper()
	if o.Policy.Compute == dtypes.InvalidDType {
		o.Policy = policy(t, rt.Mesh().NumDevices(), dtypes.Float32)
	}
	o.MinShardElements = 1024
	model, err := gemma.New(parse(t, filepath.Join(dir, config)), o)
	require.NoError(t, err)
	source, err := hf.Load(dir, model)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	return &program{rt: rt, model: model, source: source}
}

// evaluation has the model's answer to the golden batch.
type evaluation struct {
	logits []float32
	loss   float64
	count  float64
	// grads are keyed by the checkpoint's names.
	grads map[string][]float32
}

// evaluate runs the model once; withGrads adds the gradients of the mean loss for all trained parameters.
func (p *program) evaluate(t *testing.T, g *golden, withGrads bool) evaluation {
	t.Helper()
	params := p.model.Params()
	var inputs []engine.Input
	for _, q := range params {
		inputs = append(inputs, engine.Input{Name: q.Name, DType: q.DType, Dims: q.Dims, Spec: q.Spec})
	}
	batchSpec := sharding.Split(2, 0, "fsdp")
	for _, name := range []string{"ids", "labels", "mask"} {
		inputs = append(inputs, engine.Input{Name: name, DType: dtypes.Int32, Dims: g.dims(), Spec: batchSpec})
	}
	prog, err := p.rt.Compile("evaluate", inputs, func(in []*graph.Node) []engine.Output {
		w := map[string]*graph.Node{}
		for i, q := range params {
			w[q.Name] = in[i]
		}
		ids, labels, mask := in[len(params)], in[len(params)+1], in[len(params)+2]
		sum, count := p.model.Loss(w, engine.BatchNodes{InputIDs: ids, Labels: labels, Mask: mask})
		out := []engine.Output{{Node: p.model.Logits(w, ids, mask)}, {Node: sum}, {Node: count}}
		if !withGrads {
			return out
		}
		var leaves []*graph.Node
		for i, q := range params {
			if q.Trainable {
				leaves = append(leaves, in[i])
			}
		}
		grads := graph.Gradient(graph.Div(sum, count), leaves...)
		for i, q := range params {
			if q.Trainable {
				out = append(out, engine.Output{Node: grads[0], Spec: inputs[i].Spec})
				grads = grads[1:]
			}
		}
		return out
	})
	require.NoError(t, err)
	t.Logf("compiled in %s", prog.CompileTime)
	defer prog.Destroy()
	results := p.run(t, prog, inputs, g)
	defer engine.DestroyAll(results)
	sum, count := floats(t, results[1])[0], floats(t, results[2])[0]
	e := evaluation{logits: floats(t, results[0]), loss: float64(sum) / float64(count), count: float64(count), grads: map[string][]float32{}}
	if withGrads {
		rest := results[3:]
		for _, q := range params {
			if q.Trainable {
				unstack(q, floats(t, rest[0]), e.grads)
				rest = rest[1:]
			}
		}
	}
	return e
}

// run sends weights and batch and runs the program.
func (p *program) run(t *testing.T, prog *engine.Program, inputs []engine.Input, g *golden) []*engine.Array {
	t.Helper()
	var args []*engine.Array
	defer func() { engine.DestroyAll(args) }()
	for _, q := range p.model.Params() {
		a, err := p.rt.NewArray(q.DType, q.Dims, q.Spec, func(r sharding.Region, dst []byte) error { return p.source.Read(q, r, dst) })
		require.NoError(t, err)
		args = append(args, a)
	}
	b := g.batch()
	for i, values := range [][]int32{b.InputIDs, b.Labels, b.Mask} {
		in := inputs[len(p.model.Params())+i]
		a, err := p.rt.NewArray(in.DType, in.Dims, in.Spec, func(r sharding.Region, dst []byte) error {
			_, err := binary.Encode(dst, binary.NativeEndian, values[r.Start[0]*in.Dims[1]:][:r.Elements()])
			return err
		})
		require.NoError(t, err)
		args = append(args, a)
	}
	results, err := prog.Run(args...)
	require.NoError(t, err)
	return results
}

func floats(t *testing.T, a *engine.Array) []float32 {
	t.Helper()
	require.Equal(t, dtypes.Float32, a.DType)
	raw, err := a.Read()
	require.NoError(t, err)
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.NativeEndian.Uint32(raw[4*i:]))
	}
	return out
}

// unstack files the values of a parameter under its checkpoint names.
func unstack(q engine.Param, values []float32, into map[string][]float32) {
	each := len(values) / len(q.Sources)
	for i, source := range q.Sources {
		into[source] = values[i*each : (i+1)*each]
	}
}

// trajectory does steps updates of the fixture's AdamW and returns the losses before each, the gradient norms, and the
// final parameters by checkpoint name.
func (p *program) trajectory(t *testing.T, g *golden, steps int) (losses, norms []float64, final map[string][]float32) {
	t.Helper()
	opt, err := optim.NewAdamW(optim.Constant(1e-3), 0.9, 0.999, 1e-8, 0.01)
	require.NoError(t, err)
	step, err := p.rt.NewStep(p.model, opt, engine.StepConfig{Batch: g.dims()[0], SeqLen: g.dims()[1], BatchSpec: sharding.Split(2, 0, "fsdp")})
	require.NoError(t, err)
	t.Logf("compiled in %s", step.CompileTime)
	defer step.Destroy()
	state, err := p.rt.NewState(p.model, opt, p.source.Read)
	require.NoError(t, err)
	defer state.Destroy()
	for range steps {
		pending, err := step.Run(state, g.batch())
		require.NoError(t, err)
		m, err := pending.Wait()
		require.NoError(t, err)
		losses, norms = append(losses, m.Loss()), append(norms, m.GradNorm)
	}
	final = map[string][]float32{}
	for _, e := range state.Entries() {
		if e.Slot == "" && e.Param.Trainable {
			unstack(e.Param, floats(t, e.Array), final)
		}
	}
	return losses, norms, final
}

// requireLogits compares the logits of real tokens: those of padding mean nothing.
func requireLogits(t *testing.T, g *golden, want fixture.Tensor, got []float32, tolerance float64) {
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
func requireGrads(t *testing.T, g *golden, got map[string][]float32, tolerance float64) {
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
		if diff/largest > worst {
			worst, where = diff/largest, name
		}
	}
	require.Equal(t, n, len(got), "tensors with a gradient")
	t.Logf("gradients of %d tensors: worst relative difference %.3g at %s", n, worst, where)
	require.LessOrEqual(t, worst, tolerance, "gradient of %s", where)
}

// requireFinal compares parameters after training: an entry whose gradient is about 0 may differ by much, so a share
// of the entries decides.
func requireFinal(t *testing.T, g *golden, got map[string][]float32, tolerance, share float64) {
	t.Helper()
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
			if math.Abs(float64(w)-float64(got[name][i])) <= tolerance {
				near++
			}
		}
	}
	t.Logf("final parameters: %d of %d entries within %g", near, all, tolerance)
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
