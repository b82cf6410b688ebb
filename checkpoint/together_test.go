package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// storageOfHosts is a storage that several processes use.
type storageOfHosts struct {
	root   string
	client func() FS
	check  func(t *testing.T, saved error, label string)
	crash  func()
	reboot func(seed int64)
}

func diskOfHosts(t *testing.T) *storageOfHosts {
	m, foreign := crashBase(t)
	m = m.clone()
	s := &storageOfHosts{root: "/run", client: func() FS { return m }}
	s.check = func(t *testing.T, saved error, label string) { checkAfter(t, m.clone(), foreign, saved, label) }
	s.crash = func() { m.mu.Lock(); m.dead = true; m.mu.Unlock() }
	s.reboot = func(seed int64) { m = m.reboot(seed) }
	return s
}

func bucketOfHosts(t *testing.T) *storageOfHosts {
	o, foreign := objBase(t)
	s := &storageOfHosts{root: "b/run", client: func() FS { return o.client() }}
	s.check = func(t *testing.T, saved error, label string) { checkObjects(t, o.clone(), foreign, saved, label) }
	return s
}

// partOf are the slices of snapshotOf's state that one of two processes has; process 0 makes the model folder of all.
func partOf(process, step int, loss float64) *Snapshot {
	s := snapshotOf(step, loss)
	cells := func(all ...[][2][]int) [][2][]int { return all[process] }
	s.State = []Tensor{
		gridTensor("w", step, safetensors.F32, []int{4, 6}, cells([][2][]int{{{0, 0}, {4, 2}}}, [][2][]int{{{0, 2}, {4, 2}}, {{0, 4}, {4, 2}}})...),
		gridTensor("m", step, safetensors.BF16, []int{5}, cells([][2][]int{{{0}, {3}}}, [][2][]int{{{3}, {2}}})...),
		gridTensor("step", step, safetensors.I64, nil, cells([][2][]int{{{}, {}}}, nil)...),
	}
	s.Model.Tensors = []Tensor{
		{Name: "model.a", DType: safetensors.BF16, Shape: []int{4, 6}, From: &Region{"w", []int{0, 0}, []int{4, 6}}},
		{Name: "model.b", DType: safetensors.BF16, Shape: []int{6}, From: &Region{"w", []int{2, 0}, []int{1, 6}}},
		{Name: "model.c", DType: safetensors.BF16, Shape: []int{3}, From: &Region{"m", []int{1}, []int{3}}},
	}
	return s
}

// optionsOf are those of one of two processes.
func optionsOf(process int, wait time.Duration) Options {
	o := Options{Process: process, Processes: 2, Session: 4711, HostWait: wait, poll: time.Millisecond}
	if process == 0 {
		o.Keep, o.KeepBy = 1, "loss"
	}
	return o
}

var errNotOpened = errors.New("host 0: it did not open the storage, so this one did not try")

// saveOnBoth opens the storage for both processes and saves newStep.
func saveOnBoth(s *storageOfHosts, wait time.Duration, view func(process int, f FS) FS) [2]error {
	var errs [2]error
	var managers [2]*Manager
	for process := range managers {
		if managers[process], errs[process] = Open(view(process, s.client()), s.root, optionsOf(process, wait)); errs[process] != nil {
			errs[1-process] = errors.Join(errs[1-process], errNotOpened)
			return errs
		}
	}
	var both sync.WaitGroup
	for process, m := range managers {
		both.Go(func() {
			_, err := m.Save(context.Background(), partOf(process, newStep, 1))
			errs[process] = err
		})
	}
	both.Wait()
	for process, m := range managers {
		if err := m.Close(); errs[process] == nil {
			errs[process] = err
		}
	}
	return errs
}

// armed is the storage as a process has it that meets a fault.
func armed(f FS, h *hostFS) FS {
	h.FS = f
	if store, ok := f.(ObjectStore); ok {
		return hostStore{h, store}
	}
	return h
}

func eachStorage(t *testing.T, test func(t *testing.T, make func(t *testing.T) *storageOfHosts)) {
	for name, make := range map[string]func(*testing.T) *storageOfHosts{"disk": diskOfHosts, "bucket": bucketOfHosts} {
		t.Run(name, func(t *testing.T) { test(t, make) })
	}
}

