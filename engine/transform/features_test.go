package transform_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/engine/transform"
)

func nodes(n ...*node) []*node { return n }

// features are the cases that the package promises one by one; inputs are x [2,3], y [2,3], w [3,3], ws [4,3,3], ids
// int32 [4].
var features = map[string]func(c combinators, o transform.ScanOptions, in []*node) []*node{
	"several outputs": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		return c.checkpoint(func(in []*node) []*node { return nodes(graph.Sin(in[0]), graph.Mul(in[0], in[1]), in[1]) }, in[0], in[1])
	},
	"unused output": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		return c.checkpoint(func(in []*node) []*node { return nodes(graph.Exp(in[0]), graph.Mul(in[0], in[1])) }, in[0], in[1])[1:]
	},
	"the same input twice": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		square := c.checkpoint(func(in []*node) []*node { return nodes(graph.Mul(in[0], in[1])) }, in[0], in[0])[0]
		out, ys := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.Add(graph.Sin(carry[1]), dot(carry[0], x[1])), dot(carry[0], x[0])), nodes(x[0], x[1])
		}, nodes(square, square), nodes(in[3], in[3]), o)
		return append(out, ys...)
	},
	"closed-over values that depend on each other": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		a := graph.Sin(in[0])
		b := graph.Mul(a, in[1])
		h := c.checkpoint(func(in []*node) []*node { return nodes(graph.Mul(graph.Mul(a, b), in[0])) }, b)[0]
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.Tanh(graph.Add(dot(carry[0], x[0]), graph.Mul(graph.Mul(a, b), h)))), nil
		}, nodes(h), nodes(in[3]), o)
		return out
	},
	"integers everywhere": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		x, ids := in[0], in[4]
		positive := graph.GreaterThan(x, graph.ZerosLike(x))
		out, ys := c.scan(func(carry, xs []*node) ([]*node, []*node) {
			scale := graph.ConvertDType(graph.Add(carry[1], xs[0]), dtypes.Float32)
			h := graph.Where(carry[2], graph.Mul(carry[0], scale), graph.Where(positive, graph.Sin(carry[0]), x))
			return nodes(h, graph.AddScalar(carry[1], 2), graph.LogicalNot(carry[2])), nodes(carry[1], carry[2], h)
		}, nodes(x, graph.Const(x.Graph(), int32(3)), positive), nodes(ids), o)
		return append(out, ys...)
	},
	"ys only": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		_, ys := c.scan(func(_, x []*node) ([]*node, []*node) { return nil, nodes(dot(in[0], x[0]), in[1], x[0]) }, nil, nodes(in[3]), o)
		return ys
	},
	"carry only": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		o.Length = 5
		out, _ := c.scan(func(carry, _ []*node) ([]*node, []*node) { return nodes(graph.Tanh(dot(carry[0], in[2]))), nil }, nodes(in[0]), nil, o)
		return out
	},
	"unused xs and carries": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, ys := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.Sin(carry[0]), graph.Cos(carry[0]), graph.Mul(carry[2], carry[2])), nodes(graph.Exp(carry[0]))
		}, nodes(in[0], in[1], in[1]), nodes(in[3], in[4]), o)
		_ = ys // without gradient
		return out[:2]
	},
	"carry passed through": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.Mul(dot(carry[0], x[0]), carry[1]), carry[1]), nil
		}, nodes(in[0], in[1]), nodes(in[3]), o)
		return out
	},
	"nothing but a carry passed through": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) { return carry, nil }, nodes(in[0]), nodes(in[3]), o)
		return out
	},
	"carries swapped": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, ys := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(carry[1], dot(carry[0], x[0])), nodes(carry[0], carry[0])
		}, nodes(in[0], in[1]), nodes(in[3]), o)
		return append(out, ys[1])
	},
	"a gradient that grows from one carry to another": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.Add(carry[0], carry[1]), graph.Mul(carry[1], carry[2]), dot(carry[2], x[0])), nil
		}, nodes(in[0], in[1], in[0]), nodes(in[3]), o)
		return out[:1]
	},
	"constant carry out": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, ys := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.OnesLike(carry[0])), nodes(dot(carry[0], x[0]), graph.Const(in[0].Graph(), []float32{1, 2}))
		}, nodes(in[0]), nodes(in[3]), o)
		return append(out, ys...)
	},
	"large constants": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		table := make([]float32, 48)
		for i := range table {
			table[i] = float32(i) / 48
		}
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			big := graph.Reshape(graph.Slice(graph.Const(in[0].Graph(), table), graph.AxisRange(0, 6)), 2, 3)
			return c.checkpoint(func(in []*node) []*node { return nodes(graph.Mul(graph.Add(in[0], big), dot(in[0], x[0]))) }, carry[0]), nil
		}, nodes(in[0]), nodes(in[3]), o)
		return out
	},
	"invariants": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			shared := graph.Tanh(dot(in[1], in[2]))
			return nodes(graph.Mul(graph.Sin(dot(carry[0], x[0])), shared)), nil
		}, nodes(in[0]), nodes(in[3]), o)
		return out
	},
	"scan in checkpoint in scan": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, ys := c.scan(func(carry, x []*node) ([]*node, []*node) {
			h := c.checkpoint(func(v []*node) []*node {
				inner, ys := c.scan(func(carry, y []*node) ([]*node, []*node) {
					h := world{c: c}.product(graph.Tanh(dot(carry[0], y[0])), in[2])
					return nodes(c.constrain(h, sharding.Replicated())), nodes(graph.Mul(h, in[1]))
				}, v[:1], nodes(in[3]), o)
				return nodes(graph.Add(inner[0], graph.ReduceMean(ys[0], 0)))
			}, graph.Mul(dot(carry[0], x[0]), in[1]))[0]
			return nodes(h), nodes(graph.Sin(h))
		}, nodes(in[0]), nodes(in[3]), o)
		return append(out, ys...)
	},
	"scan in scan in scan": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		var nest func(depth int, h *node) *node
		nest = func(depth int, h *node) *node {
			out, ys := c.scan(func(carry, x []*node) ([]*node, []*node) {
				h := graph.Tanh(graph.Add(dot(carry[0], x[0]), in[1]))
				if depth > 0 {
					h = nest(depth-1, h)
				}
				return nodes(h), nodes(h)
			}, nodes(h), nodes(graph.Slice(in[3], graph.AxisRange(0, 2))), o)
			return graph.Add(out[0], graph.ReduceMean(ys[0], 0))
		}
		return nodes(nest(2, in[0]))
	},
	"operations with several outputs": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			held := graph.OptimizationBarriers(carry[0], x[0])
			one := graph.OptimizationBarrier(dot(held[0], held[1]))
			return c.checkpoint(func(in []*node) []*node {
				return graph.OptimizationBarriers(graph.Sin(graph.OptimizationBarrier(in[0])))
			}, one), nil
		}, nodes(in[0]), nodes(in[3]), o)
		return out
	},
	"StopGradient": func(c combinators, o transform.ScanOptions, in []*node) []*node {
		out, _ := c.scan(func(carry, x []*node) ([]*node, []*node) {
			return nodes(graph.Add(graph.Mul(graph.StopGradient(carry[0]), in[1]), dot(carry[0], graph.StopGradient(x[0])))), nil
		}, nodes(in[0]), nodes(in[3]), o)
		return out
	},
}

