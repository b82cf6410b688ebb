package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/internal/property"
)

// block is a building block beside the same mathematics in plain operations, on the same inputs.
type block struct {
	name   string
	inputs []*tensors.Tensor
	// block and plain return float32 outputs, of which the gradients of a weighted sum are compared too.
	block func(p Policy, xs []*Node) []*Node
	plain func(xs []*Node) []*Node
}

// withGrads adds to the outputs the gradients of their weighted sum with respect to the float inputs.
func withGrads(f func(xs []*Node) []*Node) enginetest.BuildFunc {
	return func(g *Graph, xs []*Node) []*Node {
		outs := f(xs)
		total := ScalarZero(g, dtypes.Float32)
		for _, o := range outs {
			weight := Cos(ConvertDType(IotaFull(g, o.Shape()), dtypes.Float32))
			if o.IsScalar() {
				weight = ScalarOne(g, dtypes.Float32)
			}
			total = Add(total, ReduceAllSum(Mul(o, weight)))
		}
		var leaves []*Node
		for _, x := range xs {
			if x.DType().IsFloat() {
				leaves = append(leaves, x)
			}
		}
		return append(outs, Gradient(total, leaves...)...)
	}
}

func single() Policy { return Policy{Compute: dtypes.Float32} }

// four splits rows over four devices, of two axes.
func four(t require.TestingT) Policy {
	m, err := sharding.NewMesh(sharding.Axis{Name: "x", Size: 2}, sharding.Axis{Name: "y", Size: 2})
	require.NoError(t, err)
	return Policy{Mesh: m, DataAxes: []string{"x", "y"}, Compute: dtypes.Float32}
}

func ints(dims []int, values ...int32) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(values, dims...)
}

// sizes are the shapes of one case.
type sizes struct{ rows, seq, kv, groups, dim, in, out, words int }

func (s sizes) ids() *tensors.Tensor {
	values := make([]int32, s.rows*s.seq)
	for i := range values {
		values[i] = int32((i*7 + i*i) % s.words)
	}
	return ints([]int{s.rows, s.seq}, values...)
}

// labels have no target in some places.
func (s sizes) labels() *tensors.Tensor {
	values := make([]int32, s.rows*s.seq)
	for i := range values {
		if values[i] = int32((i * 5) % s.words); i%4 == 3 {
			values[i] = NoTarget
		}
	}
	return ints([]int{s.rows, s.seq}, values...)
}

// mask pads every row but the first on the right.
func (s sizes) mask() *tensors.Tensor {
	values := make([]int32, 0, s.rows*s.seq)
	for row := range s.rows {
		for pos := range s.seq {
			token := int32(0)
			if pos < max(1, s.seq-row) {
				token = 1
			}
			values = append(values, token)
		}
	}
	return ints([]int{s.rows, s.seq}, values...)
}

// matrixSpecs are the ways in which a matrix may lie.
var matrixSpecs = []sharding.Spec{nil, {{"x", "y"}}, {nil, {"x", "y"}}, {{"y"}, nil}}

