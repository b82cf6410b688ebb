package stablehlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"

	"weft/engine/sharding"
)

const reducedDotPrefix = "sdy.reduced_dot"

// ReducedDot is a product whose contraction is split over devices: each multiplies what it has, and the products are
// summed over the devices by collectives that this package writes itself. (What XLA's partitioner makes of such a
// product is an all-reduce of the whole result, of which each device then keeps its part.)
//
// The result is float32. Its dimensions are those of the left operand that are not contracted, then those of the right
// one.
type ReducedDot struct {
	// ContractLHS and ContractRHS are the dimensions that are summed over; the first of each is the one that is split.
	ContractLHS, ContractRHS []int
	// Axes are the mesh axes that split it, major first.
	Axes []string
	// Spec splits the result over some or all of Axes. An axis that it does not name gets the sum on all its devices.
	Spec sharding.Spec
	// Reduce is the dtype in which partial products are sent and summed: Float32 or BFloat16.
	Reduce dtypes.DType
}

// FunctionName names a function of two tensors that this backend lowers, where it is called, to the reduced product.
// Its body must be the plain product, with a float32 result, which is what other backends run. unique tells functions
// of one graph apart and may be any text.
func (d ReducedDot) FunctionName(unique string) string {
	return specialName(reducedDotPrefix, unique,
		joinInts(d.ContractLHS, ","), joinInts(d.ContractRHS, ","), axesText(d.Axes), specText(d.Spec), elementTypes[d.Reduce])
}

// parseReducedDot reads a name made by FunctionName; nil for any other function.
func parseReducedDot(name string) (*ReducedDot, error) {
	fields, unique, found, err := specialFields(name, reducedDotPrefix, 5)
	if !found || err != nil {
		return nil, err
	}
	d := &ReducedDot{ContractLHS: parseInts(fields[0]), ContractRHS: parseInts(fields[1])}
	var okAxes, okSpec bool
	d.Axes, okAxes = parseAxes(fields[2])
	d.Spec, okSpec = parseSpec(fields[3])
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		if elementTypes[dtype] == fields[4] {
			d.Reduce = dtype
		}
	}
	if !okAxes || !okSpec || d.Reduce == dtypes.InvalidDType || d.FunctionName(unique) != name {
		return nil, malformedName(name, reducedDotPrefix)
	}
	return d, nil
}

