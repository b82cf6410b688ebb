package gcs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs/gcstest"
)

// fakeClock passes only while somebody sleeps. Renewals never come by themselves.
type fakeClock struct {
	mu      sync.Mutex
	t       time.Time
	slept   time.Duration
	onSleep func()
}

func (c *fakeClock) use(f *FS) *FS {
	renewal := f.opts.Lease / 4
	f.clock = clock{
		now: func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t },
		sleep: func(ctx context.Context, d time.Duration) error {
			if d == renewal {
				<-ctx.Done()
				return ctx.Err()
			}
			if c.onSleep != nil {
				c.onSleep()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.t, c.slept = c.t.Add(d), c.slept+d
			return nil
		},
	}
	return f
}

const lockName = "b/run/.weft.lock"

func owner(pid int) []byte {
	return fmt.Appendf(nil, `{"pid":%d,"host":"h%d","started":"2026-01-01T00:00:00Z"}`, pid, pid)
}

func TestLeaseOfALivingHolder(t *testing.T) {
	s := gcstest.Start(t, "b")
	holder := (&fakeClock{}).use(open(t, s))
	l, err := holder.Lock(lockName, owner(1))
	require.NoError(t, err)
	taking := &fakeClock{}
	taking.onSleep = func() { require.NoError(t, l.(*lease).renew()) }
	_, err = taking.use(open(t, s)).Lock(lockName, owner(2))
	require.ErrorIs(t, err, checkpoint.ErrLocked)
	require.ErrorContains(t, err, "gs://"+lockName+" is locked by process 1 on host h1")
	require.Less(t, taking.slept, DefaultLease)
	require.NoError(t, l.(checkpoint.Lease).Check())
	require.NoError(t, l.Close())
	require.Empty(t, s.Objects("b"))
	taking = &fakeClock{}
	l, err = taking.use(open(t, s)).Lock(lockName, owner(2))
	require.NoError(t, err)
	require.Zero(t, taking.slept)
	require.NoError(t, l.Close())
}

func TestLeaseOfADeadHolder(t *testing.T) {
	s := gcstest.Start(t, "b")
	dead, err := (&fakeClock{}).use(open(t, s)).Lock(lockName, owner(1))
	require.NoError(t, err)
	taking := &fakeClock{}
	l, err := taking.use(open(t, s)).Lock(lockName, owner(2))
	require.NoError(t, err)
	require.GreaterOrEqual(t, taking.slept, DefaultLease, "by the taker's clock")
	require.NoError(t, l.(checkpoint.Lease).Check())
	// It was not dead, only stopped.
	for range 2 {
		err = dead.(checkpoint.Lease).Check()
		require.ErrorIs(t, err, ErrLeaseLost)
		require.ErrorIs(t, err, checkpoint.ErrLocked)
		require.ErrorContains(t, err, "process 2 on host h2 has it now")
	}
	require.ErrorIs(t, dead.(*lease).renew(), ErrLeaseLost)
	require.NoError(t, dead.Close())
	require.Equal(t, owner(2), s.Objects("b")["run/.weft.lock"])
	require.NoError(t, l.(*lease).renew())
	require.NoError(t, l.Close())
}

// The lease lasts as long as its holder says, whatever the taker's own default.
func TestLeaseTimeIsTheHolders(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := open(t, s)
	f.opts.Lease = 3 * DefaultLease
	_, err := (&fakeClock{}).use(f).Lock(lockName, owner(1))
	require.NoError(t, err)
	taking := &fakeClock{}
	f = open(t, s)
	f.opts.Lease = time.Second
	l, err := taking.use(f).Lock(lockName, owner(2))
	require.NoError(t, err)
	require.GreaterOrEqual(t, taking.slept, 3*DefaultLease)
	require.NoError(t, l.Close())
	// What is no lease of weft is waited for longest.
	s.Put("b", "run/.weft.lock", []byte("mine"))
	taking = &fakeClock{}
	l, err = taking.use(open(t, s)).Lock(lockName, owner(2))
	require.NoError(t, err)
	require.GreaterOrEqual(t, taking.slept, maxLease)
	require.NoError(t, l.Close())
}

