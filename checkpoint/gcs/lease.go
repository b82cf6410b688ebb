package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"cloud.google.com/go/storage"

	"weft/checkpoint"
)

// leaseKey is the metadata key that says how long the lease lasts, in
// milliseconds, for those who wait for it.
const leaseKey = "weft-lease-ms"

// leaseID is the metadata key of what tells one holder's lease from another's.
const leaseID = "weft-lease-id"

// maxLease bounds what a taker believes of it.
const maxLease = 10 * time.Minute

// lease is a lock object that its holder writes again and again. Each write
// names the generation of the one before, so one that succeeds proves that nobody
// had the lock in between; a taker may write over one whose generation stays the
// same for the whole time of the lease, by the taker's own clock and while the
// taker looks.
type lease struct {
	fs    *FS
	name  string
	id    string
	owner []byte
	mu    sync.Mutex // one write at a time
	gen   int64
	lost  error
	stop  context.CancelFunc
	done  chan struct{}
}

func (l *lease) meta() map[string]string {
	return map[string]string{leaseID: l.id, leaseKey: strconv.FormatInt(l.fs.opts.Lease.Milliseconds(), 10)}
}

// Lock implements [checkpoint.FS]. The result is a [checkpoint.Lease]. When
// somebody holds the lock it watches until that one shows a sign of life
// (LockedError) or the lease has run out.
func (f *FS) Lock(name string, owner []byte) (io.Closer, error) {
	l := &lease{fs: f, name: name, id: f.token(), owner: owner, done: make(chan struct{})}
	if err := l.take(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(f.ctx)
	l.stop = cancel
	go l.renewal(ctx)
	return l, nil
}

func (l *lease) take() error {
	const op = "locking"
	f := l.fs
	var seen *storage.ObjectAttrs // the holder's last write
	var looked time.Time          // the last time
	var watched time.Duration     // without a sign of life
	for {
		now := f.clock.now()
		a, err := f.attrs(op, l.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := l.write(storage.Conditions{DoesNotExist: true}); !errors.Is(err, fs.ErrExist) {
				return err
			}
			continue
		case err != nil:
			return err
		case seen == nil:
			seen, looked = a, f.clock.now()
			if tell := f.waiting.Load(); tell != nil && *tell != nil {
				var by *checkpoint.LockedError
				_ = errors.As(l.held(), &by)
				(*tell)(by, leaseTime(a))
			}
		case seen.Generation != a.Generation:
			return l.held()
		default:
			// A machine that stood still between two looks may be the holder's, too.
			watched += min(now.Sub(looked), leaseTime(a)/4)
			looked = now
			if watched < leaseTime(a) {
				break
			}
			err := l.write(storage.Conditions{GenerationMatch: a.Generation})
			if errors.Is(err, fs.ErrExist) || errors.Is(err, errPrecondition) {
				return l.held() // it was not dead, or another one was quicker
			}
			return err
		}
		if err := f.clock.sleep(f.ctx, leaseTime(a)/8); err != nil {
			return err
		}
	}
}

// OnWait has tell called when Lock waits for a holder to show a sign of life, which
// takes up to atMost; nil takes it back.
func (f *FS) OnWait(tell func(by *checkpoint.LockedError, atMost time.Duration)) {
	f.waiting.Store(&tell)
}

func leaseTime(a *storage.ObjectAttrs) time.Duration {
	ms, err := strconv.ParseInt(a.Metadata[leaseKey], 10, 64)
	if err != nil || ms <= 0 {
		return maxLease // not a lease of weft: be slow with it
	}
	return min(time.Duration(ms)*time.Millisecond, maxLease)
}

// held is the error that names the holder.
func (l *lease) held() error {
	locked := &checkpoint.LockedError{Name: l.fs.URL(l.name)}
	if r, err := l.fs.Open(l.name); err == nil {
		b := make([]byte, min(r.Size(), 4096))
		if n, err := r.ReadAt(b, 0); err == nil || errors.Is(err, io.EOF) {
			locked.Owner = b[:n]
		}
		_ = r.Close()
	}
	return locked
}

func (l *lease) write(cond storage.Conditions) error {
	gen, err := l.fs.upload("locking", l.name, l.owner, cond, l.meta())
	if err == nil {
		l.gen = gen
	}
	return err
}

// Check implements [checkpoint.Lease]: it looks whether the object is this
// lease's. Nobody else can have had it then since it was taken.
func (l *lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	return l.check()
}

func (l *lease) check() error {
	a, err := l.fs.attrs("locking", l.name)
	if err == nil && a.Metadata[leaseID] == l.id {
		l.gen = a.Generation
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cause := errors.New("its object is gone")
	var by *checkpoint.LockedError
	if held := l.held(); errors.As(held, &by) {
		if o, ok := by.Holder(); ok {
			cause = fmt.Errorf("process %d on host %s has it now", o.PID, o.Host)
		}
	}
	l.lost = &Error{Op: "keeping the lock", URL: l.fs.URL(l.name), Kind: ErrLeaseLost, Err: cause}
	return l.lost
}

// renew writes the object again, which succeeds only if nobody has done so since.
func (l *lease) renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	err := l.write(storage.Conditions{GenerationMatch: l.gen})
	if errors.Is(err, fs.ErrExist) || errors.Is(err, errPrecondition) {
		return l.check()
	}
	return err
}

// renewal shows signs of life until stop. A lease that
// could not be renewed is not lost before somebody takes it.
func (l *lease) renewal(ctx context.Context) {
	defer close(l.done)
	for l.fs.clock.sleep(ctx, l.fs.opts.Lease/4) == nil {
		if err := l.renew(); errors.Is(err, ErrLeaseLost) {
			return
		}
	}
}

// Close gives the lock back by deleting its object.
func (l *lease) Close() error {
	l.stop()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return nil
	}
	l.lost = fs.ErrClosed
	l.fs.created.Delete(l.name)
	return l.fs.remove(l.name, l.gen)
}