func blocks(s sizes) []block {
	x := enginetest.Random(1, s.rows, s.seq, s.in)
	w := enginetest.Random(2, s.out, s.in)
	all := []block{{
		name: "gated gelu", inputs: []*tensors.Tensor{x, enginetest.Random(3, s.rows, s.seq, s.in)},
		block: func(p Policy, xs []*Node) []*Node { return []*Node{p.GatedGelu(MulScalar(xs[0], 3), xs[1])} },
		plain: func(xs []*Node) []*Node { return []*Node{Mul(plainGelu(MulScalar(xs[0], 3)), xs[1])} },
	}, {
		name: "norm without weight", inputs: []*tensors.Tensor{x},
		block: func(p Policy, xs []*Node) []*Node { return []*Node{p.RMSNorm(Norm{Eps: 1e-3}, xs[0], nil, nil)} },
		plain: func(xs []*Node) []*Node { return []*Node{plainNorm(xs[0], 1e-3)} },
	}}
	for _, spec := range matrixSpecs {
		for _, gathering := range []Gathering{GatherAgain, GatherApart, GatherOnce} {
			all = append(all, block{
				name: fmt.Sprintf("linear %v gathering %d", spec, gathering), inputs: []*tensors.Tensor{x, w},
				block: func(p Policy, xs []*Node) []*Node {
					p.Gathering = gathering
					return []*Node{p.Linear(p.Batch(xs[0]), xs[1], spec)}
				},
				plain: func(xs []*Node) []*Node { return []*Node{Einsum("btk,nk->btn", xs[0], xs[1])} },
			})
		}
		all = append(all, block{
			name: fmt.Sprintf("linear kept %v", spec), inputs: []*tensors.Tensor{x, w},
			block: func(p Policy, xs []*Node) []*Node {
				return []*Node{p.LinearKept(p.Batch(xs[0]), xs[1], p.Kept(xs[1], spec), spec)}
			},
			plain: func(xs []*Node) []*Node { return []*Node{Einsum("btk,nk->btn", xs[0], xs[1])} },
		})
		all = append(all, vocabBlocks(s, spec)...)
	}
	for _, spec := range []sharding.Spec{nil, {{"x", "y"}}} {
		for _, plus := range []float64{0, 1} {
			all = append(all, block{
				name: fmt.Sprintf("norm %v plus %v", spec, plus), inputs: []*tensors.Tensor{x, enginetest.Random(4, s.in)},
				block: func(p Policy, xs []*Node) []*Node {
					return []*Node{p.RMSNorm(Norm{Eps: 1e-3, PlusOne: plus == 1}, p.Batch(xs[0]), xs[1], spec)}
				},
				plain: func(xs []*Node) []*Node {
					return []*Node{Mul(plainNorm(xs[0], 1e-3), ExpandLeftToRank(AddScalar(xs[1], plus), 3))}
				},
			})
		}
	}
	return append(all, attentionBlocks(s)...)
}

func vocabBlocks(s sizes, spec sharding.Spec) []block {
	table := enginetest.Random(5, s.words, s.in)
	out := []block{{
		name: fmt.Sprintf("embed %v", spec), inputs: []*tensors.Tensor{s.ids(), table},
		block: func(p Policy, xs []*Node) []*Node { return []*Node{p.Embed(xs[0], xs[1], spec)} },
		plain: func(xs []*Node) []*Node {
			return []*Node{Einsum("btv,vh->bth", OneHot(xs[0], s.words, dtypes.Float32), xs[1])}
		},
	}}
	for _, softcap := range []float64{0, 2} {
		out = append(out, block{
			name: fmt.Sprintf("cross entropy %v cap %v", spec, softcap), inputs: []*tensors.Tensor{enginetest.Random(6, s.rows, s.seq, s.in), table, s.labels()},
			block: func(p Policy, xs []*Node) []*Node {
				sum, count := p.CrossEntropy(p.Batch(xs[0]), xs[1], spec, xs[2], softcap)
				return []*Node{sum, count}
			},
			plain: func(xs []*Node) []*Node { return plainCrossEntropy(xs[0], xs[1], xs[2], softcap) },
		})
	}
	return out
}

func attentionBlocks(s sizes) []block {
	heads := s.kv * s.groups
	frequencies := make([]float32, s.dim)
	for i := range frequencies {
		frequencies[i] = float32(math.Pow(50, -float64(i)/float64(s.dim)))
	}
	rope := block{
		name: "rope", inputs: []*tensors.Tensor{enginetest.Random(7, s.rows, s.seq, heads, 2*s.dim)},
		block: func(p Policy, xs []*Node) []*Node {
			cos, sin := RoPETables(xs[0].Graph(), s.seq, frequencies)
			return []*Node{p.RoPE(p.Batch(xs[0]), cos, sin)}
		},
		plain: func(xs []*Node) []*Node { return []*Node{plainRoPE(xs[0], frequencies)} },
	}
	out := []block{rope}
	for _, window := range []int{0, 1, 3} {
		out = append(out, block{
			name: fmt.Sprintf("attention window %d", window),
			inputs: []*tensors.Tensor{enginetest.Random(8, s.rows, s.seq, heads, s.dim), enginetest.Random(9, s.rows, s.seq, s.kv, s.dim),
				enginetest.Random(10, s.rows, s.seq, s.kv, s.dim), s.mask()},
			block: func(p Policy, xs []*Node) []*Node {
				q, k, v := p.Batch(xs[0]), p.Batch(xs[1]), p.Batch(xs[2])
				return []*Node{ofTokens(p.Attention(q, k, v, 1.5, Mask{Window: window, Keys: xs[3]}), xs[3])}
			},
			plain: func(xs []*Node) []*Node {
				return []*Node{ofTokens(plainAttention(xs[0], xs[1], xs[2], xs[3], 1.5, window), xs[3])}
			},
		})
	}
	return out
}