// What two processes save is one checkpoint, read back whole by any number; its model folder is that of all slices.
func TestSaveTogether(t *testing.T) {
	eachStorage(t, func(t *testing.T, make func(t *testing.T) *storageOfHosts) {
		s := make(t)
		for _, err := range saveOnBoth(s, time.Hour, func(_ int, f FS) FS { return f }) {
			require.NoError(t, err)
		}
		m, err := Open(s.client(), s.root, Options{ReadOnly: true})
		require.NoError(t, err)
		e, ok, err := m.Latest()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, newStep, e.Step)
		require.NoError(t, m.Verify(e))
		checkState(t, m, e)
		man, err := m.Manifest(e)
		require.NoError(t, err)
		var files []string
		for _, f := range man.Files {
			files = append(files, f.Path)
		}
		require.ElementsMatch(t, []string{
			"model/config.json", "model/model-00001-of-00002.safetensors", "model/model-00002-of-00002.safetensors", "model/" + safetensors.IndexFile,
			"state/process-0000-shard-00000.safetensors", "state/process-0001-shard-00000.safetensors", "state/process-0001-shard-00001.safetensors",
		}, files)
		for _, of := range partOf(0, newStep, 1).Model.Tensors {
			source := Tensor{}
			for _, st := range partOf(0, newStep, 1).State {
				if st.Name == of.From.Tensor {
					source = st
				}
			}
			whole, err := region.Bytes(source.Shape, source.DType.Size())
			require.NoError(t, err)
			n, err := region.Bytes(of.From.Size, source.DType.Size())
			require.NoError(t, err)
			part := bytesOf(n)
			region.Copy(part, payload(source.Name, newStep, whole), bytesZero(source.Shape), source.Shape, of.From.Start, of.From.Size, of.From.Start, of.From.Size, source.DType.Size())
			want := part
			if of.DType != source.DType {
				want = bytesOf(n / int64(source.DType.Size()) * 2)
				require.NoError(t, safetensors.Convert(want, of.DType, part, source.DType))
			}
			require.Equal(t, want, modelTensor(t, s.client(), e, of.Name), of.Name)
		}
		s.check(t, nil, "saved together")
	})
}

func bytesOf(n int64) []byte      { return make([]byte, n) }
func bytesZero(shape []int) []int { return make([]int, len(shape)) }

// modelTensor reads a tensor of the model folder.
func modelTensor(t *testing.T, fsys FS, e Entry, name string) []byte {
	t.Helper()
	list, err := fsys.List(e.ModelPath())
	require.NoError(t, err)
	for _, d := range list {
		if !strings.HasSuffix(d.Name, ".safetensors") {
			continue
		}
		r, err := fsys.Open(path.Join(e.ModelPath(), d.Name))
		require.NoError(t, err)
		h, err := safetensors.ReadHeader(io.NewSectionReader(r, 0, r.Size()), r.Size(), d.Name)
		require.NoError(t, err)
		for i := range h.Tensors {
			if h.Tensors[i].Name != name {
				continue
			}
			b := make([]byte, h.Tensors[i].End-h.Tensors[i].Start)
			_, err := r.ReadAt(b, h.DataStart+h.Tensors[i].Start)
			require.NoError(t, err)
			return b
		}
	}
	t.Fatalf("no tensor %s", name)
	return nil
}

// operations counts those of each process when nothing fails.
func operations(t *testing.T, make func(t *testing.T) *storageOfHosts) (n [2]int) {
	var views [2]*hostFS
	for _, err := range saveOnBoth(make(t), time.Hour, func(process int, f FS) FS {
		views[process] = &hostFS{}
		return armed(f, views[process])
	}) {
		require.NoError(t, err)
	}
	for process, v := range views {
		n[process] = v.ops
	}
	t.Logf("operations of the two processes: %v", n)
	return n
}

