package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// device is memory that a training step overwrites: the buffers of a state are donated to it.
type device struct {
	mu      sync.Mutex
	values  map[string][]byte
	fetched int   // calls
	bytes   int64 // of them
}

func newDevice(step int) *device {
	d := &device{}
	d.run(step)
	return d
}

// run is a step: every value changes in place.
func (d *device) run(step int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.values == nil {
		d.values = map[string][]byte{"w": make([]byte, 4*6*4), "stack": make([]byte, 3*2*4*4), "m": make([]byte, 5*4), "step": make([]byte, 8)}
	}
	for name, b := range d.values {
		copy(b, payload(name, step, int64(len(b))))
	}
}

func (d *device) tensor(name string, dtype DType, shape []int, cells ...[2][]int) Tensor {
	t := Tensor{Name: name, DType: dtype, Shape: shape}
	for _, c := range cells {
		t.Shards = append(t.Shards, Shard{Start: c[0], Size: c[1], Fetch: func(dst []byte) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.fetched++
			d.bytes += int64(len(dst))
			region.Copy(dst, d.values[name], make([]int, len(shape)), shape, c[0], c[1], c[0], c[1], dtype.Size())
			return nil
		}})
	}
	return t
}

// snapshot is the device's state, and a model folder made of it: a matrix split along its columns, in bfloat16, and a stack
// of three, split along the rows of each.
func (d *device) snapshot(step int, loss float64) *Snapshot {
	s := &Snapshot{
		Step: step, Epoch: step / 10, Metrics: map[string]float64{"loss": loss}, Data: []byte(`{"position":1}`),
		State: []Tensor{
			d.tensor("w", safetensors.F32, []int{4, 6}, [2][]int{{0, 0}, {4, 3}}, [2][]int{{0, 3}, {4, 3}}),
			d.tensor("m", safetensors.F32, []int{5}, [2][]int{{0}, {3}}, [2][]int{{3}, {2}}),
			d.tensor("stack", safetensors.F32, []int{3, 2, 4}, [2][]int{{0, 0, 0}, {3, 1, 4}}, [2][]int{{0, 1, 0}, {3, 1, 4}}),
			d.tensor("step", safetensors.I64, nil, [2][]int{{}, {}}),
		},
		Model: &ModelFolder{
			Tensors: []Tensor{{Name: "model.w", DType: safetensors.BF16, Shape: []int{4, 6}, Shards: []Shard{
				{Start: []int{0, 0}, Size: []int{4, 3}, Part: &Part{Tensor: "w", Shard: 0}},
				{Start: []int{0, 3}, Size: []int{4, 3}, Part: &Part{Tensor: "w", Shard: 1}},
			}}},
			Files: map[string][]byte{"config.json": []byte(`{}`)},
			// Two files of weights.
			MaxShardSize: 80,
		},
	}
	for i := range 3 {
		s.Model.Tensors = append(s.Model.Tensors, Tensor{Name: fmt.Sprintf("model.%d", i), DType: safetensors.F32, Shape: []int{2, 4}, Shards: []Shard{
			{Start: []int{0, 0}, Size: []int{1, 4}, Part: &Part{Tensor: "stack", Shard: 0, Offset: int64(4 * i)}},
			{Start: []int{1, 0}, Size: []int{1, 4}, Part: &Part{Tensor: "stack", Shard: 1, Offset: int64(4 * i)}},
		}})
	}
	return s
}

// deviceNeeds are the bytes of the state of the device's snapshot, and the least ring for it with the model folder.
func deviceNeeds(t require.TestingT) (whole, least int64) {
	job, err := newSaveJob(newDevice(1).snapshot(1, 1), Options{})
	require.NoError(t, err)
	whole, least = job.plan.needs()
	return whole, least
}

// hostMemories are the bounds to test: all of the state, the least, one between.
func hostMemories(t require.TestingT) []int64 {
	whole, least := deviceNeeds(t)
	require.Less(t, least+stageAlign, whole)
	return []int64{0, 1, least + stageAlign}
}

func openAsync(t require.TestingT, fsys FS, o AsyncOptions) (*Manager, *Async) {
	m, err := Open(fsys, "/run", Options{})
	require.NoError(t, err)
	if o.Backoff == 0 {
		o.Backoff = time.Nanosecond
	}
	return m, NewAsync(m, o)
}