// ofTokens leaves the outputs of padding out: a query that sees no key has no meaning.
func ofTokens(x, mask *Node) *Node { return Mul(x, InsertAxes(ConvertDType(mask, dtypes.Float32), -1)) }

func plainGelu(x *Node) *Node {
	inner := MulScalar(Add(x, MulScalar(Mul(Mul(x, x), x), 0.044715)), math.Sqrt(2/math.Pi))
	return Mul(MulScalar(x, 0.5), AddScalar(Tanh(inner), 1))
}

func plainNorm(x *Node, eps float64) *Node {
	return Div(x, Sqrt(AddScalar(ReduceAndKeep(Square(x), ReduceMean, -1), eps)))
}

// plainRoPE is x·cos + rotate_half(x)·sin, with doubled tables, as transformers writes it.
func plainRoPE(x *Node, frequencies []float32) *Node {
	d := x.Shape().Dimensions
	cos, sin := make([]float32, 0, d[1]*d[3]), make([]float32, 0, d[1]*d[3])
	for pos := range d[1] {
		for i := range d[3] {
			angle := float64(float32(pos) * frequencies[i%len(frequencies)])
			cos, sin = append(cos, float32(math.Cos(angle))), append(sin, float32(math.Sin(angle)))
		}
	}
	a, b := Slice(x, AxisRange().Spacer(), AxisRangeFromStart(d[3]/2)), Slice(x, AxisRange().Spacer(), AxisRangeToEnd(d[3]/2))
	table := func(values []float32) *Node {
		return Reshape(Const(x.Graph(), tensors.FromFlatDataAndDimensions(values, d[1], d[3])), 1, d[1], 1, d[3])
	}
	return Add(Mul(x, table(cos)), Mul(Concatenate([]*Node{Neg(b), a}, -1), table(sin)))
}

// plainAttention repeats keys and values for every query head, and leaves masked scores out by a large negative term.
func plainAttention(q, k, v, mask *Node, scale float64, window int) *Node {
	g, d, groups := q.Graph(), q.Shape().Dimensions, q.Shape().Dim(2)/k.Shape().Dim(2)
	repeat := func(x *Node) *Node {
		e := x.Shape().Dimensions
		return Reshape(BroadcastToDims(Reshape(x, e[0], e[1], e[2], 1, e[3]), e[0], e[1], e[2], groups, e[3]), d...)
	}
	hidden := make([]float32, 0, d[1]*d[1])
	for query := range d[1] {
		for key := range d[1] {
			if key <= query && (window == 0 || key > query-window) {
				hidden = append(hidden, 0)
			} else {
				hidden = append(hidden, -1e9)
			}
		}
	}
	scores := MulScalar(Einsum("bqnd,bknd->bnqk", q, repeat(k)), scale)
	scores = Add(scores, Reshape(Const(g, tensors.FromFlatDataAndDimensions(hidden, d[1], d[1])), 1, 1, d[1], d[1]))
	padding := MulScalar(OneMinus(ConvertDType(mask, dtypes.Float32)), -1e9)
	scores = Add(scores, Reshape(padding, d[0], 1, 1, d[1]))
	return Reshape(Einsum("bnqk,bknd->bqnd", Softmax(scores, -1), repeat(v)), d[0], d[1], d[2]*d[3])
}

func plainCrossEntropy(x, table, labels *Node, softcap float64) []*Node {
	z := Einsum("bth,vh->btv", x, table)
	if softcap > 0 {
		z = MulScalar(Tanh(DivScalar(z, softcap)), softcap)
	}
	d := z.Shape().Dimensions
	z = Slice(z, AxisRange(), AxisRangeFromStart(d[1]-1))
	targets := Slice(labels, AxisRange(), AxisRangeToEnd(1))
	counts := ConvertDType(GreaterOrEqual(targets, ZerosLike(targets)), dtypes.Float32)
	word := OneHot(Max(targets, ZerosLike(targets)), d[2], dtypes.Float32)
	nll := Neg(ReduceSum(Mul(LogSoftmax(z, -1), word), -1))
	return []*Node{ReduceAllSum(Mul(nll, counts)), ReduceAllSum(counts)}
}

