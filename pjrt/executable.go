package pjrt

import (
	"errors"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

var errExecutableDestroyed = errors.New("pjrt: the executable was destroyed")

// Executable is a compiled program: what is known of it, without devices to run it on.
type Executable struct {
	plugin *Plugin
	client *Client // nil for one compiled ahead of time
	handle atomic.Uintptr
}

func newExecutable(p *Plugin, c *Client, handle uintptr) *Executable {
	e := &Executable{plugin: p, client: c}
	e.handle.Store(handle)
	liveHandles[executableHandle].Add(1)
	if c != nil {
		c.children.Add(1)
	}
	return e
}

// Destroy frees the handle. A loaded executable that it came from is not affected.
func (e *Executable) Destroy() error {
	if e == nil {
		return nil
	}
	return e.plugin.destroy(&e.handle, executableHandle, fnExecutableDestroy, e.client)
}

// get reads one size_t.
func (e *Executable) get(f fn, op string) (int, error) {
	h := e.handle.Load()
	if h == 0 {
		return 0, errExecutableDestroyed
	}
	n, err := e.plugin.getWord(f, op, h)
	return int(n), err
}

// Name is the program's name: that of its module.
func (e *Executable) Name() (string, error) { return e.text(fnExecutableName, "name of executable") }

// Fingerprint identifies the compiled program. Plugins without fingerprints answer with code [Unimplemented].
func (e *Executable) Fingerprint() (string, error) {
	return e.text(fnExecutableFingerprint, "fingerprint of executable")
}

func (e *Executable) text(f fn, op string) (string, error) {
	h := e.handle.Load()
	if h == 0 {
		return "", errExecutableDestroyed
	}
	return e.plugin.getString(f, op, h)
}

// NumReplicas is the number of replicas that the program was compiled for.
func (e *Executable) NumReplicas() (int, error) {
	return e.get(fnExecutableNumReplicas, "replicas of executable")
}

// NumPartitions is the number of partitions that the program was compiled for.
func (e *Executable) NumPartitions() (int, error) {
	return e.get(fnExecutableNumPartitions, "partitions of executable")
}

// NumOutputs is the number of arrays that the program gives on each device.
func (e *Executable) NumOutputs() (int, error) {
	return e.get(fnExecutableNumOutputs, "outputs of executable")
}

// GeneratedCodeSize is the size of the machine code in bytes; -1 if the plugin does not know.
func (e *Executable) GeneratedCodeSize() (int64, error) {
	n, err := e.get(fnExecutableSizeOfGeneratedCode, "code size of executable")
	return int64(n), err
}

// OutputDTypes are the element types of the outputs.
func (e *Executable) OutputDTypes() ([]DType, error) {
	h := e.handle.Load()
	if h == 0 {
		return nil, errExecutableDestroyed
	}
	types, err := getSpan[DType](e.plugin, fnExecutableOutputElementTypes, "output types of executable", h)
	return slices.Clone(types), err
}

// OutputDims are the shapes of the outputs on one device: with a sharded program, those of the shards.
func (e *Executable) OutputDims() ([][]int, error) {
	h := e.handle.Load()
	if h == 0 {
		return nil, errExecutableDestroyed
	}
	args := &outputDimensionsArgs{head: head{size: outputDimensionsSize}, executable: h}
	if err := e.plugin.call(fnExecutableOutputDimensions, "output shapes of executable", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	ranks := view[uintptr](args.dimSizes, args.numOutputs)
	out := make([][]int, len(ranks))
	next := args.dims
	for i, rank := range ranks {
		out[i] = toInts(view[int64](next, rank))
		next += rank * unsafe.Sizeof(int64(0))
	}
	return out, nil
}

// CompiledMemoryStats is the compiler's plan of memory on one device, in bytes.
type CompiledMemoryStats struct {
	GeneratedCode, Argument, Output, Alias, Temp                     int64
	HostGeneratedCode, HostArgument, HostOutput, HostAlias, HostTemp int64
	Peak                                                             int64 // 0 if the plugin does not plan it
	Total, TotalAllocation, IndefiniteAllocations, PeakUnpaddedHeap  int64 // 0 from plugins before API 0.90 and 0.104
}

// MemoryStats is the compiler's plan of memory.
func (e *Executable) MemoryStats() (CompiledMemoryStats, error) {
	h := e.handle.Load()
	if h == 0 {
		return CompiledMemoryStats{}, errExecutableDestroyed
	}
	args := &compiledMemoryStatsArgs{head: head{size: compiledMemoryStatsSize}, executable: h}
	if err := e.plugin.call(fnExecutableGetCompiledMemoryStats, "memory stats of executable", unsafe.Pointer(args)); err != nil {
		return CompiledMemoryStats{}, err
	}
	s := args.stats
	return CompiledMemoryStats{
		GeneratedCode: s[0], Argument: s[1], Output: s[2], Alias: s[3], Temp: s[4],
		HostGeneratedCode: s[5], HostArgument: s[6], HostOutput: s[7], HostAlias: s[8], HostTemp: s[9],
		Peak: s[10], Total: s[11], TotalAllocation: s[12], IndefiniteAllocations: s[13], PeakUnpaddedHeap: s[14],
	}, nil
}

// CostAnalysis is XLA's estimate of the work, by property: "flops", "bytes accessed", "optimal_seconds" and others. The body of a loop
// is counted once. Values are float32 mostly; string, int64, []int64 and bool are possible.
func (e *Executable) CostAnalysis() (map[string]any, error) {
	h := e.handle.Load()
	if h == 0 {
		return nil, errExecutableDestroyed
	}
	args := &countedArgs{head: head{size: countedArgsSize}, obj: h}
	if err := e.plugin.call(fnExecutableGetCostAnalysis, "cost analysis of executable", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	return namedValues(args.ptr, args.n), nil
}

// OptimizedProgram is the program after the compiler's passes. The format is "hlo", a serialized HloModuleProto, or "hlo_with_config",
// whose field 1 is one, or "mlir".
func (e *Executable) OptimizedProgram() (format string, code []byte, err error) {
	h := e.handle.Load()
	if h == 0 {
		return "", nil, errExecutableDestroyed
	}
	prog := &program{head: head{size: programSize}}
	args := &optimizedProgramArgs{head: head{size: optimizedProgramSize}, executable: h, program: unsafe.Pointer(prog)}
	const op = "optimized program"
	if err := e.plugin.call(fnExecutableOptimizedProgram, op, unsafe.Pointer(args)); err != nil {
		return "", nil, err // the first call asks for the size
	}
	code = make([]byte, prog.codeSize)
	prog.code = data(code)
	if err := e.plugin.call(fnExecutableOptimizedProgram, op, unsafe.Pointer(args)); err != nil {
		return "", nil, err
	}
	return goString(uintptr(prog.format), prog.formatSize), code[:prog.codeSize], nil
}

// Serialize writes the compiled program, for [Client.Load] on the same plugin build and kind of device.
func (e *Executable) Serialize() ([]byte, error) {
	h := e.handle.Load()
	if h == 0 {
		return nil, errExecutableDestroyed
	}
	return e.plugin.serialize(fnExecutableSerialize, "serialize executable", h)
}

// serialize copies bytes that the plugin owns and has them freed.
func (p *Plugin) serialize(f fn, op string, obj uintptr) ([]byte, error) {
	args := &ownedSpanArgs{head: head{size: ownedSpanSize}, obj: obj}
	if err := p.call(f, op, unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	out := slices.Clone(view[byte](args.ptr, args.n))
	if args.deleter != 0 {
		purego.SyscallN(args.deleter, args.owner)
	}
	return out, nil
}
