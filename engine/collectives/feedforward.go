package collectives

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/transform"
)

// The sizes of the guide's block.
const (
	guideHidden       = 128
	guideIntermediate = 4 * guideHidden
	guideBatch        = 64
)

// Block is a feed-forward block with the rows it is given: x + silu(x·W1ᵀ)·W2ᵀ. Matrices are row-major, float32.
type Block struct {
	Hidden, Intermediate, Batch int
	// W1 is [Intermediate, Hidden], W2 [Hidden, Intermediate], X [Batch, Hidden].
	W1, W2, X []float32
}

// Draw makes the guide's block (hidden 128, intermediate 512, batch 64) of a seed: math/rand/v2's PCG with the seed and, as
// its second word, 1 for W1, 2 for W2 and 3 for X. Weights are uniform in ±1/√(columns), as torch.nn.Linear begins; X is
// standard normal. (torch draws other numbers from the same seed.)
func Draw(seed int64) *Block {
	b := &Block{Hidden: guideHidden, Intermediate: guideIntermediate, Batch: guideBatch}
	b.W1 = uniform(rand.New(rand.NewPCG(uint64(seed), 1)), b.Intermediate*b.Hidden, b.Hidden)
	b.W2 = uniform(rand.New(rand.NewPCG(uint64(seed), 2)), b.Hidden*b.Intermediate, b.Intermediate)
	rng := rand.New(rand.NewPCG(uint64(seed), 3))
	b.X = make([]float32, b.Batch*b.Hidden)
	for i := range b.X {
		b.X[i] = float32(rng.NormFloat64())
	}
	return b
}

func uniform(rng *rand.Rand, n, columns int) []float32 {
	bound := 1 / math.Sqrt(float64(columns))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32((2*rng.Float64() - 1) * bound)
	}
	return out
}

// Reference computes the block on the host in float64: [Batch, Hidden], row-major.
func (b *Block) Reference() []float64 {
	out := make([]float64, b.Batch*b.Hidden)
	hidden := make([]float64, b.Intermediate)
	for row := range b.Batch {
		x := b.X[row*b.Hidden : (row+1)*b.Hidden]
		for i := range hidden {
			var h float64
			for j, v := range b.W1[i*b.Hidden : (i+1)*b.Hidden] {
				h += float64(v) * float64(x[j])
			}
			hidden[i] = h / (1 + math.Exp(-h))
		}
		for i := range b.Hidden {
			sum := float64(x[i])
			for j, v := range b.W2[i*b.Intermediate : (i+1)*b.Intermediate] {
				sum += float64(v) * hidden[j]
			}
			out[row*b.Hidden+i] = sum
		}
	}
	return out
}

// padded is the block with an intermediate size that n devices share evenly. What it adds is zero and changes nothing:
// silu(0) = 0.
func (b *Block) padded(n int) *Block {
	wide := (b.Intermediate + n - 1) / n * n
	if wide == b.Intermediate {
		return b
	}
	p := *b
	p.Intermediate = wide
	p.W1 = make([]float32, wide*b.Hidden)
	copy(p.W1, b.W1)
	p.W2 = make([]float32, b.Hidden*wide)
	for i := range b.Hidden {
		copy(p.W2[i*wide:], b.W2[i*b.Intermediate:(i+1)*b.Intermediate])
	}
	return &p
}

// Precision is how a device multiplies float32 numbers.
type Precision string

const (
	// Highest is float32 arithmetic, on a TPU several passes of bfloat16 products.
	Highest Precision = "HIGHEST"
	// Default is what a device does unless asked: one pass of bfloat16 products on a TPU, which is what the guide's block
	// runs with; float32 on a CPU.
	Default Precision = "DEFAULT"
)

