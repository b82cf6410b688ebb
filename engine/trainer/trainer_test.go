package trainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A step that was seen to end at the same moment as the one before it, or earlier, has a time above 0 all the same: a rate
// of it is a finite number, which JSON can hold. The times still add up to what passed.
func TestElapsedIsPositive(t *testing.T) {
	start := time.Unix(1000, 0)
	l := &loop{last: start}
	sum := 0.0
	for _, at := range []time.Duration{200 * time.Millisecond, 200 * time.Millisecond, 60 * time.Millisecond, 500 * time.Millisecond} {
		seconds := l.elapsed(start.Add(at))
		require.Positive(t, seconds, "at %v", at)
		sum += seconds
	}
	require.InDelta(t, 0.5, sum, 1e-12)
	require.Equal(t, start.Add(500*time.Millisecond), l.last)
}
