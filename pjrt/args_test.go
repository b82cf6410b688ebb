package pjrt

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The sizes are those that a C compiler gives for pjrt_c_api.h (API 0.104, 64 bit): PJRT_…_STRUCT_SIZE.
func TestArgumentStructsHaveTheHeadersSizes(t *testing.T) {
	for _, c := range []struct {
		name string
		got  uintptr
		want uintptr
	}{
		{"PJRT_Plugin_Initialize_Args", headSize, 16},
		{"PJRT_Event_Await_Args", objArgsSize, 24},
		{"PJRT_Client_TopologyDescription_Args", wordArgsSize, 32},
		{"PJRT_Client_ProcessIndex_Args", intArgsSize, 28},
		{"PJRT_Event_IsReady_Args", boolArgsSize, 25},
		{"PJRT_Event_OnReady_Args", onReadyArgsSize, 40},
		{"PJRT_Client_Devices_Args", spanArgsSize, 40},
		{"PJRT_DeviceDescription_Attributes_Args", countedArgsSize, 40},
		{"PJRT_Executable_Serialize_Args", ownedSpanSize, 56},
		{"PJRT_NamedValue", namedValueSize, 56},
		{"PJRT_Plugin_Attributes_Args", pluginAttributesSize, 32},
		{"PJRT_Client_Create_Args", clientCreateSize, 88},
		{"PJRT_Program", programSize, 48},
		{"PJRT_Client_Compile_Args", clientCompileSize, 56},
		{"PJRT_Client_DefaultDeviceAssignment_Args", defaultAssignmentSize, 48},
		{"PJRT_Client_BufferFromHostBuffer_Args", bufferFromHostSize, 120},
		{"PJRT_Device_MemoryStats_Args", deviceMemoryStatsSize, 185},
		{"PJRT_Buffer_ToHostBuffer_Args", toHostSize, 56},
		{"PJRT_Buffer_MemoryLayout_Tiled", tiledLayoutSize, 56},
		{"PJRT_Buffer_MemoryLayout", memoryLayoutSize, 76},
		{"PJRT_Buffer_CopyToDevice_Args", copyToDeviceSize, 40},
		{"PJRT_ExecuteOptions", executeOptionsSize, 120},
		{"PJRT_LoadedExecutable_Execute_Args", executeSize, 80},
		{"PJRT_Executable_OptimizedProgram_Args", optimizedProgramSize, 32},
		{"PJRT_Executable_GetCompiledMemoryStats_Args", compiledMemoryStatsSize, 144},
		{"PJRT_Executable_OutputDimensions_Args", outputDimensionsSize, 48},
		{"PJRT_Executable_DeserializeAndLoad_Args", deserializeAndLoadSize, 64},
		{"PJRT_TopologyDescription_Create_Args", topologyCreateSize, 56},
		{"PJRT_Compile_Args", compileSize, 64},
		{"offset of PJRT_NamedValue.string_value", unsafe.Offsetof(namedValue{}.value), 40},
		{"offset of PJRT_Client_Create_Args.client", unsafe.Offsetof(clientCreateArgs{}.client), 64},
		{"offset of PJRT_Client_BufferFromHostBuffer_Args.device", unsafe.Offsetof(bufferFromHostArgs{}.device), 80},
		{"offset of PJRT_ExecuteOptions.non_donatable_input_indices", unsafe.Offsetof(executeOptions{}.nonDonatable), 56},
	} {
		require.Equal(t, c.want, c.got, c.name)
	}
}

// fakeTable is a PJRT_Api in Go memory: the header words and functions, with a size that may cover only some of them.
func fakeTable(major, minor int32, numFns int, stated uintptr) []uintptr {
	const headWords = 5
	table := make([]uintptr, headWords+numFns)
	table[0] = stated
	table[2] = 24
	table[4] = uintptr(uint32(major)) | uintptr(uint32(minor))<<32
	for i := range numFns {
		table[headWords+i] = 1 // never called
	}
	return table
}

