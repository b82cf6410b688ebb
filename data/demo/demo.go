// Package demo holds what `weft finetune --demo` runs on: instruction records, a tokenizer and the config of a small
// Gemma 4. All of it is weft's own work, made by the program in gen; nothing was taken from elsewhere.
package demo

import _ "embed"

//go:generate go run ./gen

var (
	//go:embed records.jsonl
	records []byte
	//go:embed tokenizer.json
	tokenizerJSON []byte
	//go:embed config.json
	configJSON []byte
)

// Records returns the instruction records: JSON lines with the fields instruction, context and response.
func Records() []byte { return clone(records) }

// TokenizerJSON returns a tokenizer.json in the form of Gemma's: BPE with byte fallback, 2,048 tokens.
func TokenizerJSON() []byte { return clone(tokenizerJSON) }

// ConfigJSON returns the config.json of a Gemma 4 text model with every feature of E2B (per-layer embeddings, KV
// sharing, double-wide MLP, sliding and full attention in a repeating pattern) and 2,048 words.
func ConfigJSON() []byte { return clone(configJSON) }

func clone(b []byte) []byte { return append([]byte(nil), b...) }