func featureInputs() []*tensors.Tensor {
	r := enginetest.Random
	return []*tensors.Tensor{r(1, 2, 3), r(2, 2, 3), r(3, 3, 3), r(4, 4, 3, 3), tensors.FromFlatDataAndDimensions([]int32{1, 3, 0, 2}, 4)}
}

func TestFeatures(t *testing.T) {
	client := enginetest.Client(t)
	for name, build := range features {
		for direction, reverse := range map[string]bool{"forward": false, "reverse": true} {
			t.Run(name+"/"+direction, func(t *testing.T) {
				with := func(remat transform.Remat) program {
					return func(c combinators, xs []*node) []*node {
						return build(c, transform.ScanOptions{Remat: remat, Reverse: reverse}, xs)
					}
				}
				want := enginetest.Run(t, client, oneDevice, withGradients(plain, with(transform.RematNone)), featureInputs()...)
				for mode, remat := range map[string]transform.Remat{"none": transform.RematNone, "full": transform.RematFull} {
					got := enginetest.Run(t, client, oneDevice, withGradients(ours, with(remat)), featureInputs()...)
					enginetest.Close(t, want, got, 2e-5, name, mode)
				}
			})
		}
	}
}

// In bfloat16 the values are those of the unrolled graph to the bit; gradients are summed in another order, and those
// of closed-over values over the steps in float32.
func TestBFloat16(t *testing.T) {
	client := enginetest.Client(t)
	for name, remat := range map[string]transform.Remat{"none": transform.RematNone, "full": transform.RematFull} {
		t.Run(name, func(t *testing.T) {
			p := func(c combinators, xs []*node) []*node {
				half := func(x *node) *node { return graph.ConvertDType(x, dtypes.BFloat16) }
				bias := half(xs[1])
				out, ys := c.scan(func(carry, w []*node) ([]*node, []*node) {
					h := c.checkpoint(func(in []*node) []*node {
						return nodes(graph.Add(in[0], graph.Tanh(graph.Add(dot(in[0], in[1]), bias))))
					}, carry[0], half(w[0]))[0]
					return nodes(world{c: c}.product(h, half(xs[2]))), nodes(h)
				}, nodes(half(xs[0])), nodes(xs[3]), transform.ScanOptions{Remat: remat})
				return append(out, ys...)
			}
			agree(t, client, p, 0.03, name, featureInputs()...)
		})
	}
}

