package pjrt

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// formatMLIR is the format of StableHLO, as text or as bytecode.
const formatMLIR = "mlir"

// LoadedExecutable is a compiled program on the devices that it runs on.
type LoadedExecutable struct {
	client  *Client
	handle  atomic.Uintptr
	devices []*Device // addressable ones, in the order of Execute's args
	numOut  int
	dtypes  []DType // of the outputs; nil if the plugin does not say
	dims    [][]int

	learnDonated sync.Once
	donated      []int // indices of the arguments that a run consumes
}

func newProgram(code []byte) *program {
	return &program{head: head{size: programSize}, code: data(code), codeSize: uintptr(len(code)),
		format: textData(formatMLIR), formatSize: uintptr(len(formatMLIR))}
}

// Compile compiles a StableHLO module (text or bytecode, with sdy shardings if opts.UseShardy) and loads it onto the devices.
func (c *Client) Compile(code []byte, opts CompileOptions) (*LoadedExecutable, error) {
	h := c.handle.Load()
	if h == 0 {
		return nil, errClientClosed
	}
	options, err := opts.Marshal()
	if err != nil {
		return nil, err
	}
	prog := newProgram(code)
	args := &clientCompileArgs{head: head{size: clientCompileSize}, client: h, program: unsafe.Pointer(prog), options: data(options),
		optionsSize: uintptr(len(options))}
	if err := c.plugin.call(fnClientCompile, "compile", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	return c.newLoaded(args.executable)
}

// Load loads what [Executable.Serialize] wrote. opts, if not nil, replace the options that the program was compiled with, such as its
// device assignment; not every plugin allows that. Bytes that are damaged or from another build of the plugin are an error at best: a
// cache must check them before.
func (c *Client) Load(serialized []byte, opts *CompileOptions) (*LoadedExecutable, error) {
	h := c.handle.Load()
	if h == 0 {
		return nil, errClientClosed
	}
	args := &deserializeAndLoadArgs{head: head{size: deserializeAndLoadSize}, client: h, data: data(serialized), dataSize: uintptr(len(serialized))}
	if opts != nil {
		options, err := opts.Marshal()
		if err != nil {
			return nil, err
		}
		args.overrides, args.overrideSize = data(options), uintptr(len(options))
	}
	if err := c.plugin.call(fnExecutableDeserializeAndLoad, "load executable", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	return c.newLoaded(args.executable)
}

// newLoaded wraps a handle and reads what Execute needs.
func (c *Client) newLoaded(handle uintptr) (*LoadedExecutable, error) {
	l := &LoadedExecutable{client: c}
	l.handle.Store(handle)
	liveHandles[loadedExecutableHandle].Add(1)
	c.children.Add(1)
	if err := l.describe(); err != nil {
		return nil, errors.Join(err, l.Destroy())
	}
	return l, nil
}

func (l *LoadedExecutable) describe() error {
	devices, err := getSpan[uintptr](l.client.plugin, fnLoadedExecutableAddressable, "devices of executable", l.handle.Load())
	if err != nil {
		return err
	}
	if l.devices, err = l.client.devicesOf(devices); err != nil {
		return err
	}
	e, err := l.Executable()
	if err != nil {
		return err
	}
	if l.numOut, err = e.NumOutputs(); err != nil {
		return errors.Join(err, e.Destroy())
	}
	// Without these, Execute asks each output for its type and shape.
	dtypes, errTypes := e.OutputDTypes()
	dims, errDims := e.OutputDims()
	if errTypes == nil && errDims == nil && len(dtypes) == l.numOut && len(dims) == l.numOut {
		l.dtypes, l.dims = dtypes, dims
	}
	return e.Destroy()
}

// AddressableDevices are the devices of this process that the program runs on, in the order of Execute's arguments and results. It
// must not be changed.
func (l *LoadedExecutable) AddressableDevices() []*Device { return l.devices }

// NumOutputs is the number of arrays that the program gives on each device.
func (l *LoadedExecutable) NumOutputs() int { return l.numOut }

// Executable is what is known of the program. Destroy it.
func (l *LoadedExecutable) Executable() (*Executable, error) {
	h := l.handle.Load()
	if h == 0 {
		return nil, errExecutableDestroyed
	}
	e, err := l.client.plugin.getWord(fnLoadedExecutableGetExecutable, "describe executable", h)
	if err != nil {
		return nil, err
	}
	return newExecutable(l.client.plugin, l.client, e), nil
}

// Fingerprint identifies the compiled program. Plugins without fingerprints answer with code [Unimplemented].
func (l *LoadedExecutable) Fingerprint() (string, error) {
	e, err := l.Executable()
	if err != nil {
		return "", err
	}
	s, err := e.Fingerprint()
	return s, errors.Join(err, e.Destroy())
}

// Destroy unloads the program. Runs that have begun still finish.
func (l *LoadedExecutable) Destroy() error {
	if l == nil {
		return nil
	}
	return l.client.plugin.destroy(&l.handle, loadedExecutableHandle, fnLoadedExecutableDestroy, l.client)
}

// compileAhead compiles for a topology, without devices.
func (p *Plugin) compileAhead(topology uintptr, code []byte, opts CompileOptions) (*Executable, error) {
	options, err := opts.Marshal()
	if err != nil {
		return nil, err
	}
	prog := newProgram(code)
	args := &compileArgs{head: head{size: compileSize}, topology: topology, program: unsafe.Pointer(prog), options: data(options),
		optionsSize: uintptr(len(options))}
	err = p.call(fnCompile, "compile ahead of time", unsafe.Pointer(args))
	runtime.KeepAlive(prog)
	if err != nil {
		return nil, err
	}
	return newExecutable(p, nil, args.executable), nil
}
