package engine

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
)

// What one host raises on the devices that it has, the step tells all of them, each column for itself; the update is the
// same with and without.
func TestRequestReachesEveryHost(t *testing.T) {
	const devices = 4
	rt := openCPU(t, devices, "", nil)
	model := toy{rt.Mesh(), 64, 32}
	step, err := rt.NewStep(model, sgd{}, StepConfig{Batch: toyRows, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, "fsdp")})
	require.NoError(t, err)
	defer step.Destroy()

	run := func(request func(t *testing.T, b *Batch) *Array) (Metrics, []byte) {
		state, err := rt.NewState(model, sgd{}, initToy)
		require.NoError(t, err)
		defer state.Destroy()
		batch := toyBatch(toyRows, toySeq, model.vocab, 0)
		var pending *Pending
		if rows := request(t, &batch); rows == nil {
			pending, err = step.Run(state, batch)
			require.NoError(t, err)
		} else {
			var args []*Array
			for _, e := range state.Entries() {
				args = append(args, e.Array)
			}
			sent, err := step.sendInputs(batch, sgd{}.Hyper(1))
			require.NoError(t, err)
			sent[len(sent)-1].Destroy()
			sent[len(sent)-1] = rows
			defer DestroyAll(sent)
			results, err := step.Program.Run(append(args, sent...)...)
			require.NoError(t, err)
			state.replace(results[:len(results)-metricOutputs])
			pending = &Pending{arrays: results[len(results)-metricOutputs:]}
		}
		m, err := pending.Wait()
		require.NoError(t, err)
		embed, err := state.Entries()[0].Array.Read()
		require.NoError(t, err)
		return m, embed
	}
	all := func(r Request) func(*testing.T, *Batch) *Array {
		return func(_ *testing.T, b *Batch) *Array { b.Request = r; return nil }
	}
	// one raises a column on one device alone.
	one := func(device, column int) func(*testing.T, *Batch) *Array {
		return func(t *testing.T, _ *Batch) *Array {
			in := requestInput(rt.Mesh())
			require.Equal(t, []int{devices, requestColumns}, in.Dims)
			a, err := rt.NewArray(in.DType, in.Dims, in.Spec, func(r sharding.Region, dst []byte) error {
				require.Equal(t, []int{1, requestColumns}, r.Size, "a row a device")
				var row [requestColumns]float32
				if r.Start[0] == device {
					row[column] = 1
				}
				_, err := binary.Encode(dst, binary.NativeEndian, row)
				return err
			})
			require.NoError(t, err)
			return a
		}
	}
	plain, embed := run(all(Request{}))
	require.Equal(t, Request{}, plain.Request)
	for name, c := range map[string]struct {
		raise func(*testing.T, *Batch) *Array
		want  Request
	}{
		"save":                 {all(Request{Save: true}), Request{Save: true}},
		"stop":                 {all(Request{Stop: true}), Request{Stop: true}},
		"both":                 {all(Request{Save: true, Stop: true}), Request{Save: true, Stop: true}},
		"save by the first":    {one(0, requestSave), Request{Save: true}},
		"stop by the last one": {one(devices-1, requestStop), Request{Stop: true}},
		"fail":                 {all(Request{Fail: true}), Request{Fail: true}},
		"fail by the second":   {one(1, requestFail), Request{Fail: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, after := run(c.raise)
			require.Equal(t, c.want, got.Request)
			got.Request = Request{}
			require.Equal(t, plain, got)
			require.Equal(t, embed, after)
		})
	}
}
