package pjrt

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// ExecuteOptions say how a program is run.
type ExecuteOptions struct {
	// NonDonatable are indices of arguments that must survive although the program declares them donated.
	NonDonatable []int
	// LaunchID must be the same in all processes of one launch, and may differ between launches.
	LaunchID int
}

// executeArena is the memory of one call of Execute, used again by later calls.
type executeArena struct {
	args     []uintptr        // [device][arg]
	outs     []uintptr        // [device][output]
	argLists []unsafe.Pointer // [device]
	outLists []unsafe.Pointer // [device]
	done     []uintptr        // [device]
	nonDon   []int64
	options  executeOptions
	call     executeArgs
}

var arenas = sync.Pool{New: func() any { return &executeArena{} }}

// resize returns a zeroed slice of length n, in the memory of s if that is enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Execute starts the program on all its addressable devices at once. args are [device][argument], in the order of AddressableDevices
// and of the program's parameters. outs are [device][output]; done has one event a device, which fires when its run has ended, with
// its error. Destroy outs and done.
//
// A program consumes the arguments that it declares donated (tf.aliasing_output): their buffers are deleted, and their handles must
// still be destroyed. When err is not nil, nothing was returned, but donated arguments may be gone all the same.
//
// Types and shapes of the arguments are the caller's to get right: a program on several devices that one device refuses to start leaves
// the others waiting in a collective, and XLA's CPU plugins end the process over that.
func (l *LoadedExecutable) Execute(args [][]*Buffer, opts ExecuteOptions) (outs [][]*Buffer, done []*Event, err error) {
	h := l.handle.Load()
	if h == 0 {
		return nil, nil, errExecutableDestroyed
	}
	if len(args) != len(l.devices) {
		return nil, nil, fmt.Errorf("pjrt: execute: arguments for %d devices; the program runs on %d", len(args), len(l.devices))
	}
	if len(args) == 0 {
		return nil, nil, errors.New("pjrt: execute: none of the program's devices belongs to this process")
	}
	a := arenas.Get().(*executeArena)
	defer arenas.Put(a)
	if err := a.fill(args, l.numOut); err != nil {
		return nil, nil, err
	}
	a.nonDon = a.nonDon[:0]
	for _, i := range opts.NonDonatable {
		a.nonDon = append(a.nonDon, int64(i))
	}
	a.options = executeOptions{head: head{size: executeOptionsSize}, launchID: int32(opts.LaunchID),
		nonDonatable: data(a.nonDon), numNonDonatable: uintptr(len(a.nonDon))}
	a.call = executeArgs{head: head{size: executeSize}, executable: h, options: unsafe.Pointer(&a.options),
		args: data(a.argLists), numDevices: uintptr(len(args)), numArgs: uintptr(len(args[0])),
		outs: data(a.outLists), done: data(a.done)}
	err = l.client.plugin.call(fnLoadedExecutableExecute, "execute", unsafe.Pointer(&a.call))
	runtime.KeepAlive(args)
	if err != nil {
		return nil, nil, err
	}
	if len(opts.NonDonatable) == 0 {
		l.markDonated(args)
	}
	return l.results(a)
}

// markDonated notes which arguments are gone, so that their use in a later run is an error before any device starts. Which ones a
// program takes is learnt from its first run.
func (l *LoadedExecutable) markDonated(args [][]*Buffer) {
	l.learnDonated.Do(func() {
		for i, b := range args[0] {
			if b.IsDeleted() {
				l.donated = append(l.donated, i)
			}
		}
	})
	for _, list := range args {
		for _, i := range l.donated {
			list[i].donated.Store(true)
		}
	}
}

// fill puts the arguments' handles into the arena.
func (a *executeArena) fill(args [][]*Buffer, numOut int) error {
	n := len(args)
	numArgs := len(args[0])
	a.args, a.outs = resize(a.args, n*numArgs), resize(a.outs, n*numOut)
	a.argLists, a.outLists, a.done = resize(a.argLists, n), resize(a.outLists, n), resize(a.done, n)
	for d, list := range args {
		if len(list) != numArgs {
			return fmt.Errorf("pjrt: execute: %d arguments for device %d, %d for device 0", len(list), d, numArgs)
		}
		for i, b := range list {
			if b == nil {
				return fmt.Errorf("pjrt: execute: argument %d of device %d is nil", i, d)
			}
			if a.args[d*numArgs+i] = b.handle.Load(); a.args[d*numArgs+i] == 0 {
				return fmt.Errorf("pjrt: execute: argument %d of device %d: %w", i, d, errBufferDestroyed)
			}
			if b.donated.Load() {
				return fmt.Errorf("pjrt: execute: argument %d of device %d was donated to an earlier run: use that run's output instead", i, d)
			}
		}
		a.argLists[d] = data(a.args[d*numArgs : (d+1)*numArgs])
		a.outLists[d] = data(a.outs[d*numOut : (d+1)*numOut])
	}
	return nil
}

// results wraps the handles that the plugin put into the arena, all buffers of a device in one piece of memory.
func (l *LoadedExecutable) results(a *executeArena) ([][]*Buffer, []*Event, error) {
	n := len(l.devices)
	outs, done := make([][]*Buffer, n), make([]*Event, n)
	events := make([]Event, n)
	var err error
	for d := range n {
		events[d].init(l.client.plugin, a.done[d], "execute")
		done[d] = &events[d]
		buffers := make([]Buffer, l.numOut)
		outs[d] = make([]*Buffer, l.numOut)
		for i := range buffers {
			b, h := &buffers[i], a.outs[d*l.numOut+i]
			outs[d][i] = b
			if l.dims != nil {
				b.init(l.client, l.devices[d], h, l.dtypes[i], l.dims[i])
			} else if e := l.client.wrapBuffer(b, h, l.devices[d]); e != nil {
				err = errors.Join(err, e)
			}
		}
	}
	if err == nil {
		return outs, done, nil
	}
	for d := range n {
		for _, b := range outs[d] {
			err = errors.Join(err, b.Destroy())
		}
	}
	return nil, nil, errors.Join(err, AwaitAll(done))
}
