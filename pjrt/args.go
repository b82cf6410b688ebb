package pjrt

import "unsafe"

// The argument structs of the C functions, field by field as in pjrt_c_api.h. Handles and memory of the plugin are uintptr; Go memory
// that C reads or writes is unsafe.Pointer, so that it escapes to the heap and lives as long as the struct does. A struct's size field is
// the end of the last field that this binding knows, without trailing padding (PJRT_STRUCT_SIZE), which is how a plugin tells old
// callers from new ones.

// head begins every argument struct. ext is the extension chain, which the binding never uses.
type head struct {
	size uintptr
	ext  uintptr
}

// objArgs serves every function that takes one handle and returns nothing, such as the Destroy functions and PJRT_Event_Await.
type objArgs struct {
	head
	obj uintptr
}

// wordArgs serves every getter of one pointer or size_t or int64.
type wordArgs struct {
	head
	obj uintptr
	out uintptr
}

// intArgs serves every getter of one C int or enum.
type intArgs struct {
	head
	obj uintptr
	out int32
}

// boolArgs serves every getter of one C bool.
type boolArgs struct {
	head
	obj uintptr
	out bool
}

// onReadyArgs are those of PJRT_Event_OnReady.
type onReadyArgs struct {
	head
	event    uintptr
	callback uintptr
	userArg  uintptr
}

// spanArgs serves every getter of a pointer and a length: strings and arrays.
type spanArgs struct {
	head
	obj uintptr
	ptr uintptr
	n   uintptr
}

// countedArgs serves the getters that give the length first: attributes of a device description, cost analysis.
type countedArgs struct {
	head
	obj uintptr
	n   uintptr
	ptr uintptr
}

// ownedSpanArgs serves the getters of bytes that a second handle owns, with the function that frees it: the Serialize functions.
type ownedSpanArgs struct {
	head
	obj     uintptr
	ptr     uintptr
	n       uintptr
	owner   uintptr
	deleter uintptr
}

const (
	headSize        = unsafe.Sizeof(head{})
	objArgsSize     = unsafe.Sizeof(objArgs{})
	wordArgsSize    = unsafe.Sizeof(wordArgs{})
	intArgsSize     = unsafe.Offsetof(intArgs{}.out) + 4
	boolArgsSize    = unsafe.Offsetof(boolArgs{}.out) + 1
	onReadyArgsSize = unsafe.Sizeof(onReadyArgs{})
	spanArgsSize    = unsafe.Sizeof(spanArgs{})
	countedArgsSize = unsafe.Sizeof(countedArgs{})
	ownedSpanSize   = unsafe.Sizeof(ownedSpanArgs{})
)

// namedValue is PJRT_NamedValue; value is the union.
type namedValue struct {
	head
	name     unsafe.Pointer
	nameSize uintptr
	kind     int32
	value    uint64 // int64, float or bool in its low bytes; or a pointer, whose memory the caller keeps alive
	n        uintptr
}

type pluginAttributesArgs struct {
	head
	ptr uintptr
	n   uintptr
}

type clientCreateArgs struct {
	head
	options    unsafe.Pointer
	numOptions uintptr
	kvGet      uintptr
	kvGetArg   uintptr
	kvPut      uintptr
	kvPutArg   uintptr
	client     uintptr // out
	kvTryGet   uintptr
	kvTryArg   uintptr
}

type program struct {
	head
	code       unsafe.Pointer
	codeSize   uintptr
	format     unsafe.Pointer
	formatSize uintptr
}

type clientCompileArgs struct {
	head
	client      uintptr
	program     unsafe.Pointer
	options     unsafe.Pointer
	optionsSize uintptr
	executable  uintptr // out
}

type defaultAssignmentArgs struct {
	head
	client        uintptr
	numReplicas   int32
	numPartitions int32
	size          uintptr
	assignment    unsafe.Pointer
}

type bufferFromHostArgs struct {
	head
	client         uintptr
	data           unsafe.Pointer
	dtype          int32
	dims           unsafe.Pointer
	numDims        uintptr
	byteStrides    uintptr
	numByteStrides uintptr
	semantics      int32
	device         uintptr
	memory         uintptr
	deviceLayout   uintptr
	done           uintptr // out
	buffer         uintptr // out
}

type stat struct {
	value int64
	set   bool
}

