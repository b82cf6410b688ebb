package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"golang.org/x/sys/unix"

	"weft/checkpoint"
	"weft/engine"
	"weft/engine/sharding"
	"weft/optim"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// weights is a model that only holds parameters: one large table and matrices, as a language model has.
type weights struct{ params []engine.Param }

// columns is the width of every parameter, tableShare the part of the bytes that is in the largest of them.
const (
	columns    = 2048
	matrices   = 32
	tableShare = 8
)

// newWeights makes parameters whose train state with two moments has about so many bytes.
func newWeights(bytes int64) weights {
	rows := int(bytes / 3 / 4 / columns)
	w := weights{}
	add := func(name string, n int) {
		w.params = append(w.params, engine.Param{Name: name, DType: dtypes.Float32, Dims: []int{max(1, n), columns}, Trainable: true})
	}
	table := rows / tableShare
	add("embed", table)
	for i := range matrices {
		add(fmt.Sprintf("layer.%d", i), (rows-table)/matrices)
	}
	return w
}

func (w weights) Params() []engine.Param { return w.params }

func (weights) Loss(map[string]*graph.Node, engine.BatchNodes) (sum, count *graph.Node) {
	panic("the benchmark runs no step")
}

// bench holds the train state on the device and the disk that is measured.
type bench struct {
	dir     string
	rt      *engine.Runtime
	state   *engine.State
	manager *checkpoint.Manager
	bytes   int64
	newest  checkpoint.Entry

	async *checkpoint.Async
	saved checkpoint.Saved // its last
	taken int64            // by how many bytes the process grew when it took memory for saving
}

func openBench(ctx context.Context, dir string, bytes int64) (*bench, error) {
	info, err := plugin.Ensure(ctx, "cpu", os.Stderr)
	if err != nil {
		return nil, err
	}
	p, err := pjrt.Load(info.Path)
	if err != nil {
		return nil, err
	}
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 1})
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir}
	if b.rt, err = engine.Open(engine.Options{Plugin: p, PluginID: info.SHA256, Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(1)}}); err != nil {
		return nil, err
	}
	schedule, err := optim.NewSchedule("constant", 1e-3, 0, 0, 1)
	if err != nil {
		return nil, err
	}
	opt, err := optim.NewAdamW(schedule, 0.9, 0.999, 1e-8, 0)
	if err != nil {
		return nil, err
	}
	if b.state, err = b.rt.NewState(newWeights(bytes), opt, func(p engine.Param, _ sharding.Region, dst []byte) error { return noise(p.Name, dst) }); err != nil {
		return nil, err
	}
	// Moments that are not zero, as after a step.
	err = b.state.Restore(func(e engine.Entry) bool { return e.Slot != "" }, func(e engine.Entry, _ sharding.Region, dst []byte) error { return noise(e.Name, dst) })
	if err != nil {
		return nil, err
	}
	size := b.state.LocalBytes()
	b.bytes = int64(size.Params + size.Slots)
	if b.manager, err = checkpoint.Open(checkpoint.OS{}, filepath.Join(dir, "run"), checkpoint.Options{Keep: 1, KeepBy: checkpoint.KeepByStep}); err != nil {
		return nil, err
	}
	return b, b.openAsync()
}

// noise fills dst with bytes that no disk can make smaller.
func noise(name string, dst []byte) error {
	x := uint64(len(name))*0x9e3779b97f4a7c15 + 1
	for i := range name {
		x = (x ^ uint64(name[i])) * 0x100000001b3
	}
	for i := 0; i+8 <= len(dst); i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(dst[i:], x)
	}
	return nil
}

func (b *bench) close() {
	_ = b.async.Close(context.Background())
	_ = b.manager.Close()
	b.state.Destroy()
	_ = b.rt.Close()
}

// round does every kind of work once.
func (b *bench) round(ctx context.Context, i int) (*round, error) {
	r := &round{}
	for _, part := range []func(context.Context, int, *round) error{b.ddZeros, b.blocking, b.background, b.ddSame, b.readCold, b.loadCold, b.readWarm, b.readKept, b.loadWarm} {
		if err := part(ctx, i, r); err != nil {
			return nil, err
		}
		runtime.GC()
	}
	return r, nil
}

// ddZeros writes as many zeros, which dd takes out of nowhere.
func (b *bench) ddZeros(ctx context.Context, _ int, r *round) (err error) {
	r.DDZeros, err = b.dd(ctx, "/dev/zero")
	return err
}

// ddSame copies the state file that was just written, from the page cache.
func (b *bench) ddSame(ctx context.Context, _ int, r *round) (err error) {
	r.DDSame, err = b.dd(ctx, b.stateFile())
	return err
}

func (b *bench) stateFile() string {
	return filepath.Join(b.newest.Dir, checkpoint.StateDir, "process-0000-shard-00000.safetensors")
}

func (b *bench) dd(ctx context.Context, from string) (float64, error) {
	to := filepath.Join(b.dir, "dd")
	defer os.Remove(to)
	begin := time.Now()
	cmd := exec.CommandContext(ctx, "dd", "if="+from, "of="+to, "bs=1M", "iflag=count_bytes", fmt.Sprintf("count=%d", b.bytes), "conv=fsync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("dd: %w: %s", err, out)
	}
	return time.Since(begin).Seconds(), nil
}

