package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/memory"
)

// Where half of the memory that is left does not hold the state, it goes through a ring of that size, and is whole all the same.
func TestAsyncWithLittleMemory(t *testing.T) {
	whole, least := deviceNeeds(t)
	for _, c := range []struct {
		available int64
		ok        bool
		limit     int64
	}{
		{2 * whole, true, whole}, {2*least + 2*stageAlign, true, least + stageAlign}, {0, true, least}, {0, false, whole},
	} {
		var saved []Saved
		m, a := openAsync(t, newMemFS(), AsyncOptions{Done: func(s Saved) { saved = append(saved, s) }})
		a.available = func() (memory.Left, bool) { return memory.Left{Bytes: c.available}, c.ok }
		for step := range 2 {
			require.NoError(t, a.Save(t.Context(), newDevice(step).snapshot(step, 1)))
		}
		require.NoError(t, a.Close(t.Context()))
		require.Len(t, saved, 2)
		for _, s := range saved {
			require.Equal(t, c.limit, s.Stats.LimitBytes)
			require.NoError(t, m.Verify(s.Entry))
		}
	}
}
