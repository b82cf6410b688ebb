// Package stablehlo lowers GoMLX graphs to StableHLO text with Shardy (`sdy`) shardings.
//
// A Backend is a compute.Backend that only writes: it records the operations of one graph and, when the graph is
// compiled, prints them as an MLIR module that PJRT plugins compile. It holds no buffer and runs nothing.
//
//	b := stablehlo.New(mesh)
//	g := graph.NewGraph(b, "step")
//	w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 8, 4))
//	b.ShardParameter("w", sharding.Split(2, 0, "fsdp"))
//	b.Donate("w", 0)
//	err := g.Compile(graph.MulScalar(w, 2))
//	program, err := b.Program()
//
// Build does the same and turns GoMLX's panics into errors.
//
// What is lowered how:
//   - The main function becomes @main, with one argument per parameter (`sdy.sharding`, `tf.aliasing_output`).
//     Operations that no output depends on are left out.
//   - A named function that is called becomes a private function and `func.call`; one that only returns parameters
//     leaves no trace.
//   - A function named by ConstraintName becomes `sdy.sharding_constraint` where it is called.
//   - A function named by ReducedDot.FunctionName becomes `sdy.manual_computation`: the product of what each device has,
//     and the collectives that sum it.
//   - Closures become regions of the while, if or sort that uses them and read values of the enclosing scopes
//     directly. SSA names are unique within a function, whatever the nesting.
//   - The same graph always gives the same bytes.
//
// Not supported, with an error that says so: complex numbers, FFT, batch normalization, dynamic shapes,
// GoMLX's own collectives (Shardy and ReducedDot make them) and its distribution API.
package stablehlo
