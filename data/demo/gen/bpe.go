package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// vocabSize is the number of tokens of the demo's tokenizer.
const vocabSize = 2048

const space = "▁"

// added are the tokens in front of the vocabulary, as in Gemma's files: four of a text, two of a chat, line ends.
var added = []string{"<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "\n", "\n\n"}

const specials = 6 // of added, the first

// pair is two neighbouring symbols.
type pair struct{ left, right string }

// word is a stretch that merges do not leave, as symbols, and how often it occurs.
type word struct {
	symbols []string
	count   int
}

// cut splits a text into words: a space belongs to what follows; letters hold together, all else stands alone, so
// that digits and signs are tokens of their own.
func cut(text string) (out []string) {
	letters := false
	for _, r := range text {
		c := strings.ReplaceAll(string(r), " ", space)
		switch {
		case c == space, len(out) == 0:
			out = append(out, c)
		case unicode.IsLetter(r) && (letters || out[len(out)-1] == space):
			out[len(out)-1] += c
		default:
			out = append(out, c)
		}
		letters = unicode.IsLetter(r)
	}
	return out
}

// train returns the base symbols of the texts, sorted, and the merges that make tokens until there are limit of both
// or no pair occurs twice. The most frequent pair goes first, the first in the alphabet of equals.
func train(texts []string, limit int) (base []string, merges []pair) {
	counts := map[string]int{}
	for _, text := range texts {
		for _, w := range cut(text) {
			counts[w]++
		}
	}
	letters := map[string]bool{space: true}
	for c := ' ' + 1; c < 127; c++ { // all of ASCII, seen or not
		letters[string(c)] = true
	}
	var words []word
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		symbols := strings.Split(w, "")
		for _, s := range symbols {
			letters[s] = s != "\n"
		}
		words = append(words, word{symbols, counts[w]})
	}
	maps.DeleteFunc(letters, func(_ string, keep bool) bool { return !keep })
	base = slices.Sorted(maps.Keys(letters))
	for len(base)+len(merges) < limit {
		best, ok := mostFrequent(words)
		if !ok {
			break
		}
		merges = append(merges, best)
		for i := range words {
			words[i].merge(best)
		}
	}
	return base, merges
}

func mostFrequent(words []word) (best pair, ok bool) {
	counts := map[pair]int{}
	for _, w := range words {
		for i := range len(w.symbols) - 1 {
			counts[pair{w.symbols[i], w.symbols[i+1]}] += w.count
		}
	}
	most := 1
	for p, n := range counts {
		if n > most || n == most && ok && (p.left < best.left || p.left == best.left && p.right < best.right) {
			best, most, ok = p, n, true
		}
	}
	return best, ok
}

func (w *word) merge(p pair) {
	for i := 0; i < len(w.symbols)-1; i++ {
		if w.symbols[i] == p.left && w.symbols[i+1] == p.right {
			w.symbols = slices.Replace(w.symbols, i, i+2, p.left+p.right)
		}
	}
}

// tokenizerFile returns a tokenizer.json with the shape of Gemma 3's.
func tokenizerFile(base []string, merges []pair) ([]byte, error) {
	tokens := slices.Clone(added)
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
	}
	tokens = append(tokens, base...)
	for _, m := range merges {
		if whole := m.left + m.right; !slices.Contains(tokens, whole) {
			tokens = append(tokens, whole)
		}
	}
	if len(tokens) > vocabSize {
		return nil, fmt.Errorf("%d tokens, more than %d", len(tokens), vocabSize)
	}
	used := len(tokens)
	for i := 0; len(tokens) < vocabSize; i++ {
		tokens = append(tokens, fmt.Sprintf("<unused%d>", i))
	}
	var out bytes.Buffer
	out.WriteString("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [\n")
	for i, content := range tokens {
		if i >= len(added) && i < used {
			continue
		}
		fmt.Fprintf(&out, "    {\"id\": %d, \"content\": %s, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "+
			"\"normalized\": false, \"special\": %v}%s\n", i, quote(content), i < specials, comma(i < vocabSize-1 && (used < vocabSize || i < len(added)-1)))
	}
	out.WriteString(pipelineJSON)
	for i, token := range tokens {
		fmt.Fprintf(&out, "      %s: %d%s\n", quote(token), i, comma(i < len(tokens)-1))
	}
	out.WriteString("    },\n    \"merges\": [\n")
	for i, m := range merges {
		fmt.Fprintf(&out, "      [%s, %s]%s\n", quote(m.left), quote(m.right), comma(i < len(merges)-1))
	}
	out.WriteString("    ]\n  }\n}\n")
	return out.Bytes(), nil
}

// pipelineJSON is everything between the added tokens and the vocabulary.
const pipelineJSON = `  ],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false},
  "post_processor": {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
      {"SpecialToken": {"id": "<bos>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}
  },
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": "<unk>",
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": true,
    "byte_fallback": true,
    "ignore_merges": false,
    "vocab": {
`

func quote(token string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(token); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSpace(out.String())
}

func comma(more bool) string {
	if more {
		return ","
	}
	return ""
}
