package gemma

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics

	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/engine/transform"
	"weft/models/arch"
)

// Architectures lists the values of config.json's architectures that belong to ModelTypes.
var Architectures = []string{"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"}

// Options are the choices that do not change the mathematics.
type Options = arch.Options

// Model is a Gemma text model. It implements arch.Model.
type Model struct {
	cfg      *Config
	opts     Options
	segments []segment
	params   []engine.Param
	// specs are the shardings of single tensors, without the stacking, by the name that a body uses.
	specs map[string]sharding.Spec
}

// Info describes the architecture.
func (c *Config) Info() arch.Info {
	return arch.Info{
		Name: fmt.Sprintf("Gemma %d", c.Generation), VocabSize: c.VocabSize, MaxPositions: c.MaxPositions,
		BOS: c.BOS, EOS: c.EOS, Pad: c.Pad, DType: c.DType,
	}
}

// New declares the model. It implements arch.Architecture.
func (c *Config) New(o arch.Options) (arch.Model, error) { return New(c, o) }

// New declares the model: its segments of layers and its parameters with their shardings.
func New(cfg *Config, o Options) (*Model, error) {
	if o.Policy.Compute != dtypes.Float32 && o.Policy.Compute != dtypes.BFloat16 {
		return nil, fmt.Errorf("gemma: compute dtype %s: use Float32 or BFloat16", o.Policy.Compute)
	}
	switch o.Remat {
	case "":
		o.Remat = arch.RematNone
	case arch.RematNone, arch.RematFull:
	default:
		return nil, fmt.Errorf("gemma: remat %q: use %q or %q", o.Remat, arch.RematNone, arch.RematFull)
	}
	if o.Freeze == nil && cfg.PerLayerDim > 0 {
		o.Freeze = []string{shortName(namePerLayerTable)}
	}
	if o.FrozenDType == dtypes.InvalidDType {
		o.FrozenDType = cfg.DType
	}
	if o.ShardAxes == nil {
		o.ShardAxes = o.Policy.DataAxes
	}
	if o.MinShardElements == 0 {
		o.MinShardElements = DefaultMinShardElements
	}
	switch o.Gathers {
	case 0, 2:
		o.Policy.Gathering = nn.GatherApart
	case 1:
		o.Policy.Gathering = nn.GatherOnce
	default:
		return nil, fmt.Errorf("gemma: %d gathers of a weight in a step: use 1 or 2", o.Gathers)
	}
	m := &Model{cfg: cfg, opts: o}
	if err := m.declare(); err != nil {
		return nil, fmt.Errorf("gemma: %w", err)
	}
	return m, nil
}

// Params declares every tensor.
func (m *Model) Params() []engine.Param { return m.params }

// Config returns the configuration.
func (m *Model) Config() *Config { return m.cfg }

// Loss returns the summed negative log-likelihood of the shifted targets of the global batch and their number, float32.
func (m *Model) Loss(w map[string]*Node, b engine.BatchNodes) (sum, count *Node) {
	x := m.hidden(w, b.InputIDs, b.Mask)
	return m.opts.Policy.CrossEntropy(x, w[shortName(nameEmbed)], m.specs[shortName(nameEmbed)], b.Labels, m.cfg.FinalSoftcap)
}

// Logits returns float32 [B, T, V] for int32 ids and mask [B, T].
func (m *Model) Logits(w map[string]*Node, ids, mask *Node) *Node {
	x := m.hidden(w, ids, mask)
	return m.opts.Policy.Logits(x, w[shortName(nameEmbed)], m.specs[shortName(nameEmbed)], m.cfg.FinalSoftcap)
}

