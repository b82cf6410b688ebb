package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// scanner walks JSON text without copying it. It exists because encoding/json takes several seconds for the 262,144
// tokens and half a million merges of a Gemma vocabulary.
type scanner struct {
	text string
	pos  int
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("not valid JSON for a tokenizer at byte %d: %s", s.pos, fmt.Sprintf(format, args...))
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

func (s *scanner) expect(c byte) error {
	if got := s.peek(); got != c {
		if got == 0 {
			return s.errorf("the text ends where %q should stand", c)
		}
		return s.errorf("%q where %q should stand", got, c)
	}
	s.pos++
	return nil
}

// each calls item for every element of the array or object that starts here; open is '[' or '{'.
func (s *scanner) each(open byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	end := byte(']')
	if open == '{' {
		end = '}'
	}
	if s.peek() == end {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.peek() == end {
			s.pos++
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// field calls item for every key of the object that starts here, with the scanner at the key's value.
func (s *scanner) field(item func(key string) error) error {
	return s.each('{', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return item(key)
	})
}

// str reads a string; without escapes it is a part of the text, not a copy.
func (s *scanner) str() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	start := s.pos
	// IndexByte is vectorised; most tokens are short, so look for the quote first and for escapes inside.
	end := strings.IndexByte(s.text[start:], '"')
	if end < 0 {
		return "", s.errorf("a string does not end")
	}
	if strings.IndexByte(s.text[start:start+end], '\\') < 0 {
		s.pos = start + end + 1
		return s.text[start : start+end], nil
	}
	if err := s.skipString(); err != nil {
		return "", err
	}
	var out string
	if err := json.Unmarshal([]byte(s.text[start-1:s.pos]), &out); err != nil {
		return "", s.errorf("string %s: %v", s.text[start-1:s.pos], err)
	}
	return out, nil
}

// skipString moves past a string whose opening quote was read.
func (s *scanner) skipString() error {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '\\':
			s.pos += 2
		case '"':
			s.pos++
			return nil
		default:
			s.pos++
		}
	}
	s.pos = len(s.text)
	return s.errorf("a string does not end")
}

// integer reads a number that must be an integer of 32 bits, not negative.
func (s *scanner) integer() (int32, error) {
	s.space()
	start := s.pos
	for s.pos < len(s.text) && strings.IndexByte("+-.eE0123456789", s.text[s.pos]) >= 0 {
		s.pos++
	}
	n, err := strconv.ParseUint(s.text[start:s.pos], 10, 31)
	if err != nil {
		return 0, s.errorf("%q is not a token id", s.text[start:s.pos])
	}
	return int32(n), nil
}

// raw returns the value that starts here as text, checked only for balanced brackets.
func (s *scanner) raw() (json.RawMessage, error) {
	s.space()
	start, depth := s.pos, 0
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '"':
			s.pos++
			if err := s.skipString(); err != nil {
				return nil, err
			}
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			if depth == 0 {
				return s.trimmed(start)
			}
			depth--
			s.pos++
		case ',':
			if depth == 0 {
				return s.trimmed(start)
			}
			s.pos++
		default:
			s.pos++
			continue
		}
		if depth == 0 && s.pos > start {
			return s.trimmed(start)
		}
	}
	if depth == 0 && s.pos > start {
		return s.trimmed(start)
	}
	return nil, s.errorf("a value does not end")
}

func (s *scanner) trimmed(start int) (json.RawMessage, error) {
	out := strings.TrimSpace(s.text[start:s.pos])
	if out == "" {
		return nil, s.errorf("a value is missing")
	}
	return json.RawMessage(out), nil
}