// Every operation of either process once returns an error. Both end with the same outcome and name the host; nothing is half
// committed, and what the save left is cleared away. Time is that of a bubble here and below: a process waits for the other
// one's fault, never for a slow machine.
func TestTogetherErrorAtEveryOperation(t *testing.T) {
	eachStorage(t, func(t *testing.T, make func(t *testing.T) *storageOfHosts) {
		failed := 0
		for failing, n := range operations(t, make) {
			for at := 1; at <= n; at++ {
				synctest.Test(t, func(t *testing.T) {
					s := make(t)
					view := &hostFS{failAt: at, err: syscall.EIO}
					errs := saveOnBoth(s, 5*time.Second, func(process int, f FS) FS {
						if process == failing {
							return armed(f, view)
						}
						return f
					})
					label := fmt.Sprintf("process %d, operation %d (%s): %v", failing, at, view.trace[len(view.trace)-1], errs)
					if err := errs[failing]; err != nil {
						require.ErrorIs(t, err, syscall.EIO, label)
						failed++
					}
					if errs[0] != nil && failing == 1 {
						var host *HostError
						require.ErrorAs(t, errs[0], &host, label)
						require.Equal(t, "host 1", host.Host, label)
						require.ErrorContains(t, errs[0], syscall.EIO.Error(), label)
					}
					if errs[1] != nil && failing == 0 && errs[0] != nil {
						require.ErrorContains(t, errs[1], "host 0", label)
					}
					if errs[1] == nil {
						require.True(t, errs[0] == nil || errors.Is(errs[0], ErrPrune) || failing == 0, label)
					}
					s.check(t, errs[0], label)
				})
			}
		}
		require.NotZero(t, failed)
	})
}

// Either process is killed at every of its operations: the other one ends with an error that names it, or the checkpoint is
// whole.
func TestTogetherKilledAtEveryOperation(t *testing.T) {
	eachStorage(t, func(t *testing.T, make func(t *testing.T) *storageOfHosts) {
		for killed, n := range operations(t, make) {
			for at := 1; at <= n; at++ {
				synctest.Test(t, func(t *testing.T) {
					s := make(t)
					view := &hostFS{failAt: at, kill: func() {}}
					errs := saveOnBoth(s, 100*time.Millisecond, func(process int, f FS) FS {
						if process == killed {
							return armed(f, view)
						}
						return f
					})
					label := fmt.Sprintf("process %d at %d (%s): %v", killed, at, view.trace[len(view.trace)-1], errs)
					if killed == 1 && at < n-2 { // from its last ones on the part is whole
						require.Error(t, errs[0], label)
					}
					if killed == 1 && errs[0] != nil {
						require.ErrorContains(t, errs[0], "host 1: its part of the checkpoint was not there within 100ms", label)
					}
					if killed == 0 && errs[1] != nil {
						require.ErrorContains(t, errs[1], "host 0: it did not", label)
					}
					saved := errs[0]
					if errs[1] == nil {
						saved = nil // it was told
					}
					s.check(t, saved, label)
				})
			}
		}
	})
}

// The machine of the disk crashes at every operation of either process.
func TestTogetherCrashAtEveryOperation(t *testing.T) {
	for crashing, n := range operations(t, diskOfHosts) {
		for at := 1; at <= n; at++ {
			for seed := range int64(4) {
				synctest.Test(t, func(t *testing.T) {
					s := diskOfHosts(t)
					view := &hostFS{failAt: at, kill: s.crash}
					errs := saveOnBoth(s, time.Second, func(process int, f FS) FS {
						if process == crashing {
							return armed(f, view)
						}
						return f
					})
					s.reboot(seed)
					s.check(t, errs[0], fmt.Sprintf("crash at operation %d of process %d (%s), draw %d: %v", at, crashing, view.trace[len(view.trace)-1], seed, errs))
				})
			}
		}
	}
}

