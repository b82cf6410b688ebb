package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/engine/process"
	"weft/engine/sharding"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// openHosts opens so many logical hosts of so many virtual devices each.
func openHosts(t *testing.T, hosts, each int) *LogicalHosts {
	t.Helper()
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	p, err := pjrt.Load(info.Path)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: hosts * each})
	require.NoError(t, err)
	h, err := OpenLogicalHosts(Options{Plugin: p, Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(hosts * each)}}, hosts)
	require.NoError(t, err)
	t.Cleanup(func() {
		for i := range hosts {
			require.NoError(t, h.Runtime(i).Close())
		}
		require.NoError(t, h.Close(), "a host has left something behind")
	})
	return h
}

// onEach runs do on every host at once.
func onEach(hosts int, do func(host int) error) []error {
	errs := make([]error, hosts)
	var all sync.WaitGroup
	for i := range hosts {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errs
}

// Hosts that give their own rows of each batch train to the bits of one host with all devices, at whatever speed each goes.
func TestLogicalHostsTrainAsOne(t *testing.T) {
	const hosts, each = 4, 4
	one := runToy(t, hosts*each)
	h := openHosts(t, hosts, each)
	var losses, norms [hosts][]float64
	parts := make([]map[string][]byte, hosts)
	for _, err := range onEach(hosts, func(host int) error {
		rt := h.Runtime(host)
		model := toy{rt.Mesh(), 64, 32}
		step, err := rt.NewStep(model, sgd{}, StepConfig{Batch: toyRows, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, "fsdp"), MaxGradNorm: 1})
		if err != nil {
			return err
		}
		defer step.Destroy()
		state, err := rt.NewState(model, sgd{}, initToy)
		if err != nil {
			return err
		}
		defer state.Destroy()
		rows := step.BatchRows()
		if len(rows) != 1 || rows[0] != (RowRange{host * each, (host + 1) * each}) {
			return fmt.Errorf("rows %v", rows)
		}
		for i := range toySteps {
			whole := toyBatch(toyRows, toySeq, model.vocab, i)
			from, to := rows[0].Start*toySeq, rows[0].End*toySeq
			if host == i%hosts {
				time.Sleep(2 * time.Millisecond)
			}
			pending, err := step.Run(state, Batch{InputIDs: whole.InputIDs[from:to], Labels: whole.Labels[from:to], Mask: whole.Mask[from:to], Rows: rows})
			if err != nil {
				return err
			}
			m, err := pending.Wait()
			if err != nil {
				return err
			}
			losses[host], norms[host] = append(losses[host], m.Loss()), append(norms[host], m.GradNorm)
		}
		parts[host] = map[string][]byte{}
		for _, s := range state.Entries()[0].Array.OwnedShards() {
			b := make([]byte, 4*s.Region.Elements())
			if err := s.Read(b); err != nil {
				return err
			}
			parts[host][fmt.Sprint(s.Region)] = b
		}
		_, err = state.Entries()[0].Array.Read()
		if err == nil {
			return errors.New("a host has read the other hosts' shards")
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	var embed int
	for host := range hosts {
		require.Equal(t, one.losses, losses[host])
		require.Equal(t, one.norms, norms[host])
		require.Len(t, parts[host], each)
		for _, b := range parts[host] {
			embed += len(b)
		}
	}
	require.Len(t, one.embed, embed)
	whole := make([]byte, len(one.embed))
	spec := toy{h.Runtime(0).Mesh(), 64, 32}.Params()[0].Spec
	for p := range hosts * each {
		r := spec.ShardOf(h.Runtime(0).Mesh(), []int{64, 32}, p)
		copyRegion(whole, []int{64, 32}, r, parts[p/each][fmt.Sprint(r)], 4)
	}
	require.Equal(t, one.embed, whole)
}

func TestExchange(t *testing.T) {
	const hosts = 3
	h := openHosts(t, hosts, 2)
	for _, round := range []string{"", "a", "another"} {
		got := make([][][]byte, hosts)
		for _, err := range onEach(hosts, func(host int) (err error) {
			got[host], err = h.Runtime(host).Exchange("settings", fmt.Appendf(nil, "%s %d", round, host))
			return err
		}) {
			require.NoError(t, err)
		}
		for host := range hosts {
			for of := range hosts {
				require.Equal(t, fmt.Sprintf("%s %d", round, of), string(got[host][of]))
			}
		}
	}
	long := make([]byte, MaxExchange)
	long[MaxExchange-1] = 0xff
	for host, err := range onEach(hosts, func(host int) error {
		got, err := h.Runtime(host).Exchange("long", long[:MaxExchange*host/(hosts-1)])
		if err == nil && string(got[hosts-1]) != string(long) {
			return errors.New("it is not what was given")
		}
		return err
	}) {
		require.NoError(t, err, host)
	}
	_, err := h.Runtime(0).Exchange("too long", make([]byte, MaxExchange+1))
	require.ErrorContains(t, err, "more than")
	for host, err := range onEach(hosts, func(host int) error {
		_, err := h.Runtime(host).Exchange(map[bool]string{true: "start", false: "end"}[host == 1], nil)
		return err
	}) {
		require.ErrorContains(t, err, "they do not run the same thing", host)
		require.ErrorContains(t, err, map[bool]string{true: "host 0 is at another place of the program than host 1", false: "host 1 is at another place"}[host == 1])
	}
}

func TestExchangeAlone(t *testing.T) {
	rt := openCPU(t, 2, "", nil)
	before := pjrt.LiveHandles()
	got, err := rt.Exchange("settings", []byte("mine"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("mine")}, got)
	require.Equal(t, before, pjrt.LiveHandles(), "alone, it needs no program")
	require.Equal(t, []any{0, 1, "host 0"}, []any{rt.Process(), rt.Processes(), rt.HostName(0)})
}

// A host that never comes leaves the others waiting until they are told; a host that does something else is named.
func TestLogicalHostsThatDoNotCome(t *testing.T) {
	const hosts = 3
	h := openHosts(t, hosts, 1)
	why := errors.New("the cable is cut")
	waiting := make(chan struct{}, hosts)
	errs := onEach(hosts, func(host int) error {
		if host == 1 {
			<-waiting
			<-waiting
			h.Lose(why)
			return nil
		}
		waiting <- struct{}{}
		_, err := h.Runtime(host).Exchange("x", nil)
		return err
	})
	for host, err := range errs {
		if host != 1 {
			require.ErrorIs(t, err, why)
		}
	}
	_, err := h.Runtime(1).Exchange("x", nil)
	require.ErrorIs(t, err, why, "it comes too late")
}

func TestLogicalHostsThatDoOtherThings(t *testing.T) {
	h := openHosts(t, 2, 4)
	errs := onEach(2, func(host int) error {
		rt := h.Runtime(host)
		if host == 0 {
			_, err := rt.Exchange("x", nil)
			return err
		}
		p, err := doubled(rt)
		if err != nil {
			return err
		}
		defer p.Destroy()
		x, err := rt.NewArray(p.Inputs[0].DType, p.Inputs[0].Dims, p.Inputs[0].Spec, func(sharding.Region, []byte) error { return nil })
		if err != nil {
			return err
		}
		defer x.Destroy()
		_, err = p.Run(x)
		return err
	})
	for _, err := range errs {
		require.ErrorContains(t, err, "the hosts call different programs (host 0 exchange, host 1 double)")
	}
}

func TestLogicalHostsNeedEqualParts(t *testing.T) {
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	p, err := pjrt.Load(info.Path)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 3})
	require.NoError(t, err)
	_, err = OpenLogicalHosts(Options{Plugin: p, Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(3)}}, 2)
	require.ErrorContains(t, err, "3 devices, 3 of this process, cannot be dealt to 2 logical hosts")
}

// Only a TPU's devices are those of a slice: elsewhere the environment of one is not looked at.
func TestViewIsTheTPUs(t *testing.T) {
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	p, err := pjrt.Load(info.Path)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 1})
	require.NoError(t, err)
	rt, err := Open(Options{Plugin: p, Mesh: mesh, View: &process.View{Hosts: []string{"a", "b"}, Slices: 1}})
	require.NoError(t, err)
	require.NoError(t, rt.Close())
}
