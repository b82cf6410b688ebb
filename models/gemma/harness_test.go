package gemma_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
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

// reference is a fixture: its folder, its reference values and its batch.
type reference struct {
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

func loadGolden(t *testing.T, name string) *reference {
	t.Helper()
	g := &reference{dir: fixture.Dir(t, name)}
	g.tensors = fixture.Tensors(t, filepath.Join(g.dir, "golden.safetensors"))
	fixture.JSON(t, filepath.Join(g.dir, "golden.json"), &g.meta)
	return g
}

func (g *reference) batch() engine.Batch {
	ids := g.tensors["input_ids"]
	return engine.Batch{
		InputIDs: ids.Int32(), Labels: g.tensors["labels"].Int32(), Mask: g.tensors["attention_mask"].Int32(),
		Rows: []engine.RowRange{{Start: 0, End: ids.Dims[0]}},
	}
}

func (g *reference) dims() []int { return g.tensors["input_ids"].Dims }

// runtime opens n virtual CPU devices on one axis, without a compile cache.
func runtime(t *testing.T, n int) *engine.Runtime {
	t.Helper()
	return runtimeOn(t, mesh(t, n))
}

func runtimeOn(t *testing.T, m sharding.Mesh) *engine.Runtime {
	t.Helper()
	p := pjrttest.Plugin(t, "cpu")
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	rt, err := engine.Open(engine.Options{
		Plugin: p, PluginID: info.SHA256, Mesh: m, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		ClientOptions: map[string]any{"cpu_device_count": int64(m.NumDevices())},
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
	return policyOn(mesh(t, n), compute)
}

// policyOn splits rows and parameters over all axes.
func policyOn(m sharding.Mesh, compute dtypes.DType) nn.Policy {
	return nn.Policy{Mesh: m, DataAxes: m.AxisNames(), Compute: compute}
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

// withConfig makes a folder with the weights of dir and its configuration, one part of it replaced.
func withConfig(t *testing.T, dir, config, old, replacement string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, config))
	require.NoError(t, err)
	changed := strings.Replace(string(raw), old, replacement, 1)
	require.NotEqual(t, string(raw), changed, "%s is not in %s", old, config)
	out := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "config.json"), []byte(changed), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "model.safetensors"), filepath.Join(out, "model.safetensors")))
	return out
}

