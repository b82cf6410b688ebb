package gemma

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
)

// Config is a Gemma 3 or Gemma 4 text model, read from config.json and checked.
type Config struct {
	// Generation is 3 or 4.
	Generation int
	// Multimodal tells that the file has a text_config: the checkpoint has vision (and audio) tensors beside the text model's.
	Multimodal bool

	VocabSize, HiddenSize, NumHeads int
	// MaxPositions is the longest sequence that the model was made for.
	MaxPositions int
	// Layers describes each decoder layer.
	Layers []Layer
	// SlidingWindow is the number of keys, itself included, that a query of a sliding layer sees.
	SlidingWindow int
	// SlidingRoPE and FullRoPE are the rotary embeddings of the two types of layers.
	SlidingRoPE, FullRoPE RoPE
	// AttentionScale multiplies the scores.
	AttentionScale float64
	// RMSNormEps is added to the mean square.
	RMSNormEps float64
	// FinalSoftcap caps the logits; 0 is no cap.
	FinalSoftcap float64
	// PerLayerDim is the size of one layer's per-layer embedding, 0 for a model without; PerLayerVocab its vocabulary.
	PerLayerDim, PerLayerVocab int

	// InitializerRange is the standard deviation of random weights.
	InitializerRange float64
	// DType is the dtype that the file declares for its weights, Float32 when it declares none.
	DType dtypes.DType
	// BOS, EOS and Pad are token ids; Pad is -1 when the file has none.
	BOS, EOS []int
	Pad      int
}

// Layer describes one decoder layer. Layers that compare equal have weights of the same shapes and the same mathematics.
type Layer struct {
	// Sliding layers attend to a window, the others to everything before.
	Sliding bool
	// SharedKV layers own no keys and values: they use those of the last owning layer of their type.
	SharedKV bool
	// KeyIsValue layers have no v_proj: the value is the projected key, before the key's norm.
	KeyIsValue bool
	// HeadDim, KVHeads and MLPDim are the layer's own sizes.
	HeadDim, KVHeads, MLPDim int
}

// RoPE is a rotary position embedding.
type RoPE struct {
	Theta float64
	// Factor divides all frequencies (rope_type linear); 1 without.
	Factor float64
	// Rotated is the share of the frequencies that turn (rope_type proportional); 1 when all do.
	Rotated float64
}

// ModelTypes lists the model_type values that ParseConfig accepts.
var ModelTypes = []string{"gemma3", "gemma3_text", "gemma4", "gemma4_text"}

// unsupportedTypes are relatives that a user may well try.
var unsupportedTypes = []string{"gemma", "gemma2", "gemma3n", "gemma3n_text", "recurrent_gemma", "paligemma"}

// ParseConfig reads config.json as released and as transformers 5 saves it, text-only and multimodal. An unknown
// architecture, a missing field, a feature without support or values that contradict each other are one error that
// names the field.
func ParseConfig(raw []byte) (*Config, error) {
	cfg, err := parseConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	return cfg, nil
}

func parseConfig(raw []byte) (*Config, error) {
	root := &fields{}
	if err := json.Unmarshal(raw, &root.members); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	generation, multimodal, err := family(root)
	if err != nil {
		return nil, err
	}
	text := root
	if multimodal {
		root.need("text_config")
		text = root.object("text_config")
	}
	cfg := &Config{Generation: generation, Multimodal: multimodal}
	cfg.readSizes(text)
	cfg.readLayers(text)
	cfg.readRoPE(text)
	cfg.readTokens(root, text)
	rejectUnsupported(root, text)
	if err := errors.Join(root.err, text.err); err != nil {
		return nil, firstLine(err)
	}
	return cfg, cfg.check(text.path)
}

// firstLine keeps one fault of several: one error at a time is what a user can act on.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}

