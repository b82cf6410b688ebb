package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/data/demo"
	"weft/engine"
	"weft/engine/trainer"
)

const testHosts, testDevices = 4, 16

// hostsConfig trains the model of the demo, which is large enough to be split, on 16 devices: 2 epochs of 4 steps, a save after 3 and at each epoch's end.
func hostsConfig(t *testing.T, cache string) Config {
	t.Helper()
	work := t.TempDir()
	rows := func(name string, n int) string {
		var b strings.Builder
		for i := range n {
			ids := make([]int, 4+i%5)
			for j := range ids {
				ids[j] = 2 + (i*7+j*3)%500
			}
			raw, err := json.Marshal(map[string]any{"input_ids": ids})
			require.NoError(t, err)
			b.Write(append(raw, '\n'))
		}
		path := filepath.Join(work, name)
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return path
	}
	model := filepath.Join(work, "model")
	require.NoError(t, os.Mkdir(model, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(model, configName), demo.ConfigJSON(), 0o600))
	return Config{
		RandomInit: true,
		ModelFlags: ModelFlags{ModelID: model, Freeze: FreezeAuto, ParamDType: DTypeAuto, ComputeDType: "float32", Remat: "full", Scan: true, Gathers: 2},
		BatchFlags: BatchFlags{MaxSeqLen: 8, BatchSizePerDevice: 1}, UpdateFlags: UpdateFlags{FirstMomentDType: DTypeFloat32},
		Dataset: rows("rows.jsonl", 4*testDevices), DatasetSplit: "train", LossOn: "all", Shuffle: true, DropLast: true,
		EvalDataset: rows("eval.jsonl", testDevices+3),
		NumEpochs:   2, LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Schedule: "constant", Seed: 3,
		DeviceFlags: DeviceFlags{Platform: PlatformCPU, Devices: testDevices, CompileCache: cache}, GracePeriod: time.Minute, SaveEverySteps: 3,
		StoragePath: filepath.Join(work, "out"), KeepBy: "loss", Resume: ResumeAuto,
	}
}

// onHosts runs a config on logical hosts, each as a process of a slice would, and returns how each ended and what it printed.
func onHosts(t *testing.T, c Config, change func(host int, c *Config, r *run, all *engine.LogicalHosts)) (results [testHosts]*Result, errs [testHosts]error, printed [testHosts]string) {
	t.Helper()
	o, err := runtimeOptions(t.Context(), &c.DeviceFlags, PlatformCPU, newReport(Console{}, true))
	require.NoError(t, err)
	all, err := engine.OpenLogicalHosts(o, testHosts)
	require.NoError(t, err)
	// A hang is a failure of the test, with the reason; on a slice the watchdog ends it.
	deadline := time.AfterFunc(20*time.Minute, func() { all.Lose(errors.New("the hosts wait for each other")) })
	defer deadline.Stop()
	var ended sync.WaitGroup
	for host := range testHosts {
		ended.Go(func() {
			var out bytes.Buffer
			c := c
			r := &run{Config: &c, hosts: true, report: newReport(Console{Out: &out, Log: slog.New(slog.NewTextHandler(&out, nil))}, false)}
			r.open = func(context.Context, *DeviceFlags, *report) (*engine.Runtime, error) { return all.Runtime(host), nil }
			if change != nil {
				change(host, &c, r, all)
			}
			results[host], errs[host] = r.supervise(t.Context(), nil)
			printed[host] = out.String()
		})
	}
	ended.Wait()
	require.NoError(t, all.Close(), "a host has left something behind")
	return results, errs, printed
}

// trained is what a run has left: the steps' losses, and of its newest checkpoint the state and the model folder.
type trained struct {
	metrics []map[string]any
	state   map[string][]byte
	model   map[string][]byte
	name    string
}

func readTrained(t *testing.T, storage string) trained {
	t.Helper()
	out := trained{state: map[string][]byte{}, model: map[string][]byte{}}
	raw, err := os.ReadFile(filepath.Join(storage, metricsName))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		m := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		for key := range m {
			if strings.HasSuffix(key, "_s") || strings.HasPrefix(key, "save_") { // times, and what one process knows of its saves
				delete(m, key)
			}
		}
		out.metrics = append(out.metrics, m)
	}
	m, err := checkpoint.Open(checkpoint.OS{}, storage, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	e := committed(t, storage)
	out.name = e.Name
	reader, err := m.OpenState(e)
	require.NoError(t, err)
	for _, tensor := range reader.Tensors() {
		n := tensor.DType.Size()
		for _, d := range tensor.Shape {
			n *= d
		}
		b := make([]byte, n)
		require.NoError(t, reader.ReadRegion(tensor.Name, make([]int, len(tensor.Shape)), tensor.Shape, b))
		out.state[tensor.Name] = b
	}
	require.NoError(t, reader.Close())
	files, err := os.ReadDir(e.ModelPath())
	require.NoError(t, err)
	for _, f := range files {
		out.model[f.Name()], err = os.ReadFile(filepath.Join(e.ModelPath(), f.Name()))
		require.NoError(t, err)
	}
	return out
}

