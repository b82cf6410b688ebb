package pjrt

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"
)

// The ways in which host data is handed over (PJRT_HostBufferSemantics). The one that is left out, kImmutableZeroCopy, makes the CPU
// plugins copy a buffer that is donated, so that a program's state would be there twice.
const (
	immutableOnlyDuringCall         int32 = 0
	immutableUntilTransferCompletes int32 = 1
	mutableZeroCopy                 int32 = 3
)

var errBufferDestroyed = errors.New("pjrt: the buffer was destroyed")

// Buffer is an array on one device. After a program has consumed it by donation it is deleted, and its handle must still be destroyed.
type Buffer struct {
	client  *Client
	device  *Device
	handle  atomic.Uintptr
	donated atomic.Bool // known to be consumed by a run
	dtype   DType
	dims    []int // shared between buffers, never changed
}

func (b *Buffer) init(c *Client, d *Device, handle uintptr, dt DType, dims []int) {
	b.client, b.device, b.dtype, b.dims = c, d, dt, dims
	b.handle.Store(handle)
	liveHandles[bufferHandle].Add(1)
	c.children.Add(1)
}

// BufferFromHost puts an array on a device. hostData is dense, row-major and in the machine's byte order: ByteSize(dt, dims) bytes. The
// plugin copies it during the call, so that the caller may reuse it at once; the transfer to the device may go on after the return,
// and a program that takes the buffer waits for it.
func (c *Client) BufferFromHost(hostData []byte, dt DType, dims []int, dev *Device) (*Buffer, error) {
	b, done, err := c.bufferFromHost(hostData, dt, dims, dev, immutableOnlyDuringCall)
	if err != nil {
		return nil, err
	}
	return b, done.Destroy()
}

// BufferFromHostAsync is BufferFromHost without the copy: hostData must not be changed until the event has fired, and is kept alive
// until then (memory that is not Go's, such as a mapped file, must be kept mapped by the caller). Await and destroy the event.
func (c *Client) BufferFromHostAsync(hostData []byte, dt DType, dims []int, dev *Device) (*Buffer, *Event, error) {
	b, done, err := c.bufferFromHost(hostData, dt, dims, dev, immutableUntilTransferCompletes)
	if err != nil {
		return nil, nil, err
	}
	done.pin(hostData)
	return b, done, nil
}

func (c *Client) bufferFromHost(hostData []byte, dt DType, dims []int, dev *Device, semantics int32) (*Buffer, *Event, error) {
	h := c.handle.Load()
	if h == 0 {
		return nil, nil, errClientClosed
	}
	want, err := ByteSize(dt, dims)
	if err != nil {
		return nil, nil, err
	}
	if len(hostData) != want {
		return nil, nil, fmt.Errorf("pjrt: buffer from host: %d bytes given for %s%v, which takes %d", len(hostData), dt, dims, want)
	}
	if dev == nil || dev.client != c || !dev.addressable {
		return nil, nil, fmt.Errorf("pjrt: buffer from host: device %v is not an addressable device of this client", dev)
	}
	dims64 := make([]int64, len(dims))
	for i, d := range dims {
		dims64[i] = int64(d)
	}
	args := &bufferFromHostArgs{head: head{size: bufferFromHostSize}, client: h, data: data(hostData), dtype: int32(dt),
		dims: data(dims64), numDims: uintptr(len(dims)), semantics: semantics, device: dev.handle}
	if err := c.plugin.call(fnClientBufferFromHostBuffer, "buffer from host", unsafe.Pointer(args)); err != nil {
		return nil, nil, err
	}
	b := &Buffer{}
	b.init(c, dev, args.buffer, dt, slices.Clone(dims))
	return b, newEvent(c.plugin, args.done, "buffer from host"), nil
}

// wrapBuffer makes a Buffer of a handle whose type and shape are not known yet.
func (c *Client) wrapBuffer(b *Buffer, handle uintptr, dev *Device) error {
	b.init(c, dev, handle, InvalidDType, nil)
	dt, err := c.plugin.getInt(fnBufferElementType, "buffer type", handle)
	if err != nil {
		return err
	}
	dims, err := getSpan[int64](c.plugin, fnBufferDimensions, "buffer shape", handle)
	if err != nil {
		return err
	}
	b.dtype, b.dims = DType(dt), toInts(dims)
	return nil
}

func toInts(in []int64) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = int(v)
	}
	return out
}

