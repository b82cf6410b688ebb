package gcs

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs/gcstest"
)

// A machine that was suspended has its runs show their signs of life again before a taker on it has waited long enough.
func TestLeaseOfAHolderThatSleptWithTheTaker(t *testing.T) {
	s := gcstest.Start(t, "b")
	l, err := (&fakeClock{}).use(open(t, s)).Lock(lockName, owner(1))
	require.NoError(t, err)
	taking := &fakeClock{}
	suspended := sync.OnceFunc(func() { taking.t = taking.t.Add(24 * time.Hour) })
	looks := 0
	taking.onSleep = func() {
		suspended()
		if looks++; looks == 3 {
			require.NoError(t, l.(*lease).renew())
		}
	}
	_, err = taking.use(open(t, s)).Lock(lockName, owner(2))
	require.ErrorIs(t, err, checkpoint.ErrLocked)
	require.Equal(t, 3, looks)
	require.NoError(t, l.(checkpoint.Lease).Check())
	require.NoError(t, l.Close())
}