// program is a model with its weights on the devices.
type program struct {
	rt     *engine.Runtime
	model  *gemma.Model
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

// answer is what a training run of the golden batch gives.
type answer struct {
	// logits [B, T, V] and grads, by checkpoint name, are those of the initial weights; grads of the mean loss.
	logits []float32
	grads  map[string][]float32
	// losses and norms of the gradients are those before each update.
	losses, norms []float64
	targets       int
	// final are the parameters after the last update, by checkpoint name.
	final map[string][]float32
}

// fixtureLR is the learning rate of the fixtures' runs.
const fixtureLR = 1e-3

// fixtureAdamW is the optimizer that made the fixtures.
func fixtureAdamW(t *testing.T) *optim.AdamW {
	t.Helper()
	opt, err := optim.NewAdamW(optim.Constant(fixtureLR), 0.9, 0.999, 1e-8, 0.01)
	require.NoError(t, err)
	return opt
}

// train does steps updates with one program that gives logits and gradients too: compiling takes most of the time of
// these tests. With no steps, nothing is differentiated.
func (p *program) train(t *testing.T, g *reference, steps int) answer {
	t.Helper()
	opt := fixtureAdamW(t)
	inputs := p.inputs(g, len(opt.Hyper(1)))
	prog, err := p.rt.Compile("train", inputs, func(in []*graph.Node) []engine.Output { return p.build(in, opt, steps > 0) })
	require.NoError(t, err)
	t.Logf("compiled in %s", prog.CompileTime)
	defer prog.Destroy()
	state := p.state(t, inputs)
	defer func() { engine.DestroyAll(state) }()
	a := answer{grads: map[string][]float32{}, final: map[string][]float32{}}
	for step := range max(steps, 1) {
		extra := p.send(t, g, inputs, opt.Hyper(step+1))
		results, err := prog.Run(slices.Concat(state, extra)...)
		engine.DestroyAll(extra)
		require.NoError(t, err)
		if step == 0 {
			a.logits = floats(t, results[0])
		}
		sum, count := floats(t, results[1])[0], floats(t, results[2])[0]
		a.losses, a.targets = append(a.losses, float64(sum)/float64(count)), int(count)
		engine.DestroyAll(results[:3])
		if steps > 0 {
			p.update(state, p.readGrads(t, results[3:], step == 0, &a))
		}
	}
	for i, q := range p.model.Params() {
		if q.Trainable {
			unstack(q, floats(t, state[3*i]), a.final)
		}
	}
	return a
}

// inputs are, for each parameter, itself and its two moments, then the batch and the hyperparameters.
func (p *program) inputs(g *reference, hyper int) []engine.Input {
	var inputs []engine.Input
	for _, q := range p.model.Params() {
		inputs = append(inputs, engine.Input{Name: q.Name, DType: q.DType, Dims: q.Dims, Spec: q.Spec})
		for _, slot := range []string{"/m", "/v"} {
			inputs = append(inputs, engine.Input{Name: q.Name + slot, DType: dtypes.Float32, Dims: q.Dims, Spec: q.Spec})
		}
	}
	for _, name := range []string{"ids", "labels", "mask"} {
		inputs = append(inputs, engine.Input{Name: name, DType: dtypes.Int32, Dims: g.dims(), Spec: sharding.Split(2, 0, "fsdp")})
	}
	return append(inputs, engine.Input{Name: "hyper", DType: dtypes.Float32, Dims: []int{hyper}})
}

// hasGrad tells whether the fixtures have a gradient of the parameter: frozen ones too, but not the layer scalars.
func hasGrad(q engine.Param) bool { return !strings.HasSuffix(q.Name, ".layer_scalar") }

// build gives logits, loss sum and count, the gradients, then for each trained parameter its new value and moments.
func (p *program) build(in []*graph.Node, opt *optim.AdamW, differentiate bool) []engine.Output {
	params, w := p.model.Params(), map[string]*graph.Node{}
	var leaves []*graph.Node
	for i, q := range params {
		w[q.Name] = in[3*i]
		if hasGrad(q) {
			leaves = append(leaves, in[3*i])
		}
	}
	rest := in[3*len(params):]
	sum, count, logits := p.model.LossAndLogits(w, engine.BatchNodes{InputIDs: rest[0], Labels: rest[1], Mask: rest[2]})
	out := []engine.Output{{Node: logits}, {Node: sum}, {Node: count}}
	if !differentiate {
		return out
	}
	var hyper []*graph.Node
	for i := range rest[3].Shape().Dim(0) {
		hyper = append(hyper, graph.Reshape(graph.Slice(rest[3], graph.AxisElem(i))))
	}
	grads := graph.Gradient(graph.Div(sum, count), leaves...)
	var updates []engine.Output
	for i, q := range params {
		if !hasGrad(q) {
			continue
		}
		grad := grads[0]
		grads = grads[1:]
		out = append(out, engine.Output{Node: grad, Spec: q.Spec})
		if q.Trainable {
			value, slots := opt.Update(hyper, in[3*i], grad, in[3*i+1:3*i+3])
			for _, n := range []*graph.Node{value, slots[0], slots[1]} {
				updates = append(updates, engine.Output{Node: n, Spec: q.Spec})
			}
		}
	}
	return append(out, updates...)
}

// state sends the weights and zero moments.
func (p *program) state(t *testing.T, inputs []engine.Input) []*engine.Array {
	t.Helper()
	var state []*engine.Array
	for i, q := range p.model.Params() {
		fills := []engine.Fill{func(r sharding.Region, dst []byte) error { return p.source.Read(q, r, dst) }, zeros, zeros}
		for k, fill := range fills {
			a, err := p.rt.NewArray(inputs[3*i+k].DType, q.Dims, q.Spec, fill)
			require.NoError(t, err)
			state = append(state, a)
		}
	}
	return state
}

func zeros(sharding.Region, []byte) error { return nil }

// readGrads adds the norm of the trained gradients to the answer, keeps the gradients if asked, and returns the other
// results.
func (p *program) readGrads(t *testing.T, results []*engine.Array, keep bool, a *answer) []*engine.Array {
	t.Helper()
	total := 0.0
	for _, q := range p.model.Params() {
		if !hasGrad(q) {
			continue
		}
		if q.DType == dtypes.Float32 {
			grad := floats(t, results[0])
			for _, v := range grad {
				if q.Trainable {
					total += float64(v) * float64(v)
				}
			}
			if keep {
				unstack(q, grad, a.grads)
			}
		}
		results[0].Destroy()
		results = results[1:]
	}
	a.norms = append(a.norms, math.Sqrt(total))
	return results
}

// update puts new values and moments in the state.
func (p *program) update(state, results []*engine.Array) {
	for i, q := range p.model.Params() {
		if q.Trainable {
			engine.DestroyAll(state[3*i : 3*i+3])
			copy(state[3*i:], results[:3])
			results = results[3:]
		}
	}
}

// send puts the batch and the hyperparameters on the devices.
func (p *program) send(t *testing.T, g *reference, inputs []engine.Input, hyper []float32) []*engine.Array {
	t.Helper()
	var args []*engine.Array
	b, at := g.batch(), 3*len(p.model.Params())
	for i, values := range [][]int32{b.InputIDs, b.Labels, b.Mask} {
		in := inputs[at+i]
		a, err := p.rt.NewArray(in.DType, in.Dims, in.Spec, func(r sharding.Region, dst []byte) error {
			_, err := binary.Encode(dst, binary.NativeEndian, values[r.Start[0]*in.Dims[1]:][:r.Elements()])
			return err
		})
		require.NoError(t, err)
		args = append(args, a)
	}
	a, err := p.rt.NewArray(dtypes.Float32, []int{len(hyper)}, nil, func(_ sharding.Region, dst []byte) error {
		_, err := binary.Encode(dst, binary.NativeEndian, hyper)
		return err
	})
	require.NoError(t, err)
	return append(args, a)
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

// steps does the engine's own training step, which gives no gradients.
func (p *program) steps(t *testing.T, g *reference, n int) answer {
	t.Helper()
	opt := fixtureAdamW(t)
	step, err := p.rt.NewStep(p.model, opt, engine.StepConfig{Batch: g.dims()[0], SeqLen: g.dims()[1], BatchSpec: sharding.Split(2, 0, "fsdp")})
	require.NoError(t, err)
	t.Logf("compiled in %s", step.CompileTime)
	defer step.Destroy()
	state, err := p.rt.NewState(p.model, opt, p.source.Read)
	require.NoError(t, err)
	defer state.Destroy()
	a := answer{final: map[string][]float32{}}
	for range n {
		pending, err := step.Run(state, g.batch())
		require.NoError(t, err)
		m, err := pending.Wait()
		require.NoError(t, err)
		a.losses, a.norms, a.targets = append(a.losses, m.Loss()), append(a.norms, m.GradNorm), m.Targets
	}
	for _, e := range state.Entries() {
		if e.Slot == "" && e.Param.Trainable {
			unstack(e.Param, floats(t, e.Array), a.final)
		}
	}
	return a
}