// family finds the generation and whether the text model is nested.
func family(root *fields) (generation int, multimodal bool, err error) {
	modelType := root.string("model_type", "")
	architectures := root.strings("architectures")
	if root.err != nil {
		return 0, false, root.err
	}
	if modelType == "" {
		for _, a := range architectures {
			modelType = map[string]string{
				"Gemma3ForCausalLM": "gemma3_text", "Gemma3ForConditionalGeneration": "gemma3",
				"Gemma4ForCausalLM": "gemma4_text", "Gemma4ForConditionalGeneration": "gemma4",
			}[a]
		}
	}
	switch {
	case slices.Contains(unsupportedTypes, modelType):
		return 0, false, fmt.Errorf("field %q is %q, which is not supported yet: use one of %s", "model_type", modelType, strings.Join(ModelTypes, ", "))
	case !slices.Contains(ModelTypes, modelType):
		return 0, false, fmt.Errorf("unknown architecture (model_type %q, architectures %q): use one of %s", modelType, architectures, strings.Join(ModelTypes, ", "))
	}
	generation = int(modelType[len("gemma")] - '0')
	return generation, !strings.HasSuffix(modelType, "_text"), nil
}

// readSizes reads the scalars. Fields that released files leave out take the defaults of transformers' Gemma3TextConfig;
// Gemma 4 files are complete.
func (c *Config) readSizes(f *fields) {
	f.need("hidden_size", "intermediate_size", "num_hidden_layers")
	if c.Generation == 4 {
		f.need("vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim", "layer_types", "sliding_window", "hidden_size_per_layer_input")
	}
	c.VocabSize = f.positive("vocab_size", 262208)
	c.HiddenSize = f.positive("hidden_size", 0)
	c.NumHeads = f.positive("num_attention_heads", 8)
	c.MaxPositions = f.positive("max_position_embeddings", 131072)
	c.SlidingWindow = f.positive("sliding_window", 4096)
	c.RMSNormEps = f.positiveFloat("rms_norm_eps", 1e-6)
	c.FinalSoftcap = f.positiveFloat("final_logit_softcapping", 0)
	c.InitializerRange = f.positiveFloat("initializer_range", 0.02)
	c.AttentionScale = 1
	if c.Generation == 3 {
		c.AttentionScale = 1 / math.Sqrt(f.positiveFloat("query_pre_attn_scalar", 256))
	} else if c.PerLayerDim = f.count("hidden_size_per_layer_input", 0); c.PerLayerDim > 0 {
		c.PerLayerVocab = f.positive("vocab_size_per_layer_input", c.VocabSize)
	}
}

func (c *Config) readLayers(f *fields) {
	n := f.positive("num_hidden_layers", 1)
	types := f.strings("layer_types")
	if types == nil && c.Generation == 3 {
		types = patternedTypes(n, f.positive("sliding_window_pattern", f.positive("_sliding_window_pattern", 6)))
	}
	if f.err != nil {
		return
	}
	if len(types) != n {
		f.fail("layer_types", "has %d entries, num_hidden_layers is %d: they must agree", len(types), n)
		return
	}
	shared, doubleWide, keyIsValue := 0, false, false
	if c.Generation == 4 {
		shared = f.count("num_kv_shared_layers", 0)
		doubleWide = f.bool("use_double_wide_mlp", false)
		keyIsValue = f.bool("attention_k_eq_v", false)
	}
	if shared >= n {
		f.fail("num_kv_shared_layers", "is %d of %d layers: at least one must own its keys and values", shared, n)
		return
	}
	for i, t := range types {
		if t != "sliding_attention" && t != "full_attention" {
			f.fail("layer_types", "has %q at layer %d: use sliding_attention or full_attention", t, i)
			return
		}
		l := Layer{
			Sliding: t == "sliding_attention", SharedKV: i >= n-shared,
			HeadDim: f.positive("head_dim", 256), KVHeads: f.positive("num_key_value_heads", 4), MLPDim: f.positive("intermediate_size", 1),
		}
		l.KeyIsValue = keyIsValue && !l.Sliding && !l.SharedKV
		if doubleWide && l.SharedKV {
			l.MLPDim *= 2
		}
		c.Layers = append(c.Layers, l)
	}
	if c.Generation == 4 {
		c.readGlobalHeads(f, keyIsValue)
	}
}