func TestGradientsOfClosedOverBFloat16AreSummedInFloat32(t *testing.T) {
	client := enginetest.Client(t)
	const steps = 1000 // a bfloat16 sum of ones stops at 256
	got := enginetest.Run(t, client, oneDevice, func(g *graph.Graph, xs []*node) []*node {
		scale := graph.ConvertDType(xs[0], dtypes.BFloat16)
		out, _ := transform.Scan(func(carry, _ []*node) ([]*node, []*node) {
			return nodes(graph.Add(carry[0], graph.ConvertDType(scale, dtypes.Float32))), nil
		}, nodes(graph.ZerosLike(xs[0])), nil, transform.ScanOptions{Length: steps})
		return graph.Gradient(graph.ReduceAllSum(out[0]), scale)
	}, enginetest.Random(1, 1))
	require.InDelta(t, steps, enginetest.Floats(t, got[0])[0], 2)
}

// What GoMLX differentiates twice, these do too.
func TestSecondDerivatives(t *testing.T) {
	client := enginetest.Client(t)
	p := func(c combinators, in []*node) []*node {
		h := c.checkpoint(func(v []*node) []*node { return nodes(graph.Tanh(graph.Mul(graph.Mul(v[0], v[0]), in[1]))) }, in[0])[0]
		h = world{c: c}.product(c.constrain(h, sharding.Replicated()), in[2])
		return graph.Gradient(total(h), in[0], in[2])
	}
	agree(t, client, p, 2e-5, "second derivatives", featureInputs()[:3]...)

	_, err := stablehlo.Build(oneDevice, "twice", func(g *graph.Graph) []*node {
		in := nodes(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 3)), graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 2, 3, 3)))
		out, _ := transform.Scan(func(c, x []*node) ([]*node, []*node) { return nodes(dot(graph.Tanh(c[0]), x[0])), nil }, in[:1], in[1:], transform.ScanOptions{})
		first := graph.Gradient(total(out[0]), in[0])
		return graph.Gradient(total(first...), in[0])
	})
	require.ErrorContains(t, err, "While")
	require.ErrorContains(t, err, "no gradient is defined")
}