// hidden returns the normed output of the last layer [B, T, H].
func (m *Model) hidden(w map[string]*Node, ids, mask *Node) *Node {
	x := m.embed(w, shortName(nameEmbed), ids, m.cfg.HiddenSize)
	c := &pass{Model: m, policy: m.opts.Policy, weights: w, mask: mask, ropes: map[bool][2]*Node{}, shared: map[bool]keyValue{}}
	for _, l := range m.cfg.Layers {
		if _, ok := c.ropes[l.Sliding]; !ok {
			cos, sin := nn.RoPETables(x.Graph(), ids.Shape().Dim(1), m.cfg.rope(l.Sliding).Frequencies(l.HeadDim))
			c.ropes[l.Sliding] = [2]*Node{cos, sin}
		}
	}
	if m.cfg.PerLayerDim > 0 {
		c.perLayer = m.perLayerInputs(w, ids, x)
	}
	for _, s := range m.segments {
		x = c.run(s, x)
	}
	return m.norm(x, w[shortName(nameFinalNorm)], m.specs[shortName(nameFinalNorm)])
}

// embed looks ids up in a table whose rows have size dims and scales them by √dim, rounded to the compute dtype.
func (m *Model) embed(w map[string]*Node, name string, ids *Node, dim int) *Node {
	return MulScalar(m.opts.Policy.Embed(ids, w[name], m.specs[name]), math.Sqrt(float64(dim)))
}

// norm is Gemma's RMSNorm: generation 3 scales by 1+w, generation 4 by w. A nil w scales by 1.
func (m *Model) norm(x, w *Node, spec sharding.Spec) *Node {
	return m.opts.Policy.RMSNorm(nn.Norm{Eps: m.cfg.RMSNormEps, PlusOne: m.cfg.Generation == 3}, x, w, spec)
}

// perLayerInputs returns [L, B, T, P] for ids [B, T] and their scaled embeddings e [B, T, H]:
// (RMSNorm(e·Wᵀ·H^-½) + table[ids]·√P) · 2^-½.
func (m *Model) perLayerInputs(w map[string]*Node, ids, e *Node) *Node {
	p := m.opts.Policy
	b, t, layers, dim := ids.Shape().Dim(0), ids.Shape().Dim(1), len(m.cfg.Layers), m.cfg.PerLayerDim
	token := m.embed(w, shortName(namePerLayerTable), ids, dim)
	context := p.Linear(e, w[shortName(namePerLayerProject)], m.specs[shortName(namePerLayerProject)])
	context = MulScalar(context, 1/math.Sqrt(float64(m.cfg.HiddenSize)))
	context = m.norm(Reshape(context, b, t, layers, dim), w[shortName(namePerLayerNorm)], m.specs[shortName(namePerLayerNorm)])
	sum := MulScalar(Add(context, Reshape(token, b, t, layers, dim)), math.Sqrt(0.5))
	return TransposeAllAxes(p.Batch(sum), 2, 0, 1, 3)
}

// keyValue are the keys and values [B, T, K, D] of one layer.
type keyValue struct{ k, v *Node }

// pass is one forward pass: what the layers have in common.
type pass struct {
	*Model
	policy   nn.Policy // of the layers
	weights  map[string]*Node
	mask     *Node
	ropes    map[bool][2]*Node // cosines and sines, by whether the layer slides
	perLayer *Node             // [L, B, T, P], nil without per-layer embeddings
	// shared are the keys and values of the last owning layer of each type, once it has run.
	shared map[bool]keyValue
}

// run computes the layers of a segment.
func (c *pass) run(s segment, x *Node) *Node {
	if s.count > 1 {
		return c.scan(s, x)
	}
	for j := range s.period {
		i := s.layer(0, j)
		var kept []*Node
		x, kept = c.step(s, j, c.weights, x, c.perLayerInput(c.perLayer, i), nn.GatherApart)
		c.share(c.cfg.Layers[i], kept)
	}
	return x
}