// snapshot is the whole state.
func (b *bench) snapshot(step int) *checkpoint.Snapshot {
	s := &checkpoint.Snapshot{Step: step, Metrics: map[string]float64{"loss": 1}, Versions: map[string]string{"weft": "bench"}}
	for _, e := range b.state.Entries() {
		t := checkpoint.Tensor{Name: e.Name, DType: "F32", Shape: e.Array.Dims}
		for _, shard := range e.Array.OwnedShards() {
			t.Shards = append(t.Shards, checkpoint.Shard{Start: shard.Region.Start, Size: shard.Region.Size, Fetch: shard.Read})
		}
		s.State = append(s.State, t)
	}
	return s
}

func (b *bench) blocking(ctx context.Context, i int, r *round) (err error) {
	begin := time.Now()
	b.newest, err = b.manager.Save(ctx, b.snapshot(2*i+1))
	r.Blocking = time.Since(begin).Seconds()
	return err
}

// openAsync takes the host memory, as a run does before its first step, and waits for its pages.
func (b *bench) openAsync() error {
	debug.FreeOSMemory()
	before, err := memory("VmRSS")
	if err != nil {
		return err
	}
	b.async = checkpoint.NewAsync(b.manager, checkpoint.AsyncOptions{Done: func(s checkpoint.Saved) { b.saved = s }})
	if err := b.async.Prepare(b.snapshot(0)); err != nil {
		return err
	}
	for range 600 {
		now, err := memory("VmRSS")
		if b.taken = now - before; err != nil || b.taken > b.bytes*99/100 {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("the host memory for saving did not come within a minute; free some")
}

// background saves beside nothing: what the training would take is not the question here.
func (b *bench) background(ctx context.Context, i int, r *round) error {
	debug.FreeOSMemory()
	// What the plugin's allocator keeps is not the save's.
	resting, err := memory("VmRSS")
	if err != nil {
		return err
	}
	if err := resetPeak(); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.async.Save(ctx, b.snapshot(2*i+2)); err != nil {
		return err
	}
	r.Stall = time.Since(begin).Seconds()
	if err := b.async.Wait(ctx); err != nil {
		return err
	}
	r.AsyncWhole = time.Since(begin).Seconds()
	r.AsyncWrite, r.Written, r.Staged = b.saved.Stats.Write.Seconds(), b.saved.Stats.WrittenBytes, b.saved.Stats.PeakBytes
	peak, err := memory("VmHWM")
	if err != nil {
		return err
	}
	r.ExtraMemory = b.taken + peak - resting
	b.newest = b.saved.Entry
	return b.saved.Err
}

func (b *bench) readCold(_ context.Context, _ int, r *round) (err error) {
	if err = b.dropCache(); err == nil {
		r.ReadColdCPU, err = cpuOf(func() (err error) { r.ReadCold, err = b.read(); return err })
	}
	return err
}

func (b *bench) readWarm(_ context.Context, _ int, r *round) (err error) {
	r.ReadWarmCPU, err = cpuOf(func() (err error) { r.ReadWarm, err = b.read(); return err })
	return err
}

// readKept is the plain read into memory of its own, from the page cache: what anything that keeps the bytes must do.
func (b *bench) readKept(_ context.Context, _ int, r *round) error {
	begin := time.Now()
	f, err := os.Open(b.stateFile())
	if err != nil {
		return err
	}
	defer f.Close()
	memory, err := unix.Mmap(-1, 0, int(b.bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("take memory for a plain read: %w", err)
	}
	_, err = io.ReadFull(f, memory)
	r.ReadKept = time.Since(begin).Seconds()
	return errors.Join(err, unix.Munmap(memory))
}

func (b *bench) loadCold(_ context.Context, _ int, r *round) (err error) {
	if err = b.dropCache(); err == nil {
		r.LoadColdCPU, err = cpuOf(func() (err error) { r.LoadCold, err = b.load(); return err })
	}
	return err
}

func (b *bench) loadWarm(_ context.Context, _ int, r *round) (err error) {
	r.LoadWarmCPU, err = cpuOf(func() (err error) { r.LoadWarm, err = b.load(); return err })
	return err
}

// dropCache takes the state file out of the page cache; it was synced.
func (b *bench) dropCache() error {
	f, err := os.Open(b.stateFile())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop %s from the page cache: %w", f.Name(), err)
	}
	return nil
}

// read is the plain sequential read: one buffer of 1 MiB, the bytes are thrown away.
func (b *bench) read() (float64, error) {
	begin := time.Now()
	f, err := os.Open(b.stateFile())
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	for {
		_, err := f.Read(buf)
		if errors.Is(err, io.EOF) {
			return time.Since(begin).Seconds(), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// load puts the checkpoint on the device, every checksum compared.
func (b *bench) load() (float64, error) {
	begin := time.Now()
	reader, err := b.manager.OpenState(b.newest)
	if err != nil {
		return 0, err
	}
	err = b.state.Restore(func(engine.Entry) bool { return true }, func(e engine.Entry, r sharding.Region, dst []byte) error {
		return reader.ReadRegion(e.Name, r.Start, r.Size, dst)
	})
	return time.Since(begin).Seconds(), errors.Join(err, reader.Close())
}

// cpuOf is the processor time, in seconds, that work took.
func cpuOf(work func() error) (float64, error) {
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		return 0, err
	}
	seconds := func(u unix.Rusage) float64 { return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9 }
	return seconds(after) - seconds(before), nil
}
