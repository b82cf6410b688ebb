package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/engine/hlo"
)

// flops is arithmetic: products are those of dots and convolutions, two for each multiplication and addition; passes are those in passes of the hardware, of which a float32 product at high precision takes several; elementwise is one for each element of any other arithmetic.
type flops struct{ products, passes, elementwise float64 }

func (f *flops) add(g flops, times float64) {
	f.products += times * g.products
	f.passes += times * g.passes
	f.elementwise += times * g.elementwise
}

// flopsOf counts the arithmetic of one instruction, without what it calls.
func flopsOf(c *hlo.Computation, in *hlo.Instruction) (flops, error) {
	var n float64
	var err error
	switch {
	case in.Opcode == "dot":
		n, err = dotFLOPs(c, in)
	case in.Opcode == "convolution":
		n, err = convolutionFLOPs(c, in)
	case in.Opcode == "ragged-dot":
		err = fmt.Errorf("instruction %s is a %s, whose arithmetic weft cannot count", in.Name, in.Opcode)
	case in.Opcode == "reduce" || in.Opcode == "reduce-window":
		if o := c.Operand(in, 0); o != nil {
			return flops{elementwise: float64(o.Shape.Elements())}, nil
		}
	case slices.Contains(arithmetic, in.Opcode):
		return flops{elementwise: float64(in.Shape.Elements())}, nil
	case in.Opcode == "custom-call" && strings.Contains(in.Target, "matmul"):
		err = fmt.Errorf("instruction %s is a custom call of %s, whose arithmetic weft cannot count", in.Name, in.Target)
	}
	if err != nil || n == 0 {
		return flops{}, err
	}
	passes := float64(1)
	if o := c.Operand(in, 0); o != nil && o.Shape.DType == "f32" {
		passes = float64(in.Passes)
	}
	return flops{products: n, passes: n * passes}, nil
}

// arithmetic are the opcodes that compute one value for each element of their result.
var arithmetic = []string{
	"add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "abs", "exponential", "exponential-minus-one", "log",
	"log-plus-one", "logistic", "tanh", "tan", "sine", "cosine", "sqrt", "rsqrt", "cbrt", "power", "erf", "atan2", "remainder",
	"floor", "ceil", "round-nearest-afz", "round-nearest-even", "sign", "select", "compare", "clamp", "and", "or", "xor", "not",
	"shift-left", "shift-right-arithmetic", "shift-right-logical", "convert", "popcnt", "is-finite",
}

// dotFLOPs is 2·M·N·K: two for each element of the result and of the contracted dimensions.
func dotFLOPs(c *hlo.Computation, in *hlo.Instruction) (float64, error) {
	l := c.Operand(in, 0)
	if l == nil || in.Dot == nil {
		return 0, fmt.Errorf("dot %s has no operands or dimensions: the program is damaged", in.Name)
	}
	n := 2 * float64(in.Shape.Elements())
	for _, d := range in.Dot.LHSContracting {
		size, err := dim(l.Shape, d, in)
		if err != nil {
			return 0, err
		}
		n *= float64(size)
	}
	return n, nil
}

// dim is the size of a dimension of an operand or result of an instruction.
func dim(s hlo.Shape, d int64, of *hlo.Instruction) (int64, error) {
	if d < 0 || d >= int64(len(s.Dims)) {
		return 0, fmt.Errorf("%s %s names dimension %d of %s: the program is damaged", of.Opcode, of.Name, d, s)
	}
	return s.Dims[d], nil
}

// convolutionFLOPs counts as XLA does: 2 · batch · input features of a group · output features · for each spatial
// dimension, the pairs of an output and a window position that meet an element of the input, not padding or a hole of a
// dilation. A TPU's compiler writes every dot as a convolution, batch dimensions as spatial ones of which most pairs are
// holes.
func convolutionFLOPs(c *hlo.Computation, in *hlo.Instruction) (float64, error) {
	l, r, d := c.Operand(in, 0), c.Operand(in, 1), in.Convolution
	if l == nil || r == nil || d == nil || len(in.Window) != len(d.InputSpatial) || len(d.KernelSpatial) != len(d.InputSpatial) || len(d.OutputSpatial) != len(d.InputSpatial) {
		return 0, fmt.Errorf("convolution %s has no operands or dimensions: the program is damaged", in.Name)
	}
	n := 2.0
	for _, part := range []struct {
		shape hlo.Shape
		dim   int64
	}{{l.Shape, d.InputBatch}, {r.Shape, d.KernelInputFeature}, {r.Shape, d.KernelOutputFeature}} {
		size, err := dim(part.shape, part.dim, in)
		if err != nil {
			return 0, err
		}
		n *= float64(size)
	}
	n /= float64(in.BatchGroupCount)
	for i, w := range in.Window {
		input, err1 := dim(l.Shape, d.InputSpatial[i], in)
		kernel, err2 := dim(r.Shape, d.KernelSpatial[i], in)
		output, err3 := dim(in.Shape, d.OutputSpatial[i], in)
		if err := firstOf(err1, err2, err3); err != nil {
			return 0, err
		}
		n *= meetings(input, kernel, output, w)
	}
	return n, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// meetings counts the pairs of an output o and a window position k for which o·stride + k·window dilation − padding is
// an element of the input, whose elements stand base dilation apart. For each k those o form an arithmetic progression.
func meetings(input, kernel, output int64, w hlo.WindowDimension) float64 {
	if input <= 0 || output <= 0 {
		return 0
	}
	last := (input - 1) * w.BaseDilation
	step := gcd(w.Stride, w.BaseDilation)
	period := w.BaseDilation / step // of o
	inverse := modInverse(w.Stride/step, period)
	var n float64
	for k := range kernel {
		offset := k*w.WindowDilation - w.PadLow
		if offset%step != 0 {
			continue
		}
		low := max(0, ceilDiv(-offset, w.Stride))
		high := min(output-1, floorDiv(last-offset, w.Stride))
		first := low + mod(mod(-offset/step, period)*inverse-low, period)
		if first <= high {
			n += float64((high-first)/period + 1)
		}
	}
	return n
}

func mod(a, n int64) int64 { return ((a % n) + n) % n }

// modInverse returns x with a·x = 1 modulo n, for a and n without a common divisor.
func modInverse(a, n int64) int64 {
	x, next := int64(0), int64(1)
	for r, left := n, mod(a, n); left != 0; {
		q := r / left
		r, left = left, r-q*left
		x, next = next, x-q*next
	}
	return mod(x, n)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(1, a)
}

func floorDiv(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }
func ceilDiv(a, b int64) int64  { return int64(math.Ceil(float64(a) / float64(b))) }
