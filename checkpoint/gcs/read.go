package gcs

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"

	"weft/checkpoint"
)

// maxStreams is how many places of a file are read on at once.
const maxStreams = 4

// reader reads one generation of an object. Reads that follow one another share
// a request.
type reader struct {
	fs     *FS
	name   string
	gen    int64
	size   int64
	sum    uint32
	mu     sync.Mutex
	idle   []*stream      // the one used longest ago first
	ends   map[int64]bool // where single reads ended: one going on there begins a stream
	closed bool
}

// stream is an answer under way; nobody or one read has it.
type stream struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	pos    int64
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close()
}

// Open implements [checkpoint.FS].
func (f *FS) Open(name string) (checkpoint.Reader, error) {
	a, err := f.attrs("reading", name)
	if err != nil {
		return nil, err
	}
	return &reader{fs: f, name: name, gen: a.Generation, size: a.Size, sum: a.CRC32C, ends: map[int64]bool{0: true}}, nil
}

func (r *reader) Size() int64 { return r.size }

// CRC32C is the checksum that the store has of the whole object, for readers of
// all of it. Every object has one; 0 for bytes is taken for an emulator's lack.
func (r *reader) CRC32C() (sum uint32, ok bool) { return r.sum, r.sum != 0 || r.size == 0 }

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, s := range r.idle {
		s.close()
	}
	r.idle = nil
	return nil
}

// ReadAt implements io.ReaderAt.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	want := min(int64(len(p)), max(r.size-off, 0))
	n := 0
	if want > 0 {
		err := r.fs.try("reading", r.name, 24*time.Hour, func(context.Context) error {
			s, err := r.take(off+int64(n), want-int64(n))
			for err == nil && int64(n) < want {
				var k int
				k, err = r.readOn(s, p[n:want])
				n += k
			}
			if err == nil && want == r.size {
				// All in one: the end of the answer comes with the comparison of checksums.
				if _, err = s.body.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
					err = nil
				}
			}
			if err != nil {
				if badCRC(err) {
					n = 0
				}
				if s != nil {
					s.close()
				}
				return err
			}
			r.give(s)
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readOn reads what comes next; a stream in which nothing comes is cut. The end
// of the bytes is only right at the end of the object.
func (r *reader) readOn(s *stream, p []byte) (int, error) {
	stalled := time.AfterFunc(r.fs.opts.Retry.Upload, s.cancel)
	n, err := s.body.Read(p)
	if !stalled.Stop() && err != nil {
		err = retryable{context.DeadlineExceeded}
	} else if errors.Is(err, context.Canceled) {
		err = io.ErrUnexpectedEOF // of noReopen
	}
	s.pos += int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if n < len(p) && s.pos < r.size {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// take finds the stream that is at off or begins one: to the end of the object
// when the reading looks sequential, of n bytes otherwise.
func (r *reader) take(off, n int64) (*stream, error) {
	r.mu.Lock()
	for i, s := range r.idle {
		if s.pos == off {
			r.idle = append(r.idle[:i:i], r.idle[i+1:]...)
			r.mu.Unlock()
			return s, nil
		}
	}
	if r.ends[off] || off == 0 && n == r.size { // only of an object read to its end the checksum is compared
		delete(r.ends, off)
		n = -1
	}
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(r.fs.ctx)
	ctx, opened := noReopen(ctx, cancel)
	stalled := time.AfterFunc(r.fs.opts.Retry.Timeout, cancel)
	body, err := r.fs.object(r.name).Generation(r.gen).NewRangeReader(ctx, off, n)
	if !stalled.Stop() && err != nil {
		err = retryable{context.DeadlineExceeded}
	}
	if err != nil {
		cancel()
		if errors.Is(err, storage.ErrObjectNotExist) || code(err) == 404 {
			err = notExist("read", r.name)
		}
		return nil, err
	}
	opened.Store(true)
	return &stream{body: body, cancel: cancel, pos: off}, nil
}

// noReopen keeps the library from asking again and again, at once and without a
// limit, for the rest of an answer that broke off: a request after opened is set
// ends the context instead, and FS.try does it.
func noReopen(ctx context.Context, cancel func()) (_ context.Context, opened *atomic.Bool) {
	opened = new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) {
		if opened.Load() {
			cancel()
		}
	}}), opened
}

// give keeps a stream for the read that goes on from it.
func (r *reader) give(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if br, ok := s.body.(*storage.Reader); r.closed || s.pos >= r.size || ok && br.Remain() == 0 {
		s.close()
		if !r.closed && s.pos < r.size {
			if len(r.ends) >= 1024 {
				clear(r.ends)
			}
			r.ends[s.pos] = true
		}
		return
	}
	r.idle = append(r.idle, s)
	if len(r.idle) > maxStreams {
		r.idle[0].close()
		r.idle = r.idle[1:]
	}
}