// The bytes on the disk are those of the state when it was saved, though a step changes the same memory right after; and
// they are the same as those of a save that blocks.
func TestAsyncSavesTheStateOfItsMoment(t *testing.T) {
	const step = 30
	blocking := newMemFS()
	m, err := Open(blocking, "/run", Options{})
	require.NoError(t, err)
	_, err = m.Save(t.Context(), newDevice(step).snapshot(step, 1))
	require.NoError(t, err)
	want := blocking.tree()
	delete(want, "/run/"+LockFile)

	for _, bound := range hostMemories(t) {
		for _, writers := range []int{1, 4} {
			label := fmt.Sprintf("host memory %d, %d writers", bound, writers)
			disk, d := newMemFS(), newDevice(step)
			var saved []Saved
			m, a := openAsync(t, disk, AsyncOptions{HostMemory: bound, Writers: writers, Done: func(s Saved) { saved = append(saved, s) }})
			require.NoError(t, a.Prepare(d.snapshot(step, 1)), label)
			require.NoError(t, a.Save(t.Context(), d.snapshot(step, 1)), label)
			d.run(step + 1)
			require.NoError(t, a.Wait(t.Context()), label)
			got := disk.tree()
			delete(got, "/run/"+LockFile)
			require.Equal(t, want, got, label)
			require.Len(t, saved, 1, label)
			require.NoError(t, m.Verify(saved[0].Entry), label)
			require.NoError(t, a.Close(t.Context()), label)
		}
	}
	w := payload("w", step, 4*6*4)
	narrow := make([]byte, len(w)/2)
	require.NoError(t, safetensors.F32ToBF16(narrow, w))
	data := map[string][]byte{"model.w": narrow}
	for i := range 3 {
		data[fmt.Sprintf("model.%d", i)] = payload("stack", step, 3*2*4*4)[i*32 : (i+1)*32]
	}
	checkModel(t, want, "/run/checkpoints/"+nameOf(3, step, 1)+"/model", data)
}

// The figures of a save are those of what was there: all of the state once when it is held, what fits otherwise.
func TestAsyncStats(t *testing.T) {
	whole, least := deviceNeeds(t)
	const state = 4*6*4 + 5*4 + 3*2*4*4 + 8
	for _, bound := range hostMemories(t) {
		var saved []Saved
		var staged []AsyncStats
		d := newDevice(1)
		_, a := openAsync(t, newMemFS(), AsyncOptions{
			HostMemory: bound, Done: func(s Saved) { saved = append(saved, s) }, Staged: func(s AsyncStats) { staged = append(staged, s) },
		})
		for step := range 3 {
			require.NoError(t, a.Save(t.Context(), d.snapshot(step, 1)))
			require.Len(t, staged, step+1, "told before Save returns")
		}
		require.NoError(t, a.Wait(t.Context()))
		require.Len(t, saved, 3)
		for i, s := range saved {
			known := s.Stats
			known.WrittenBytes, known.Write, known.Tries = 0, 0, 0
			require.Equal(t, known, staged[i])
			require.EqualValues(t, state, s.Stats.StateBytes)
			require.Equal(t, s.Entry.Bytes, s.Stats.WrittenBytes)
			require.Equal(t, 1, s.Stats.Tries)
			require.Positive(t, s.Stats.Stall)
			require.Positive(t, s.Stats.BytesPerSecond())
			if bound == 0 {
				require.Equal(t, whole, s.Stats.LimitBytes)
				require.Equal(t, whole, s.Stats.PeakBytes)
				continue
			}
			require.Equal(t, max(least, bound), s.Stats.LimitBytes)
			require.LessOrEqual(t, s.Stats.PeakBytes, s.Stats.LimitBytes)
		}
		// Held state is fetched once, for the model folder too; a ring fetches the parameters again.
		require.Equal(t, map[bool]int{true: 3 * 7, false: 3 * 11}[bound == 0], d.fetched)
	}
}

// gatedFS lets writes through only while its gate is open.
type gatedFS struct {
	*memFS
	mu   sync.Mutex
	gate chan struct{} // closed: open
}

func newGatedFS(m *memFS) *gatedFS { return &gatedFS{memFS: m, gate: make(chan struct{})} }

