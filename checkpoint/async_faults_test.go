package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A cancelled Wait abandons the write: at once, without a trace, with the checkpoint before it whole.
func TestAsyncCancel(t *testing.T) {
	for _, bound := range hostMemories(t) {
		for _, when := range []string{"writing", "backing off", "copying"} {
			synctest.Test(t, func(t *testing.T) {
				if when == "backing off" && bound != 0 {
					return
				}
				d := newDevice(1)
				disk := newMemFS()
				m, err := Open(disk, "/run", Options{})
				require.NoError(t, err)
				_, err = m.Save(t.Context(), d.snapshot(1, 1))
				require.NoError(t, err)
				before := disk.tree()
				g := newGatedFS(disk)
				m.fs = g
				if when == "backing off" {
					m.fs = &brokenFS{memFS: disk, err: syscall.EIO}
				}
				a := NewAsync(m, AsyncOptions{HostMemory: bound})
				ctx, cancel := context.WithCancel(t.Context())
				if when == "copying" {
					s := d.snapshot(2, 1)
					// Whether or not Save has seen it, nothing is committed before Wait is called: the writer stands still by then.
					s.State[3].Shards[0].Fetch = func([]byte) error { g.shut(); cancel(); return nil }
					g.open()
					time.AfterFunc(time.Second, g.open)
					err = a.Save(ctx, s)
				} else {
					saved := make(chan error, 1)
					go func() { saved <- a.Save(ctx, d.snapshot(2, 1)) }()
					synctest.Wait()
					cancel()
					if when == "writing" {
						time.AfterFunc(time.Second, g.open)
					}
					if err = <-saved; bound == 0 {
						require.NoError(t, err)
						err = a.Wait(ctx)
					}
				}
				if when != "copying" || err != nil {
					require.ErrorIs(t, err, context.Canceled)
					require.NotContains(t, err.Error(), "\n")
				}
				// The last slice may have been copied before the context was seen to be cancelled.
				require.ErrorIs(t, errors.Join(err, a.Wait(ctx)), context.Canceled)
				require.NoError(t, a.Close(t.Context()))
				require.Equal(t, before, disk.tree())
			})
		}
	}
}

// pausingFS takes its time to rename: whoever can go on meanwhile does.
type pausingFS struct{ *memFS }

func (p pausingFS) Rename(oldName, newName string) error {
	time.Sleep(time.Second)
	return p.memFS.Rename(oldName, newName)
}

// Without room for the whole state a write is tried again as long as the caller waits, from the device; a failure after
// that is reported.
func TestAsyncFailureInPieces(t *testing.T) {
	for _, bound := range hostMemories(t)[1:] {
		inSave, after := 0, 0
		for n, fired := 1, true; fired; n++ {
			synctest.Test(t, func(t *testing.T) {
				disk, d := newMemFS(), newDevice(1)
				m, a := openAsync(t, disk, AsyncOptions{HostMemory: bound})
				m.fs = pausingFS{disk} // when the manifest gets its name, Save has returned
				disk.arm(n, failBefore, syscall.EIO, 1)
				err := a.Save(t.Context(), d.snapshot(1, 1))
				require.NoError(t, err)
				d.run(2) // the step: what is not on the host is gone
				err = a.Wait(t.Context())
				if fired = disk.fired(); !fired {
					require.NoError(t, err)
					require.NoError(t, a.Close(t.Context()))
					return
				}
				if err != nil {
					after++
					require.ErrorIs(t, err, syscall.EIO)
					require.NoError(t, a.Save(t.Context(), d.snapshot(2, 1)))
					require.NoError(t, a.Wait(t.Context()))
				} else {
					inSave++
				}
				e, ok, skipped, err := m.LatestGood()
				require.NoError(t, err)
				require.True(t, ok)
				require.Empty(t, skipped)
				r, err := m.OpenState(e)
				require.NoError(t, err)
				got := make([]byte, 4*6*4)
				require.NoError(t, r.ReadRegion("w", []int{0, 0}, []int{4, 6}, got))
				require.Equal(t, payload("w", e.Step, 4*6*4), got)
				require.NoError(t, r.Close())
				require.NoError(t, a.Close(t.Context()))
			})
		}
		require.Positive(t, inSave)
		require.Positive(t, after)
	}
}

// Every operation is once the place of a crash, as in TestCrashAtEveryOperation, on the way through the copy, files written
// side by side, and attempts that all meet a dead machine.
func TestAsyncCrashAtEveryOperation(t *testing.T) {
	base, foreign := crashBase(t)
	asyncNew := func(m *memFS) error {
		mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: "loss"})
		if err != nil {
			return err
		}
		a := NewAsync(mgr, AsyncOptions{Backoff: time.Nanosecond})
		err = a.Save(t.Context(), snapshotOf(newStep, 1))
		return errors.Join(err, a.Close(t.Context()), mgr.Close())
	}
	runs := 0
	for n := 1; ; n++ {
		for seed := range int64(3) {
			m := base.clone()
			m.arm(n, crash, nil, seed)
			err := asyncNew(m)
			if !m.fired() {
				require.NoError(t, err)
				require.Greater(t, runs, 100)
				t.Logf("%d crashes", runs)
				return
			}
			runs++
			checkAfter(t, m.reboot(seed), foreign, err, fmt.Sprintf("crash at operation %d, draw %d", n, seed))
		}
	}
}

// Every operation once returns an error, and a second attempt saves.
func TestAsyncErrorAtEveryOperation(t *testing.T) {
	base, foreign := crashBase(t)
	for _, f := range []fault{failBefore, failAfter} {
		for _, inject := range []error{syscall.EIO, syscall.ENOSPC} {
			for n := 1; ; n++ {
				m := base.clone()
				mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: "loss"})
				require.NoError(t, err)
				var saved []Saved
				a := NewAsync(mgr, AsyncOptions{Backoff: time.Nanosecond, Done: func(s Saved) { saved = append(saved, s) }})
				m.arm(n, f, inject, int64(n))
				require.NoError(t, a.Save(t.Context(), snapshotOf(newStep, 1)))
				label := fmt.Sprintf("%v (%d) at operation %d", inject, f, n)
				require.NoError(t, a.Wait(t.Context()), label)
				fired := m.fired()
				require.Len(t, saved, 1, label)
				require.NoError(t, a.Close(t.Context()), label)
				require.NoError(t, mgr.Close())
				checkAfter(t, m, foreign, saved[0].Err, label)
				if !fired {
					break
				}
			}
		}
	}
}