// patternedTypes makes every pattern-th layer a full one.
func patternedTypes(n, pattern int) []string {
	types := make([]string, n)
	for i := range types {
		types[i] = "sliding_attention"
		if (i+1)%pattern == 0 {
			types[i] = "full_attention"
		}
	}
	return types
}

// readGlobalHeads reads the head sizes of full layers: global_head_dim and num_global_key_value_heads in released
// files, per_layer_config in newer ones.
func (c *Config) readGlobalHeads(f *fields, keyIsValue bool) {
	if !f.has("per_layer_config") {
		f.need("global_head_dim")
	}
	for i := range c.Layers {
		if l := &c.Layers[i]; !l.Sliding {
			l.HeadDim = f.positive("global_head_dim", l.HeadDim)
			if keyIsValue {
				l.KVHeads = f.positive("num_global_key_value_heads", l.KVHeads)
			}
		}
	}
	perLayer := f.object("per_layer_config")
	for key := range perLayer.members {
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(c.Layers) {
			perLayer.fail(key, "names no layer of %d", len(c.Layers))
			break
		}
		o := perLayer.object(key)
		for name := range o.members {
			o.reject(name, name != "head_dim" && name != "num_key_value_heads", "this field of one layer")
		}
		dim := o.positive("head_dim", c.Layers[i].HeadDim)
		if f.has("global_head_dim") && dim != c.Layers[i].HeadDim {
			o.fail("head_dim", "is %d, global_head_dim makes it %d: they must agree", dim, c.Layers[i].HeadDim)
		}
		c.Layers[i].HeadDim = dim
		c.Layers[i].KVHeads = o.positive("num_key_value_heads", c.Layers[i].KVHeads)
		perLayer.take(o)
	}
	f.take(perLayer)
}

func (c *Config) readRoPE(f *fields) {
	sliding := RoPE{Theta: 10_000, Factor: 1, Rotated: 1}
	full := RoPE{Theta: 1_000_000, Factor: 1, Rotated: 1}
	if f.has("rope_parameters") {
		o := f.object("rope_parameters")
		o.need("sliding_attention", "full_attention")
		sliding = readRoPE(o, "sliding_attention", sliding)
		full = readRoPE(o, "full_attention", full)
		f.take(o)
	} else if c.Generation == 3 {
		sliding.Theta = f.positiveFloat("rope_local_base_freq", sliding.Theta)
		full.Theta = f.positiveFloat("rope_theta", full.Theta)
		full = readRoPE(f, "rope_scaling", full)
	} else {
		full.Rotated = 0.25
	}
	c.SlidingRoPE, c.FullRoPE = sliding, full
}

func readRoPE(f *fields, key string, r RoPE) RoPE {
	o := f.object(key)
	r.Theta = o.positiveFloat("rope_theta", r.Theta)
	kind := o.string("rope_type", o.string("type", "default"))
	switch kind {
	case "default":
		o.reject("partial_rotary_factor", o.has("partial_rotary_factor") && o.float("partial_rotary_factor", 1) != 1, "a partial rotation with rope_type default")
	case "linear":
		o.need("factor")
		r.Factor = o.positiveFloat("factor", 1)
	case "proportional":
		r.Factor = o.positiveFloat("factor", 1)
		r.Rotated = o.positiveFloat("partial_rotary_factor", 1)
		if r.Rotated > 1 {
			o.fail("partial_rotary_factor", "is %v: it must not be above 1", r.Rotated)
		}
	default:
		o.fail("rope_type", "is %q, which is not supported yet: default, linear and proportional are", kind)
	}
	f.take(o)
	return r
}

func (c *Config) readTokens(root, text *fields) {
	pick := func(key string) []int {
		if v := text.ids(key); v != nil {
			return v
		}
		return root.ids(key)
	}
	c.BOS, c.EOS, c.Pad = pick("bos_token_id"), pick("eos_token_id"), -1
	if pad := pick("pad_token_id"); len(pad) > 0 {
		c.Pad = pad[0]
	}
	name := "float32"
	for _, f := range []*fields{root, text} {
		name = f.string("torch_dtype", f.string("dtype", name))
	}
	switch strings.TrimPrefix(name, "torch.") {
	case "float32":
		c.DType = dtypes.Float32
	case "bfloat16":
		c.DType = dtypes.BFloat16
	case "float16":
		c.DType = dtypes.Float16
	default:
		text.fail("dtype", "is %q: use float32, bfloat16 or float16", name)
	}
}