func (g *gatedFS) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.gate)
}

// shut closes a gate that was open.
func (g *gatedFS) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = make(chan struct{})
}

func (g *gatedFS) pass() {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	<-gate
}

type gatedFile struct {
	File
	fs *gatedFS
}

func (g *gatedFS) Create(name string) (File, error) {
	f, err := g.memFS.Create(name)
	return gatedFile{f, g}, err
}

func (f gatedFile) Write(p []byte) (int, error) {
	f.fs.pass()
	return f.File.Write(p)
}

// While the writer stands still, no more is fetched than the bound allows, and Save waits; it returns when the rest fits.
func TestAsyncHostMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, _ := deviceNeeds(t)
		for _, bound := range hostMemories(t)[1:] {
			g, d := newGatedFS(newMemFS()), newDevice(1)
			m, err := Open(g.memFS, "/run", Options{})
			require.NoError(t, err)
			m.fs = g
			a := NewAsync(m, AsyncOptions{HostMemory: bound})
			returned := make(chan error, 1)
			go func() { returned <- a.Save(t.Context(), d.snapshot(1, 1)) }()
			synctest.Wait()
			require.Empty(t, returned, "Save must wait for room")
			d.mu.Lock()
			require.Positive(t, d.bytes)
			require.LessOrEqual(t, d.bytes, int64(len(a.memory.Bytes())))
			require.Less(t, d.bytes, whole)
			d.mu.Unlock()
			g.open()
			require.NoError(t, <-returned)
			require.NoError(t, a.Close(t.Context()))
		}
	})
}

// A second Save waits for the write before it, and a cancelled one leaves both the device and that write alone.
func TestAsyncSecondSaveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := newGatedFS(newMemFS()), newDevice(1)
		m, err := Open(g.memFS, "/run", Options{})
		require.NoError(t, err)
		m.fs = g
		a := NewAsync(m, AsyncOptions{})
		require.NoError(t, a.Save(t.Context(), d.snapshot(1, 1)))
		before := d.fetched
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		go func() { returned <- a.Save(ctx, d.snapshot(2, 1)) }()
		synctest.Wait()
		require.Empty(t, returned)
		require.Equal(t, before, d.fetched, "nothing is fetched while the buffers are in use")
		cancel()
		require.ErrorIs(t, <-returned, context.Canceled)

		go func() { returned <- a.Save(t.Context(), d.snapshot(3, 1)) }()
		synctest.Wait()
		require.Empty(t, returned)
		g.open()
		require.NoError(t, <-returned)
		require.NoError(t, a.Close(t.Context()))
		list, err := m.List()
		require.NoError(t, err)
		steps := make([]int, len(list))
		for i, e := range list {
			steps[i] = e.Step
			require.Equal(t, i+1, e.Sequence)
		}
		require.Equal(t, []int{1, 3}, steps)
	})
}

// brokenFS fails every Create below the checkpoints.
type brokenFS struct {
	*memFS
	mu    sync.Mutex
	err   error
	tries int
}

func (b *brokenFS) Create(name string) (File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		b.tries++
		return nil, pathErr("create", name, b.err)
	}
	return b.memFS.Create(name)
}

func (b *brokenFS) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = nil
}

