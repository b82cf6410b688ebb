package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"weft/data/tokenizer"
)

// format is one of the shapes that a record may have.
type format int

const (
	formatIDs format = iota
	formatMessages
	formatPrompt
	formatDolly
	formats // their number
)

// formatInfo says which fields make a format and how they are described.
var formatInfo = [formats]struct {
	name   string
	needs  []string
	expect string
}{
	formatIDs:      {"input_ids", []string{"input_ids"}, `a list "input_ids" (and maybe "labels")`},
	formatMessages: {"messages", []string{"messages"}, `a list "messages"`},
	formatPrompt:   {"prompt/completion", []string{"prompt", "completion"}, `texts "prompt" and "completion"`},
	formatDolly:    {"instruction", []string{"instruction", "response"}, `texts "instruction", "response" (and maybe "context")`},
}

func (f format) String() string { return formatInfo[f].name }

// fields is a record before its fields are read.
type fields map[string]json.RawMessage

// parseFields reads a line as an object.
func parseFields(line []byte) (fields, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not UTF-8 text; convert the file")
	}
	if escape := loneSurrogate(line); escape != "" {
		return nil, fmt.Errorf("bad JSON: %s is half of a character", escape)
	}
	var f fields
	if err := json.Unmarshal(line, &f); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return nil, fmt.Errorf("the line is %s; each line must be one JSON object", jsonKind(line))
		}
		return nil, fmt.Errorf("bad JSON: %w; each line must be one JSON object", err)
	}
	if f == nil {
		return nil, errors.New("the line is null; each line must be one JSON object")
	}
	return f, nil
}

// loneSurrogate returns the first \uD8xx-\uDFxx escape of line that is not part of a pair: encoding/json would
// silently turn it into U+FFFD.
func loneSurrogate(line []byte) string {
	high := func(i int) bool { return surrogate(line, i, "89abAB") }
	low := func(i int) bool { return surrogate(line, i, "cdefCDEF") }
	for i := 0; i < len(line)-1; i++ {
		if line[i] != '\\' {
			continue
		}
		switch {
		case high(i) && low(i+6):
			i += 11
		case high(i), low(i):
			return string(line[i : i+6])
		default:
			i++ // the escaped character
		}
	}
	return ""
}

func surrogate(line []byte, i int, third string) bool {
	return i+6 <= len(line) && line[i] == '\\' && line[i+1] == 'u' && (line[i+2] == 'd' || line[i+2] == 'D') &&
		strings.IndexByte(third, line[i+3]) >= 0
}

// detect returns the format of a file's first record.
func detect(f fields) (format, error) {
	for form := range formats {
		if !slices.ContainsFunc(formatInfo[form].needs, func(name string) bool { return f[name] == nil }) {
			return form, nil
		}
	}
	var have, known []string
	for name := range f {
		have = append(have, name)
	}
	slices.Sort(have)
	for form := range formats {
		known = append(known, formatInfo[form].expect)
	}
	return 0, fmt.Errorf("the record has the fields %q, expected %s", have, strings.Join(known, ", or "))
}

// jsonKind names the type of a JSON value.
func jsonKind(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "missing"
	}
	switch raw[0] {
	case '"':
		return "a text"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	}
	return "a number"
}

// fieldError says what is wrong with a field and what a record of the format has.
func (form format) fieldError(f fields, name, problem string) error {
	if f[name] == nil {
		problem = "is missing"
	}
	return fmt.Errorf("field %q %s; expected %s, as the first record has", name, problem, formatInfo[form].expect)
}

// text reads a field that must be a text.
func (form format) text(f fields, name string) (string, error) {
	var out *string
	if err := json.Unmarshal(orNull(f[name]), &out); err != nil || out == nil {
		return "", form.fieldError(f, name, "is "+jsonKind(f[name])+", not a text")
	}
	return *out, nil
}

// optionalText reads a field that may be absent or null.
func (form format) optionalText(f fields, name string) (string, error) {
	if jsonKind(f[name]) == "null" || f[name] == nil {
		return "", nil
	}
	return form.text(f, name)
}

// ids reads a field that must be a list of integers.
func (form format) ids(f fields, name string) ([]int32, error) {
	var out []int32
	if err := json.Unmarshal(orNull(f[name]), &out); err != nil || out == nil {
		return nil, form.fieldError(f, name, "is not a list of integers")
	}
	return out, nil
}

// messages reads the conversation of a record.
func (form format) messages(f fields) ([]tokenizer.Message, error) {
	if f["messages"] == nil || jsonKind(f["messages"]) != "a list" {
		return nil, form.fieldError(f, "messages", "is "+jsonKind(f["messages"])+", not a list")
	}
	var out []tokenizer.Message
	if err := json.Unmarshal(f["messages"], &out); err != nil {
		return nil, fmt.Errorf(`field "messages": %w`, err)
	}
	for i, m := range out {
		for _, part := range m.Content {
			if part.Type != "text" {
				return nil, fmt.Errorf(`field "messages": message %d has a part of type %q; weft trains on text only`, i, part.Type)
			}
		}
	}
	return out, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
