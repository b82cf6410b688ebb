package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// file is what tokenizer.json holds: the two large tables read by our own scanner, the rest as raw JSON.
type file struct {
	parts map[string]json.RawMessage // top-level entries but "model"
	model map[string]json.RawMessage // entries of "model" but "vocab" and "merges"

	ids    map[string]int32 // the model's vocabulary
	tokens []string         // by id; "" where an id is unused
	merges []merge
}

// merge is one BPE rule: the tokens left and right side by side become one. Its rank is its place in the file.
type merge struct{ left, right string }

// parseFile reads the text of a tokenizer.json.
func parseFile(text string) (*file, error) {
	f := &file{parts: map[string]json.RawMessage{}, model: map[string]json.RawMessage{}}
	s := &scanner{text: text}
	err := s.field(func(key string) error {
		if key == "model" && s.peek() == '{' {
			return s.field(func(key string) error { return f.modelField(s, key) })
		}
		value, err := s.raw()
		f.parts[key] = value
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.peek() != 0 {
		return nil, s.errorf("text after the end of the object")
	}
	if f.ids == nil {
		return nil, errors.New(`it has no model with a "vocab" object`)
	}
	return f, f.indexVocab()
}

func (f *file) modelField(s *scanner, key string) error {
	switch {
	case key == "vocab" && s.peek() == '{':
		f.ids = make(map[string]int32, vocabHint(s))
		return s.field(func(token string) error {
			id, err := s.integer()
			if err != nil {
				return err
			}
			if old, ok := f.ids[token]; ok && old != id {
				return s.errorf("token %q has two ids, %d and %d", token, old, id)
			}
			f.ids[token] = id
			return nil
		})
	case key == "merges" && s.peek() == '[':
		f.merges = make([]merge, 0, 2*len(f.ids))
		return s.each('[', func() error { return f.readMerge(s) })
	}
	value, err := s.raw()
	f.model[key] = value
	return err
}

// vocabHint guesses the number of tokens from the length of the text, so that the map is grown once.
func vocabHint(s *scanner) int { return min((len(s.text)-s.pos)/100, 1<<19) }

// readMerge reads ["a", "b"], or "a b" in older files.
func (f *file) readMerge(s *scanner) error {
	if s.peek() == '"' {
		pair, err := s.str()
		if err != nil {
			return err
		}
		left, right, ok := strings.Cut(pair, " ")
		if !ok || strings.Contains(right, " ") {
			return s.errorf("merge %q is not two tokens with a space between", pair)
		}
		f.merges = append(f.merges, merge{left, right})
		return nil
	}
	var pair [2]string
	n := 0
	err := s.each('[', func() error {
		token, err := s.str()
		if n < 2 {
			pair[n] = token
		}
		n++
		return err
	})
	if err == nil && n != 2 {
		err = s.errorf("merge %d has %d tokens, not 2", len(f.merges), n)
	}
	f.merges = append(f.merges, merge{pair[0], pair[1]})
	return err
}

// indexVocab fills tokens from ids.
func (f *file) indexVocab() error {
	top := int32(-1)
	for _, id := range f.ids {
		top = max(top, id)
	}
	// A hole or two is fine; a wild id would have us allocate gigabytes.
	if int(top) > 2*len(f.ids)+1<<16 {
		return fmt.Errorf("its vocabulary has %d tokens, but an id as high as %d", len(f.ids), top)
	}
	f.tokens = make([]string, top+1)
	used := make([]bool, top+1)
	for token, id := range f.ids {
		if used[id] {
			return fmt.Errorf("tokens %q and %q both have id %d", f.tokens[id], token, id)
		}
		if !utf8.ValidString(token) {
			return fmt.Errorf("token %d is not valid UTF-8", id)
		}
		used[id], f.tokens[id] = true, token
	}
	return nil
}

// notSupported names a part of the file that this package cannot honour.
func notSupported(what, name, known string) error {
	return fmt.Errorf("%s %q is not supported: weft reads %s", what, name, known)
}

// step is one entry of a normalizer, pre_tokenizer or decoder; only the fields of its type are set.
type step struct {
	Type          string
	Pattern       pattern
	Content       string
	Prepend       string
	Behavior      string
	Invert        bool
	Start, Stop   int
	Normalizers   []json.RawMessage
	Pretokenizers []json.RawMessage
	Decoders      []json.RawMessage
}

type pattern struct {
	String *string
	Regex  *string
}

// literal returns the string to look for; a regular expression is refused.
func (p pattern) literal(what string) (string, error) {
	switch {
	case p.Regex != nil:
		return "", notSupported(what+" with the regular expression", *p.Regex, "string patterns only")
	case p.String == nil || *p.String == "":
		return "", fmt.Errorf("%s has an empty pattern", what)
	}
	return *p.String, nil
}

// steps parses a part that may be null, one step, or a Sequence (nested or not) of steps.
func steps(what string, raw json.RawMessage) ([]step, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one step
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if one.Type != "Sequence" {
		return []step{one}, nil
	}
	var all []step
	for _, part := range append(append(one.Normalizers, one.Pretokenizers...), one.Decoders...) {
		inner, err := steps(what, part)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}
