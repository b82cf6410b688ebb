package engine

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/dtypes"

	"weft/engine/sharding"
	"weft/internal/hostmem"
	"weft/pjrt"
)

// Array is a global tensor of which this process holds the shards of its own devices.
type Array struct {
	DType dtypes.DType
	Dims  []int
	Spec  sharding.Spec

	rt     *Runtime
	shards []*pjrt.Buffer // by index of rt.local
}

// Shard is one local device's slice of an Array.
type Shard struct {
	// Position is the device's position in the mesh.
	Position int
	Region   sharding.Region
	buffer   *pjrt.Buffer
}

// Read copies the shard's bytes, row-major, into dst, which must have exactly their number.
func (s Shard) Read(dst []byte) error { return s.buffer.ToHost(dst) }

// Fill writes the bytes of one region of a tensor, row-major, in the tensor's dtype.
type Fill func(r sharding.Region, dst []byte) error

// NewArray sends a tensor to the devices, shard by shard: fill is called once for every distinct local region, and
// the host holds one region at a time. Where the devices' memory is the host's, a shard of 1 MiB or more lives in the very
// memory that fill wrote into, also when steps that it is donated to put their result there, and replicas are copies of it.
func (rt *Runtime) NewArray(dtype dtypes.DType, dims []int, spec sharding.Spec, fill Fill) (*Array, error) {
	return rt.newArray(dtype, dims, spec, fill, nil)
}

// sendBuffer is the host memory of a region on its way to the devices, used again for the next.
type sendBuffer struct{ bytes []byte }

// take returns n bytes, which are not cleared; a buffer that is too small makes room for one that is not. Without a buffer
// they are new, and zero.
func (b *sendBuffer) take(n int) []byte {
	if b == nil {
		return make([]byte, n)
	}
	if cap(b.bytes) < n {
		b.bytes = nil
		b.bytes = make([]byte, n)
	}
	return b.bytes[:n]
}

func (rt *Runtime) newArray(dtype dtypes.DType, dims []int, spec sharding.Spec, fill Fill, buf *sendBuffer) (*Array, error) {
	if err := spec.Check(rt.mesh, dims); err != nil {
		return nil, err
	}
	a := &Array{DType: dtype, Dims: dims, Spec: spec, rt: rt, shards: make([]*pjrt.Buffer, len(rt.local))}
	for i := range rt.local {
		if a.shards[i] != nil {
			continue
		}
		if err := a.send(i, fill, buf); err != nil {
			a.Destroy()
			return nil, err
		}
	}
	return a, nil
}

// send fills the region of local device i and brings it to every local device that holds the same region.
func (a *Array) send(i int, fill Fill, buf *sendBuffer) error {
	rt := a.rt
	region := a.Spec.ShardOf(rt.mesh, a.Dims, rt.local[i])
	size := region.Elements() * a.DType.Size()
	if rt.zeroCopy > 0 && size >= rt.zeroCopy {
		return a.sendMemory(i, region, size, fill)
	}
	host := buf.take(size)
	if err := fill(region, host); err != nil {
		return err
	}
	return a.copyTo(i, region, host)
}

// sendMemory fills memory that becomes the buffer of local device i without a copy. Replicas of the region are copies.
func (a *Array) sendMemory(i int, region sharding.Region, size int, fill Fill) error {
	rt := a.rt
	mem, err := hostmem.New(int64(size))
	if err != nil {
		return fmt.Errorf("make a shard for device %d: %w", rt.local[i], err)
	}
	mem.Populate() // here, beside other tensors' reads: fill may be reading alone
	if err := fill(region, mem.Bytes()); err != nil {
		return errors.Join(err, mem.Free())
	}
	if err := a.copyTo(i+1, region, mem.Bytes()); err != nil {
		return errors.Join(err, mem.Free())
	}
	b, err := rt.client.BufferFromHostZeroCopy(mem, pjrt.DType(a.DType), region.Size, rt.devices[rt.local[i]])
	if err != nil {
		return fmt.Errorf("give %d bytes to device %d: %w", size, rt.local[i], err)
	}
	a.shards[i] = b
	return nil
}

