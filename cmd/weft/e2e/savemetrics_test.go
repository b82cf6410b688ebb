package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireSaveFigures wants, in the lines of a run that never stopped, the stall and the host memory of each save but the one after
// the last step, on the line of the step after it and on no other.
func requireSaveFigures(t *testing.T, lines string, saved []string) {
	t.Helper()
	var want, got []int
	for _, name := range saved {
		step, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
		require.NoError(t, err)
		want = append(want, step+1)
	}
	last := 0
	for text := range strings.Lines(lines) {
		var line struct {
			Step  int     `json:"step"`
			Stall float64 `json:"save_stall_s"`
			Host  int64   `json:"save_host_bytes"`
			Limit int64   `json:"save_host_limit_bytes"`
			Write float64 `json:"save_write_s"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		last = line.Step
		if line.Stall > 0 {
			got = append(got, line.Step)
			require.Positive(t, line.Host, text)
			require.LessOrEqual(t, line.Host, line.Limit, text)
		} else {
			require.Zero(t, line.Host+line.Limit, text)
		}
		require.GreaterOrEqual(t, line.Write, 0.0, text)
	}
	slices.Sort(want)
	want = slices.DeleteFunc(want, func(step int) bool { return step > last })
	require.NotEmpty(t, want)
	require.Equal(t, want, got)
}