// LowerFeedForward writes the block for all devices of a mesh, as DTensor's ColwiseParallel and RowwiseParallel split it:
// W1 by its rows, W2 by its columns; the sum over the devices is left to XLA's partitioner, from the declared shardings.
// Inputs: w1, w2, x; output: [Batch, Hidden], whole on every device.
func LowerFeedForward(mesh sharding.Mesh, b *Block, precision Precision) (*engine.Lowered, error) {
	b = b.padded(mesh.NumDevices())
	axes := mesh.AxisNames()
	inputs := []engine.Input{
		{Name: "w1", DType: dtypes.Float32, Dims: []int{b.Intermediate, b.Hidden}, Spec: sharding.Split(2, 0, axes...)},
		{Name: "w2", DType: dtypes.Float32, Dims: []int{b.Hidden, b.Intermediate}, Spec: sharding.Split(2, 1, axes...)},
		{Name: "x", DType: dtypes.Float32, Dims: []int{b.Batch, b.Hidden}},
	}
	low, err := engine.Lower(mesh, "feedforward", inputs, func(in []*graph.Node) []engine.Output {
		w1, w2, x := in[0], in[1], in[2]
		h := transform.Constrain(timesTransposed(x, w1), sharding.Split(2, 1, axes...))
		h = graph.Mul(h, graph.Logistic(h))
		return []engine.Output{{Node: graph.Add(x, timesTransposed(h, w2))}}
	})
	if err != nil || precision == Highest {
		return low, err
	}
	// engine/stablehlo asks for float32 arithmetic of every float32 product.
	highest, other := []byte("precision = [HIGHEST, HIGHEST]"), fmt.Appendf(nil, "precision = [%s, %[1]s]", precision)
	if n := bytes.Count(low.Text, highest); n != 2 {
		return nil, fmt.Errorf("set the precision of the feed-forward block: it has %d products of float32 precision, not 2", n)
	}
	low.Text = bytes.ReplaceAll(low.Text, highest, other)
	return low, nil
}

// timesTransposed is l·rᵀ.
func timesTransposed(l, r *graph.Node) *graph.Node {
	return graph.Dot(l, r).WithAccumulatorDType(dtypes.InvalidDType).General([]int{1}, nil, []int{1}, nil)
}

// run runs the compiled block and returns the result of every local rank's device.
func (b *Block) run(rt *engine.Runtime, precision Precision) (map[int][]float32, error) {
	low, err := LowerFeedForward(rt.Mesh(), b, precision)
	if err != nil {
		return nil, err
	}
	program, err := rt.CompileLowered(low)
	if err != nil {
		return nil, err
	}
	defer program.Destroy()
	wide := b.padded(rt.Mesh().NumDevices())
	var args []*engine.Array
	defer func() { engine.DestroyAll(args) }()
	for i, values := range [][]float32{wide.W1, wide.W2, wide.X} {
		in := low.Inputs[i]
		a, err := rt.NewArray(in.DType, in.Dims, in.Spec, fillFrom(values, in.Dims))
		if err != nil {
			return nil, fmt.Errorf("send %s of the feed-forward block: %w", in.Name, err)
		}
		args = append(args, a)
	}
	return runAndRead(program, args...)
}

// fillFrom fills regions of a row-major matrix.
func fillFrom(values []float32, dims []int) engine.Fill {
	return func(r sharding.Region, dst []byte) error {
		for row := range r.Size[0] {
			start := (r.Start[0]+row)*dims[1] + r.Start[1]
			putFloats(dst[4*row*r.Size[1]:], values[start:start+r.Size[1]])
		}
		return nil
	}
}

func putFloats(dst []byte, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func floats(raw []byte) []float32 {
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return values
}

// runAndRead runs a program of one float32 result and returns what every local device holds of it, by mesh position.
func runAndRead(program *engine.Program, args ...*engine.Array) (map[int][]float32, error) {
	results, err := program.Run(args...)
	if err != nil {
		return nil, err
	}
	defer engine.DestroyAll(results)
	out := map[int][]float32{}
	for _, s := range results[0].Shards() {
		raw := make([]byte, 4*s.Region.Elements())
		if err := s.Read(raw); err != nil {
			return nil, fmt.Errorf("read the result of %s from the device at mesh position %d: %w", program.Name, s.Position, err)
		}
		out[s.Position] = floats(raw)
	}
	return out, nil
}