// damagedMark lies in a checkpoint that a test has damaged.
const damagedMark = "damaged-by-the-test"

// damage changes a bit of the state that one host has written in the newest checkpoint.
func damage(t *testing.T, storage string, host int) {
	t.Helper()
	dir := committed(t, storage).Dir
	path := filepath.Join(dir, checkpoint.StateDir, fmt.Sprintf("process-%04d-shard-00000.safetensors", host))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	raw[len(raw)-1] ^= 1
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, damagedMark), nil, 0o600))
}

// committed is the newest checkpoint; every one is whole, but for what a test damaged.
func committed(t *testing.T, storage string) checkpoint.Entry {
	t.Helper()
	m, err := checkpoint.Open(checkpoint.OS{}, storage, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	list, err := m.List()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, e := range list {
		if _, err := os.Stat(filepath.Join(e.Dir, damagedMark)); err == nil {
			require.ErrorIs(t, m.Verify(e), checkpoint.ErrDamaged)
			continue
		}
		require.NoError(t, m.Verify(e))
	}
	return list[len(list)-1]
}

// noRubbish checks that nothing temporary is left.
func noRubbish(t *testing.T, storage string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(storage, func(path string, d fs.DirEntry, err error) error {
		for _, part := range []string{".weft-tmp", ".weft-intent", ".weft-host-"} {
			require.NotContains(t, path, part)
		}
		return err
	}))
}

// slowSource makes each batch late.
type slowSource struct {
	trainer.Source
	pause time.Duration
}

func (s slowSource) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	return func(yield func(engine.Batch, error) bool) {
		for b, err := range s.Source.Batches(ctx, epoch, first) {
			time.Sleep(s.pause)
			if !yield(b, err) {
				return
			}
		}
	}
}

// brokenSource has no batch from one of an epoch on.
type brokenSource struct {
	trainer.Source
	at  int
	err error
}

func (s brokenSource) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	return func(yield func(engine.Batch, error) bool) {
		at := first
		for b, err := range s.Source.Batches(ctx, epoch, first) {
			if at == s.at {
				yield(engine.Batch{}, s.err)
				return
			}
			if at++; !yield(b, err) {
				return
			}
		}
	}
}

// brokenStepper cannot launch the n-th step; lost tells that its device is gone, and with it the host.
type brokenStepper struct {
	trainer.Stepper
	left int
	fail func() error
}

func (s *brokenStepper) Run(state *engine.State, b engine.Batch) (trainer.Pending, error) {
	if s.left--; s.left == 0 {
		return nil, s.fail()
	}
	return s.Stepper.Run(state, b)
}

