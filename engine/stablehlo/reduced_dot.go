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
	// ContractLHS and ContractRHS are the dimensions that are summed over.
	ContractLHS, ContractRHS []int
	// LHS and RHS split the operands. Contracted dimensions must be split alike in both; their axes are those that are
	// summed over.
	LHS, RHS sharding.Spec
	// Out splits the result: each dimension over the axes that split it in the operand, then over some or none of the
	// axes that are summed over. Those that it does not name get the sum on all their devices.
	Out sharding.Spec
	// Reduce is the dtype in which partial products are sent and summed: Float32 or BFloat16.
	Reduce dtypes.DType
}

// FunctionName names a function of two tensors that this backend lowers, where it is called, to the reduced product.
// Its body must be the plain product, with a float32 result, which is what other backends run. unique tells functions
// of one graph apart and may be any text.
func (d ReducedDot) FunctionName(unique string) string {
	return specialName(reducedDotPrefix, unique, joinInts(d.ContractLHS, ","), joinInts(d.ContractRHS, ","),
		specText(d.LHS), specText(d.RHS), specText(d.Out), elementTypes[d.Reduce])
}

// parseReducedDot reads a name made by FunctionName; nil for any other function.
func parseReducedDot(name string) (*ReducedDot, error) {
	fields, unique, found, err := specialFields(name, reducedDotPrefix, 6)
	if !found || err != nil {
		return nil, err
	}
	d := &ReducedDot{ContractLHS: parseInts(fields[0]), ContractRHS: parseInts(fields[1])}
	for i, spec := range []*sharding.Spec{&d.LHS, &d.RHS, &d.Out} {
		var ok bool
		if *spec, ok = parseSpec(fields[2+i]); !ok {
			return nil, malformedName(name, reducedDotPrefix)
		}
	}
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		if elementTypes[dtype] == fields[5] {
			d.Reduce = dtype
		}
	}
	if d.Reduce == dtypes.InvalidDType || d.FunctionName(unique) != name {
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

// dotReduction is how a ReducedDot is summed over a mesh.
type dotReduction struct {
	shape shapes.Shape // of the whole result
	// scatter lists, for each dimension of the result, the axes that it is reduce-scattered over, major first; reduce
	// those that are all-reduced; manual every axis that splits anything.
	scatter        [][]string
	reduce, manual []string
}

// plan checks that the operands and the result split evenly, and as described, over the mesh.
func (d *ReducedDot) plan(mesh sharding.Mesh, l, r shapes.Shape) (p dotReduction, err error) {
	p.shape, err = shapeinference.DotGeneral(l, d.ContractLHS, nil, r, d.ContractRHS, nil, compute.DotGeneralConfig{OutputDType: dtypes.Float32})
	if err != nil {
		return p, err
	}
	for _, t := range []struct {
		what string
		spec sharding.Spec
		dims []int
	}{{"left operand", d.LHS, l.Dimensions}, {"right operand", d.RHS, r.Dimensions}, {"result", d.Out, p.shape.Dimensions}} {
		if err := t.spec.Check(mesh, t.dims); err != nil {
			return p, fmt.Errorf("the %s: %w", t.what, err)
		}
	}
	for i, dim := range d.ContractLHS {
		axes := d.LHS.Axes(dim)
		if !slices.Equal(axes, d.RHS.Axes(d.ContractRHS[i])) {
			return p, fmt.Errorf("dimension %d of the left operand is split over %v, the one it is contracted with over %v", dim, axes, d.RHS.Axes(d.ContractRHS[i]))
		}
		p.reduce = append(p.reduce, axes...)
	}
	summed := slices.Clone(p.reduce)
	kept := append(free(l.Rank(), d.ContractLHS, d.LHS), free(r.Rank(), d.ContractRHS, d.RHS)...)
	p.manual = append(slices.Concat(kept...), summed...)
	p.scatter = make([][]string, len(kept))
	for dim, before := range kept {
		axes := d.Out.Axes(dim)
		if len(axes) < len(before) || !slices.Equal(axes[:len(before)], before) {
			return p, fmt.Errorf("dimension %d of the result is split over %v, of the operand over %v", dim, axes, before)
		}
		p.scatter[dim] = axes[len(before):]
		for _, a := range p.scatter[dim] {
			if !slices.Contains(summed, a) {
				return p, fmt.Errorf("the result is split over axis %q, the contraction over %v only", a, summed)
			}
			p.reduce = slices.DeleteFunc(p.reduce, func(b string) bool { return a == b })
		}
	}
	// In the mesh's order, each once.
	p.manual = slices.DeleteFunc(mesh.AxisNames(), func(a string) bool { return !slices.Contains(p.manual, a) })
	return p, nil
}

// free lists the axes of each dimension that is not contracted.
func free(rank int, contract []int, spec sharding.Spec) (axes [][]string) {
	for dim := range rank {
		if !slices.Contains(contract, dim) {
			axes = append(axes, spec.Axes(dim))
		}
	}
	return axes
}

// callReducedDot lowers the call of a function made by FunctionName.
func (f *function) callReducedDot(what string, target *function, in []*value) ([]compute.Value, error) {
	d, mesh := target.reducedDot, f.builder.backend.mesh
	if len(in) != 2 || len(target.outputs) != 1 {
		return nil, reject(what, in, "a reduced product must take two tensors and return one")
	}
	plan, err := d.plan(mesh, in[0].shape, in[1].shape)
	if err != nil {
		return nil, failed(what, in, err)
	}
	if !target.outputs[0].shape.Equal(plan.shape) {
		return nil, reject(what, in, "the function returns %s, the product is %s", shapeText(target.outputs[0].shape), shapeText(plan.shape))
	}
	if len(mesh.Axes) == 0 { // one device
		out, err := d.product(f, in[0], in[1])
		return []compute.Value{out}, err
	}
	specs := []sharding.Spec{d.LHS, d.RHS}
	local := f.newClosure()
	for i, spec := range specs {
		local.addParam("x", shapes.Make(in[i].shape.DType, spec.ShardDims(mesh, in[i].shape.Dimensions)...))
	}
	sum, err := d.product(local, local.params[0], local.params[1])
	if err != nil {
		return nil, err
	}
	sum = local.sumOverDevices(local.convert(sum, d.Reduce), plan)
	local.finish(local.convert(sum, plan.shape.DType))
	return []compute.Value{f.manualComputation(what, in, specs, local, plan.shape, d.Out, plan.manual)}, nil
}

// sumOverDevices sums x: a reduce-scatter for each axis that splits the result, major first, so that each device is left
// with its part as the spec counts them, and one all-reduce for the others.
//
// One axis at a time, because libtpu keeps a reduce-scatter over one line or ring of chips, while it makes an all-reduce
// of the whole result of one over a plane of chips.
func (f *function) sumOverDevices(x *value, plan dotReduction) *value {
	mesh := f.builder.backend.mesh
	for dim, axes := range plan.scatter {
		for _, a := range axes {
			if n := mesh.AxisSize(a); n > 1 {
				shape := x.shape.Clone()
				shape.Dimensions[dim] /= n
				x = f.collective("stablehlo.reduce_scatter", x, shape, mesh.Groups(a), fmt.Sprintf("scatter_dimension = %d : i64", dim))
			}
		}
	}
	if mesh.Parts(plan.reduce...) > 1 {
		x = f.collective("stablehlo.all_reduce", x, x.shape, mesh.Groups(plan.reduce...))
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
