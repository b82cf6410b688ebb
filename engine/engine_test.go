package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// openCPU opens a runtime of n virtual CPU devices on one fsdp axis.
func openCPU(t *testing.T, n int, cacheDir string, log *slog.Logger) *Runtime {
	t.Helper()
	return openPlugin(t, "cpu", n, cacheDir, log)
}

// openPlugin is openCPU of the CPU plugin with that name.
func openPlugin(t *testing.T, name string, n int, cacheDir string, log *slog.Logger) *Runtime {
	t.Helper()
	info, err := plugin.Ensure(context.Background(), name, os.Stderr)
	require.NoError(t, err)
	p, err := pjrt.Load(info.Path)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: n})
	require.NoError(t, err)
	rt, err := Open(Options{
		Plugin: p, PluginID: info.SHA256, Mesh: mesh, CacheDir: cacheDir, Logger: log,
		ClientOptions: map[string]any{"cpu_device_count": int64(n)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

// toy is a next-token model: an embedding, one hidden layer, logits. Its sharding is FSDP's.
type toy struct {
	mesh          sharding.Mesh
	vocab, hidden int
}

func (m toy) Params() []Param {
	split := func(dims ...int) sharding.Spec { return sharding.LargestDivisible(m.mesh, []string{"fsdp"}, dims, 0) }
	return []Param{
		{Name: "embed", DType: dtypes.Float32, Dims: []int{m.vocab, m.hidden}, Trainable: true, Spec: split(m.vocab, m.hidden)},
		{Name: "frozen", DType: dtypes.Float32, Dims: []int{m.hidden}},
		{Name: "up", DType: dtypes.Float32, Dims: []int{m.hidden, m.hidden}, Trainable: true, Spec: split(m.hidden, m.hidden)},
	}
}

func (m toy) Loss(w map[string]*graph.Node, b BatchNodes) (sum, count *graph.Node) {
	seq := b.InputIDs.Shape().Dimensions[1]
	ids := graph.Slice(b.InputIDs, graph.AxisRange(), graph.AxisRange(0, seq-1))
	targets := graph.Slice(b.Labels, graph.AxisRange(), graph.AxisRange(1, seq))
	weight := graph.ConvertDType(graph.GreaterOrEqual(targets, graph.ZerosLike(targets)), dtypes.Float32)
	x := graph.Gather(w["embed"], graph.InsertAxes(ids, -1))
	x = graph.Add(x, graph.BroadcastToShape(graph.Reshape(w["frozen"], 1, 1, m.hidden), x.Shape()))
	x = graph.Tanh(graph.Einsum("bth,hk->btk", x, w["up"]))
	logits := graph.Einsum("btk,vk->btv", x, w["embed"])
	logProbs := graph.LogSoftmax(logits, -1)
	oneHot := graph.OneHot(graph.Max(targets, graph.ZerosLike(targets)), m.vocab, dtypes.Float32)
	loss := graph.Neg(graph.ReduceSum(graph.Mul(logProbs, oneHot), -1))
	return graph.ReduceAllSum(graph.Mul(loss, weight)), graph.ReduceAllSum(weight)
}

// sgd is gradient descent with momentum.
type sgd struct{}

func (sgd) Slots() []Slot            { return []Slot{{"momentum", dtypes.Float32}} }
func (sgd) Hyper(step int) []float32 { return []float32{0.1, 0.9} }
func (sgd) Update(h []*graph.Node, p, g *graph.Node, s []*graph.Node) (*graph.Node, []*graph.Node) {
	m := graph.Add(graph.Mul(s[0], h[1]), g)
	return graph.Sub(p, graph.Mul(m, h[0])), []*graph.Node{m}
}

// initToy gives every element a value that depends on its place only.
func initToy(p Param, r sharding.Region, dst []byte) error {
	whole := sharding.Region{Start: make([]int, len(p.Dims)), Size: p.Dims}
	all := make([]float32, whole.Elements())
	random := rand.New(rand.NewPCG(7, uint64(len(p.Name))))
	for i := range all {
		all[i] = float32(random.NormFloat64() * 0.2)
	}
	at := 0
	width := p.Dims[len(p.Dims)-1]
	for i := range all {
		row, col := i/width, i%width
		last := len(p.Dims) - 1
		if col < r.Start[last] || col >= r.Start[last]+r.Size[last] || (last == 1 && (row < r.Start[0] || row >= r.Start[0]+r.Size[0])) {
			continue
		}
		binary.NativeEndian.PutUint32(dst[at:], math.Float32bits(all[i]))
		at += 4
	}
	return nil
}

func toyBatch(rows, seq, vocab, step int) Batch {
	random := rand.New(rand.NewPCG(uint64(step), 1))
	b := Batch{Rows: []RowRange{{0, rows}}}
	for range rows * seq {
		id := int32(random.IntN(vocab))
		b.InputIDs, b.Labels, b.Mask = append(b.InputIDs, id), append(b.Labels, id), append(b.Mask, 1)
	}
	b.Labels[seq-1] = -100
	return b
}

type toyRun struct {
	losses, norms []float64
	embed         []byte
	sizes         Sizes
}

const toySteps, toyRows, toySeq = 20, 16, 8

func runToy(t *testing.T, n int) toyRun {
	rt := openCPU(t, n, "", nil)
	model := toy{rt.Mesh(), 64, 32}
	c := StepConfig{Batch: toyRows, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, "fsdp"), MaxGradNorm: 1}
	step, err := rt.NewStep(model, sgd{}, c)
	require.NoError(t, err)
	defer step.Destroy()
	state, err := rt.NewState(model, sgd{}, initToy)
	require.NoError(t, err)
	defer state.Destroy()
	out := toyRun{sizes: state.LocalBytes()}
	for i := range toySteps {
		pending, err := step.Run(state, toyBatch(toyRows, toySeq, model.vocab, i))
		require.NoError(t, err)
		m, err := pending.Wait()
		require.NoError(t, err)
		require.Equal(t, toyRows*(toySeq-1)-1, m.Targets)
		out.losses, out.norms = append(out.losses, m.Loss()), append(out.norms, m.GradNorm)
	}
	require.Equal(t, toySteps, state.Step)
	out.embed, err = state.Entries()[0].Array.Read()
	require.NoError(t, err)
	return out
}

// The same global batches give the same losses on any number of devices, while each holds only its part.
func TestShardedStepEqualsOneDevice(t *testing.T) {
	one := runToy(t, 1)
	require.Less(t, one.losses[toySteps-1], one.losses[0], "it learns")
	for _, n := range []int{2, 4, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			many := runToy(t, n)
			require.InDeltaSlice(t, one.losses, many.losses, 2e-6)
			require.InDeltaSlice(t, one.norms, many.norms, 1e-5)
			frozen := 32 * 4
			require.Equal(t, (one.sizes.Params-frozen)/n+frozen, many.sizes.Params)
			require.Equal(t, one.sizes.Slots/n, many.sizes.Slots)
		})
	}
}