// step computes the layer at position j of a segment, and with remat promises to compute it again in the backward
// pass. It returns the layer's keys and values too when later layers share them.
func (c *pass) step(s segment, j int, weights map[string]*Node, x, perLayer *Node, g nn.Gathering) (*Node, []*Node) {
	inner := *c
	inner.policy.Gathering = g
	full := c.opts.Remat == arch.RematFull
	if full {
		inner.policy.Gathering = nn.GatherOnce
	}
	l, w := c.cfg.Layers[s.layer(0, j)], c.bind(s.name(j), weights)
	if c.opts.Gathers == 1 {
		w = c.gathered(l, w) // out here: what body gathers, remat gathers again
	}
	body := func(in []*Node) []*Node {
		y, kv := inner.layer(l, w, in[0], perLayer)
		out := []*Node{c.policy.Batch(y)}
		if c.exports(s, j) {
			out = append(out, kv.k, kv.v)
		}
		return out
	}
	if full {
		out := transform.Checkpoint(body, x)
		return out[0], out[1:]
	}
	out := body([]*Node{x})
	return out[0], out[1:]
}

// perLayerInput is slice i of per-layer inputs stacked on axis 0, nil without any.
func (c *pass) perLayerInput(stacked *Node, i int) *Node {
	if stacked == nil {
		return nil
	}
	return Squeeze(SliceAxis(stacked, 0, AxisElem(i)), 0)
}

// exports tells whether layers after the segment use the keys and values of the layer at position j.
func (c *pass) exports(s segment, j int) bool {
	i := s.layer(s.count-1, j)
	last := c.cfg.Layers[len(c.cfg.Layers)-1].SharedKV
	return last && i == c.cfg.lastOwner(c.cfg.Layers[i].Sliding)
}

// share keeps keys and values for later layers of the type.
func (c *pass) share(l Layer, kv []*Node) {
	if len(kv) > 0 {
		c.shared[l.Sliding] = keyValue{kv[0], kv[1]}
	}
}

// scan computes a repeated segment as one loop over its stacked weights. Keys and values that later layers share leave
// through the carry: what the last repetition put there remains. With remat, the inputs of each layer are kept, not of
// each repetition: the backward pass then holds the activations and whole weights of one layer at a time.
func (c *pass) scan(s segment, x *Node) *Node {
	names, xs, specs := c.stacks(s)
	carry := []*Node{x}
	var exported []Layer
	for j := range s.period {
		if l := c.cfg.Layers[s.layer(0, j)]; c.exports(s, j) {
			exported = append(exported, l)
			none := Zeros(x.Graph(), shapes.Make(c.policy.Compute, x.Shape().Dim(0), x.Shape().Dim(1), l.KVHeads, l.HeadDim))
			carry = append(carry, c.policy.Batch(none), c.policy.Batch(none))
		}
	}
	body := func(carry, xs []*Node) ([]*Node, []*Node) {
		weights := map[string]*Node{}
		for i, name := range names {
			weights[name] = xs[i]
		}
		var perLayer *Node
		if c.perLayer != nil {
			perLayer = xs[len(xs)-1]
		}
		next := []*Node{c.policy.Batch(carry[0])}
		for j := range s.period {
			y, kept := c.step(s, j, weights, next[0], c.perLayerInput(perLayer, j), nn.GatherAgain)
			next[0] = y
			next = append(next, kept...)
		}
		return next, nil
	}
	carry, _ = transform.Scan(body, carry, xs, transform.ScanOptions{Length: s.count, XsSpecs: specs})
	for n, l := range exported {
		c.share(l, carry[1+2*n:3+2*n])
	}
	return carry[0]
}

// stacks returns the stacked tensors that a scan of the segment slices, with their shardings: the weights, by the names
// that the body uses, and last the per-layer inputs [count, period, B, T, P], if any.
func (c *pass) stacks(s segment) (names []string, xs []*Node, specs []sharding.Spec) {
	for j := range s.period {
		for _, w := range c.cfg.layerWeights(c.cfg.Layers[s.layer(0, j)]) {
			name := s.name(j) + "." + w.name
			names, xs, specs = append(names, name), append(xs, c.weights[name]), append(specs, c.specs[name].Stack())
		}
	}
	if c.perLayer != nil {
		slice := SliceAxis(c.perLayer, 0, AxisRange(s.first, s.end()))
		dims := append([]int{s.count, s.period}, slice.Shape().Dimensions[1:]...)
		xs, specs = append(xs, Reshape(slice, dims...)), append(specs, c.policy.BatchSpec(5, 2))
	}
	return names, xs, specs
}