// Processes meet in one storage path, whichever comes first; one that has another path for itself says so in the time given,
// and so does one that finds what an earlier session left.
func TestTogetherMeet(t *testing.T) {
	eachStorage(t, func(t *testing.T, make func(t *testing.T) *storageOfHosts) {
		meet := func(first, other *storageOfHosts, session int64) (errs [2]error, took time.Duration) {
			var both sync.WaitGroup
			began := time.Now()
			for process, s := range []*storageOfHosts{first, other} {
				o := optionsOf(process, time.Hour)
				o.Session += int64(process) * session
				m, err := Open(s.client(), s.root, o)
				require.NoError(t, err)
				both.Go(func() {
					time.Sleep(time.Duration(1-process) * time.Second) // process 1 looks first
					errs[process] = errors.Join(m.Meet(context.Background(), time.Minute), m.Close())
				})
			}
			both.Wait()
			return errs, time.Since(began)
		}
		synctest.Test(t, func(t *testing.T) {
			one := make(t)
			errs, took := meet(one, one, 0)
			require.NoError(t, errors.Join(errs[:]...))
			require.Less(t, took, 2*time.Second)
			_, err := Open(one.client(), one.root, optionsOf(0, time.Hour))
			require.NoError(t, err)
			one.check(t, errors.New("nothing was saved"), "met")

			for label, c := range map[string]struct {
				other   *storageOfHosts
				session int64
			}{"another path": {make(t), 0}, "an old session": {one, 1}} {
				errs, took := meet(make(t), c.other, c.session)
				require.NoError(t, errs[0], label)
				require.ErrorContains(t, errs[1], "is not the folder that host 0 writes to: what it wrote there did not come within 1m0s", label)
				require.GreaterOrEqual(t, took, time.Minute, label)
			}
		})
	})
}

// A process that comes to a save first waits until process 0 begins it: what was announced before is another one's.
func TestTogetherWaitsForItsOwnSave(t *testing.T) {
	eachStorage(t, func(t *testing.T, make func(t *testing.T) *storageOfHosts) {
		synctest.Test(t, func(t *testing.T) {
			s := make(t)
			before := map[string]bool{}
			there, err := s.client().List(path.Join(s.root, Folder))
			require.NoError(t, err)
			for _, d := range there {
				before[d.Name] = true
			}
			var managers [2]*Manager
			for process := range managers {
				managers[process], err = Open(s.client(), s.root, optionsOf(process, time.Hour))
				require.NoError(t, err)
				require.NoError(t, managers[process].Meet(context.Background(), time.Minute))
			}
			for _, step := range []int{newStep, newStep + 1, newStep + 2} {
				var both sync.WaitGroup
				var entries [2]Entry
				var errs [2]error
				for process, m := range managers {
					both.Go(func() {
						time.Sleep(time.Duration(1-process) * time.Minute)
						entries[process], errs[process] = m.Save(context.Background(), partOf(process, step, 1))
					})
				}
				both.Wait()
				require.NoError(t, errors.Join(errs[:]...))
				for _, e := range entries {
					require.Equal(t, step, e.Step)
					require.Equal(t, entries[0].Dir, e.Dir)
				}
				e, ok, err := managers[0].Latest()
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, step, e.Step)
				require.NoError(t, managers[0].Verify(e))
				left, err := s.client().List(path.Join(s.root, Folder))
				require.NoError(t, err)
				for _, d := range left {
					_, named := parseName(d.Name)
					require.True(t, before[d.Name] || named || strings.HasPrefix(d.Name, ".weft-"), "%s was written outside of a checkpoint", d.Name)
				}
			}
			for _, m := range managers {
				require.NoError(t, m.Close())
			}
		})
	})
}

// A part manifest counts once it is whole, and only as the process's that wrote it.
func TestPartManifestIsWhole(t *testing.T) {
	fsys := newMemFS()
	require.NoError(t, fsys.MkdirAll("/run"))
	put := func(b []byte) {
		require.NoError(t, fsys.Replace(path.Join("/run", partName(1)), b))
	}
	read := func(process int) bool {
		_, ok, err := readPart(fsys, "/run", process)
		require.NoError(t, err)
		return ok
	}
	require.False(t, read(1), "there is none")
	raw, err := (&partManifest{Session: 7, Attempt: 1, Process: 1}).encode()
	require.NoError(t, err)
	put(raw)
	require.True(t, read(1))
	for at := range raw {
		put(raw[:at])
		require.False(t, read(1), "cut after %d bytes", at)
		flipped := append([]byte(nil), raw...)
		flipped[at] ^= 1
		put(flipped)
		require.False(t, read(1), "a bit of byte %d", at)
	}
	other, err := (&partManifest{Session: 7, Attempt: 1, Process: 2}).encode()
	require.NoError(t, err)
	put(other)
	require.False(t, read(1), "another process's")
}
