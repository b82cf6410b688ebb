package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/safetensors"
)

// asyncOnBoth saves beside a run on both processes and returns what Save, and then Wait, said.
func asyncOnBoth(t *testing.T, s *storageOfHosts, o AsyncOptions, view func(process int, f FS) FS, snapshots [2]*Snapshot) (saved, waited [2]error) {
	t.Helper()
	var managers [2]*Manager
	for process := range managers {
		var err error
		managers[process], err = Open(view(process, s.client()), s.root, optionsOf(process, 5*time.Second))
		require.NoError(t, err)
	}
	var both sync.WaitGroup
	for process, m := range managers {
		both.Go(func() {
			a := NewAsync(m, o)
			saved[process] = a.Save(context.Background(), snapshots[process])
			waited[process] = a.Close(context.Background())
		})
	}
	both.Wait()
	for _, m := range managers {
		require.NoError(t, m.Close())
	}
	return saved, waited
}

func TestTogetherAsync(t *testing.T) {
	broken := errors.New("the device is gone")
	fails := func(s *Snapshot) *Snapshot {
		s.State[0].Shards[0].Fetch = func([]byte) error { return broken }
		return s
	}
	once := func(process, at int) func(int, FS) FS {
		view := &hostFS{failAt: at, err: syscall.EIO}
		return func(p int, f FS) FS {
			if p == process {
				return armed(f, view)
			}
			return f
		}
	}
	always := func(process int) func(int, FS) FS {
		return func(p int, f FS) FS {
			if p == process {
				return fullFS{f}
			}
			return f
		}
	}
	plain := [2]*Snapshot{partOf(0, newStep, 1), partOf(1, newStep, 1)}
	for _, c := range []struct {
		name      string
		view      func(int, FS) FS
		snapshots [2]*Snapshot
		options   AsyncOptions
		save      [2]string // what Save says, "" for nothing
		wait      [2]string // what Wait says
	}{
		{name: "nothing fails", snapshots: plain},
		{name: "a part is tried again", view: once(1, 3), snapshots: plain},
		{name: "process 0 is tried again", view: once(0, 30), snapshots: plain},
		{
			name: "a part fails for good", view: always(1), snapshots: plain,
			wait: [2]string{"host 1: no room (tried 3 times)", "no room"},
		},
		{
			name: "process 0 fails for good", view: always(0), snapshots: plain,
			wait: [2]string{"no room (tried 3 times)", "host 0: saving step 30: "},
		},
		{
			name: "a part cannot be copied", snapshots: [2]*Snapshot{partOf(0, newStep, 1), fails(partOf(1, newStep, 1))},
			save: [2]string{"", "the device is gone"}, wait: [2]string{"host 1: saving step 30: fetching slice", ""},
		},
		{
			name: "process 0 cannot copy", snapshots: [2]*Snapshot{fails(partOf(0, newStep, 1)), partOf(1, newStep, 1)},
			save: [2]string{"the device is gone", ""}, wait: [2]string{"", "host 0: saving step 30: fetching slice"},
		},
		{name: "little host memory", options: AsyncOptions{HostMemory: 1}, snapshots: plain},
		{
			name: "little host memory, a part fails", options: AsyncOptions{HostMemory: 1}, view: once(1, 3), snapshots: plain,
			save: [2]string{"", ""}, wait: [2]string{"host 1", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := diskOfHosts(t)
				c.options.Retries, c.options.Backoff = 2, time.Millisecond
				if c.view == nil {
					c.view = func(_ int, f FS) FS { return f }
				}
				saved, waited := asyncOnBoth(t, s, c.options, c.view, c.snapshots)
				for process := range 2 {
					for what, pair := range map[string]struct {
						err  error
						want string
					}{"save": {saved[process], c.save[process]}, "wait": {waited[process], c.wait[process]}} {
						if pair.want == "" && c.options.HostMemory == 0 {
							require.NoError(t, pair.err, "%s of process %d", what, process)
						} else if pair.want != "" {
							require.ErrorContains(t, pair.err, pair.want, "%s of process %d", what, process)
						}
					}
				}
				s.check(t, errors.Join(saved[0], waited[0]), c.name)
			})
		})
	}
}

// Process 0 takes the folder away in which the other one is just beginning to write. What both say is what failed, not that
// a folder is gone.
func TestTogetherFolderTakenAway(t *testing.T) {
	for name, memory := range map[string]int64{"all of the state is held": 0, "it goes through in pieces": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := diskOfHosts(t)
				saved, waited := asyncOnBoth(t, s, AsyncOptions{Retries: -1, HostMemory: memory}, func(process int, f FS) FS {
					if process == 0 {
						return slowFS{fullFS{f}, 100 * time.Millisecond}
					}
					return slowFS{f, time.Second}
				}, [2]*Snapshot{partOf(0, newStep, 1), partOf(1, newStep, 1)})
				for process := range 2 {
					require.ErrorContains(t, errors.Join(saved[process], waited[process]), "no room", "process %d", process)
				}
				var host *HostError
				require.ErrorAs(t, errors.Join(saved[1], waited[1]), &host)
				require.Equal(t, "host 0", host.Host)
				s.check(t, errors.Join(saved[0], waited[0]), name)
			})
		})
	}
}

// slowFS takes its time to make a state file.
type slowFS struct {
	FS
	takes time.Duration
}

func (f slowFS) Create(name string) (File, error) {
	if strings.Contains(name, StateDir+"/") {
		time.Sleep(f.takes)
	}
	return f.FS.Create(name)
}

// fullFS makes no state files.
type fullFS struct{ FS }

func (f fullFS) Create(name string) (File, error) {
	if strings.Contains(name, StateDir+"/") {
		return nil, fmt.Errorf("no room")
	}
	return f.FS.Create(name)
}

// What the processes save must be the state of one model, once.
func TestTogetherRefusesOtherStates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Snapshot)
		say    string
	}{
		"a slice twice": {func(s *Snapshot) {
			s.State[1] = gridTensor("m", newStep, safetensors.BF16, []int{5}, [2][]int{{2}, {3}})
		}, "the hosts' parts are not the whole state"},
		"a hole": {func(s *Snapshot) { s.State[1].Shards = nil }, "the hosts' parts are not the whole state"},
		"another shape": {func(s *Snapshot) {
			s.State[1] = gridTensor("m", newStep, safetensors.BF16, []int{6}, [2][]int{{3}, {2}})
		}, `host 1: it saves the tensor "m" as BF16 [6], which host 0 does not`},
		"another tensor": {func(s *Snapshot) { s.State[1].Name = "n" }, `host 1: it saves the tensor "n"`},
		"outside of it":  {func(s *Snapshot) { s.State[1].Shards[0].Start = []int{4} }, "host 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := diskOfHosts(t)
				part := partOf(1, newStep, 1)
				c.change(part)
				part.Model = nil
				_, waited := asyncOnBoth(t, s, AsyncOptions{Retries: -1}, func(_ int, f FS) FS { return f }, [2]*Snapshot{partOf(0, newStep, 1), part})
				require.ErrorContains(t, waited[0], c.say)
				s.check(t, waited[0], name)
			})
		})
	}
}
