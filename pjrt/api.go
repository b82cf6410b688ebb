package pjrt

// fn is the place of a function in the table PJRT_Api, after its three header words.
type fn int

// The functions that the binding calls. The numbers are the table's order since API 0.57; gaps are functions that it does not need.
const (
	fnErrorDestroy                     fn = 0
	fnErrorMessage                     fn = 1
	fnErrorGetCode                     fn = 2
	fnPluginInitialize                 fn = 3
	fnPluginAttributes                 fn = 4
	fnEventDestroy                     fn = 5
	fnEventIsReady                     fn = 6
	fnEventAwait                       fn = 8
	fnEventOnReady                     fn = 9
	fnClientCreate                     fn = 10
	fnClientDestroy                    fn = 11
	fnClientPlatformName               fn = 12
	fnClientProcessIndex               fn = 13
	fnClientPlatformVersion            fn = 14
	fnClientDevices                    fn = 15
	fnClientAddressableDevices         fn = 16
	fnClientCompile                    fn = 20
	fnClientDefaultDeviceAssignment    fn = 21
	fnClientBufferFromHostBuffer       fn = 22
	fnDeviceDescriptionID              fn = 23
	fnDeviceDescriptionProcessIndex    fn = 24
	fnDeviceDescriptionAttributes      fn = 25
	fnDeviceDescriptionKind            fn = 26
	fnDeviceDescriptionDebugString     fn = 27
	fnDeviceDescriptionToString        fn = 28
	fnDeviceGetDescription             fn = 29
	fnDeviceIsAddressable              fn = 30
	fnDeviceLocalHardwareID            fn = 31
	fnDeviceMemoryStats                fn = 34
	fnExecutableDestroy                fn = 40
	fnExecutableName                   fn = 41
	fnExecutableNumReplicas            fn = 42
	fnExecutableNumPartitions          fn = 43
	fnExecutableNumOutputs             fn = 44
	fnExecutableSizeOfGeneratedCode    fn = 45
	fnExecutableGetCostAnalysis        fn = 46
	fnExecutableOptimizedProgram       fn = 48
	fnExecutableSerialize              fn = 49
	fnLoadedExecutableDestroy          fn = 50
	fnLoadedExecutableGetExecutable    fn = 51
	fnLoadedExecutableAddressable      fn = 52
	fnLoadedExecutableExecute          fn = 55
	fnExecutableDeserializeAndLoad     fn = 56
	fnLoadedExecutableFingerprint      fn = 57
	fnBufferDestroy                    fn = 58
	fnBufferElementType                fn = 59
	fnBufferDimensions                 fn = 60
	fnBufferOnDeviceSize               fn = 64
	fnBufferIsDeleted                  fn = 68
	fnBufferCopyToDevice               fn = 69
	fnBufferToHostBuffer               fn = 70
	fnBufferReadyEvent                 fn = 72
	fnTopologyDescriptionCreate        fn = 82
	fnTopologyDescriptionDestroy       fn = 83
	fnTopologyDescriptionPlatformName  fn = 84
	fnTopologyDescriptionPlatformVer   fn = 85
	fnTopologyDescriptionGetDevices    fn = 86
	fnTopologyDescriptionSerialize     fn = 87
	fnTopologyDescriptionAttributes    fn = 88
	fnCompile                          fn = 89
	fnExecutableOutputElementTypes     fn = 90
	fnExecutableOutputDimensions       fn = 91
	fnExecutableFingerprint            fn = 94
	fnClientTopologyDescription        fn = 95
	fnExecutableGetCompiledMemoryStats fn = 96

	numFns = 97 // one past the last that is called
)