// rejectUnsupported names what the mathematics here does not do.
func rejectUnsupported(root, f *fields) {
	f.reject("attention_bias", f.bool("attention_bias", false), "a bias in the attention projections")
	f.reject("attention_dropout", f.float("attention_dropout", 0) != 0, "dropout")
	f.reject("attn_logit_softcapping", f.has("attn_logit_softcapping"), "a cap on attention scores")
	f.reject("enable_moe_block", f.bool("enable_moe_block", false), "a mixture of experts")
	f.reject("num_experts", f.has("num_experts"), "a mixture of experts")
	for _, o := range []*fields{root, f} {
		o.reject("tie_word_embeddings", !o.bool("tie_word_embeddings", true), "a head apart from the embedding")
	}
	activation := f.string("hidden_activation", f.string("hidden_act", "gelu_pytorch_tanh"))
	f.reject("hidden_activation", activation != "gelu_pytorch_tanh", "an activation but gelu_pytorch_tanh")
	if raw := string(f.members["use_bidirectional_attention"]); raw != "" {
		// "vision" concerns image tokens only: text stays causal.
		f.reject("use_bidirectional_attention", !slices.Contains([]string{"null", "false", `"vision"`}, raw), "attention to later tokens")
	}
}

// check compares values with each other.
func (c *Config) check(path string) error {
	fault := func(key, format string, args ...any) error {
		return fmt.Errorf("field %q %s", path+key, fmt.Sprintf(format, args...))
	}
	owner := map[bool]bool{}
	for i, l := range c.Layers {
		switch {
		case c.NumHeads%l.KVHeads != 0:
			return fault("num_attention_heads", "is %d, layer %d has %d key/value heads: it must be a multiple", c.NumHeads, i, l.KVHeads)
		case l.HeadDim%2 != 0:
			return fault("head_dim", "is %d at layer %d: rotary embeddings need an even one", l.HeadDim, i)
		case l.SharedKV && !owner[l.Sliding]:
			return fault("num_kv_shared_layers", "makes layer %d share keys and values, but no layer of its type before owns any", i)
		}
		owner[l.Sliding] = owner[l.Sliding] || !l.SharedKV
	}
	if c.Generation == 4 && c.Layers[len(c.Layers)-1].Sliding {
		return fault("layer_types", "ends with sliding_attention: the last layer of a Gemma 4 must be full_attention")
	}
	for _, l := range c.Layers {
		last := c.lastOwner(l.Sliding)
		if l.SharedKV && (c.Layers[last].HeadDim != l.HeadDim || c.Layers[last].KVHeads != l.KVHeads) {
			return fault("num_kv_shared_layers", "makes layers of other head sizes share the keys and values of layer %d", last)
		}
	}
	return nil
}

// lastOwner is the last layer of a type that owns its keys and values, -1 without one.
func (c *Config) lastOwner(sliding bool) int {
	last := -1
	for i, l := range c.Layers {
		if l.Sliding == sliding && !l.SharedKV {
			last = i
		}
	}
	return last
}

// rope returns the rotary embedding of a layer's type.
func (c *Config) rope(sliding bool) RoPE {
	if sliding {
		return c.SlidingRoPE
	}
	return c.FullRoPE
}

// Frequencies returns the headDim/2 angular frequencies in float32, computed as torch does: the exponent runs over the
// full head dimension, and frequencies that do not turn are 0.
func (r RoPE) Frequencies(headDim int) []float32 {
	f := make([]float32, headDim/2)
	for i := range int(r.Rotated * float64(headDim) / 2) {
		exponent := float32(2*i) / float32(headDim)
		f[i] = 1 / float32(math.Pow(r.Theta, float64(exponent))) / float32(r.Factor)
	}
	return f
}