func TestFunctionTableIsChecked(t *testing.T) {
	const full = 40 + numFns*8
	for _, c := range []struct {
		name         string
		major, minor int32
		stated       uintptr
		hole         fn // set to 0 if positive
		want         string
	}{
		{name: "too old", minor: 56, stated: full, want: "has API 0.56; API 0.57 or a later 0.x is needed: install another version"},
		{name: "other major", major: 1, minor: 3, stated: full, want: "has API 1.3;"},
		{name: "impossible size", minor: 104, stated: 8, want: "function table of 8 bytes"},
		{name: "core function missing", minor: 104, stated: full, hole: fnBufferDestroy, want: "lacks PJRT_Buffer_Destroy, needed for load; install a newer plugin"},
		{name: "table ends before core", minor: 104, stated: 40 + 8*20, want: "lacks PJRT_Buffer_Destroy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := fakeTable(c.major, c.minor, numFns, c.stated)
			if c.hole > 0 {
				table[5+c.hole] = 0
			}
			_, err := newPlugin("some.so", uintptr(unsafe.Pointer(&table[0])))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := newPlugin("some.so", 0)
	require.ErrorContains(t, err, "gave no function table")
}

// An older plugin is usable: what it lacks is an error at the call that needs it.
func TestMissingFunctionIsAnErrorAtTheCall(t *testing.T) {
	beyond := fakeTable(0, 60, numFns, 40+8*uintptr(fnExecutableGetCompiledMemoryStats)) // the table ends just before it
	null := fakeTable(0, 60, numFns, 40+8*numFns)
	null[5+fnExecutableGetCompiledMemoryStats] = 0
	for name, table := range map[string][]uintptr{"beyond the table": beyond, "null": null} {
		t.Run(name, func(t *testing.T) {
			p, err := newPlugin("old.so", uintptr(unsafe.Pointer(&table[0])))
			require.NoError(t, err)
			major, minor := p.APIVersion()
			require.Equal(t, []int{0, 60}, []int{major, minor})
			e := &Executable{plugin: p}
			e.handle.Store(1)
			_, err = e.MemoryStats()
			var pe *Error
			require.ErrorAs(t, err, &pe)
			require.Equal(t, Unimplemented, pe.Code)
			require.Equal(t, "pjrt: memory stats of executable: UNIMPLEMENTED: plugin old.so (API 0.60) lacks PJRT_Executable_GetCompiledMemoryStats, "+
				"needed for memory stats of executable; install a newer plugin", err.Error())
		})
	}
}

func TestErrorIsOneLineWithAdvice(t *testing.T) {
	e := &Error{Code: Aborted, Op: "initialize plugin", Message: "first\n  second\n\n"}
	require.Equal(t, "pjrt: initialize plugin: ABORTED: first | second", e.Error())
	e.Advice = "wait"
	require.Equal(t, "pjrt: initialize plugin: ABORTED: first | second; wait", e.Error())
	require.Equal(t, "CODE_99", Code(99).String())
	require.Equal(t, "UNAUTHENTICATED", Unauthenticated.String())
}

func TestNamedValuesRoundTrip(t *testing.T) {
	in := map[string]any{"s": "text", "empty": "", "b": true, "no": false, "i": int64(-5), "f": float32(1.5), "l": []int64{3, -4}}
	values, keep, err := toNamedValues(in)
	require.NoError(t, err)
	require.Equal(t, in, namedValues(uintptr(unsafe.Pointer(&values[0])), uintptr(len(values))))
	require.NotEmpty(t, keep)
	values, _, err = toNamedValues(map[string]any{"i": 7})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"i": int64(7)}, namedValues(uintptr(unsafe.Pointer(&values[0])), 1))
	_, _, err = toNamedValues(map[string]any{"x": 1.5})
	require.ErrorContains(t, err, `option "x" has type float64; string, bool, int, int64, float32 and []int64 are possible`)
	require.Empty(t, namedValues(0, 3))
}
