package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/internal/hostmem"
	"weft/pjrt/pjrttest"
)

// requireHeld waits until the plugin has given back all host memory but this. It may do so from a thread of its own.
func requireHeld(t *testing.T, want int64) {
	t.Helper()
	require.Eventually(t, func() bool { return hostmem.Held() == want }, time.Minute, time.Millisecond, "host memory is not returned")
}

// cut fills dst with the region of a tensor.
func cut(whole []byte, dims []int, r sharding.Region, dst []byte, size int) {
	last := len(dims) - 1
	run := r.Size[last] * size
	for at, row := 0, 0; at < len(dst); at, row = at+run, row+1 {
		flat, rest := 0, row
		for d := last - 1; d >= 0; d-- {
			stride := 1
			for _, n := range dims[d+1 : last] {
				stride *= n
			}
			flat += (r.Start[d] + rest%r.Size[d]) * stride
			rest /= r.Size[d]
		}
		copy(dst[at:at+run], whole[(flat*dims[last]+r.Start[last])*size:])
	}
}

// Shards that live in the memory they were read into have the values of the tensor, for every dtype and way to split, replicas too.
func TestZeroCopyArrays(t *testing.T) {
	types := []dtypes.DType{dtypes.Bool, dtypes.Int8, dtypes.Uint8, dtypes.Int16, dtypes.Uint16, dtypes.Int32, dtypes.Uint32, dtypes.Int64, dtypes.Uint64,
		dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64, dtypes.Complex64, dtypes.Complex128}
	cases := []struct {
		dims []int
		spec sharding.Spec
	}{
		{[]int{48, 7}, sharding.Split(2, 0, FSDPAxis)},
		{[]int{5, 32}, sharding.Split(2, 1, FSDPAxis)},
		{[]int{3, 16, 5}, sharding.Split(3, 1, FSDPAxis)},
		{[]int{13}, sharding.Replicated()},
		{[]int{1000, 33}, sharding.Replicated()},
	}
	for _, name := range pjrttest.CPUPlugins {
		for _, n := range []int{1, 2, 4, 8, 16} {
			t.Run(fmt.Sprintf("%s on %d", name, n), func(t *testing.T) {
				rt := openPlugin(t, name, n, "", nil)
				require.Equal(t, zeroCopyBytes, rt.zeroCopy)
				rt.zeroCopy = 1
				held := hostmem.Held()
				random := rand.NewChaCha8([32]byte{3})
				for _, dtype := range types {
					for _, c := range cases {
						whole := make([]byte, (sharding.Region{Size: c.dims}).Elements()*dtype.Size())
						_, _ = random.Read(whole)
						for i := range whole {
							if dtype == dtypes.Bool {
								whole[i] &= 1
							}
						}
						a, err := rt.NewArray(dtype, c.dims, c.spec, func(r sharding.Region, dst []byte) error {
							cut(whole, c.dims, r, dst, dtype.Size())
							return nil
						})
						require.NoError(t, err)
						got, err := a.Read()
						require.NoError(t, err)
						require.Equal(t, whole, got, "%s%v", dtype, c.dims)
						for _, s := range a.Shards() {
							want, part := make([]byte, a.LocalBytes()), make([]byte, a.LocalBytes())
							cut(whole, c.dims, s.Region, want, dtype.Size())
							require.NoError(t, s.Read(part))
							require.Equal(t, want, part, "%s%v on device %d", dtype, c.dims, s.Position)
						}
						require.Greater(t, hostmem.Held(), held)
						a.Destroy()
						requireHeld(t, held)
					}
				}
			})
		}
	}
}

// Small shards are copied.
func TestZeroCopyBeginsAtASize(t *testing.T) {
	rt := openCPU(t, 2, "", nil)
	held := hostmem.Held()
	for rows, want := range map[int]int64{zeroCopyBytes*2 - 2: 0, zeroCopyBytes * 2: 2 * zeroCopyBytes} {
		a, err := rt.NewArray(dtypes.Uint8, []int{rows}, sharding.Split(1, 0, FSDPAxis), func(sharding.Region, []byte) error { return nil })
		require.NoError(t, err)
		require.Equal(t, held+want, hostmem.Held())
		a.Destroy()
		requireHeld(t, held)
	}
}

// When a region cannot be read, no memory stays, and what Restore would have replaced is as it was.
func TestZeroCopyFailingFill(t *testing.T) {
	rt := openCPU(t, 4, "", nil)
	rt.zeroCopy = 1
	held := hostmem.Held()
	boom := errors.New("unreadable")
	_, err := rt.NewArray(dtypes.Uint8, []int{8}, sharding.Split(1, 0, FSDPAxis), func(r sharding.Region, dst []byte) error {
		if r.Start[0] == 4 {
			return boom
		}
		return nil
	})
	require.ErrorIs(t, err, boom)
	requireHeld(t, held)
	model := toy{rt.Mesh(), 64, 32}
	state, err := rt.NewState(model, sgd{}, initToy)
	require.NoError(t, err)
	before, full := bytesOf(t, state), hostmem.Held()
	err = state.Restore(func(Entry) bool { return true }, func(Entry, sharding.Region, []byte) error { return boom })
	require.ErrorIs(t, err, boom)
	requireHeld(t, full)
	require.Equal(t, before, bytesOf(t, state))
	state.Destroy()
	requireHeld(t, held)
}

