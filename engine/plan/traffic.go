package plan

import (
	"slices"

	"weft/engine/hlo"
)

// bytes is traffic between the chip and its main memory.
type bytes struct{ read, write float64 }

func (b *bytes) add(c bytes, times float64) {
	b.read += times * c.read
	b.write += times * c.write
}

func (b bytes) total() float64 { return b.read + b.write }

// free instructions give other names to memory, or run others that are counted by themselves.
var free = []string{
	"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "opt-barrier", "partition-id", "replica-id",
	"while", "call", "conditional", "domain", "add-dependency", "async-start", "async-update", "async-done", "copy-done",
	"all-gather-done", "all-reduce-done", "collective-permute-done", "send-done", "recv-done", "get-dimension-size",
}

// trafficOf counts what one instruction outside of fusions reads from main memory and writes there, once each:
//
//   - every operand and every result whole, except
//   - that a slice, dynamic-slice or gather, alone or in a fusion, reads only what it gives,
//   - and a dynamic-update-slice or scatter, alone or in a fusion, is done in place: it reads and writes what it changes;
//   - nothing that lies in another memory, such as a TPU's vector memory, counts.
func trafficOf(m *hlo.Module, c *hlo.Computation, in *hlo.Instruction) bytes {
	if slices.Contains(free, in.Opcode) || in.Opcode == "custom-call" && (len(in.Operands) == 0 || m.Wraps(in)) {
		return bytes{}
	}
	if in.Opcode == "fusion" && len(in.Calls) == 1 {
		if callee := m.Computation(in.Calls[0]); callee != nil {
			return fusionTraffic(m, c, in, callee)
		}
	}
	var b bytes
	for i := range in.Operands {
		o := c.Operand(in, i)
		if o == nil || slices.Contains(in.Operands[:i], in.Operands[i]) {
			continue
		}
		if s, partial := slicedOperand(c, in, i); partial {
			s.DType = o.Shape.DType
			b.read += inMain(o.Shape, s)
		} else {
			b.read += float64(o.Shape.BytesIn(0))
		}
	}
	b.write = written(c, in)
	return b
}

// inMain is the size of part, if the whole that it is part of lies in main memory.
func inMain(whole, part hlo.Shape) float64 {
	if whole.MemorySpace != 0 {
		return 0
	}
	return float64(part.Bytes())
}

// slicedOperand returns what an instruction reads of operand i when that is not all of it.
func slicedOperand(c *hlo.Computation, in *hlo.Instruction, i int) (part hlo.Shape, partial bool) {
	if i != 0 {
		return hlo.Shape{}, false
	}
	switch in.Opcode {
	case "slice", "dynamic-slice", "gather":
		return in.Shape, true
	case "dynamic-update-slice":
		return hlo.Shape{Dims: []int64{0}}, true // it is written in place
	case "scatter":
		return updatesOf(c, in), true // what it adds to
	}
	return hlo.Shape{}, false
}

// updatesOf is the shape that a dynamic-update-slice or scatter writes.
func updatesOf(c *hlo.Computation, in *hlo.Instruction) hlo.Shape {
	i := 1
	if in.Opcode == "scatter" {
		i = 2
	}
	if o := c.Operand(in, i); o != nil {
		return o.Shape
	}
	return in.Shape
}

// written is what an instruction writes to main memory.
func written(c *hlo.Computation, in *hlo.Instruction) float64 {
	switch in.Opcode {
	case "dynamic-update-slice", "scatter":
		return inMain(in.Shape, updatesOf(c, in))
	case "copy-start": // (copy, source, context)
		if len(in.Shape.Tuple) > 0 {
			return float64(in.Shape.Tuple[0].BytesIn(0))
		}
	}
	if x := c.Communication(in); x != nil {
		return float64(x.Result.BytesIn(0))
	}
	return float64(in.Shape.BytesIn(0))
}

// fusionTraffic counts the operands of a fusion as far as it reads them, and its results as far as it writes them.
func fusionTraffic(m *hlo.Module, c *hlo.Computation, in *hlo.Instruction, callee *hlo.Computation) bytes {
	var b bytes
	read := map[int64]float64{} // by the id of the operand: it may be given twice
	for i := range in.Operands {
		o, p := c.Operand(in, i), callee.Parameter(int64(i))
		if o == nil || p == nil {
			continue
		}
		n := float64(o.Shape.BytesIn(0))
		if o.Shape.DType != "tuple" {
			n *= readOf(m, callee, p, 0) / max(1, float64(p.Shape.Elements()))
		}
		read[o.ID] = max(read[o.ID], n)
	}
	for _, n := range read {
		b.read += n
	}
	b.write = fusedWrites(callee, callee.Root(), in.Shape)
	return b
}

// readOf is how many elements of a value the instructions of a fused computation read: a fusion computes only what its
// result needs, so that a slice of any operation of single elements needs no more than a slice of its operands.
func readOf(m *hlo.Module, c *hlo.Computation, in *hlo.Instruction, depth int) float64 {
	full := float64(in.Shape.Elements())
	if depth > maxChain || in == c.Root() && len(c.Users(in)) == 0 {
		return full
	}
	var n float64
	for _, u := range c.Users(in) {
		i := slices.Index(u.Operands, in.ID)
		switch part, partial := slicedOperand(c, u, i); {
		case partial:
			n += float64(part.Elements())
		case u == c.Root() && u.Opcode == "tuple" && in.Opcode == "parameter": // it goes through unchanged
		case u.Opcode == "pad" && i == 0:
			n += readOf(m, c, u, depth+1) * full / max(1, float64(u.Shape.Elements()))
		case u.Opcode == "fusion" && len(u.Calls) == 1 && m.Computation(u.Calls[0]) != nil:
			inner := m.Computation(u.Calls[0])
			if p := inner.Parameter(int64(i)); p != nil {
				n += readOf(m, inner, p, depth+1)
			}
		case u.Shape.Elements() == in.Shape.Elements() && (slices.Contains(arithmetic, u.Opcode) || slices.Contains(rearranging, u.Opcode)):
			n += readOf(m, c, u, depth+1)
		default:
			return full
		}
		if n >= full {
			return full
		}
	}
	return n
}

// maxChain bounds the operations that are followed one after the other.
const maxChain = 64

// rearranging are the opcodes that give each element of their operand once.
var rearranging = []string{"bitcast", "reshape", "transpose", "copy", "reverse", "bitcast-convert"}

// fusedWrites is how much a fusion with the given result writes when root gives it.
func fusedWrites(c *hlo.Computation, root *hlo.Instruction, result hlo.Shape) float64 {
	if root == nil {
		return float64(result.BytesIn(0))
	}
	if root.Opcode == "tuple" && len(result.Tuple) == len(root.Operands) {
		var n float64
		for i := range root.Operands {
			n += fusedWrites(c, c.Operand(root, i), result.Tuple[i])
		}
		return n
	}
	for in := root; in != nil; in = c.Operand(in, 0) {
		switch in.Opcode {
		case "dynamic-update-slice", "scatter":
			if in.Shape.Elements() == result.Elements() {
				return inMain(result, updatesOf(c, in))
			}
		case "bitcast", "reshape", "convert", "copy":
			continue
		case "parameter":
			if root == in { // it goes through unchanged
				return 0
			}
		}
		break
	}
	return float64(result.BytesIn(0))
}
