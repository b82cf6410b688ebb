package pjrt

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

var objArgsPool = sync.Pool{New: func() any { return &objArgs{head: head{size: objArgsSize}} }}

// destroy frees a handle once and counts it off. owner, if there is one, counts the handles that must not outlive it.
func (p *Plugin) destroy(handle *atomic.Uintptr, kind handleKind, f fn, owner *Client) error {
	h := handle.Swap(0)
	if h == 0 {
		return nil
	}
	liveHandles[kind].Add(-1)
	args := objArgsPool.Get().(*objArgs)
	args.ext, args.obj = 0, h
	err := p.call(f, "destroy "+handleNames[kind], unsafe.Pointer(args))
	objArgsPool.Put(args)
	if owner != nil {
		owner.children.Add(-1)
	}
	return err
}

func (p *Plugin) getWord(f fn, op string, obj uintptr) (uintptr, error) {
	args := &wordArgs{head: head{size: wordArgsSize}, obj: obj}
	err := p.call(f, op, unsafe.Pointer(args))
	return args.out, err
}

func (p *Plugin) getInt(f fn, op string, obj uintptr) (int, error) {
	args := &intArgs{head: head{size: intArgsSize}, obj: obj}
	err := p.call(f, op, unsafe.Pointer(args))
	return int(args.out), err
}

func (p *Plugin) getBool(f fn, op string, obj uintptr) (bool, error) {
	args := &boolArgs{head: head{size: boolArgsSize}, obj: obj}
	err := p.call(f, op, unsafe.Pointer(args))
	return args.out, err
}

func (p *Plugin) getString(f fn, op string, obj uintptr) (string, error) {
	args := &spanArgs{head: head{size: spanArgsSize}, obj: obj}
	if err := p.call(f, op, unsafe.Pointer(args)); err != nil {
		return "", err
	}
	return goString(args.ptr, args.n), nil
}

// getSpan returns an array in the plugin's memory that lives as long as obj.
func getSpan[T any](p *Plugin, f fn, op string, obj uintptr) ([]T, error) {
	args := &spanArgs{head: head{size: spanArgsSize}, obj: obj}
	if err := p.call(f, op, unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	return view[T](args.ptr, args.n), nil
}