// fnNames are the functions' names in the C header, for messages.
var fnNames = [numFns]string{
	fnErrorDestroy:                     "PJRT_Error_Destroy",
	fnErrorMessage:                     "PJRT_Error_Message",
	fnErrorGetCode:                     "PJRT_Error_GetCode",
	fnPluginInitialize:                 "PJRT_Plugin_Initialize",
	fnPluginAttributes:                 "PJRT_Plugin_Attributes",
	fnEventDestroy:                     "PJRT_Event_Destroy",
	fnEventIsReady:                     "PJRT_Event_IsReady",
	fnEventAwait:                       "PJRT_Event_Await",
	fnEventOnReady:                     "PJRT_Event_OnReady",
	fnClientCreate:                     "PJRT_Client_Create",
	fnClientDestroy:                    "PJRT_Client_Destroy",
	fnClientPlatformName:               "PJRT_Client_PlatformName",
	fnClientProcessIndex:               "PJRT_Client_ProcessIndex",
	fnClientPlatformVersion:            "PJRT_Client_PlatformVersion",
	fnClientDevices:                    "PJRT_Client_Devices",
	fnClientAddressableDevices:         "PJRT_Client_AddressableDevices",
	fnClientCompile:                    "PJRT_Client_Compile",
	fnClientDefaultDeviceAssignment:    "PJRT_Client_DefaultDeviceAssignment",
	fnClientBufferFromHostBuffer:       "PJRT_Client_BufferFromHostBuffer",
	fnDeviceDescriptionID:              "PJRT_DeviceDescription_Id",
	fnDeviceDescriptionProcessIndex:    "PJRT_DeviceDescription_ProcessIndex",
	fnDeviceDescriptionAttributes:      "PJRT_DeviceDescription_Attributes",
	fnDeviceDescriptionKind:            "PJRT_DeviceDescription_Kind",
	fnDeviceDescriptionDebugString:     "PJRT_DeviceDescription_DebugString",
	fnDeviceDescriptionToString:        "PJRT_DeviceDescription_ToString",
	fnDeviceGetDescription:             "PJRT_Device_GetDescription",
	fnDeviceIsAddressable:              "PJRT_Device_IsAddressable",
	fnDeviceLocalHardwareID:            "PJRT_Device_LocalHardwareId",
	fnDeviceMemoryStats:                "PJRT_Device_MemoryStats",
	fnExecutableDestroy:                "PJRT_Executable_Destroy",
	fnExecutableName:                   "PJRT_Executable_Name",
	fnExecutableNumReplicas:            "PJRT_Executable_NumReplicas",
	fnExecutableNumPartitions:          "PJRT_Executable_NumPartitions",
	fnExecutableNumOutputs:             "PJRT_Executable_NumOutputs",
	fnExecutableSizeOfGeneratedCode:    "PJRT_Executable_SizeOfGeneratedCodeInBytes",
	fnExecutableGetCostAnalysis:        "PJRT_Executable_GetCostAnalysis",
	fnExecutableOptimizedProgram:       "PJRT_Executable_OptimizedProgram",
	fnExecutableSerialize:              "PJRT_Executable_Serialize",
	fnLoadedExecutableDestroy:          "PJRT_LoadedExecutable_Destroy",
	fnLoadedExecutableGetExecutable:    "PJRT_LoadedExecutable_GetExecutable",
	fnLoadedExecutableAddressable:      "PJRT_LoadedExecutable_AddressableDevices",
	fnLoadedExecutableExecute:          "PJRT_LoadedExecutable_Execute",
	fnExecutableDeserializeAndLoad:     "PJRT_Executable_DeserializeAndLoad",
	fnLoadedExecutableFingerprint:      "PJRT_LoadedExecutable_Fingerprint",
	fnBufferDestroy:                    "PJRT_Buffer_Destroy",
	fnBufferElementType:                "PJRT_Buffer_ElementType",
	fnBufferDimensions:                 "PJRT_Buffer_Dimensions",
	fnBufferOnDeviceSize:               "PJRT_Buffer_OnDeviceSizeInBytes",
	fnBufferIsDeleted:                  "PJRT_Buffer_IsDeleted",
	fnBufferCopyToDevice:               "PJRT_Buffer_CopyToDevice",
	fnBufferToHostBuffer:               "PJRT_Buffer_ToHostBuffer",
	fnBufferReadyEvent:                 "PJRT_Buffer_ReadyEvent",
	fnTopologyDescriptionCreate:        "PJRT_TopologyDescription_Create",
	fnTopologyDescriptionDestroy:       "PJRT_TopologyDescription_Destroy",
	fnTopologyDescriptionPlatformName:  "PJRT_TopologyDescription_PlatformName",
	fnTopologyDescriptionPlatformVer:   "PJRT_TopologyDescription_PlatformVersion",
	fnTopologyDescriptionGetDevices:    "PJRT_TopologyDescription_GetDeviceDescriptions",
	fnTopologyDescriptionSerialize:     "PJRT_TopologyDescription_Serialize",
	fnTopologyDescriptionAttributes:    "PJRT_TopologyDescription_Attributes",
	fnCompile:                          "PJRT_Compile",
	fnExecutableOutputElementTypes:     "PJRT_Executable_OutputElementTypes",
	fnExecutableOutputDimensions:       "PJRT_Executable_OutputDimensions",
	fnExecutableFingerprint:            "PJRT_Executable_Fingerprint",
	fnClientTopologyDescription:        "PJRT_Client_TopologyDescription",
	fnExecutableGetCompiledMemoryStats: "PJRT_Executable_GetCompiledMemoryStats",
}
