package gemma

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/models/arch"
)

// The names of the tensors in a text-only checkpoint, with which Param.Sources are spelled.
const (
	nameEmbed           = "model.embed_tokens.weight"
	namePerLayerTable   = "model.embed_tokens_per_layer.weight"
	namePerLayerProject = "model.per_layer_model_projection.weight"
	namePerLayerNorm    = "model.per_layer_projection_norm.weight"
	nameFinalNorm       = "model.norm.weight"
)

// layerName is the checkpoint's name of a weight of layer i. The layer scalar is a buffer, without `.weight`.
func layerName(i int, weight string) string {
	if weight == layerScalar {
		return fmt.Sprintf("model.layers.%d.%s", i, weight)
	}
	return fmt.Sprintf("model.layers.%d.%s.weight", i, weight)
}

// shortName is what a user calls a tensor: its name without `model.` and `.weight`.
func shortName(source string) string {
	return strings.TrimSuffix(strings.TrimPrefix(source, "model."), ".weight")
}

// TextPrefixes lists what checkpoints put in the place of the leading `model.` of a text-only name: first the way of
// this kind of file, then ways that other versions of transformers saved.
func (m *Model) TextPrefixes() []string {
	switch {
	case !m.cfg.Multimodal:
		return []string{"model."}
	case m.cfg.Generation == 3:
		return []string{"language_model.model.", "model.language_model."}
	}
	return []string{"model.language_model.", "language_model.model."}
}

// otherTowers are the modules of a multimodal checkpoint that are not the text model.
var otherTowers = regexp.MustCompile(`^(model\.)?(vision_tower|vision_embedder|multi_modal_projector|embed_vision|audio_tower|embed_audio)\.`)

var layerIndex = regexp.MustCompile(`^model\.layers\.(\d+)\.(.+)$`)

// Classify tells what a tensor without a parameter is: vision and audio modules, rotary buffers of old files and keys
// and values of layers that use another layer's are untouched, a head saved beside the tied embedding is derived.
func (m *Model) Classify(name, text string) arch.Extra {
	switch {
	case strings.HasSuffix(name, "lm_head.weight"):
		return arch.Derived
	case m.cfg.Multimodal && otherTowers.MatchString(name), strings.HasSuffix(name, ".rotary_emb.inv_freq"), m.cfg.strayKV(text):
		return arch.Untouched
	}
	return arch.Unexpected
}

// strayKV tells whether the tensor is a key or value weight of a layer that uses another layer's.
func (c *Config) strayKV(text string) bool {
	found := layerIndex.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	i, err := strconv.Atoi(found[1])
	if err != nil || i >= len(c.Layers) || !c.Layers[i].SharedKV {
		return false
	}
	switch found[2] {
	case "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.k_norm.weight", "self_attn.v_norm.weight":
		return true
	}
	return false
}