// bytesOf are all tensors of a state, whole.
func bytesOf(t *testing.T, s *State) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, e := range s.Entries() {
		raw, err := e.Array.Read()
		require.NoError(t, err)
		out[e.Name] = raw
	}
	return out
}

// train does steps and returns the losses.
func train(t *testing.T, step *Step, s *State, from, to int) (losses []float64) {
	t.Helper()
	for i := from; i < to; i++ {
		pending, err := step.Run(s, toyBatch(toyRows, toySeq, 64, i))
		require.NoError(t, err)
		m, err := pending.Wait()
		require.NoError(t, err)
		losses = append(losses, m.Loss())
	}
	return losses
}

// Training that goes on from a state in memory without a copy has the bits of one whose state was copied and never restored. The
// steps take that memory over by donation: it is neither returned nor taken anew while they run.
func TestZeroCopyTraining(t *testing.T) {
	for _, name := range pjrttest.CPUPlugins {
		for _, n := range []int{1, 4, 16} {
			t.Run(fmt.Sprintf("%s on %d", name, n), func(t *testing.T) {
				rt := openPlugin(t, name, n, "", nil)
				model := toy{rt.Mesh(), 64, 32}
				step, err := rt.NewStep(model, sgd{}, StepConfig{Batch: toyRows, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, FSDPAxis), MaxGradNorm: 1})
				require.NoError(t, err)
				defer step.Destroy()
				held := hostmem.Held()
				rt.zeroCopy = 0
				copied, err := rt.NewState(model, sgd{}, initToy)
				require.NoError(t, err)
				defer copied.Destroy()
				losses := train(t, step, copied, 0, 5)
				half := bytesOf(t, copied)
				losses = append(losses, train(t, step, copied, 5, 10)...)
				require.Equal(t, held, hostmem.Held(), "nothing was without a copy")

				rt.zeroCopy = 1
				given, err := rt.NewState(model, sgd{}, initToy)
				require.NoError(t, err)
				defer given.Destroy()
				rt.zeroCopy = zeroCopyBytes // not for batches
				require.Equal(t, losses[:5], train(t, step, given, 0, 5))
				require.Equal(t, half, bytesOf(t, given))
				rt.zeroCopy = 1
				require.NoError(t, given.Restore(func(Entry) bool { return true }, func(e Entry, r sharding.Region, dst []byte) error {
					cut(half[e.Name], e.Array.Dims, r, dst, e.Array.DType.Size())
					return nil
				}))
				rt.zeroCopy = zeroCopyBytes
				pages := int64(0)
				for _, e := range given.Entries() {
					shards := len(e.Array.shards)
					if e.Array.Spec.IsReplicated() {
						shards = 1 // the others are copies
					}
					page := os.Getpagesize()
					pages += int64(shards * ((e.Array.LocalBytes() + page - 1) / page * page))
				}
				requireHeld(t, held+pages)
				require.Equal(t, losses[5:], train(t, step, given, 5, 10))
				require.Equal(t, held+pages, hostmem.Held(), "the new state is where the old one was")
				require.Equal(t, bytesOf(t, copied), bytesOf(t, given))
				given.Destroy()
				requireHeld(t, held)
			})
		}
	}
}

// Loading, training and freeing again and again does not make the process grow.
func TestZeroCopyDoesNotGrow(t *testing.T) {
	for _, name := range pjrttest.CPUPlugins {
		t.Run(name, func(t *testing.T) {
			rt := openPlugin(t, name, 2, "", nil)
			model := toy{rt.Mesh(), 64 << 10, 64} // 32 MiB with its momentum
			const rows, seq = 2, 4
			step, err := rt.NewStep(model, sgd{}, StepConfig{Batch: rows, SeqLen: seq, BatchSpec: sharding.Split(2, 0, FSDPAxis)})
			require.NoError(t, err)
			defer step.Destroy()
			held := hostmem.Held()
			fill := func(_ Param, _ sharding.Region, dst []byte) error { clear(dst); return nil }
			first := int64(0)
			for i := range 24 {
				state, err := rt.NewState(model, sgd{}, fill)
				require.NoError(t, err)
				for range 2 {
					require.NoError(t, state.Restore(func(Entry) bool { return true }, func(e Entry, r sharding.Region, dst []byte) error { return fill(e.Param, r, dst) }))
					pending, err := step.Run(state, toyBatch(rows, seq, 64, i))
					require.NoError(t, err)
					_, err = pending.Wait()
					require.NoError(t, err)
				}
				size := state.LocalBytes()
				require.GreaterOrEqual(t, hostmem.Held()-held, int64(size.Params+size.Slots), "the state is in memory that was given")
				state.Destroy()
				requireHeld(t, held)
				if i == 7 {
					first = resident(t)
				}
			}
			require.Less(t, resident(t)-first, int64(96<<20), "three states of the 48 that were loaded meanwhile")
		})
	}
}

// resident is what the process holds in memory, in bytes, Go's garbage not counted.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
