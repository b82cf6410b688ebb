// Package engine runs whole training steps on a mesh of devices.
//
// A Runtime is a PJRT client, the devices it was asked for, arranged as a mesh, and a compile cache. A Program is a
// GoMLX graph lowered to StableHLO with Shardy annotations, compiled for that mesh. An Array is a global tensor of
// which this process holds the shards of its own devices. A State is the train state of a model (parameters and
// optimizer slots) and a Step is the compiled function from state and batch to the next state and its metrics.
//
// Nothing here assumes that all devices of the mesh belong to this process. Device memory is released explicitly:
// Close and Destroy are the caller's duty. Panics of graph building end as errors of Compile.
package engine
