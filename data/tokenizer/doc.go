// Package tokenizer reads Hugging Face tokenizer.json files (plain or gzip) and turns text into token ids and back,
// with the ids that the Hugging Face tokenizers library gives.
//
// What a file may contain:
//
//   - model: BPE, with or without byte fallback; no dropout, no subword prefix or suffix
//   - normalizer: none, Replace (of a string), Prepend, or a Sequence of these
//   - pre_tokenizer: none, Split (on a string, every behaviour), or a Sequence of these
//   - added_tokens: all, with lstrip, rstrip, single_word, normalized and special as the file says
//   - post_processor: none or TemplateProcessing (the template of one sequence)
//   - decoder: none, Replace (of a string), ByteFallback, Fuse, Strip, or a Sequence of these
//
// Anything else is refused by name when the file is loaded: a tokenizer that is only nearly right is worse than none.
// The truncation and padding entries are not applied; the data package has its own. tokenizer_config.json is not read.
//
// # Text that is not UTF-8
//
// Encode reads each byte that is not part of valid UTF-8 as U+FFFD, the replacement character.
//
// # Round trip
//
// For valid UTF-8, Decode(Encode(text, false), false) is text after the file's own normalisation and its inverse: with
// Gemma's files that is text with every "▁" (U+2581) turned into a space, and nothing else changed.
package tokenizer