// DType is the type of the elements.
func (b *Buffer) DType() DType { return b.dtype }

// Dims is the shape; empty for a scalar. It must not be changed.
func (b *Buffer) Dims() []int { return b.dims }

// Device is the device that holds the buffer.
func (b *Buffer) Device() *Device { return b.device }

// OnDeviceSize is the number of bytes that the buffer takes on the device, padding included.
func (b *Buffer) OnDeviceSize() (int64, error) {
	h := b.handle.Load()
	if h == 0 {
		return 0, errBufferDestroyed
	}
	n, err := b.client.plugin.getWord(fnBufferOnDeviceSize, "buffer size", h)
	return int64(n), err
}

// rowMajor is the dense layout with the last dimension fastest.
func rowMajor(rank int) *memoryLayout {
	order := make([]int64, rank)
	for i := range order {
		order[i] = int64(rank - 1 - i)
	}
	l := &memoryLayout{head: head{size: memoryLayoutSize}}
	l.tiled.size, l.tiled.minorToMajor, l.tiled.numDims = tiledLayoutSize, data(order), uintptr(rank)
	return l
}

// ToHost copies the array into dst, dense and row-major; dst has ByteSize(DType(), Dims()) bytes. It waits until the array is computed
// and copied, and returns the error of either.
func (b *Buffer) ToHost(dst []byte) error {
	e, err := b.ToHostAsync(dst)
	if err != nil {
		return err
	}
	err = e.Await()
	return errors.Join(err, e.Destroy())
}

// ToHostAsync starts the copy of ToHost. dst must not be touched until the event has fired, and is kept alive until then. Await and
// destroy the event.
func (b *Buffer) ToHostAsync(dst []byte) (*Event, error) {
	h := b.handle.Load()
	if h == 0 {
		return nil, errBufferDestroyed
	}
	want, err := ByteSize(b.dtype, b.dims)
	if err != nil {
		return nil, err
	}
	if len(dst) != want {
		return nil, fmt.Errorf("pjrt: buffer to host: %d bytes of room for %s%v, which takes %d", len(dst), b.dtype, b.dims, want)
	}
	layout := rowMajor(len(b.dims))
	args := &toHostArgs{head: head{size: toHostSize}, buffer: h, layout: unsafe.Pointer(layout), dst: data(dst), dstSize: uintptr(len(dst))}
	if err := b.client.plugin.call(fnBufferToHostBuffer, "buffer to host", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	e := newEvent(b.client.plugin, args.event, "buffer to host")
	e.pin([]any{dst, layout})
	return e, nil
}

// ReadyEvent fires when the array is computed, with the error of the program if it failed. Destroy it.
func (b *Buffer) ReadyEvent() (*Event, error) {
	h := b.handle.Load()
	if h == 0 {
		return nil, errBufferDestroyed
	}
	e, err := b.client.plugin.getWord(fnBufferReadyEvent, "buffer ready", h)
	if err != nil {
		return nil, err
	}
	return newEvent(b.client.plugin, e, "compute buffer"), nil
}

// CopyToDevice copies the array to another device of the same client.
func (b *Buffer) CopyToDevice(dev *Device) (*Buffer, error) {
	h := b.handle.Load()
	if h == 0 {
		return nil, errBufferDestroyed
	}
	if dev == nil || dev.client != b.client {
		return nil, fmt.Errorf("pjrt: copy to device: device %v is not of the buffer's client", dev)
	}
	args := &copyToDeviceArgs{head: head{size: copyToDeviceSize}, buffer: h, device: dev.handle}
	if err := b.client.plugin.call(fnBufferCopyToDevice, "copy to device", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	out := &Buffer{}
	out.init(b.client, dev, args.dst, b.dtype, b.dims)
	return out, nil
}

// IsDeleted says whether the data is gone, by donation or by Destroy.
func (b *Buffer) IsDeleted() bool {
	h := b.handle.Load()
	if h == 0 || b.donated.Load() {
		return true
	}
	deleted, err := b.client.plugin.getBool(fnBufferIsDeleted, "buffer is deleted", h)
	return deleted || err != nil
}

// Destroy frees the handle and the device memory. A donated buffer must be destroyed too; only its handle is left then.
func (b *Buffer) Destroy() error {
	if b == nil {
		return nil
	}
	return b.client.plugin.destroy(&b.handle, bufferHandle, fnBufferDestroy, b.client)
}
