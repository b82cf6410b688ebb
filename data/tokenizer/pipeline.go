package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// normalizer returns the file's normaliser as one function, nil if there is none.
func normalizer(raw json.RawMessage) (func(string) string, error) {
	list, err := steps("normalizer", raw)
	if err != nil {
		return nil, err
	}
	var all []func(string) string
	for _, s := range list {
		switch s.Type {
		case "Replace":
			old, err := s.Pattern.literal("normalizer Replace")
			if err != nil {
				return nil, err
			}
			all = append(all, func(text string) string { return strings.ReplaceAll(text, old, s.Content) })
		case "Prepend":
			all = append(all, func(text string) string {
				if text == "" {
					return ""
				}
				return s.Prepend + text
			})
		default:
			return nil, notSupported("normalizer", s.Type, "Replace, Prepend and Sequence")
		}
	}
	return func(text string) string {
		for _, f := range all {
			text = f(text)
		}
		return text
	}, nil
}

// preTokenizer returns the file's pre-tokenizer: a cut of a text into words that BPE sees one by one.
func preTokenizer(raw json.RawMessage) ([]func(string) []string, error) {
	list, err := steps("pre_tokenizer", raw)
	if err != nil {
		return nil, err
	}
	var all []func(string) []string
	for _, s := range list {
		if s.Type != "Split" {
			return nil, notSupported("pre_tokenizer", s.Type, "Split and Sequence")
		}
		sep, err := s.Pattern.literal("pre_tokenizer Split")
		if err != nil {
			return nil, err
		}
		behaviors := []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}
		if !slices.Contains(behaviors, s.Behavior) {
			return nil, notSupported("pre_tokenizer Split with behavior", s.Behavior, strings.Join(behaviors, ", "))
		}
		all = append(all, func(text string) []string { return splitOn(text, sep, s.Behavior, s.Invert) })
	}
	return all, nil
}

// splitOn cuts text at each sep and does with the separators what behavior says; invert swaps the roles of
// separators and of what lies between.
func splitOn(text, sep, behavior string, invert bool) []string {
	if behavior == "MergedWithPrevious" && !invert { // what Gemma has: no need for the general way
		return strings.SplitAfter(text, sep)
	}
	type part struct {
		text    string
		matched bool
	}
	var parts []part
	for rest := text; rest != ""; {
		i := strings.Index(rest, sep)
		if i < 0 {
			parts = append(parts, part{rest, invert})
			break
		}
		if i > 0 {
			parts = append(parts, part{rest[:i], invert})
		}
		parts = append(parts, part{rest[i : i+len(sep)], !invert})
		rest = rest[i+len(sep):]
	}
	var out []string
	glue := false // the next part joins the last of out
	for i, p := range parts {
		join := glue
		glue = false
		switch behavior {
		case "Removed":
			if p.matched {
				continue
			}
		case "Contiguous":
			join = i > 0 && parts[i-1].matched == p.matched
		case "MergedWithPrevious":
			join = p.matched && i > 0 && !parts[i-1].matched
		case "MergedWithNext":
			join = join && !p.matched
			glue = p.matched
		}
		if join {
			out[len(out)-1] += p.text
		} else {
			out = append(out, p.text)
		}
	}
	return out
}

// postProcessor returns the ids that the file puts before and after a single sequence.
func postProcessor(raw json.RawMessage) (before, after []int32, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil, nil
	}
	type special struct {
		IDs []int32 `json:"ids"`
	}
	var p struct {
		Type   string
		Single []struct {
			SpecialToken *struct{ ID string }
			Sequence     *struct{ ID string }
		}
		SpecialTokens map[string]special `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, nil, fmt.Errorf("post_processor: %w", err)
	}
	if p.Type != "TemplateProcessing" {
		return nil, nil, notSupported("post_processor", p.Type, "TemplateProcessing")
	}
	sequences := 0
	for _, item := range p.Single {
		switch {
		case item.Sequence != nil:
			sequences++
		case item.SpecialToken != nil:
			token, ok := p.SpecialTokens[item.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("post_processor: its template names %q, which special_tokens lacks", item.SpecialToken.ID)
			}
			if sequences == 0 {
				before = append(before, token.IDs...)
			} else {
				after = append(after, token.IDs...)
			}
		}
	}
	if sequences != 1 {
		return nil, nil, fmt.Errorf("post_processor: the template of a single sequence has %d sequences", sequences)
	}
	return before, after, nil
}

// decodeStep turns tokens into text, step by step.
type decodeStep func(tokens []string) []string

// decoder returns the file's decoder.
func decoder(raw json.RawMessage) ([]decodeStep, error) {
	list, err := steps("decoder", raw)
	if err != nil {
		return nil, err
	}
	var all []decodeStep
	for _, s := range list {
		switch s.Type {
		case "Replace":
			old, err := s.Pattern.literal("decoder Replace")
			if err != nil {
				return nil, err
			}
			all = append(all, eachToken(func(token string) string { return strings.ReplaceAll(token, old, s.Content) }))
		case "ByteFallback":
			all = append(all, joinBytes)
		case "Fuse":
			all = append(all, func(tokens []string) []string { return []string{strings.Join(tokens, "")} })
		case "Strip":
			if utf8.RuneCountInString(s.Content) != 1 {
				return nil, fmt.Errorf("decoder Strip: %q is not one character", s.Content)
			}
			all = append(all, eachToken(func(token string) string { return strip(token, s.Content, s.Start, s.Stop) }))
		default:
			return nil, notSupported("decoder", s.Type, "Replace, ByteFallback, Fuse, Strip and Sequence")
		}
	}
	return all, nil
}

func eachToken(f func(string) string) decodeStep {
	return func(tokens []string) []string {
		for i, token := range tokens {
			tokens[i] = f(token)
		}
		return tokens
	}
}

// strip removes up to start copies of content at the front and up to stop at the back.
func strip(token, content string, start, stop int) string {
	for ; start > 0 && strings.HasPrefix(token, content); start-- {
		token = token[len(content):]
	}
	for ; stop > 0 && strings.HasSuffix(token, content); stop-- {
		token = token[:len(token)-len(content)]
	}
	return token
}

// joinBytes turns each run of byte tokens into the text that they spell, or into one U+FFFD a byte if they spell
// none.
func joinBytes(tokens []string) []string {
	var out []string
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			out = append(out, strings.Repeat("\uFFFD", len(run)))
		}
		run = run[:0]
	}
	for _, token := range tokens {
		if b, ok := byteToken(token); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out
}

// byteToken reads a token of the form <0xNN>.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	hi, lo := hexDigit(token[3]), hexDigit(token[4])
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
