// Command gen writes the demo's files: records.jsonl, tokenizer.json and config.json. It is run by go generate in
// data/demo; the same program writes the same bytes, which a test checks.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(dir+"/"+name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files by name.
func generate() (map[string][]byte, error) {
	records := makeRecords()
	lines, err := recordsFile(records)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, r := range records {
		texts = append(texts, "Instruction: "+r.Instruction+"\nResponse: "+r.Response, r.Context, "user", "model")
	}
	base, merges := train(texts, vocabSize-len(added)-256)
	tok, err := tokenizerFile(base, merges)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"records.jsonl":  lines,
		"tokenizer.json": tok,
		"config.json":    []byte(strings.TrimLeft(fmt.Sprintf(configTemplate, vocabSize), "\n")),
	}, nil
}

// configTemplate is a Gemma 4 text model with the features of E2B, small: three groups of sliding, sliding, full
// attention, of which the last uses the keys and values of the second; 2.6 million parameters.
const configTemplate = `
{
  "architectures": ["Gemma4ForCausalLM"],
  "model_type": "gemma4_text",
  "vocab_size": %[1]d,
  "hidden_size": 128,
  "intermediate_size": 256,
  "max_position_embeddings": 1024,
  "rms_norm_eps": 1e-06,
  "pad_token_id": 0,
  "bos_token_id": 2,
  "eos_token_id": 1,
  "tie_word_embeddings": true,
  "attention_bias": false,
  "attention_dropout": 0.0,
  "use_cache": false,
  "hidden_activation": "gelu_pytorch_tanh",
  "num_hidden_layers": 9,
  "num_attention_heads": 4,
  "num_key_value_heads": 1,
  "head_dim": 32,
  "global_head_dim": 64,
  "num_global_key_value_heads": null,
  "layer_types": [
    "sliding_attention", "sliding_attention", "full_attention",
    "sliding_attention", "sliding_attention", "full_attention",
    "sliding_attention", "sliding_attention", "full_attention"
  ],
  "sliding_window": 32,
  "rope_parameters": {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}
  },
  "final_logit_softcapping": 30.0,
  "vocab_size_per_layer_input": %[1]d,
  "hidden_size_per_layer_input": 32,
  "num_kv_shared_layers": 3,
  "use_double_wide_mlp": true,
  "attention_k_eq_v": false,
  "enable_moe_block": false,
  "use_bidirectional_attention": null,
  "num_experts": null,
  "top_k_experts": null,
  "moe_intermediate_size": null,
  "dtype": "float32",
  "initializer_range": 0.02
}
`
