package gemma

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics

	"weft/engine/nn"
	"weft/engine/sharding"
)

// tensor is a weight of a layer with its sharding; w is nil where the layer has none of that name. whole is the matrix
// gathered for both passes, nil where each pass gathers it.
type tensor struct {
	w, whole *Node
	spec     sharding.Spec
}

// bound gives a layer its own weights, by their names below the layer.
type bound func(name string) tensor

func (c *pass) bind(prefix string, weights map[string]*Node) bound {
	return func(name string) tensor {
		name = prefix + "." + name
		return tensor{w: weights[name], spec: c.specs[name]}
	}
}

// gathered gathers the layer's matrices for both passes. Vectors are too small to be split.
func (c *pass) gathered(l Layer, w bound) bound {
	kept := map[string]tensor{}
	for _, d := range c.cfg.layerWeights(l) {
		t := w(d.name)
		if len(d.dims) == 2 {
			t.whole = c.policy.Kept(t.w, t.spec)
		}
		kept[d.name] = t
	}
	return func(name string) tensor { return kept[name] }
}

// layer computes one decoder layer for x [B, T, H] and its per-layer input [B, T, P]. It returns the keys and values
// that it used.
func (c *pass) layer(l Layer, w bound, x, perLayer *Node) (*Node, keyValue) {
	y, kv := c.attention(l, w, c.normed(w, "input_layernorm", x))
	x = Add(x, c.normed(w, "post_attention_layernorm", y))
	y = c.mlp(w, c.normed(w, "pre_feedforward_layernorm", x))
	x = Add(x, c.normed(w, "post_feedforward_layernorm", y))
	if perLayer != nil {
		gated := c.policy.GatedGelu(c.linear(w, "per_layer_input_gate", x), perLayer)
		x = Add(x, c.normed(w, "post_per_layer_input_norm", c.linear(w, "per_layer_projection", gated)))
	}
	if scalar := w(layerScalar).w; scalar != nil {
		scaled := Mul(ConvertDType(x, dtypes.Float32), ExpandLeftToRank(scalar, x.Rank()))
		x = ConvertDType(scaled, x.DType())
	}
	return x, kv
}

func (c *pass) linear(w bound, name string, x *Node) *Node {
	t := w(name)
	return c.policy.LinearKept(x, t.w, t.whole, t.spec)
}

func (c *pass) normed(w bound, name string, x *Node) *Node {
	t := w(name)
	return c.norm(x, t.w, t.spec)
}

// mlp is down(gelu(gate·x)·(up·x)).
func (c *pass) mlp(w bound, x *Node) *Node {
	return c.linear(w, "mlp.down_proj", c.policy.GatedGelu(c.linear(w, "mlp.gate_proj", x), c.linear(w, "mlp.up_proj", x)))
}

// attention norms queries and keys per head and turns them; generation 4 norms values too, without a weight.
func (c *pass) attention(l Layer, w bound, x *Node) (*Node, keyValue) {
	rope := c.ropes[l.Sliding]
	q := c.normed(w, "self_attn.q_norm", c.heads(c.linear(w, "self_attn.q_proj", x), l))
	q = c.policy.RoPE(q, rope[0], rope[1])
	kv := c.shared[l.Sliding]
	if !l.SharedKV {
		k := c.heads(c.linear(w, "self_attn.k_proj", x), l)
		v := k
		if !l.KeyIsValue {
			v = c.heads(c.linear(w, "self_attn.v_proj", x), l)
		}
		if c.cfg.Generation == 4 {
			v = c.norm(v, nil, nil)
		}
		k = c.policy.RoPE(c.normed(w, "self_attn.k_norm", k), rope[0], rope[1])
		kv = keyValue{k, v}
	}
	mask := nn.Mask{Keys: c.mask}
	if l.Sliding {
		mask.Window = c.cfg.SlidingWindow
	}
	y := c.policy.Attention(q, kv.k, kv.v, c.cfg.AttentionScale, mask)
	return c.linear(w, "self_attn.o_proj", y), kv
}

// heads splits [B, T, heads·D] in [B, T, heads, D].
func (c *pass) heads(x *Node, l Layer) *Node {
	d := x.Shape().Dimensions
	return Reshape(x, d[0], d[1], d[2]/l.HeadDim, l.HeadDim)
}
