package gcs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"weft/checkpoint"
)

// Defaults of Options.
const (
	DefaultPartSize = 32 << 20
	DefaultParallel = 4
	DefaultLease    = 30 * time.Second
)

// LeaseEnv names the environment variable with the default of Options.Lease, as
// Go writes durations. Runs of one storage path may differ in it.
const LeaseEnv = "WEFT_GCS_LEASE"

// Options of New; the zero value takes the defaults.
type Options struct {
	// PartSize is the number of bytes of one request. A larger file is sent in
	// parts, which the server then composes.
	PartSize int
	// Parallel is the number of parts on their way at once, of all files
	// together. Host memory is PartSize for each of them and for each open file.
	Parallel int
	// Lease is how long a lock outlives a holder that died.
	Lease time.Duration
	// Retry says how failed requests are sent again.
	Retry Retry
}

// FS is the file system of all buckets that the credentials reach.
type FS struct {
	ctx     context.Context
	client  *storage.Client
	opts    Options
	id      string // of this value, in the tokens of its uploads
	tokens  atomic.Int64
	parts   chan []byte // free buffers; its capacity is the limit of parts under way
	created sync.Map    // name -> generation that this value made
	clock   clock
	waiting atomic.Pointer[func(*checkpoint.LockedError, time.Duration)] // see OnWait
}

// clock is monotonic time; tests have their own.
type clock struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

func systemClock() clock {
	return clock{now: time.Now, sleep: func(ctx context.Context, d time.Duration) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		}
	}}
}

// New connects to Cloud Storage. The end of ctx does not end what the FS is
// doing: a run that was told to stop still saves. No credentials to be found
// is ErrCredentials.
func New(ctx context.Context, opts Options) (*FS, error) {
	if opts.PartSize <= 0 {
		opts.PartSize = DefaultPartSize
	}
	if opts.Parallel <= 0 {
		opts.Parallel = DefaultParallel
	}
	if opts.Lease <= 0 {
		opts.Lease = DefaultLease
		if v := os.Getenv(LeaseEnv); v != "" {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return nil, fmt.Errorf("opening Cloud Storage: %s=%q is not a positive duration like 30s", LeaseEnv, v)
			}
			opts.Lease = d
		}
	}
	opts.Retry.defaults()
	ctx = context.WithoutCancel(ctx)
	client, err := storage.NewClient(ctx, storage.WithJSONReads())
	if err != nil {
		return nil, &Error{Op: "opening Cloud Storage", Kind: ErrCredentials, Err: err}
	}
	// One place decides what is sent again: Retry.
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return nil, fmt.Errorf("opening Cloud Storage: %w", err)
	}
	f := &FS{ctx: ctx, client: client, opts: opts, id: hex.EncodeToString(id), clock: systemClock(), parts: make(chan []byte, opts.Parallel)}
	for range opts.Parallel {
		f.parts <- nil
	}
	return f, nil
}

// Close gives the connections back.
func (f *FS) Close() error { return f.client.Close() }

// URL returns the gs:// form of a name.
func (f *FS) URL(name string) string { return "gs://" + name }

// split takes a name apart; key is empty for the bucket itself.
func split(name string) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.Trim(name, "/"), "/")
	return bucket, key
}

func (f *FS) object(name string) *storage.ObjectHandle {
	bucket, key := split(name)
	return f.client.Bucket(bucket).Object(key)
}

// tokenKey is the metadata key of the token that tells uploads apart.
const tokenKey = "weft-upload"

func (f *FS) token() string { return fmt.Sprintf("%s-%d", f.id, f.tokens.Add(1)) }

func notExist(op, name string) error {
	return &fs.PathError{Op: op, Path: "gs://" + name, Err: fs.ErrNotExist}
}

func exist(op, name string) error {
	return &fs.PathError{Op: op, Path: "gs://" + name, Err: fs.ErrExist}
}

// attrs reads an object's metadata; fs.ErrNotExist when there is none.
func (f *FS) attrs(op, name string) (a *storage.ObjectAttrs, err error) {
	err = f.try(op, name, f.opts.Retry.Timeout, func(ctx context.Context) error {
		a, err = f.object(name).Attrs(ctx)
		return err
	})
	return a, err
}

