package gcs

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"sync"

	"cloud.google.com/go/storage"

	"weft/checkpoint"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// upload sends the whole content of an object in one request, again and again
// if need be; cond is what must be there before. Another object in its place is
// fs.ErrExist.
func (f *FS) upload(op, name string, content []byte, cond storage.Conditions, meta map[string]string) (gen int64, err error) {
	sum, token := crc32.Checksum(content, castagnoli), f.token()
	metadata := map[string]string{tokenKey: token}
	for k, v := range meta {
		metadata[k] = v
	}
	var got *storage.ObjectAttrs
	err = f.try(op, name, f.opts.Retry.Upload, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx) // without Close it takes the upload back
		defer cancel()
		w := f.object(name).If(cond).NewWriter(ctx)
		w.ChunkSize = 0 // the bytes are here: a part is sent again as a whole
		w.ContentType = "application/octet-stream"
		w.SendCRC32C, w.CRC32C, w.Metadata = true, sum, metadata
		if _, err := w.Write(content); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		got = w.Attrs()
		return nil
	})
	if errors.Is(err, errPrecondition) {
		// Was it an earlier try of ours, whose answer was lost?
		got, err = f.attrs(op, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return 0, fmt.Errorf("%s %s: %w", op, f.URL(name), errPrecondition)
		case err != nil:
			return 0, err
		case got.Metadata[tokenKey] != token:
			return 0, exist(op, name)
		}
	}
	if err != nil {
		return 0, err
	}
	return got.Generation, f.checkStored(op, name, got, int64(len(content)), sum)
}

// checkStored compares what the server says that it has with what was sent; if
// it differs, the object goes.
func (f *FS) checkStored(op, name string, got *storage.ObjectAttrs, size int64, sum uint32) error {
	if got.Size == size && got.CRC32C == sum {
		f.created.Store(name, got.Generation)
		return nil
	}
	err := fmt.Errorf("%w: %d bytes with crc32c %08x were sent, the server has %d with %08x", ErrChecksum, size, sum, got.Size, got.CRC32C)
	return errors.Join(f.classify(op, name, err, 1), f.remove(name, got.Generation))
}

// Replace implements [checkpoint.FS].
func (f *FS) Replace(name string, content []byte) error {
	const op = "replacing"
	// The generation in the precondition makes it safe to send the request twice.
	for range f.opts.Retry.Attempts {
		cond := storage.Conditions{DoesNotExist: true}
		a, err := f.attrs(op, name)
		if err == nil {
			cond = storage.Conditions{GenerationMatch: a.Generation}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err = f.upload(op, name, content, cond, nil)
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, errPrecondition) {
			return err
		}
	}
	return fmt.Errorf("%s %s: somebody else writes it all the time; stop one of the two", op, f.URL(name))
}

// Create implements [checkpoint.FS]. The object appears at Sync, whole, and
// that is where a taken name is fs.ErrExist; Close without Sync drops it.
func (f *FS) Create(name string) (checkpoint.File, error) { return &file{fs: f, name: name}, nil }

// file collects parts. One that fits into a part is sent as the object itself.
type file struct {
	fs    *FS
	name  string
	buf   []byte
	size  int64
	sum   uint32
	done  bool
	parts int
	wg    sync.WaitGroup
	mu    sync.Mutex
	gens  map[int]int64 // of the parts that are there
	err   error         // the first of a part
}

func (w *file) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Write implements io.Writer.
func (w *file) Write(p []byte) (n int, err error) {
	if w.done {
		return 0, fs.ErrClosed
	}
	part := w.fs.opts.PartSize
	for len(p) > 0 {
		if len(w.buf) == part {
			w.send()
		}
		if err := w.failed(); err != nil {
			return n, err
		}
		k := min(len(p), part-len(w.buf))
		if need := len(w.buf) + k; need > cap(w.buf) {
			// Small files stay small; what grows gets a whole part at once.
			size := max(need, 64<<10)
			if need > part/8 {
				size = part
			}
			w.buf = append(make([]byte, 0, size), w.buf...)
		}
		w.buf = append(w.buf, p[:k]...)
		p, n = p[k:], n+k
	}
	return n, nil
}