// A write is tried again where that may help, after 1, 2 and 4 seconds; what is given up is reported once, by whoever asks
// first; later saves work.
func TestAsyncFailure(t *testing.T) {
	for _, c := range []struct {
		err   error
		tries int
		took  time.Duration
	}{
		{syscall.EIO, 4, 7 * time.Second},
		{syscall.ETIMEDOUT, 4, 7 * time.Second},
		{errors.New("503 from a store"), 4, 7 * time.Second},
		{syscall.ENOSPC, 2, time.Second},
		{fs.ErrPermission, 1, 0},
		{syscall.EROFS, 1, 0},
		{ErrLocked, 1, 0},
	} {
		for _, ask := range []string{"err", "wait", "save", "close"} {
			synctest.Test(t, func(t *testing.T) {
				b, d := &brokenFS{memFS: newMemFS()}, newDevice(1)
				m, err := Open(b.memFS, "/run", Options{})
				require.NoError(t, err)
				_, err = m.Save(t.Context(), d.snapshot(1, 1))
				require.NoError(t, err)
				m.fs, b.err = b, c.err
				var saved []Saved
				a := NewAsync(m, AsyncOptions{Done: func(s Saved) { saved = append(saved, s) }})
				begin := time.Now()
				require.NoError(t, a.Save(t.Context(), d.snapshot(2, 1)))
				<-a.running
				require.Equal(t, c.took, time.Since(begin))
				require.Equal(t, c.tries, b.tries)
				require.Len(t, saved, 1)
				require.ErrorIs(t, saved[0].Err, c.err)
				require.Equal(t, c.tries, saved[0].Stats.Tries)
				var got error
				switch ask {
				case "err":
					got = a.Err()
				case "wait":
					got = a.Wait(t.Context())
				case "save":
					got = a.Save(t.Context(), d.snapshot(3, 1))
				case "close":
					got = a.Close(t.Context())
				}
				require.ErrorIs(t, got, c.err)
				require.ErrorContains(t, got, "saving step 2")
				require.NotContains(t, got.Error(), "\n")
				require.NoError(t, a.Err(), "reported once")
				require.NoError(t, a.Wait(t.Context()), "reported once")
				b.mend()
				require.NoError(t, a.Save(t.Context(), d.snapshot(4, 1)))
				require.NoError(t, a.Close(t.Context()))
				list, err := m.List()
				require.NoError(t, err)
				require.Len(t, list, 2)
				for _, e := range list {
					require.NoError(t, m.Verify(e))
				}
			})
		}
	}
}

// A device that cannot be read fails the save itself; nothing is written, the state is asked for by nobody any more.
func TestAsyncFetchFails(t *testing.T) {
	gone := errors.New("the device is gone")
	for _, bound := range hostMemories(t) {
		for failing := range 4 {
			synctest.Test(t, func(t *testing.T) {
				disk, d := newMemFS(), newDevice(1)
				m, a := openAsync(t, disk, AsyncOptions{HostMemory: bound})
				s := d.snapshot(1, 1)
				s.State[failing].Shards[0].Fetch = func([]byte) error { return gone }
				err := a.Save(t.Context(), s)
				require.ErrorIs(t, err, gone)
				require.ErrorContains(t, err, s.State[failing].Name)
				require.NoError(t, a.Wait(t.Context()), "Save has reported it")
				list, err := m.List()
				require.NoError(t, err)
				require.Empty(t, list)
				require.NoError(t, a.Save(t.Context(), d.snapshot(2, 1)))
				require.NoError(t, a.Close(t.Context()))
				for name := range disk.tree() {
					require.NotContains(t, name, "tmp")
				}
			})
		}
	}
}

// A snapshot without a state is saved too.
func TestAsyncWithoutAState(t *testing.T) {
	m, a := openAsync(t, newMemFS(), AsyncOptions{})
	s := &Snapshot{Step: 1, Model: &ModelFolder{Files: map[string][]byte{"config.json": []byte("{}")}}}
	require.NoError(t, a.Save(t.Context(), s))
	require.NoError(t, a.Close(t.Context()))
	e, ok, err := m.Latest()
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, m.Verify(e))
}

// What a checkpoint stands on is made durable ahead of each attempt, beside the training; a fault of it is one of the attempt.
func TestAsyncBefore(t *testing.T) {
	for _, bound := range hostMemories(t)[:2] {
		for _, c := range []struct {
			faults, calls int
			fails         bool
		}{{0, 1, false}, {2, 3, false}, {9, DefaultRetries + 1, true}} {
			disk, d := newMemFS(), newDevice(1)
			m, a := openAsync(t, disk, AsyncOptions{HostMemory: bound})
			s, calls, before := d.snapshot(1, 1), 0, disk.tree()
			s.Before = func() error {
				require.Equal(t, before, disk.tree(), "nothing is written yet")
				if calls++; calls <= c.faults {
					return syscall.EIO
				}
				return nil
			}
			err := errors.Join(a.Save(t.Context(), s), a.Close(t.Context()))
			require.Equal(t, c.calls, calls)
			list, lerr := m.List()
			require.NoError(t, lerr)
			if c.fails {
				require.ErrorIs(t, err, syscall.EIO)
				require.Empty(t, list)
				continue
			}
			require.NoError(t, err)
			require.Len(t, list, 1)
		}
	}
}