// sgdBF16 keeps the momentum in half the bytes.
type sgdBF16 struct{ sgd }

func (sgdBF16) Slots() []Slot { return []Slot{{"momentum", dtypes.BFloat16}} }

// A slot that is kept in bfloat16 is rounded after each update, which itself is that of float32 from the rounded one.
func TestSlotInBFloat16(t *testing.T) {
	rt := openCPU(t, 4, "", nil)
	model := toy{rt.Mesh(), 64, 32}
	c := StepConfig{Batch: toyRows, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, "fsdp")}
	open := func(opt Optimizer) (*Step, *State) {
		step, err := rt.NewStep(model, opt, c)
		require.NoError(t, err)
		t.Cleanup(step.Destroy)
		state, err := rt.NewState(model, opt, initToy)
		require.NoError(t, err)
		t.Cleanup(state.Destroy)
		return step, state
	}
	step, state := open(sgdBF16{})
	wide, reference := open(sgd{})
	require.Equal(t, reference.LocalBytes().Slots/2, state.LocalBytes().Slots)
	widen := func(narrow []byte) []byte {
		out := make([]byte, 0, 2*len(narrow))
		for i := 0; i < len(narrow); i += 2 {
			out = append(out, 0, 0, narrow[i], narrow[i+1])
		}
		return out
	}
	rounded := 0
	for i := range 5 {
		// The reference begins each step where the other stands.
		entries := map[string][]byte{}
		for _, e := range state.Entries() {
			raw, err := e.Array.Read()
			require.NoError(t, err)
			if e.Slot != "" {
				raw = widen(raw)
			}
			entries[e.Name] = raw
		}
		require.NoError(t, reference.Restore(func(Entry) bool { return true }, func(e Entry, r sharding.Region, dst []byte) error {
			width := e.Param.Dims[len(e.Param.Dims)-1]
			for row := range r.Elements() / r.Size[len(r.Size)-1] {
				at := r.Start[len(r.Start)-1]
				if len(r.Start) == 2 {
					at += (r.Start[0] + row) * width
				}
				n := 4 * r.Size[len(r.Size)-1]
				copy(dst[row*n:(row+1)*n], entries[e.Name][4*at:])
			}
			return nil
		}))
		for _, run := range []struct {
			step  *Step
			state *State
		}{{step, state}, {wide, reference}} {
			pending, err := run.step.Run(run.state, toyBatch(toyRows, toySeq, model.vocab, i))
			require.NoError(t, err)
			_, err = pending.Wait()
			require.NoError(t, err)
		}
		for j, e := range state.Entries() {
			got, err := e.Array.Read()
			require.NoError(t, err)
			want, err := reference.Entries()[j].Array.Read()
			require.NoError(t, err)
			if e.Slot == "" {
				require.Equal(t, want, got, e.Name)
				continue
			}
			require.Equal(t, dtypes.BFloat16, e.Array.DType)
			for k := 0; k < len(want); k += 4 {
				exact := math.Float32frombits(binary.NativeEndian.Uint32(want[k:]))
				nearest := bfloat16.FromFloat32(exact)
				require.Equal(t, nearest.Bits(), binary.NativeEndian.Uint16(got[k/2:]), "%s, element %d", e.Name, k/4)
				if nearest.Float32() != exact {
					rounded++
				}
			}
		}
	}
	require.Positive(t, rounded)
}

