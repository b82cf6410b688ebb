package gemma

// UsefulFLOPs is the arithmetic that one training step of batch rows of seqLen tokens needs, whatever a program does: of
// products only, two FLOPs for each multiplication and addition. It implements arch.Model.
//
// A matrix costs 2·in·out a token forward, as much again for its input's gradient and as much for its own; a frozen one
// has no gradient of its own, and where nothing before it is trained, none of its input is needed. Attention costs
// 2·2·heads·head dim for each pair of a query and a key that it may see, forward, and twice that backward. The head
// counts, looking up embeddings does not. For a model that is trained as a whole this is 6N a token (Kaplan et al., arXiv
// 2001.08361), N being the parameters in matrices, plus causal attention.
func (m *Model) UsefulFLOPs(batch, seqLen int) float64 {
	u := usefulCounter{model: m, tokens: float64(batch) * float64(seqLen), rows: float64(batch), seqLen: seqLen, trained: map[string]bool{}}
	for _, p := range m.params {
		for _, s := range p.Sources {
			u.trained[s] = p.Trainable
		}
	}
	return u.count()
}

// usefulCounter goes through the model forward. Each value is carried as whether anything that it depends on is trained,
// so that it needs a gradient.
type usefulCounter struct {
	model        *Model
	tokens, rows float64
	seqLen       int
	trained      map[string]bool
	sum          float64
}

func (u *usefulCounter) count() float64 {
	cfg := u.model.cfg
	x := u.trained[nameEmbed]
	perLayer := false
	if cfg.PerLayerDim > 0 {
		context := u.linear(x, namePerLayerProject, len(cfg.Layers)*cfg.PerLayerDim, cfg.HiddenSize)
		perLayer = context || u.trained[namePerLayerNorm] || u.trained[namePerLayerTable]
	}
	shared := map[bool]bool{}
	for i := range cfg.Layers {
		x = u.layer(i, x, perLayer, shared)
	}
	x = x || u.trained[nameFinalNorm]
	u.linear(x, nameEmbed, cfg.VocabSize, cfg.HiddenSize)
	return u.sum
}

// linear counts a product with a matrix and returns whether its result needs a gradient.
func (u *usefulCounter) linear(x bool, name string, out, in int) bool {
	products := 1.0
	if x {
		products++
	}
	if u.trained[name] {
		products++
	}
	u.sum += 2 * products * u.tokens * float64(out) * float64(in)
	return x || u.trained[name]
}

// layer counts layer i for an input x. shared tells of the keys and values of each type of layers that share them.
func (u *usefulCounter) layer(i int, x, perLayer bool, shared map[bool]bool) bool {
	cfg := u.model.cfg
	l, h := cfg.Layers[i], cfg.HiddenSize
	trained := func(names ...string) bool {
		for _, name := range names {
			if u.trained[layerName(i, name)] {
				return true
			}
		}
		return false
	}
	linear := func(x bool, name string, out, in int) bool { return u.linear(x, layerName(i, name), out, in) }

	normed := x || trained("input_layernorm")
	width, kvWidth := cfg.NumHeads*l.HeadDim, l.KVHeads*l.HeadDim
	q := linear(normed, "self_attn.q_proj", width, h) || trained("self_attn.q_norm")
	if !l.SharedKV {
		kv := linear(normed, "self_attn.k_proj", kvWidth, h) || trained("self_attn.k_norm")
		if !l.KeyIsValue {
			kv = linear(normed, "self_attn.v_proj", kvWidth, h) || kv
		}
		shared[l.Sliding] = kv
	}
	attended := u.attention(l, q, shared[l.Sliding])
	x = linear(attended, "self_attn.o_proj", h, width) || x || trained("post_attention_layernorm")

	normed = x || trained("pre_feedforward_layernorm")
	gate, up := linear(normed, "mlp.gate_proj", l.MLPDim, h), linear(normed, "mlp.up_proj", l.MLPDim, h)
	x = linear(gate || up, "mlp.down_proj", h, l.MLPDim) || x || trained("post_feedforward_layernorm")
	if cfg.PerLayerDim > 0 {
		gated := linear(x, "per_layer_input_gate", cfg.PerLayerDim, h) || perLayer
		x = linear(gated, "per_layer_projection", h, cfg.PerLayerDim) || x || trained("post_per_layer_input_norm")
	}
	return x
}

// attention counts the two products forward, the two for the gradients of probabilities and queries or keys, and one for
// each of keys and values.
func (u *usefulCounter) attention(l Layer, q, kv bool) bool {
	products := 2.0
	if q || kv {
		products++
	}
	if q {
		products++
	}
	if kv {
		products += 2
	}
	window := u.seqLen
	if l.Sliding {
		window = u.model.cfg.SlidingWindow
	}
	u.sum += 2 * products * u.rows * visiblePairs(u.seqLen, window) * float64(u.model.cfg.NumHeads*l.HeadDim)
	return q || kv
}

// visiblePairs is the number of pairs of a query and a key that it sees, itself and those before it within the window.
func visiblePairs(seqLen, window int) float64 {
	t, w := float64(seqLen), float64(min(window, seqLen))
	return w*(w+1)/2 + (t-w)*w
}