// partName is the name of a part: by it a clean-up finds what a crash left.
func (w *file) partName(i int) string {
	return fmt.Sprintf("%s%s%05d", w.name, checkpoint.PartSuffix, i)
}

// send puts the full buffer on its way and gets another.
func (w *file) send() {
	w.sum = crc32.Update(w.sum, castagnoli, w.buf)
	w.size += int64(len(w.buf))
	content, i := w.buf, w.parts
	w.parts++
	w.buf = (<-w.fs.parts)[:0]
	w.wg.Go(func() {
		gen, err := w.fs.upload("writing", w.partName(i), content, storage.Conditions{DoesNotExist: true}, nil)
		w.fs.parts <- content[:0]
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil && w.err == nil {
			w.err = err
		}
		if err == nil {
			if w.gens == nil {
				w.gens = map[int]int64{}
			}
			w.gens[i] = gen
		}
	})
}

// Sync makes the object.
func (w *file) Sync() error {
	if w.done {
		return fs.ErrClosed
	}
	w.done = true
	if w.parts == 0 {
		_, err := w.fs.upload("writing", w.name, w.buf, storage.Conditions{DoesNotExist: true}, nil)
		w.buf = nil
		return err
	}
	if len(w.buf) > 0 {
		w.send()
	}
	w.wg.Wait()
	w.buf = nil
	if w.err == nil {
		w.err = w.compose()
	}
	return errors.Join(w.err, w.dropParts(w.err == nil))
}

// Close implements [checkpoint.File].
func (w *file) Close() error {
	if w.done {
		return nil
	}
	w.done, w.buf = true, nil
	w.wg.Wait()
	return w.dropParts(false)
}

// dropParts deletes the parts. After a failure that is a courtesy only: the
// list of intent names the file, and clean-up finds its parts.
func (w *file) dropParts(must bool) error {
	names := make([]string, 0, w.parts)
	for i := range w.parts {
		names = append(names, w.partName(i))
	}
	w.parts = 0
	if err := w.fs.RemoveAll(names, true); must {
		return err
	}
	return nil
}

// maxCompose is the server's limit of objects in one request.
const maxCompose = 32

type piece struct {
	name string
	gen  int64
}

// compose makes the object out of its parts, over objects in between when there
// are more parts than one request takes.
func (w *file) compose() error {
	pieces := make([]piece, w.parts)
	for i := range pieces {
		pieces[i] = piece{w.partName(i), w.gens[i]}
	}
	for len(pieces) > maxCompose {
		var next []piece
		for len(pieces) > 0 {
			group := pieces[:min(maxCompose, len(pieces))]
			pieces = pieces[len(group):]
			name := w.partName(w.parts)
			w.parts++
			a, err := w.composeOne(name, group)
			if err != nil {
				return err
			}
			w.fs.created.Store(name, a.Generation)
			next = append(next, piece{name, a.Generation})
		}
		pieces = next
	}
	a, err := w.composeOne(w.name, pieces)
	if err != nil {
		return err
	}
	return w.fs.checkStored("writing", w.name, a, w.size, w.sum)
}

func (w *file) composeOne(name string, from []piece) (a *storage.ObjectAttrs, err error) {
	f, token := w.fs, w.fs.token()
	srcs := make([]*storage.ObjectHandle, len(from))
	for i, p := range from {
		srcs[i] = f.object(p.name).If(storage.Conditions{GenerationMatch: p.gen})
	}
	err = f.try("writing", name, f.opts.Retry.Upload, func(ctx context.Context) error {
		c := f.object(name).If(storage.Conditions{DoesNotExist: true}).ComposerFrom(srcs...)
		c.ContentType, c.Metadata = "application/octet-stream", map[string]string{tokenKey: token}
		a, err = c.Run(ctx)
		return err
	})
	if errors.Is(err, errPrecondition) {
		a, err = f.attrs("writing", name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("writing %s: a part of it was changed by somebody else: %w", f.URL(name), errPrecondition)
		case err == nil && a.Metadata[tokenKey] != token:
			return nil, exist("writing", name)
		}
	}
	return a, err
}
