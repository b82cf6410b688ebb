package data

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Templates of the formats that are texts. The last field is the response; what stands before it is the prompt.
const (
	DefaultTemplate       = "Instruction: {instruction}\nResponse: {response}" // of Dolly records
	DefaultPromptTemplate = "{prompt}{completion}"                             // of prompt/completion records
)

// template is a text with fields in braces, cut at the response.
type template struct {
	before []string // texts and fields by turns, a text first
	target string   // the field that is the response
	after  string   // text after the response, part of the target
}

var templateField = regexp.MustCompile(`\{([A-Za-z_]+)\}`)

// templateFields are the fields that a template of each format may name, the response last.
var templateFields = map[format][]string{
	formatPrompt: {"prompt", "completion"},
	formatDolly:  {"instruction", "context", "response"},
}

// parseTemplate reads a template for a format; the empty one is the format's own.
func parseTemplate(text string, form format) (template, error) {
	known, ok := templateFields[form]
	if !ok {
		if text != "" {
			return template{}, fmt.Errorf("template: %s records take no template; leave it out", form)
		}
		return template{}, nil
	}
	if text == "" {
		text = map[format]string{formatPrompt: DefaultPromptTemplate, formatDolly: DefaultTemplate}[form]
	}
	t := template{target: known[len(known)-1]}
	last, seen := 0, false
	for _, at := range templateField.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		if !slices.Contains(known, name) {
			return template{}, fmt.Errorf("template: no field {%s} in %s records; they have {%s}", name, form, strings.Join(known, "}, {"))
		}
		if seen {
			return template{}, fmt.Errorf("template: {%s} must be its last field, and stand there once", t.target)
		}
		t.before = append(t.before, text[last:at[0]])
		last = at[1]
		if seen = name == t.target; !seen {
			t.before = append(t.before, name)
		}
	}
	if !seen {
		return template{}, fmt.Errorf("template: it lacks {%s}", t.target)
	}
	t.after = text[last:]
	return t, nil
}

// render returns the prompt and the response with the text after it.
func (t template) render(form format, f fields) (prompt, response string, err error) {
	var b strings.Builder
	for i, part := range t.before {
		if i%2 == 1 {
			read := form.text
			if part == "context" {
				read = form.optionalText
			}
			if part, err = read(f, part); err != nil {
				return "", "", err
			}
		}
		b.WriteString(part)
	}
	response, err = form.text(f, t.target)
	return b.String(), response + t.after, err
}