// The same program twice gives the same bits.
func TestStepIsDeterministic(t *testing.T) {
	a, b := runToy(t, 4), runToy(t, 4)
	require.Equal(t, a.losses, b.losses)
	require.Equal(t, a.embed, b.embed)
}

func TestNoHandleLeaks(t *testing.T) {
	rt := openCPU(t, 2, "", nil)
	model := toy{rt.Mesh(), 64, 32}
	step, err := rt.NewStep(model, sgd{}, StepConfig{Batch: 4, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, "fsdp")})
	require.NoError(t, err)
	defer step.Destroy()
	state, err := rt.NewState(model, sgd{}, initToy)
	require.NoError(t, err)
	defer state.Destroy()
	batch := toyBatch(4, toySeq, 64, 0)
	before := pjrt.LiveHandles()
	for range 1000 {
		pending, err := step.Run(state, batch)
		require.NoError(t, err)
		_, err = pending.Wait()
		require.NoError(t, err)
	}
	require.Equal(t, before, pjrt.LiveHandles())
}

// doubled is a program small enough to compile often.
func doubled(rt *Runtime) (*Program, error) {
	in := []Input{{Name: "x", DType: dtypes.Float32, Dims: []int{8}, Spec: sharding.Split(1, 0, "fsdp")}}
	return rt.Compile("double", in, func(in []*graph.Node) []Output {
		return []Output{{Node: graph.Add(in[0], in[0]), Spec: in0Spec}}
	})
}

var in0Spec = sharding.Split(1, 0, "fsdp")

