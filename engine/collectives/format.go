package collectives

import (
	"strconv"
	"strings"
)

// FormatFloat prints a number as Python does in the guide's lines: 136.0.
func FormatFloat(v float64, bits int) string {
	text := strconv.FormatFloat(v, 'f', -1, bits)
	if !strings.ContainsAny(text, ".IN") {
		text += ".0"
	}
	return text
}

// FormatFloats prints a list as Python does: [136.0, 136.0].
func FormatFloats(values []float32) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = FormatFloat(float64(v), 32)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
