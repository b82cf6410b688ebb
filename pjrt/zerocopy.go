package pjrt

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"weft/internal/hostmem"
)

// ZeroCopy tells whether [Client.BufferFromHostZeroCopy] saves anything: whether the devices' memory is the host's own, as of XLA's
// CPU plugins. For other devices the data is copied to them all the same.
func (c *Client) ZeroCopy() bool { return c.platformName == "cpu" && c.plugin.fns[fnEventOnReady] != 0 }

// BufferFromHostZeroCopy makes host memory a buffer's own (PJRT_HostBufferSemantics_kMutableZeroCopy): mem has exactly the
// ByteSize(dt, dims) bytes of the array, at least one, dense, row-major and in the machine's byte order.
//
// The call takes mem over, also when it fails: the caller must neither use nor free it any more. The plugin may write into it, and
// a program that the buffer is donated to puts its output there. It goes back to the system when the last buffer in it is freed, be
// it this one or such an output, and the last program that reads it has ended; on a device with memory of its own, when the transfer
// has. Until then it counts in [hostmem.Held].
//
// XLA's CPU plugins copy memory that is not aligned to 64 bytes; that of hostmem is aligned to a page.
func (c *Client) BufferFromHostZeroCopy(mem *hostmem.Memory, dt DType, dims []int, dev *Device) (*Buffer, error) {
	if len(mem.Bytes()) == 0 {
		return nil, errors.Join(fmt.Errorf("pjrt: buffer from host: no memory given for %s%v", dt, dims), mem.Free())
	}
	if c.plugin.fns[fnEventOnReady] == 0 {
		return nil, errors.Join(c.plugin.lacks(fnEventOnReady, "buffer from host without a copy"), mem.Free())
	}
	b, done, err := c.bufferFromHost(mem.Bytes(), dt, dims, dev, mutableZeroCopy)
	if err != nil {
		return nil, errors.Join(err, mem.Free())
	}
	if err := done.freeWhenDone(mem); err != nil {
		return nil, errors.Join(err, b.Destroy(), done.Await(), done.Destroy(), mem.Free())
	}
	if err := done.Destroy(); err != nil {
		return nil, errors.Join(err, b.Destroy())
	}
	return b, nil
}

// lent is the host memory that plugins use, by the number that their events give back.
var lent struct {
	sync.Mutex
	next   uintptr
	memory map[uintptr]lentMemory
}

type lentMemory struct {
	plugin *Plugin
	mem    *hostmem.Memory
}

// freeWhenDone frees mem when the event fires, which may be at once. The event itself is needed no more after this.
func (e *Event) freeWhenDone(mem *hostmem.Memory) error {
	lent.Lock()
	if lent.memory == nil {
		lent.memory = map[uintptr]lentMemory{}
	}
	lent.next++
	id := lent.next
	lent.memory[id] = lentMemory{e.plugin, mem}
	lent.Unlock()
	args := &onReadyArgs{head: head{size: onReadyArgsSize}, event: e.handle.Load(), callback: returnedCallback(), userArg: id}
	err := e.plugin.call(fnEventOnReady, e.op, unsafe.Pointer(args))
	if err != nil {
		takeLent(id)
	}
	return err
}

func takeLent(id uintptr) (lentMemory, bool) {
	lent.Lock()
	defer lent.Unlock()
	l, ok := lent.memory[id]
	delete(lent.memory, id)
	return l, ok
}

// returnedCallback is returned as a C function, made once: there is room for few, and they are never let go.
var returnedCallback = sync.OnceValue(func() uintptr { return purego.NewCallback(returned) })

// returned is a PJRT_Event_OnReadyCallback, called on any thread, of the plugin's too: the plugin uses the memory no more, whether
// the transfer went well (cErr 0) or not, which the buffer itself tells.
func returned(cErr, id uintptr) uintptr {
	l, ok := takeLent(id)
	if !ok {
		return 0
	}
	if cErr != 0 {
		_ = l.plugin.takeError(cErr, "buffer from host")
	}
	_ = l.mem.Free() // what cannot be given back stays in hostmem.Held
	return 0
}