// parseInts reads numbers separated by commas; FunctionName tells whether it read all of them.
func parseInts(text string) (out []int) {
	for part := range strings.SplitSeq(text, ",") {
		if n, err := strconv.Atoi(part); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// product adds the product itself, of whole or of local operands.
func (d *ReducedDot) product(f *function, l, r *value) (*value, error) {
	out, err := f.DotGeneral(l, d.ContractLHS, nil, r, d.ContractRHS, nil, compute.DotGeneralConfig{OutputDType: dtypes.Float32})
	if err != nil {
		return nil, err
	}
	return out.(*value), nil
}

// check reports operands, or a result, that do not split evenly over the mesh, and returns the shape of the result.
func (d *ReducedDot) check(mesh sharding.Mesh, l, r shapes.Shape) (out shapes.Shape, err error) {
	if len(d.ContractLHS) == 0 || len(d.ContractRHS) == 0 {
		return out, fmt.Errorf("no dimension is contracted: give at least the one that is split")
	}
	out, err = shapeinference.DotGeneral(l, d.ContractLHS, nil, r, d.ContractRHS, nil, compute.DotGeneralConfig{OutputDType: dtypes.Float32})
	if err != nil {
		return out, err
	}
	if err := sharding.Split(l.Rank(), d.ContractLHS[0], d.Axes...).Check(mesh, l.Dimensions); err != nil {
		return out, fmt.Errorf("the split contraction: %w", err)
	}
	if err := d.Spec.Check(mesh, out.Dimensions); err != nil {
		return out, fmt.Errorf("the result: %w", err)
	}
	for dim := range d.Spec {
		for _, a := range d.Spec.Axes(dim) {
			if !slices.Contains(d.Axes, a) {
				return out, fmt.Errorf("the result is split over axis %q, the contraction over %v only", a, d.Axes)
			}
		}
	}
	return out, nil
}

// callReducedDot lowers the call of a function made by FunctionName.
func (f *function) callReducedDot(what string, target *function, in []*value) ([]compute.Value, error) {
	d, mesh := target.reducedDot, f.builder.backend.mesh
	if len(in) != 2 || len(target.outputs) != 1 {
		return nil, reject(what, in, "a reduced product must take two tensors and return one")
	}
	if len(mesh.Axes) == 0 { // one device
		out, err := d.product(f, in[0], in[1])
		if err != nil {
			return nil, err
		}
		return []compute.Value{out}, nil
	}
	shape, err := d.check(mesh, in[0].shape, in[1].shape)
	if err != nil {
		return nil, failed(what, in, err)
	}
	if !target.outputs[0].shape.Equal(shape) {
		return nil, reject(what, in, "the function returns %s, the product is %s", shapeText(target.outputs[0].shape), shapeText(shape))
	}
	specs := []sharding.Spec{
		sharding.Split(in[0].shape.Rank(), d.ContractLHS[0], d.Axes...),
		sharding.Split(in[1].shape.Rank(), d.ContractRHS[0], d.Axes...),
	}
	local := f.newClosure()
	for i, spec := range specs {
		local.addParam("x", shapes.Make(in[i].shape.DType, spec.ShardDims(mesh, in[i].shape.Dimensions)...))
	}
	sum, err := d.product(local, local.params[0], local.params[1])
	if err != nil {
		return nil, err
	}
	sum = local.convert(sum, d.Reduce)
	sum = local.sumOverDevices(sum, d.Axes, d.Spec)
	local.finish(local.convert(sum, shape.DType))
	return []compute.Value{f.manualComputation(what, in, specs, local, shape, d.Spec, d.Axes)}, nil
}

// sumOverDevices sums x over the axes: a reduce-scatter for each axis that splits the result, major first, so that each
// device is left with its part as the spec counts them, and one all-reduce for the others.
//
// One axis at a time, because libtpu keeps a reduce-scatter over one line or ring of chips, while it makes an all-reduce
// of the whole result of one over a plane of chips.
func (f *function) sumOverDevices(x *value, axes []string, spec sharding.Spec) *value {
	mesh := f.builder.backend.mesh
	var whole []string
	for _, a := range axes {
		if !slices.ContainsFunc(spec, func(dim []string) bool { return slices.Contains(dim, a) }) && mesh.AxisSize(a) > 1 {
			whole = append(whole, a)
		}
	}
	for dim := range spec {
		for _, a := range spec.Axes(dim) {
			if n := mesh.AxisSize(a); n > 1 {
				shape := x.shape.Clone()
				shape.Dimensions[dim] /= n
				x = f.collective("stablehlo.reduce_scatter", x, shape, mesh.Groups(a), fmt.Sprintf("scatter_dimension = %d : i64", dim))
			}
		}
	}
	if len(whole) > 0 {
		x = f.collective("stablehlo.all_reduce", x, x.shape, mesh.Groups(whole...))
	}
	return x
}

// collective adds a sum over groups of devices.
func (f *function) collective(mnemonic string, x *value, result shapes.Shape, groups [][]int, attrs ...string) *value {
	o := f.add(mnemonic, mnemonic, []*value{x}, result)
	o.regions, o.isolated = []*function{f.reducer(mnemonic, sumReduction, x.shape.DType)}, true
	rows := make([]string, len(groups))
	for i, g := range groups {
		rows[i] = intList(g)
	}
	lists := fmt.Sprintf("replica_groups = dense<[%s]> : tensor<%dx%dxi64>", strings.Join(rows, ", "), len(groups), len(groups[0]))
	o.print = func(p *printer, o *op) {
		p.channels++
		channel := fmt.Sprintf("channel_handle = #stablehlo.channel_handle<handle = %d, type = 1>", p.channels)
		printGeneric(append([]string{channel, lists, "use_global_device_ids"}, attrs...)...)(p, o)
	}
	return o.results[0]
}

// manualComputation adds an operation that runs local on each device's part of the operands.
func (f *function) manualComputation(what string, in []*value, inSpecs []sharding.Spec, local *function, result shapes.Shape, outSpec sharding.Spec, axes []string) *value {
	mesh := f.builder.backend.mesh
	o := f.add(what, "sdy.manual_computation", in, result)
	o.regions = []*function{local}
	ins := make([]string, len(in))
	for i, spec := range inSpecs {
		ins[i] = shardingText(mesh, spec, in[i].shape.Rank())
	}
	quoted := make([]string, len(axes))
	for i, a := range axes {
		quoted[i] = quote(a)
	}
	o.print = func(p *printer, o *op) {
		p.text("sdy.manual_computation(", p.operandList(o, o.operands), ") in_shardings=[", strings.Join(ins, ", "),
			"] out_shardings=[", shardingText(mesh, outSpec, result.Rank()), "] manual_axes={", strings.Join(quoted, ", "), "} (")
		mark := len(p.undo)
		for i, param := range local.params {
			if i > 0 {
				p.text(", ")
			}
			p.text(p.fresh(param), ": ", tensorType(param.shape))
		}
		p.text(") {")
		p.end()
		p.printBody(local, "sdy.return")
		p.leave(mark)
		p.start()
		p.text("} : (", typeList(o.operands), ") -> ", resultTypes(o.results))
	}
	return o.results[0]
}
