package job

import (
	"context"
	"fmt"
	"path"
	"time"

	"weft/checkpoint"
	"weft/checkpoint/storage"
)

// place is a file or folder on a local disk or on Cloud Storage.
type place struct {
	fs   checkpoint.FS
	name string // as fs knows it
}

// openPlace finds what a path or gs:// URL names, without looking whether it is there.
func openPlace(ctx context.Context, url string) (place, error) {
	fsys, name, err := storage.Open(ctx, url)
	return place{fsys, name}, err
}

// in is a file or folder inside of the place.
func (p place) in(elem ...string) place {
	return place{p.fs, path.Join(append([]string{p.name}, elem...)...)}
}

// String is the path or URL, for people and for openPlace.
func (p place) String() string { return storage.URL(p.fs, p.name) }

// remote tells a place on Cloud Storage from one on a disk.
func (p place) remote() bool { return storage.IsRemote(p.String()) }

// read reads a whole small file; fs.ErrNotExist when it is not there.
func (p place) read() ([]byte, error) { return storage.ReadAll(p.fs, p.name) }

// size returns the bytes of a file; fs.ErrNotExist when it is not there.
func (p place) size() (int64, error) {
	r, err := p.fs.Open(p.name)
	if err != nil {
		return 0, err
	}
	n := r.Size()
	return n, r.Close()
}

// writtenAt is when a file was written: see checkpoint.WrittenAt.
func (p place) writtenAt() (time.Time, bool) { return checkpoint.WrittenAt(p.fs, p.name) }

// of is the folder of one of its checkpoints, as String.
func (p place) of(e checkpoint.Entry) string { return place{p.fs, e.Dir}.String() }

// tellWaiting has a line printed when the place's lock must wait for the lease of a run that may be dead, until undone.
func (p place) tellWaiting(r *report) (undo func()) {
	w, ok := p.fs.(interface {
		OnWait(tell func(by *checkpoint.LockedError, atMost time.Duration))
	})
	if !ok {
		return func() {}
	}
	w.OnWait(func(by *checkpoint.LockedError, atMost time.Duration) {
		holder := "another process"
		if o, ok := by.Holder(); ok {
			holder = fmt.Sprintf("process %d on host %s", o.PID, o.Host)
		}
		r.printf("%-9s waiting up to %s for the lease of %s: it ends when that run is dead", "storage", atMost.Round(time.Second/10), holder)
	})
	return func() { w.OnWait(nil) }
}
