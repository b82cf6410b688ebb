package gemma

import (
	"fmt"
	"path"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"weft/engine"
	"weft/engine/sharding"
)

// layerScalar is the buffer that multiplies a Gemma 4 layer's output.
const layerScalar = "layer_scalar"

// weight is one tensor of a layer: its name below the layer and its shape.
type weight struct {
	name string
	dims []int
}

// layerWeights lists the tensors of a layer, in the order in which they are used.
func (c *Config) layerWeights(l Layer) []weight {
	h, q, kv := c.HiddenSize, c.NumHeads*l.HeadDim, l.KVHeads*l.HeadDim
	w := []weight{
		{"input_layernorm", []int{h}},
		{"self_attn.q_proj", []int{q, h}},
		{"self_attn.q_norm", []int{l.HeadDim}},
	}
	if !l.SharedKV {
		w = append(w, weight{"self_attn.k_proj", []int{kv, h}}, weight{"self_attn.k_norm", []int{l.HeadDim}})
		if !l.KeyIsValue {
			w = append(w, weight{"self_attn.v_proj", []int{kv, h}})
		}
	}
	w = append(w,
		weight{"self_attn.o_proj", []int{h, q}},
		weight{"post_attention_layernorm", []int{h}},
		weight{"pre_feedforward_layernorm", []int{h}},
		weight{"mlp.gate_proj", []int{l.MLPDim, h}},
		weight{"mlp.up_proj", []int{l.MLPDim, h}},
		weight{"mlp.down_proj", []int{h, l.MLPDim}},
		weight{"post_feedforward_layernorm", []int{h}},
	)
	if c.PerLayerDim > 0 {
		w = append(w,
			weight{"per_layer_input_gate", []int{c.PerLayerDim, h}},
			weight{"per_layer_projection", []int{h, c.PerLayerDim}},
			weight{"post_per_layer_input_norm", []int{h}},
		)
	}
	if c.Generation == 4 {
		w = append(w, weight{layerScalar, []int{1}})
	}
	return w
}

// globalWeights lists the tensors outside of the layers, by checkpoint name.
func (c *Config) globalWeights() []weight {
	w := []weight{{nameEmbed, []int{c.VocabSize, c.HiddenSize}}}
	if c.PerLayerDim > 0 {
		all := len(c.Layers) * c.PerLayerDim
		w = append(w,
			weight{namePerLayerTable, []int{c.PerLayerVocab, all}},
			weight{namePerLayerProject, []int{all, c.HiddenSize}},
			weight{namePerLayerNorm, []int{c.PerLayerDim}},
		)
	}
	return append(w, weight{nameFinalNorm, []int{c.HiddenSize}})
}

// freezer matches tensors against the patterns of Options.Freeze.
type freezer struct {
	patterns []string
	used     []bool
}

func newFreezer(patterns []string) (*freezer, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("freeze pattern %q: %w", p, err)
		}
	}
	return &freezer{patterns, make([]bool, len(patterns))}, nil
}

// frozen tells whether a pattern matches the checkpoint's name or its short form.
func (f *freezer) frozen(source string) bool {
	hit := false
	for i, p := range f.patterns {
		for _, name := range []string{source, shortName(source)} {
			if ok, _ := path.Match(p, name); ok {
				f.used[i], hit = true, true
			}
		}
	}
	return hit
}

func (f *freezer) unused() error {
	for i, p := range f.patterns {
		if !f.used[i] {
			return fmt.Errorf("freeze pattern %q matches no tensor of the model: match names such as %q or %q", p, shortName(nameEmbed), "layers.*.mlp.*")
		}
	}
	return nil
}

// kind is what two layers must have in common to be run by one body.
type kind struct {
	Layer
	frozen string // the names of the layer's frozen weights
}

// declare fills segments and params.
func (m *Model) declare() error {
	f, err := newFreezer(m.opts.Freeze)
	if err != nil {
		return err
	}
	kinds := make([]kind, len(m.cfg.Layers))
	for i, l := range m.cfg.Layers {
		var names []string
		for _, w := range m.cfg.layerWeights(l) {
			if f.frozen(layerName(i, w.name)) {
				names = append(names, w.name)
			}
		}
		kinds[i] = kind{l, strings.Join(names, " ")}
	}
	m.segments = unrolled(len(kinds))
	if m.opts.Scan {
		m.segments = findSegments(kinds)
	}
	m.specs = map[string]sharding.Spec{}
	for _, w := range m.cfg.globalWeights() {
		m.add(shortName(w.name), w.dims, nil, f.frozen(w.name), []string{w.name})
	}
	for _, s := range m.segments {
		for j := range s.period {
			l := m.cfg.Layers[s.layer(0, j)]
			for _, w := range m.cfg.layerWeights(l) {
				var sources []string
				for r := range s.count {
					sources = append(sources, layerName(s.layer(r, j), w.name))
				}
				m.add(s.name(j)+"."+w.name, w.dims, sources, f.frozen(sources[0]), sources)
			}
		}
	}
	return f.unused()
}

// add declares one parameter; stack is nil outside of the layers. A stack of one is the tensor itself.
func (m *Model) add(name string, dims []int, stack []string, frozen bool, sources []string) {
	p := engine.Param{Name: name, DType: dtypes.Float32, Dims: dims, Trainable: !frozen, Sources: sources}
	p.Spec = m.spec(sources[0], dims)
	m.specs[name] = p.Spec
	if len(stack) > 1 {
		p.Dims = append([]int{len(stack)}, dims...)
		p.Spec = p.Spec.Stack()
	}
	if strings.HasSuffix(name, "."+layerScalar) {
		p.Trainable = false
	} else if frozen {
		p.DType = m.opts.FrozenDType
	}
	m.params = append(m.params, p)
}