type deviceMemoryStatsArgs struct {
	head
	device     uintptr
	bytesInUse int64
	stats      [10]stat
}

type toHostArgs struct {
	head
	buffer  uintptr
	layout  unsafe.Pointer
	dst     unsafe.Pointer
	dstSize uintptr
	event   uintptr // out
}

// memoryLayout is PJRT_Buffer_MemoryLayout with its tiled case.
type memoryLayout struct {
	head
	tiled struct {
		head
		minorToMajor unsafe.Pointer
		numDims      uintptr
		tileDims     uintptr
		tileDimSizes uintptr
		numTiles     uintptr
	}
	kind int32 // 0: tiled
}

type copyToDeviceArgs struct {
	head
	buffer uintptr
	device uintptr
	dst    uintptr // out
}

type executeOptions struct {
	head
	sendCallbacks   uintptr
	recvCallbacks   uintptr
	numSendOps      uintptr
	numRecvOps      uintptr
	launchID        int32
	nonDonatable    unsafe.Pointer
	numNonDonatable uintptr
	context         uintptr
	callLocation    uintptr
	numTasks        uintptr
	taskIDs         uintptr
	incarnationIDs  uintptr
	multiSlice      uintptr
}

type executeArgs struct {
	head
	executable uintptr
	options    unsafe.Pointer
	args       unsafe.Pointer // [device]*[arg]handle
	numDevices uintptr
	numArgs    uintptr
	outs       unsafe.Pointer // [device]*[output]handle, filled by the plugin
	done       unsafe.Pointer // [device]event handle, filled by the plugin
	device     uintptr
}

type optimizedProgramArgs struct {
	head
	executable uintptr
	program    unsafe.Pointer
}

type compiledMemoryStatsArgs struct {
	head
	executable uintptr
	stats      [15]int64
}

type outputDimensionsArgs struct {
	head
	executable uintptr
	numOutputs uintptr
	dims       uintptr
	dimSizes   uintptr
}

type deserializeAndLoadArgs struct {
	head
	client       uintptr
	data         unsafe.Pointer
	dataSize     uintptr
	executable   uintptr // out
	overrides    unsafe.Pointer
	overrideSize uintptr
}

type topologyCreateArgs struct {
	head
	name       unsafe.Pointer
	nameSize   uintptr
	options    unsafe.Pointer
	numOptions uintptr
	topology   uintptr // out
}

type compileArgs struct {
	head
	topology    uintptr
	program     unsafe.Pointer
	options     unsafe.Pointer
	optionsSize uintptr
	client      uintptr
	executable  uintptr // out
}

const (
	namedValueSize          = unsafe.Sizeof(namedValue{})
	pluginAttributesSize    = unsafe.Sizeof(pluginAttributesArgs{})
	clientCreateSize        = unsafe.Sizeof(clientCreateArgs{})
	programSize             = unsafe.Sizeof(program{})
	clientCompileSize       = unsafe.Sizeof(clientCompileArgs{})
	defaultAssignmentSize   = unsafe.Sizeof(defaultAssignmentArgs{})
	bufferFromHostSize      = unsafe.Sizeof(bufferFromHostArgs{})
	deviceMemoryStatsSize   = unsafe.Sizeof(deviceMemoryStatsArgs{}) - 7 // the last field is a bool
	toHostSize              = unsafe.Sizeof(toHostArgs{})
	tiledLayoutSize         = unsafe.Sizeof(memoryLayout{}.tiled)
	memoryLayoutSize        = unsafe.Offsetof(memoryLayout{}.kind) + 4
	copyToDeviceSize        = unsafe.Sizeof(copyToDeviceArgs{})
	executeOptionsSize      = unsafe.Sizeof(executeOptions{})
	executeSize             = unsafe.Sizeof(executeArgs{})
	optimizedProgramSize    = unsafe.Sizeof(optimizedProgramArgs{})
	compiledMemoryStatsSize = unsafe.Sizeof(compiledMemoryStatsArgs{})
	outputDimensionsSize    = unsafe.Sizeof(outputDimensionsArgs{})
	deserializeAndLoadSize  = unsafe.Sizeof(deserializeAndLoadArgs{})
	topologyCreateSize      = unsafe.Sizeof(topologyCreateArgs{})
	compileSize             = unsafe.Sizeof(compileArgs{})
)