// Rename implements [checkpoint.FS] for one object. It is a copy that takes
// place only if the old object is still the one that was looked at and the new
// name is free; so whoever removes the old one first prevents it.
func (f *FS) Rename(oldName, newName string) error {
	const op = "renaming"
	src, err := f.attrs(op, oldName)
	if err != nil {
		return err
	}
	token, gen := f.token(), int64(0)
	err = f.try(op, oldName, f.opts.Retry.Timeout, func(ctx context.Context) error {
		c := f.object(newName).If(storage.Conditions{DoesNotExist: true}).
			CopierFrom(f.object(oldName).If(storage.Conditions{GenerationMatch: src.Generation}))
		c.ContentType, c.Metadata = src.ContentType, map[string]string{tokenKey: token}
		a, err := c.Run(ctx)
		if err == nil {
			gen = a.Generation
		}
		return err
	})
	if errors.Is(err, errPrecondition) {
		dst, derr := f.attrs(op, newName)
		switch {
		case errors.Is(derr, fs.ErrNotExist):
			return notExist("rename", oldName)
		case derr != nil:
			return derr
		case dst.Metadata[tokenKey] != token:
			return exist("rename", newName)
		}
		err, gen = nil, dst.Generation
	}
	if err != nil {
		return err
	}
	f.created.Store(newName, gen)
	f.created.Delete(oldName)
	return f.remove(oldName, src.Generation)
}

// Remove implements [checkpoint.FS]; it returns when the object is seen to be
// gone.
func (f *FS) Remove(name string) error {
	a, err := f.attrs("deleting", name)
	if err != nil {
		return err
	}
	f.created.Delete(name)
	return f.remove(name, a.Generation)
}

// errStillThere: the server said that an object is deleted, and it is not.
var errStillThere = errors.New("the server answered that it is deleted, but it is still there")

// remove deletes one generation of an object.
func (f *FS) remove(name string, gen int64) error {
	return f.try("deleting", name, f.opts.Retry.Timeout, func(ctx context.Context) error {
		err := f.object(name).If(storage.Conditions{GenerationMatch: gen}).Delete(ctx)
		if code(err) == 404 || code(err) == 412 || errors.Is(err, storage.ErrObjectNotExist) {
			return nil // an earlier try did it, or somebody else
		}
		if err != nil {
			return err
		}
		a, err := f.object(name).Attrs(ctx)
		switch {
		case errors.Is(err, storage.ErrObjectNotExist):
			return nil
		case err == nil && a.Generation == gen:
			return retryable{errStillThere}
		}
		return err
	})
}

// RemoveAll implements [checkpoint.ObjectStore].
func (f *FS) RemoveAll(names []string, own bool) error {
	sem := make(chan struct{}, 8)
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		sem <- struct{}{}
		wg.Go(func() {
			defer func() { <-sem }()
			if gen, ok := f.created.Load(name); own && ok {
				errs[i] = f.remove(name, gen.(int64))
				f.created.Delete(name)
			} else if !own {
				errs[i] = f.Remove(name)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// List implements [checkpoint.FS].
func (f *FS) List(dir string) (list []checkpoint.DirEntry, err error) {
	const op = "listing"
	bucket, prefix := split(dir)
	if prefix != "" {
		prefix += "/"
	}
	marker := false
	err = f.try(op, dir, f.opts.Retry.Timeout, func(ctx context.Context) error {
		list, marker = nil, false
		q := &storage.Query{Prefix: prefix, Delimiter: "/", Projection: storage.ProjectionNoACL}
		if err := q.SetAttrSelection([]string{"Name", "Size"}); err != nil {
			return err
		}
		for it := f.client.Bucket(bucket).Objects(ctx, q); ; {
			a, err := it.Next()
			if errors.Is(err, iterator.Done) {
				return nil
			}
			if err != nil {
				return err
			}
			switch name := strings.TrimPrefix(a.Name, prefix); {
			case a.Prefix != "":
				d := strings.TrimSuffix(strings.TrimPrefix(a.Prefix, prefix), "/")
				list = append(list, checkpoint.DirEntry{Name: d, Dir: true})
			case name == "":
				marker = true // the empty object that consoles make for a folder
			default:
				list = append(list, checkpoint.DirEntry{Name: name, Size: a.Size})
			}
		}
	})
	if err == nil && len(list) == 0 && !marker && prefix != "" {
		err = notExist("list", dir)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b checkpoint.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// MkdirAll implements [checkpoint.FS]: there are no folders to make.
func (f *FS) MkdirAll(string) error { return nil }

// SyncDir implements [checkpoint.FS]: what was answered is durable.
func (f *FS) SyncDir(string) error { return nil }

var _ checkpoint.ObjectStore = (*FS)(nil)