// All takers watch the same dead lease. One that came later would see the winner's and, by a clock of its own on which the
// winner never renews, rightly take that.
func TestLeaseTakenByOne(t *testing.T) {
	s := gcstest.Start(t, "b")
	_, err := (&fakeClock{}).use(open(t, s)).Lock(lockName, owner(1))
	require.NoError(t, err)
	var wg, watching sync.WaitGroup
	errs := make([]error, 4)
	watching.Add(len(errs))
	for i := range errs {
		f := (&fakeClock{}).use(open(t, s))
		f.OnWait(func(*checkpoint.LockedError, time.Duration) {
			watching.Done()
			watching.Wait()
		})
		wg.Go(func() { _, errs[i] = f.Lock(lockName, owner(10+i)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, checkpoint.ErrLocked)
		}
	}
	require.Equal(t, 1, won)
}

// A renewal that fails is not a lease lost, and one whose answer is lost is one.
func TestLeaseRenewalFaults(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := (&fakeClock{}).use(open(t, s))
	l, err := f.Lock(lockName, owner(1))
	require.NoError(t, err)
	renew := l.(*lease).renew
	for _, a := range []gcstest.Action{gcstest.Unavailable, gcstest.Reset, gcstest.LostAnswer} {
		s.Inject(gcstest.Fault{Op: gcstest.Insert, Times: gcstest.Always, Do: a})
		err := renew()
		s.Heal()
		if err != nil {
			require.ErrorIs(t, err, ErrUnavailable, a)
		}
		require.NoError(t, l.(checkpoint.Lease).Check(), a)
		require.NoError(t, renew(), a)
	}
	s.Inject(gcstest.Fault{Op: gcstest.Stat, Times: gcstest.Always, Do: gcstest.Unavailable})
	require.ErrorIs(t, l.(checkpoint.Lease).Check(), ErrUnavailable, "not known is not held")
	s.Heal()
	require.NoError(t, l.(checkpoint.Lease).Check())
	require.NoError(t, f.Remove(lockName))
	err = l.(checkpoint.Lease).Check()
	require.ErrorIs(t, err, ErrLeaseLost)
	require.ErrorContains(t, err, "its object is gone")
	require.NoError(t, l.Close())
}

// The holder keeps its lease by itself, and a taker sees that.
func TestLeaseIsRenewed(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := open(t, s)
	due, asleep := make(chan struct{}), make(chan time.Duration)
	f.clock.sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case asleep <- d:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-due:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l, err := f.Lock(lockName, owner(1))
	require.NoError(t, err)
	require.Equal(t, DefaultLease/4, <-asleep)
	taking := &fakeClock{onSleep: func() {
		due <- struct{}{}
		<-asleep // it has renewed
	}}
	_, err = taking.use(open(t, s)).Lock(lockName, owner(2))
	var held *checkpoint.LockedError
	require.True(t, errors.As(err, &held), err)
	require.Less(t, taking.slept, DefaultLease)
	require.NoError(t, l.Close())
	require.Empty(t, s.Objects("b"))
}

// So it does with the system's clock, until it gives the lease back.
func TestLeaseIsRenewedInTime(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := open(t, s)
	f.opts.Lease = 20 * time.Millisecond
	l, err := f.Lock(lockName, owner(1))
	require.NoError(t, err)
	for writes := 0; writes < 5; time.Sleep(time.Millisecond) {
		for _, r := range s.Requests() {
			if r.Op == gcstest.Insert {
				writes++
			}
		}
	}
	require.NoError(t, l.(checkpoint.Lease).Check())
	require.NoError(t, l.Close())
	require.Empty(t, s.Objects("b"))
}
