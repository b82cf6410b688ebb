package stablehlo

import (
	"fmt"
	"net/url"
	"strings"

	"weft/engine/sharding"
)

// A special function says what it becomes by its name: a prefix, fields in brackets, and a text that tells functions of
// one graph apart. Names are what survives GoMLX's cloning of calls.

// specialName writes `prefix[field;field]#unique`.
func specialName(prefix, unique string, fields ...string) string {
	return prefix + "[" + strings.Join(fields, ";") + "]#" + unique
}

// specialFields reads the n fields of a name made by specialName. found is false for a name without the prefix.
func specialFields(name, prefix string, n int) (fields []string, unique string, found bool, err error) {
	rest, found := strings.CutPrefix(name, prefix)
	if !found {
		return nil, "", false, nil
	}
	body, unique, ok := strings.Cut(rest, "]#")
	if fields = strings.Split(strings.TrimPrefix(body, "["), ";"); !ok || !strings.HasPrefix(body, "[") || len(fields) != n {
		return nil, "", true, malformedName(name, prefix)
	}
	return fields, unique, true, nil
}

func malformedName(name, prefix string) error {
	return fmt.Errorf("function name %q begins with %q but was not made by this package: rename the function", name, prefix)
}

// specText writes a spec as {a,b}{}, a pair of braces for each dimension.
func specText(spec sharding.Spec) string {
	var sb strings.Builder
	for _, axes := range spec {
		sb.WriteString("{" + axesText(axes) + "}")
	}
	return sb.String()
}

// parseSpec reads what specText wrote.
func parseSpec(text string) (spec sharding.Spec, ok bool) {
	for text != "" {
		dim, after, closed := strings.Cut(text, "}")
		if !closed || !strings.HasPrefix(dim, "{") {
			return nil, false
		}
		axes, ok := parseAxes(dim[1:])
		if !ok {
			return nil, false
		}
		spec, text = append(spec, axes), after
	}
	return spec, true
}

// axesText writes names separated by commas.
func axesText(axes []string) string {
	escaped := make([]string, len(axes))
	for i, a := range axes {
		escaped[i] = url.QueryEscape(a)
	}
	return strings.Join(escaped, ",")
}

// parseAxes reads what axesText wrote.
func parseAxes(text string) (axes []string, ok bool) {
	if text == "" {
		return nil, true
	}
	for _, escaped := range strings.Split(text, ",") {
		axis, err := url.QueryUnescape(escaped)
		if err != nil || axis == "" {
			return nil, false
		}
		axes = append(axes, axis)
	}
	return axes, true
}
