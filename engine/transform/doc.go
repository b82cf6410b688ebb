// Package transform has the four combinators that a training step needs beside plain operations: CustomVJP, Checkpoint,
// Scan and Constrain, for GoMLX graphs; Keep, which tells Scan what to stack; and ReduceScatterDot, the product whose
// collectives are ours.
//
//	h, _ := transform.Scan(func(carry, w []*graph.Node) ([]*graph.Node, []*graph.Node) {
//		return []*graph.Node{layer(carry[0], w[0], mask)}, nil // mask is closed over
//	}, []*graph.Node{x}, []*graph.Node{stackedWeights}, transform.ScanOptions{Remat: transform.RematFull})
//	grads := graph.Gradient(loss(h[0]), stackedWeights)
//
// # Contract
//
//   - They nest in every way, and graph.Gradient goes through all of them.
//   - Closed-over nodes are allowed everywhere. Checkpoint and Scan differentiate with respect to them; CustomVJP does
//     not, and its rule must not close over values of a Scan's body: make them inputs.
//   - Functions given to a combinator are called once, when it is called.
//   - Integers and booleans are welcome as inputs, carries, xs, ys and closed-over values. They have no gradient.
//   - A gradient that nobody asked for, of an output that the loss does not read, costs nothing.
//   - The gradient of a gradient goes through CustomVJP, Checkpoint and Constrain, but not through Scan: graph.Gradient
//     panics there.
//   - Wrong arguments panic, as GoMLX's operations do, with a text that names the combinator, the index and the shapes.
//     The engine turns panics into errors at its boundary.
//   - Conditionals (graph.If) and loops not made by Scan cannot stand inside Checkpoint and Scan, nor can GoMLX's fused
//     operations, which engine/stablehlo does not have.
//
// # Mechanism
//
// All rest on one primitive: a call of a named function that returns its last parameters. The call is where the gradient
// is bent: graph.VJPRegistration has one entry for calls, which finds the rule by the function's name (that survives
// Node.CloneWithInputs) in a table that hangs on the graph and dies with it. The lowered program shows nothing of it.
//
// Whatever computes something twice works on records: pieces of the graph with their inputs, built again node by node
// elsewhere. Loops' bodies are built from records too, never by running the caller's code inside a closure, because
// GoMLX caches scalar constants per graph and would hand those of one closure to another.
//
// Scan differentiates its body when it is called, in a trace that never becomes part of the program, and so knows what
// the backward loop will read. The forward loop stacks just that (see Remat); a value that does not change over the
// steps is computed once, before the loop, and never stacked. Without a gradient, nobody reads the stacks and the
// compiler drops them.
package transform
