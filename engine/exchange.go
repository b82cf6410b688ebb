package engine

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

// MaxExchange is the most bytes that a process can give to Exchange.
const MaxExchange = exchangeWidth*4 - exchangeHead

const (
	exchangeWidth = 4096 // int32 values a device
	exchangeHead  = 8    // bytes: a checksum of the name, the length
)

// Exchange gives every process what each of them gives, by rank, and waits until all have. The name says what it is about:
// processes that exchange other things get an error that names which. It is a program of its own, which gathers int32
// [devices, 4096]; alone, a process needs none.
func (rt *Runtime) Exchange(name string, own []byte) ([][]byte, error) {
	if len(own) > MaxExchange {
		return nil, fmt.Errorf("exchange %s between the hosts: %d bytes are more than %d", name, len(own), MaxExchange)
	}
	if rt.processes == 1 {
		return [][]byte{own}, nil
	}
	all, err := rt.gather(name, own)
	if err != nil {
		return nil, fmt.Errorf("exchange %s between the hosts: %w", name, err)
	}
	return all, nil
}

// exchangeInput is what each device gives: a checksum of the name, the number of bytes, the bytes.
func (rt *Runtime) exchangeInput() Input {
	return Input{
		Name: "own", DType: dtypes.Int32, Dims: []int{rt.mesh.NumDevices(), exchangeWidth},
		Spec: sharding.Split(2, 0, rt.mesh.AxisNames()...),
	}
}

func nameSum(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

func (rt *Runtime) gather(name string, own []byte) ([][]byte, error) {
	in := rt.exchangeInput()
	dims := in.Dims
	if rt.exchange == nil {
		program, err := rt.Compile("exchange", []Input{in}, func(in []*graph.Node) []Output {
			return []Output{{Node: graph.Add(in[0], graph.ZerosLike(in[0]))}}
		})
		if err != nil {
			return nil, err
		}
		rt.exchange = program
	}
	sent, err := rt.NewArray(in.DType, dims, in.Spec, func(r sharding.Region, dst []byte) error {
		clear(dst)
		for row := range r.Size[0] {
			at := dst[row*exchangeWidth*4:]
			binary.LittleEndian.PutUint32(at, nameSum(name))
			binary.LittleEndian.PutUint32(at[4:], uint32(len(own)))
			copy(at[exchangeHead:], own)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer sent.Destroy()
	results, err := rt.exchange.Run(sent)
	if err != nil {
		return nil, err
	}
	defer DestroyAll(results)
	raw := make([]byte, 4*dims[0]*dims[1])
	if err := results[0].Shards()[0].Read(raw); err != nil {
		return nil, err
	}
	out := make([][]byte, rt.processes)
	for position, process := range rt.owners {
		if out[process] != nil {
			continue
		}
		row := raw[position*exchangeWidth*4 : (position+1)*exchangeWidth*4]
		if got := binary.LittleEndian.Uint32(row); got != nameSum(name) {
			return nil, fmt.Errorf("%s is at another place of the program than %s: they do not run the same thing", rt.HostName(process), rt.HostName(rt.process))
		}
		n := binary.LittleEndian.Uint32(row[4:])
		if n > MaxExchange {
			return nil, fmt.Errorf("%s gave %d bytes", rt.HostName(process), n)
		}
		out[process] = row[exchangeHead : exchangeHead+n]
	}
	return out, nil
}
