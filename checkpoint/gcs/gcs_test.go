package gcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs/gcstest"
)

// fastRetry retries at once. It never gives up a request because the machine is slow.
var fastRetry = Retry{First: time.Microsecond, Max: time.Microsecond, Timeout: time.Hour, Upload: time.Hour, Attempts: 6}

// open connects to s with small parts.
func open(t *testing.T, s *gcstest.Server) *FS {
	t.Helper()
	s.Use(t)
	f, err := New(t.Context(), Options{PartSize: 1000, Parallel: 3, Retry: fastRetry})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func write(f checkpoint.FS, name string, content []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	for p := range bytesInPieces(content) {
		if _, err := w.Write(p); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(w.Sync(), w.Close())
}

// bytesInPieces are pieces of odd sizes.
func bytesInPieces(b []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for n := 1; len(b) > 0; n = n*3 + 1 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

func read(f checkpoint.FS, name string) ([]byte, error) {
	r, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, r.Size())
	for off := 0; off < len(b); {
		n, err := r.ReadAt(b[off:min(off+700, len(b))], int64(off))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		off += n
	}
	return b, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.New(rand.NewSource(int64(n))).Read(b)
	return b
}

func TestContract(t *testing.T) {
	s := gcstest.Start(t, "b", "empty")
	f := open(t, s)
	for _, n := range []int{0, 1, 999, 1000, 1001, 32_000, 32_001, 70_123} {
		name := "b/files/" + strings.Repeat("x", 1+n%7)
		require.NoError(t, write(f, name, random(n)), n)
		got, err := read(f, name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(random(n), got), n)
		require.ErrorIs(t, write(f, name, random(n)), fs.ErrExist, n)
		require.Len(t, s.Objects("b"), 1, "no parts are left")
		require.NoError(t, f.Remove(name))
	}
	require.NoError(t, write(f, "b/d/one", []byte("1")))
	require.NoError(t, write(f, "b/d/sub/two", []byte("22")))
	require.NoError(t, write(f, "b/d/sub.txt", []byte("333")))
	s.Put("b", "d/", nil) // what consoles make for a folder
	list, err := f.List("b/d")
	require.NoError(t, err)
	require.Equal(t, []checkpoint.DirEntry{{Name: "one", Size: 1}, {Name: "sub", Dir: true}, {Name: "sub.txt", Size: 3}}, list)
	list, err = f.List("b")
	require.NoError(t, err)
	require.Equal(t, []checkpoint.DirEntry{{Name: "d", Dir: true}}, list)
	_, err = f.List("b/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	list, err = f.List("empty")
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = f.Open("b/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, f.Remove("b/none"), fs.ErrNotExist)

	require.NoError(t, f.Rename("b/d/one", "b/d/uno"))
	_, err = f.Open("b/d/one")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, f.Rename("b/d/one", "b/d/x"), fs.ErrNotExist)
	require.ErrorIs(t, f.Rename("b/d/uno", "b/d/sub.txt"), fs.ErrExist)

	for _, content := range []string{"a", "bb", ""} {
		require.NoError(t, f.Replace("b/small", []byte(content)))
		got, err := read(f, "b/small")
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}

	w, err := f.Create("b/dropped")
	require.NoError(t, err)
	_, err = w.Write(random(2500))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NotContains(t, s.Objects("b"), "dropped")

	s.Put("b", "foreign", []byte("x"))
	require.NoError(t, f.RemoveAll([]string{"b/foreign", "b/d/uno", "b/none"}, true))
	require.Contains(t, s.Objects("b"), "foreign", "not ours")
	require.NotContains(t, s.Objects("b"), "d/uno")
	require.NoError(t, f.RemoveAll([]string{"b/foreign", "b/none"}, false))
	require.NotContains(t, s.Objects("b"), "foreign")
}

// A listing of several pages is one.
func TestLongListing(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := open(t, s)
	for i := range 1500 {
		s.Put("b", fmt.Sprintf("d/%04d/x", i), nil)
		s.Put("b", fmt.Sprintf("d/f%04d", i), nil)
	}
	list, err := f.List("b/d")
	require.NoError(t, err)
	require.Len(t, list, 3000)
	for i, d := range list {
		if i < 1500 {
			require.Equal(t, checkpoint.DirEntry{Name: fmt.Sprintf("%04d", i), Dir: true}, d)
		} else {
			require.Equal(t, checkpoint.DirEntry{Name: fmt.Sprintf("f%04d", i-1500)}, d)
		}
	}
}

// However fast files are written, only so many parts are in memory; the others
// wait.
func TestPartsInFlight(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := open(t, s)
	var mu sync.Mutex
	now, most := 0, 0
	f.opts.Retry.Attempts = 1000
	s.Inject(gcstest.Fault{Op: gcstest.Insert, Name: checkpoint.PartSuffix, Times: 60, Do: gcstest.Before(func() {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
	})})
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wg.Go(func() { errs[i] = write(f, fmt.Sprint("b/", i), random(20_000+i)) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, []int{60}, s.Heal())
	require.LessOrEqual(t, most, 3)
	for i := range errs {
		require.Equal(t, random(20_000+i), s.Objects("b")[fmt.Sprint(i)])
	}
	require.Len(t, f.parts, 3)
}

// Reading in any order gives the bytes; reading on shares a request.
func TestReadAt(t *testing.T) {
	s := gcstest.Start(t, "b")
	f := open(t, s)
	want := random(50_000)
	s.Put("b", "x", want)
	r, err := f.Open("b/x")
	require.NoError(t, err)
	defer r.Close()
	s.Requests()
	got := make([]byte, 1000)
	for off := int64(0); off < 50_000; off += 1000 {
		_, err := r.ReadAt(got, off)
		require.NoError(t, err)
		require.Equal(t, want[off:off+1000], got)
	}
	require.Len(t, s.Requests(), 1)
	rng := rand.New(rand.NewSource(1))
	for range 300 {
		off := rng.Int63n(52_000)
		p := make([]byte, rng.Intn(3000))
		n, err := r.ReadAt(p, off)
		if off+int64(len(p)) > 50_000 {
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, want[min(off, 50_000):], p[:n])
		} else {
			require.NoError(t, err)
			require.Equal(t, want[off:off+int64(len(p))], p)
		}
	}
	// Another object under the name is not what was opened.
	s.Put("b", "x", random(50_000))
	_, err = r.ReadAt(make([]byte, 10), 3)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Each fault is survived, with the right bytes, or ends in a named error.
func TestFaults(t *testing.T) {
	const never = -1
	ops := map[gcstest.Op]func(t *testing.T, f *FS) error{
		gcstest.Insert:  func(_ *testing.T, f *FS) error { return write(f, "b/new", random(500)) },
		gcstest.Compose: func(_ *testing.T, f *FS) error { return write(f, "b/new", random(40_500)) },
		gcstest.Copy:    func(_ *testing.T, f *FS) error { return f.Rename("b/old", "b/new") },
		gcstest.Delete: func(t *testing.T, f *FS) error {
			err := f.Remove("b/old")
			if err == nil {
				_, err := f.Open("b/old")
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			return err
		},
		gcstest.List: func(t *testing.T, f *FS) error {
			list, err := f.List("b")
			if err == nil {
				require.Equal(t, []checkpoint.DirEntry{{Name: "old", Size: 3000}}, list)
			}
			return err
		},
		gcstest.Stat: func(_ *testing.T, f *FS) error { _, err := f.Open("b/old"); return err },
		gcstest.Read: func(t *testing.T, f *FS) error {
			b, err := read(f, "b/old")
			if err == nil {
				require.Equal(t, random(3000), b)
			}
			return err
		},
	}
	created := map[gcstest.Op]int{gcstest.Insert: 500, gcstest.Compose: 40_500, gcstest.Copy: 3000}
	for _, c := range []struct {
		do    gcstest.Action
		ops   []gcstest.Op // nil: all
		times int
		want  error
		text  string
	}{
		{gcstest.TooMany(0), nil, 3, nil, ""},
		{gcstest.TooMany(0), nil, never, ErrQuota, "try again later"},
		{gcstest.Unavailable, nil, 5, nil, ""},
		{gcstest.Unavailable, nil, never, ErrUnavailable, "6 attempts, the last: HTTP 503"},
		{gcstest.Status(408, "timeout", "Request timeout"), nil, 2, nil, ""},
		{gcstest.Hang, nil, 1, nil, ""},
		{gcstest.Reset, nil, 2, nil, ""},
		{gcstest.Reset, nil, never, ErrUnavailable, "check the network"},
		{gcstest.LostAnswer, nil, 1, nil, ""},
		{gcstest.LostAnswer, nil, 4, nil, ""},
		{gcstest.HalfUpload, []gcstest.Op{gcstest.Insert}, 2, nil, ""},
		{gcstest.BitFlipUp, []gcstest.Op{gcstest.Insert}, 2, nil, ""},
		{gcstest.BitFlipUp, []gcstest.Op{gcstest.Insert}, never, ErrChecksum, "CRC32C"},
		{gcstest.HalfRead, []gcstest.Op{gcstest.Read}, 2, nil, ""},
		{gcstest.HalfRead, []gcstest.Op{gcstest.Read}, never, ErrUnavailable, "6 attempts"},
		{gcstest.LostDelete, []gcstest.Op{gcstest.Delete}, 3, nil, ""},
		{gcstest.LostDelete, []gcstest.Op{gcstest.Delete}, never, errStillThere, "gs://b/old"},
		{gcstest.Unauthorized, nil, never, ErrCredentials, "gcloud auth application-default login"},
		{gcstest.Forbidden("storage.objects.get"), []gcstest.Op{gcstest.Stat, gcstest.Read}, never, ErrPermission, "no permission storage.objects.get"},
		{gcstest.Forbidden("storage.objects.list"), []gcstest.Op{gcstest.List}, never, ErrPermission, "no permission storage.objects.list"},
		{gcstest.Forbidden("storage.objects.create"), []gcstest.Op{gcstest.Insert, gcstest.Compose, gcstest.Copy}, never, fs.ErrPermission, "no permission storage.objects.create"},
		{gcstest.Status(403, "forbidden", "no"), []gcstest.Op{gcstest.Delete}, never, ErrPermission, "no permission storage.objects.delete"},
		{gcstest.Status(403, "rateLimitExceeded", "slower"), nil, 2, nil, ""},
		{gcstest.Status(403, "quotaExceeded", "used up"), nil, never, ErrQuota, "quota"},
		{gcstest.Status(403, "retentionPolicyNotMet", "held"), []gcstest.Op{gcstest.Delete}, never, ErrRetention, "retention policy"},
	} {
		for op, do := range ops {
			if c.ops != nil && !contains(c.ops, op) {
				continue
			}
			if c.want != nil && op == gcstest.Delete && c.do.String() == gcstest.LostDelete.String() {
				c.want = errStillThere
			}
			t.Run(c.do.String()+" "+string(op), func(t *testing.T) {
				s := gcstest.Start(t, "b")
				f := open(t, s)
				if c.do.String() == gcstest.Hang.String() {
					f.opts.Retry.Timeout, f.opts.Retry.Upload = time.Second, time.Second
				}
				s.Put("b", "old", random(3000))
				s.Inject(gcstest.Fault{Op: op, Times: c.times, Do: c.do})
				err := do(t, f)
				happened := s.Heal()
				require.NotZero(t, happened[0])
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
					require.ErrorContains(t, err, c.text)
					require.ErrorContains(t, err, "gs://b")
					require.NotContains(t, err.Error(), "\n")
					require.NotContains(t, s.Objects("b"), "new")
					return
				}
				require.NoError(t, err)
				if n, ok := created[op]; ok {
					require.Equal(t, random(n), s.Objects("b")["new"])
				}
				for name := range s.Objects("b") {
					require.NotContains(t, name, checkpoint.PartSuffix)
				}
			})
		}
	}
}

func contains[T comparable](list []T, v T) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func TestNoBucket(t *testing.T) {
	f := open(t, gcstest.Start(t))
	for _, do := range []func() error{
		func() error { _, err := f.List("none/x"); return err },
		func() error { return write(f, "none/x", nil) },
		func() error { return f.Replace("none/x", nil) },
		func() error { _, err := f.Lock("none/x", nil); return err },
		func() error { _, err := f.Open("none/x"); return err },
	} {
		err := do()
		require.ErrorIs(t, err, ErrBucket)
		require.NotErrorIs(t, err, fs.ErrNotExist, "an empty storage path is another thing")
		require.ErrorContains(t, err, "gcloud storage buckets create gs://none")
	}
}

func TestNoCredentials(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	_, err := New(t.Context(), Options{Retry: fastRetry})
	require.ErrorIs(t, err, ErrCredentials)
	require.ErrorContains(t, err, "none.json")
	require.ErrorContains(t, err, "gcloud auth application-default login")
	require.NotContains(t, err.Error(), "\n")
}

func TestLeaseEnv(t *testing.T) {
	s := gcstest.Start(t, "b")
	s.Use(t)
	t.Setenv(LeaseEnv, "soon")
	_, err := New(t.Context(), Options{})
	require.ErrorContains(t, err, `WEFT_GCS_LEASE="soon" is not a positive duration`)
	t.Setenv(LeaseEnv, "7s")
	f, err := New(t.Context(), Options{})
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, f.opts.Lease)
}

// The waits double up to a limit, are spread by the name only, and follow the
// server's Retry-After.
func TestDelays(t *testing.T) {
	r := Retry{First: 100, Max: 1000}
	for n, want := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		d := r.delay(n, "x", errors.New("e"))
		require.LessOrEqual(t, d, want)
		require.Greater(t, d, want*3/4-1)
		require.Equal(t, d, r.delay(n, "x", errors.New("e")))
	}
	s := gcstest.Start(t, "b")
	f := open(t, s)
	var waits []time.Duration
	f.clock.sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	f.opts.Retry.Max = 10 * time.Second
	s.Inject(gcstest.Fault{Op: gcstest.List, Do: gcstest.TooMany(7)})
	_, err := f.List("b")
	require.NoError(t, err)
	require.Equal(t, []time.Duration{7 * time.Second}, waits)
}
