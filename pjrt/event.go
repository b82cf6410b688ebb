package pjrt

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Event is the completion of asynchronous work. Destroy it when it is no longer needed.
type Event struct {
	plugin *Plugin
	handle atomic.Uintptr
	op     string // what the event is the end of
	pinned bool   // whether inflight holds memory for it
}

// inflight keeps the Go memory of running transfers reachable, also when the caller drops the event and the data.
var inflight sync.Map // *Event -> any

// errEventDestroyed is what a destroyed event answers.
var errEventDestroyed = errors.New("pjrt: the event was destroyed; await it before Destroy")

func newEvent(p *Plugin, handle uintptr, op string) *Event {
	e := &Event{}
	e.init(p, handle, op)
	return e
}

func (e *Event) init(p *Plugin, handle uintptr, op string) {
	e.plugin, e.op = p, op
	e.handle.Store(handle)
	liveHandles[eventHandle].Add(1)
}

// pin keeps data reachable until the event has fired.
func (e *Event) pin(data any) {
	e.pinned = true
	inflight.Store(e, data)
}

// Await blocks until the work is done and returns its error. It can be called again and then answers the same.
func (e *Event) Await() error {
	h := e.handle.Load()
	if h == 0 {
		return errEventDestroyed
	}
	err := e.plugin.call(fnEventAwait, e.op, unsafe.Pointer(&objArgs{head: head{size: objArgsSize}, obj: h}))
	if e.pinned {
		inflight.Delete(e)
	}
	return err
}

// IsReady says whether the work is done, with or without an error.
func (e *Event) IsReady() (bool, error) {
	h := e.handle.Load()
	if h == 0 {
		return false, errEventDestroyed
	}
	return e.plugin.getBool(fnEventIsReady, e.op, h)
}

// Destroy frees the event. An event of a host transfer that still runs is awaited first, because the transfer uses the caller's memory;
// an error of the transfer itself is then lost.
func (e *Event) Destroy() error {
	if e == nil {
		return nil
	}
	if e.pinned {
		if _, running := inflight.Load(e); running {
			_ = e.Await()
		}
	}
	return e.plugin.destroy(&e.handle, eventHandle, fnEventDestroy, nil)
}

// AwaitAll waits for every event, destroys it and returns the first error. Events that are nil are skipped.
func AwaitAll(events []*Event) error {
	var first error
	for _, e := range events {
		if e == nil {
			continue
		}
		if err := e.Await(); err != nil && first == nil {
			first = err
		}
		if err := e.Destroy(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