func runDoubled(t *testing.T, rt *Runtime, p *Program) {
	t.Helper()
	x, err := rt.NewArray(dtypes.Float32, []int{8}, in0Spec, func(r sharding.Region, dst []byte) error {
		for i := range r.Size[0] {
			binary.NativeEndian.PutUint32(dst[4*i:], math.Float32bits(float32(r.Start[0]+i)))
		}
		return nil
	})
	require.NoError(t, err)
	defer x.Destroy()
	out, err := p.Run(x)
	require.NoError(t, err)
	defer DestroyAll(out)
	raw, err := out[0].Read()
	require.NoError(t, err)
	for i := range 8 {
		require.EqualValues(t, 2*i, math.Float32frombits(binary.NativeEndian.Uint32(raw[4*i:])))
	}
}

// A cache entry is used when it is whole, and compiled again, with a warning, when it is damaged, cut or foreign.
func TestCompileCache(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	rt := openCPU(t, 2, dir, slog.New(slog.NewTextHandler(&log, nil)))
	compile := func(wantHit bool, why string) {
		t.Helper()
		p, err := doubled(rt)
		require.NoError(t, err)
		defer p.Destroy()
		require.Equal(t, wantHit, p.FromCache, why)
		runDoubled(t, rt, p)
	}
	compile(false, "an empty cache")
	compile(true, "the same program")
	entries, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	whole, err := os.ReadFile(entries[0])
	require.NoError(t, err)
	flipped := append([]byte{}, whole...)
	flipped[len(flipped)/2] ^= 1
	foreign := append([]byte{}, whole...)
	foreign[len(cacheMagic)] ^= 1
	for why, content := range map[string][]byte{
		"a flipped bit": flipped, "truncated": whole[:len(whole)/2], "empty": nil, "another program's": foreign,
		"another version's": append([]byte("weft compiled program 0\n"), whole[len(cacheMagic):]...),
	} {
		log.Reset()
		require.NoError(t, os.WriteFile(entries[0], content, 0o644))
		compile(false, why)
		require.Contains(t, log.String(), "compiling again", why)
		compile(true, "after "+why)
	}
}

// A folder that cannot be used is told of once, however many programs are compiled, and costs nothing but time.
func TestCompileCacheThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for why, dir := range map[string]string{"a file": file, "below a file": filepath.Join(file, "compile"), "a folder that cannot be made": "/proc/compile"} {
		var log strings.Builder
		rt := openCPU(t, 2, dir, slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			p, err := doubled(rt)
			require.NoError(t, err, why)
			require.False(t, p.FromCache, why)
			runDoubled(t, rt, p)
			p.Destroy()
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "the compile cache cannot be used", why)
		require.Contains(t, log.String(), dir, why)
	}
}

func TestCompileReportsPanicsAsErrors(t *testing.T) {
	rt := openCPU(t, 2, "", nil)
	in := []Input{{Name: "x", DType: dtypes.Float32, Dims: []int{8}}, {Name: "y", DType: dtypes.Float32, Dims: []int{3}}}
	_, err := rt.Compile("bad", in, func(in []*graph.Node) []Output {
		return []Output{{Node: graph.Add(in[0], in[1])}}
	})
	require.ErrorContains(t, err, "build the program bad")
	require.ErrorContains(t, err, "[8]")
	_, err = rt.Compile("bad", in, func(in []*graph.Node) []Output {
		return []Output{{Node: graph.BroadcastToShape(in[0], shapes.Make(dtypes.Float32, 3, 8)), Spec: sharding.Split(2, 0, "fsdp")}}
	})
	require.Error(t, err)
}

func TestOpenRefusesMissingDevices(t *testing.T) {
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	p, err := pjrt.Load(info.Path)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 4})
	require.NoError(t, err)
	_, err = Open(Options{Plugin: p, Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(2)}})
	require.ErrorContains(t, err, "needs 4 devices")
	require.ErrorContains(t, err, "has 2")
}
