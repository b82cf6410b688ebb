package gemma

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

// pattern prints segments as `(ssssf)x3|(SSSSF)x4`.
func pattern(kinds string, segments []segment) string {
	var parts []string
	for _, s := range segments {
		parts = append(parts, fmt.Sprintf("(%s)x%d", kinds[s.first:s.first+s.period], s.count))
	}
	return strings.Join(parts, "|")
}

func TestFindSegments(t *testing.T) {
	for _, c := range []struct{ name, kinds, want string }{
		{"gemma-4-E2B", strings.Repeat("ssssf", 3) + strings.Repeat("SSSSF", 4), "(ssssf)x3|(SSSSF)x4"},
		{"gemma-4-31B", strings.Repeat("sssssf", 10), "(sssssf)x10"},
		{"gemma-3-1b", strings.Repeat("sssssf", 4) + "ss", "(sssssf)x4|(s)x2"},
		{"gemma-3-270m", strings.Repeat("sssssf", 3), "(sssssf)x3"},
		{"gemma4-tiny", "sfssfSSF", "(sf)x1|(s)x2|(f)x1|(S)x2|(F)x1"},
		{"gemma3-tiny", "sssssfs", "(s)x5|(fs)x1"},
		{"one layer", "f", "(f)x1"},
		{"all alike", "ssss", "(s)x4"},
	} {
		require.Equal(t, c.want, pattern(c.kinds, findSegments([]byte(c.kinds))), c.name)
	}
}

// Segments cover the layers in order, and every repetition has the kinds of the first.
func TestSegmentsCoverTheLayers(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 24).Draw(t, "kinds")
		next := 0
		for _, s := range findSegments(kinds) {
			require.Equal(t, next, s.first)
			for r := range s.count {
				for j := range s.period {
					require.Equal(t, next, s.layer(r, j))
					require.Equal(t, kinds[s.first+j], kinds[next])
					next++
				}
			}
			require.Equal(t, next, s.end())
		}
		require.Equal(t, len(kinds), next)
	})
}