// Four hosts with four devices each, every one with its own loader and its part of each checkpoint, train as one host with
// sixteen does: to the same losses, state and model folder, bit by bit. One of them may be slow; when one fails, all end with its
// error, nothing is half committed, and the run that goes on comes to the same bits.
func TestLogicalHostsRun(t *testing.T) {
	cache := t.TempDir()
	one := hostsConfig(t, cache)
	_, err := Run(t.Context(), one, nil, Console{Out: &bytes.Buffer{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	want := readTrained(t, one.StoragePath)
	require.Len(t, want.metrics, 8+2, "steps and evaluations")
	equal := func(t *testing.T, c Config) {
		t.Helper()
		got := readTrained(t, c.StoragePath)
		require.Equal(t, want.metrics, got.metrics)
		require.Equal(t, want.name, got.name)
		require.Equal(t, want.state, got.state)
		require.Equal(t, want.model, got.model)
		noRubbish(t, c.StoragePath)
	}
	t.Run("one is slow", func(t *testing.T) {
		c := hostsConfig(t, cache)
		results, errs, printed := onHosts(t, c, func(host int, _ *Config, r *run, _ *engine.LogicalHosts) {
			if host == 1 {
				r.faults.source = func(s trainer.Source) trainer.Source { return slowSource{s, 30 * time.Millisecond} }
			}
		})
		for host := range testHosts {
			require.NoError(t, errs[host], printed[host])
			require.Equal(t, 8, results[host].Step)
			if host > 0 {
				require.Empty(t, printed[host], "host 0 prints")
			}
		}
		require.Contains(t, printed[0], "Training completed!")
		files, err := os.ReadDir(filepath.Join(committed(t, c.StoragePath).Dir, checkpoint.StateDir))
		require.NoError(t, err)
		require.Len(t, files, testDevices, "each host writes a file a device")
		equal(t, c)
	})
	gone := errors.New("the cable is cut")
	for _, f := range []struct {
		name string
		into func(r *run, all *engine.LogicalHosts)
		say  string
		step int // of the newest checkpoint
	}{
		{
			name: "one has no data", step: 4, say: "the cable is cut",
			into: func(r *run, _ *engine.LogicalHosts) {
				r.faults.source = func(s trainer.Source) trainer.Source { return onlyIn{1, s, brokenSource{s, 1, gone}} }
			},
		},
		{
			name: "one cannot launch a step", step: 3, say: "the cable is cut",
			into: func(r *run, _ *engine.LogicalHosts) {
				r.faults.step = func(s trainer.Stepper) trainer.Stepper {
					return &brokenStepper{s, 4, func() error { return fmt.Errorf("%w: %w", engine.ErrNotLaunched, gone) }}
				}
			},
		},
		{
			name: "one is lost in a step", step: 4, say: "the cable is cut",
			into: func(r *run, all *engine.LogicalHosts) {
				r.faults.step = func(s trainer.Stepper) trainer.Stepper {
					return &brokenStepper{s, 5, func() error { all.Lose(fmt.Errorf("host 2: %w", gone)); return gone }}
				}
			},
		},
		{
			name: "one cannot save", step: 4, say: "the cable is cut",
			into: func(r *run, _ *engine.LogicalHosts) {
				r.faults.snapshot = func(s *checkpoint.Snapshot) {
					if s.Step > 4 {
						s.State[0].Shards[0].Fetch = func([]byte) error { return gone }
					}
				}
			},
		},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := hostsConfig(t, cache)
			_, errs, printed := onHosts(t, c, func(host int, _ *Config, r *run, all *engine.LogicalHosts) {
				if host == 2 {
					f.into(r, all)
				}
			})
			for host, err := range errs {
				require.ErrorContains(t, err, f.say, "host %d: %s", host, printed[host])
				if host != 2 {
					require.ErrorContains(t, err, "host 2", printed[host])
				}
			}
			require.Equal(t, f.step, committed(t, c.StoragePath).Step)
			if f.step == 4 {
				damage(t, c.StoragePath, 3) // only the hosts that read it meet this: all pass it over
			}
			results, errs, printed := onHosts(t, c, nil)
			for host, err := range errs {
				require.NoError(t, err, printed[host])
				require.Equal(t, 8, results[host].Step)
			}
			equal(t, c)
		})
	}
	t.Run("hosts that run other things", func(t *testing.T) {
		c := hostsConfig(t, cache)
		_, errs, _ := onHosts(t, c, func(host int, c *Config, _ *run, _ *engine.LogicalHosts) {
			if host == 3 {
				c.LearningRate = 2e-3
			}
		})
		for _, err := range errs {
			require.ErrorContains(t, err, `--learning-rate is "0.001" on host 0 and "0.002" on host 3`)
		}
	})
	t.Run("host 0 cannot open the storage", func(t *testing.T) {
		c := hostsConfig(t, cache)
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, errs, _ := onHosts(t, c, func(host int, c *Config, _ *run, _ *engine.LogicalHosts) {
			if host == 0 {
				c.StoragePath = filepath.Join(file, "out")
			}
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "host 0: --storage-path: ")
		}
	})
	t.Run("a host with a storage of its own", func(t *testing.T) {
		c := hostsConfig(t, cache)
		own := filepath.Join(t.TempDir(), "own")
		_, errs, printed := onHosts(t, c, func(host int, c *Config, r *run, _ *engine.LogicalHosts) {
			if host == 2 {
				c.StoragePath, r.faults.meet = own, time.Millisecond
			}
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "host 2: "+own+" is not the folder that host 0 writes to")
			require.ErrorContains(t, err, "give all hosts one --storage-path that they share")
			var input *InputError
			require.ErrorAs(t, err, &input, "a restart would not help")
		}
		require.NotContains(t, printed[0], "compiling", "it is said before anything is paid for")
	})
}

// onlyIn is another source in one epoch.
type onlyIn struct {
	epoch int
	trainer.Source
	in trainer.Source
}

func (s onlyIn) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	if epoch == s.epoch {
		return s.in.Batches(ctx, epoch, first)
	}
	return s.Source.Batches(ctx, epoch, first)
}