// Values and gradients of every block are those of plain operations, on random shapes.
func TestBlocksEqualPlainOperations(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
		s := sizes{rows: n("rows", 3), seq: n("seq", 5) + 1, kv: n("kv", 2), groups: n("groups", 3), dim: n("dim", 3), in: n("in", 5), out: n("out", 5), words: n("words", 9)}
		all := blocks(s)
		b := all[rapid.IntRange(0, len(all)-1).Draw(t, "block")]
		want := enginetest.RunGo(t, withGrads(b.plain), b.inputs...)
		got := enginetest.RunGo(t, withGrads(func(xs []*Node) []*Node { return b.block(single(), xs) }), b.inputs...)
		enginetest.Close(t, want, got, 3e-5, b.name)
	})
}

// Four devices give what one gives, however the weights lie.
func TestBlocksSharded(t *testing.T) {
	c := enginetest.Client(t)
	s := sizes{rows: 4, seq: 6, kv: 2, groups: 2, dim: 4, in: 8, out: 12, words: 16}
	for _, b := range blocks(s) {
		t.Run(b.name, func(t *testing.T) {
			p := four(t)
			want := enginetest.RunGo(t, withGrads(b.plain), b.inputs...)
			got := enginetest.Run(t, c, p.Mesh, withGrads(func(xs []*Node) []*Node { return b.block(p, xs) }), b.inputs...)
			enginetest.Close(t, want, got, 3e-5, b.name)
		})
	}
}

// A row without any key to attend to has finite values, and no gradient of its scores.
func TestAttentionWithoutKeys(t *testing.T) {
	s := sizes{rows: 1, seq: 4, kv: 1, groups: 2, dim: 3}
	inputs := []*tensors.Tensor{enginetest.Random(8, 1, 4, 2, 3), enginetest.Random(9, 1, 4, 1, 3), enginetest.Random(10, 1, 4, 1, 3), ints([]int{1, 4}, 0, 0, 0, 0)}
	out := enginetest.RunGo(t, withGrads(func(xs []*Node) []*Node {
		return []*Node{single().Attention(xs[0], xs[1], xs[2], 1, Mask{Keys: xs[3]})}
	}), inputs...)
	for i, o := range out {
		for _, v := range enginetest.Floats(t, o) {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "output %d", i)
			if i == 1 || i == 2 {
				require.Zero(t, v, "gradient of q and k")
			}
		}
	}
	require.Len(t, out, 4, "%v", s)
}

// With bfloat16 compute, a weight's gradient is a sum of products of bfloat16 numbers in float32: of many rows, none is
// lost to rounding.
func TestLinearGradientIsSummedInFloat32(t *testing.T) {
	c := enginetest.Client(t)
	const rows, seq, in, out = 8, 256, 4, 4
	p := four(t)
	p.Compute = dtypes.BFloat16
	x, dy := enginetest.Random(1, rows, seq, in), enginetest.Random(2, rows, seq, out)
	spec := sharding.Spec{{"x", "y"}}
	got := enginetest.Run(t, c, p.Mesh, func(g *Graph, xs []*Node) []*Node {
		y := p.Linear(p.Batch(xs[0]), xs[1], spec)
		require.Equal(t, dtypes.BFloat16, y.DType())
		return Gradient(ReduceAllSum(Mul(ConvertDType(y, dtypes.Float32), xs[2])), xs[1])
	}, x, enginetest.Random(3, out, in), dy)
	require.Equal(t, dtypes.Float32, got[0].DType())
	a, b := rounded(t, x), rounded(t, dy)
	for o := range out {
		for i := range in {
			want := 0.0
			for row := range rows * seq {
				want += b[row*out+o] * a[row*in+i]
			}
			require.InDelta(t, want, enginetest.Floats(t, got[0])[o*in+i], 1e-4, "dW[%d, %d]", o, i)
		}
	}
}

// rounded are the values of a float32 tensor in bfloat16.
func rounded(t *testing.T, x *tensors.Tensor) []float64 {
	t.Helper()
	out := enginetest.Floats(t, x)
	for i, v := range out {
		out[i] = float64(bfloat16.FromFloat32(float32(v)).Float32())
	}
	return out
}
