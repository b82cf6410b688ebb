// Package pjrt is a binding of the PJRT C API (XLA's device plugin interface) in pure Go: a plugin such as libtpu or XLA's CPU plugin is
// opened with dlopen through ebitengine/purego, so that a binary built with CGO_ENABLED=0 can compile and run StableHLO programs. It
// knows nothing of training.
//
// The contract:
//
//   - A [Plugin] is opened once per file and stays open until the process ends; XLA cannot be unloaded.
//   - Everything else that has a Destroy or Close method owns one C handle. Destroy may be called many times; after the first call the
//     object is dead. Nothing is destroyed by the garbage collector: [LiveHandles] counts what is still alive, so that a test can prove
//     that a loop leaks nothing. Do not destroy an object while another goroutine uses it; everything else is safe for concurrent use.
//   - Work is asynchronous. An [Event] says when it is done and whether it failed; Await blocks and may be called more than once.
//   - Go memory handed to a transfer is kept alive by the binding until the transfer's event fires, even when the caller drops it.
//   - Host memory given to a buffer without a copy ([Client.BufferFromHostZeroCopy]) is the plugin's until it says that it is done, and
//     is then freed on whatever thread that happens.
//   - Every error that comes from a plugin is an [*Error] with its status code; errors.As finds it. A function that a plugin is too old
//     to have is an [*Error] with code [Unimplemented] at the call that needs it, and names the function.
//   - Host data is dense and row-major in both directions.
//
// Facts about the C interface are those of pjrt_c_api.h (API 0.104 and later; plugins from 0.57 on, the version that gave the function
// table its present order, are accepted).
package pjrt