// copyTo sends a region's bytes to the local devices from the given one on that hold the region and have no bytes yet. The memory is
// handed over without a copy, to all of its devices at once, and is ours again when the last has it.
func (a *Array) copyTo(from int, region sharding.Region, host []byte) error {
	rt := a.rt
	var sent []*pjrt.Event
	defer func() { _ = pjrt.AwaitAll(sent) }()
	for j := from; j < len(rt.local); j++ {
		if a.shards[j] != nil || !a.Spec.ShardOf(rt.mesh, a.Dims, rt.local[j]).Equal(region) {
			continue
		}
		b, done, err := rt.client.BufferFromHostAsync(host, pjrt.DType(a.DType), region.Size, rt.devices[rt.local[j]])
		if err != nil {
			return fmt.Errorf("send %d bytes to device %d: %w", len(host), rt.local[j], err)
		}
		a.shards[j], sent = b, append(sent, done)
	}
	err := pjrt.AwaitAll(sent)
	sent = nil
	if err != nil {
		return fmt.Errorf("send %d bytes to the devices of the region at %v: %w", len(host), region.Start, err)
	}
	return nil
}

// Shards returns this process's slices. Replicas are all listed; see OwnedShards.
func (a *Array) Shards() []Shard {
	out := make([]Shard, len(a.shards))
	for i, b := range a.shards {
		p := a.rt.local[i]
		out[i] = Shard{Position: p, Region: a.Spec.ShardOf(a.rt.mesh, a.Dims, p), buffer: b}
	}
	return out
}

// OwnedShards returns the local slices that this process must write so that, over all processes, every element is
// written once.
func (a *Array) OwnedShards() []Shard {
	owner := map[int]bool{}
	for _, p := range a.Spec.Owners(a.rt.mesh, a.Dims) {
		owner[p] = true
	}
	var out []Shard
	for _, s := range a.Shards() {
		if owner[s.Position] {
			out = append(out, s)
		}
	}
	return out
}

// LocalBytes is the size of this process's shards on each device, in bytes.
func (a *Array) LocalBytes() int {
	return a.Spec.ShardOf(a.rt.mesh, a.Dims, 0).Elements() * a.DType.Size()
}

// Read returns the whole tensor, row-major. It needs all of its regions to be local.
func (a *Array) Read() ([]byte, error) {
	size := a.DType.Size()
	whole := sharding.Region{Start: make([]int, len(a.Dims)), Size: a.Dims}
	out := make([]byte, whole.Elements()*size)
	seen := 0
	for _, s := range a.OwnedShards() {
		part := make([]byte, s.Region.Elements()*size)
		if err := s.Read(part); err != nil {
			return nil, fmt.Errorf("read a shard from device %d: %w", s.Position, err)
		}
		copyRegion(out, a.Dims, s.Region, part, size)
		seen += s.Region.Elements()
	}
	if seen != whole.Elements() {
		return nil, errors.New("read a whole tensor of which other processes hold a part: read its shards")
	}
	return out, nil
}

// copyRegion writes the row-major bytes of a region into a row-major tensor of shape dims.
func copyRegion(dst []byte, dims []int, r sharding.Region, src []byte, size int) {
	if len(dims) == 0 {
		copy(dst, src)
		return
	}
	last := len(dims) - 1
	run := r.Size[last] * size
	index := make([]int, len(dims))
	for off := 0; off < len(src); off += run {
		flat := 0
		for d := range dims {
			flat = flat*dims[d] + r.Start[d] + index[d]
		}
		copy(dst[flat*size:], src[off:off+run])
		for d := last - 1; d >= 0; d-- {
			if index[d]++; index[d] < r.Size[d] {
				break
			}
			index[d] = 0
		}
	}
}

// Destroy releases the device memory. It may be called twice.
func (a *Array) Destroy() {
	if a == nil {
		return
	}
	for i, b := range a.shards {
		if b != nil {
			b.Destroy()
			a.shards[i] = nil
		}
	}
}

// DestroyAll releases the device memory of every array.
func DestroyAll(arrays []*Array) {
	for _, a := range arrays {
		a.Destroy()
	}
}
