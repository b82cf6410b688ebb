package collectives

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
)

// Kinds are the collectives that are measured, under package hlo's names.
var Kinds = []string{hlo.AllGather, hlo.ReduceScatter, hlo.AllReduce}

// lanes is the number of columns of a measured tensor: a TPU's tile is 8 rows of 128 float32.
const lanes, tileRows = 128, 8

// Lower writes one collective over all devices of a mesh, on float32 tensors of rows × 128:
//
//   - all-gather: [rows, 128], split by rows, becomes whole on every device, in one group;
//   - reduce-scatter: every device has a [rows, 128] of its own, the input being [devices, rows, 128]; the sum is left split
//     by rows, along one axis of the mesh after the other, as gradients are in a training step;
//   - all-reduce: the same input, the sum whole on every device, in one group.
//
// rows must be a multiple of the number of devices.
func Lower(mesh sharding.Mesh, kind string, rows int) (*engine.Lowered, error) {
	axes := mesh.AxisNames()
	whole := []int{rows, lanes}
	split := sharding.Split(2, 0, axes...)
	if err := split.Check(mesh, whole); err != nil {
		return nil, fmt.Errorf("write a %s: %w", kind, err)
	}
	w := newWriter(mesh, kind)
	switch kind {
	case hlo.AllGather:
		w.begin(whole, split, whole, nil)
		w.gather(whole)
	case hlo.ReduceScatter:
		w.beginOwn(whole, split)
		for _, a := range axes {
			w.scatter(mesh.Groups(a))
		}
	case hlo.AllReduce:
		w.beginOwn(whole, nil)
		w.reduce("add")
	default:
		return nil, fmt.Errorf("write a %s: it is none of %s", kind, strings.Join(Kinds, ", "))
	}
	return w.end(), nil
}

// LowerBytes is Lower for a whole of so many bytes; see RoundSize.
func LowerBytes(mesh sharding.Mesh, kind string, size int) (*engine.Lowered, error) {
	return Lower(mesh, kind, size/4/lanes)
}

// LowerAllReduce writes the sum over all devices of a vector of n float32 that every device has of its own: the input is
// [devices, n], the output [n], whole on every device.
func LowerAllReduce(mesh sharding.Mesh, n int) *engine.Lowered { return lowerReduction(mesh, n, "add") }

// lowerReduction reduces with the named operation of StableHLO.
func lowerReduction(mesh sharding.Mesh, n int, operation string) *engine.Lowered {
	w := newWriter(mesh, hlo.AllReduce)
	w.beginOwn([]int{n}, nil)
	w.reduce(operation)
	return w.end()
}

// writer writes a program whose collectives are asked for, not left to the partitioner: each device runs the body on its
// own part of the input.
type writer struct {
	mesh     sharding.Mesh
	name     string
	in, out  engine.Input
	body     []string
	dims     []int // of the last value
	channels int
}

func newWriter(mesh sharding.Mesh, name string) *writer {
	return &writer{mesh: mesh, name: strings.ReplaceAll(name, "-", "_")}
}

func (w *writer) begin(in []int, inSpec sharding.Spec, out []int, outSpec sharding.Spec) {
	w.in = engine.Input{Name: "x", DType: dtypes.Float32, Dims: in, Spec: inSpec}
	w.out = engine.Input{DType: dtypes.Float32, Dims: out, Spec: outSpec}
	w.dims = inSpec.ShardDims(w.mesh, in)
}

// beginOwn begins with a tensor that every device has of its own: the input has them on top of each other.
func (w *writer) beginOwn(dims []int, outSpec sharding.Spec) {
	in := append([]int{w.mesh.NumDevices()}, dims...)
	w.begin(in, sharding.Split(len(in), 0, w.mesh.AxisNames()...), dims, outSpec)
	w.line(fmt.Sprintf("stablehlo.reshape %s : (%s) -> %s", w.last(), tensor(w.dims), tensor(dims)))
	w.dims = dims
}

func (w *writer) last() string { return "%v" + strconv.Itoa(len(w.body)) }

func (w *writer) line(text string) {
	w.body = append(w.body, "%v"+strconv.Itoa(len(w.body)+1)+" = "+text)
}

func (w *writer) all() [][]int { return w.mesh.Groups(w.mesh.AxisNames()...) }

func (w *writer) gather(whole []int) {
	w.collective("all_gather", w.all(), whole, "", "all_gather_dim = 0 : i64")
}

func (w *writer) scatter(groups [][]int) {
	part := slices.Clone(w.dims)
	part[0] /= len(groups[0])
	w.collective("reduce_scatter", groups, part, "add", "scatter_dimension = 0 : i64")
}

func (w *writer) reduce(operation string) {
	w.collective("all_reduce", w.all(), w.dims, operation)
}

// collective adds an operation over groups of devices; reduction is "" for one that reduces nothing.
func (w *writer) collective(mnemonic string, groups [][]int, result []int, reduction string, attributes ...string) {
	rows := make([]string, len(groups))
	for i, g := range groups {
		rows[i] = strings.ReplaceAll(fmt.Sprint(g), " ", ", ")
	}
	w.channels++
	attributes = append(attributes,
		fmt.Sprintf("channel_handle = #stablehlo.channel_handle<handle = %d, type = 1>", w.channels),
		fmt.Sprintf("replica_groups = dense<[%s]> : tensor<%dx%dxi64>", strings.Join(rows, ", "), len(groups), len(groups[0])),
		"use_global_device_ids")
	region := ""
	if reduction != "" {
		region = fmt.Sprintf(" ({ ^bb0(%%a: tensor<f32>, %%b: tensor<f32>): %%c = stablehlo.%s %%a, %%b : tensor<f32> stablehlo.return %%c : tensor<f32> })", reduction)
	}
	w.line(fmt.Sprintf("%q(%s) <{%s}>%s : (%s) -> %s", "stablehlo."+mnemonic, w.last(), strings.Join(attributes, ", "), region, tensor(w.dims), tensor(result)))
	w.dims = result
}

func (w *writer) end() *engine.Lowered {
	var axes, sizes []string
	for _, a := range w.mesh.Axes {
		axes = append(axes, strconv.Quote(a.Name))
		sizes = append(sizes, fmt.Sprintf("%q=%d", a.Name, a.Size))
	}
	in, out := tensor(w.in.Dims), tensor(w.out.Dims)
	inSharding, outSharding := shardingText(w.mesh, w.in.Spec, len(w.in.Dims)), shardingText(w.mesh, w.out.Spec, len(w.out.Dims))
	var b strings.Builder
	fmt.Fprintf(&b, "module @%s attributes {mhlo.num_partitions = %d : i32, mhlo.num_replicas = 1 : i32} {\n", w.name, w.mesh.NumDevices())
	fmt.Fprintf(&b, "  sdy.mesh @%s = <[%s]>\n", w.mesh.Name, strings.Join(sizes, ", "))
	fmt.Fprintf(&b, "  func.func public @main(%%x: %s {sdy.sharding = #sdy.sharding%s}) -> (%s {sdy.sharding = #sdy.sharding%s}) {\n", in, inSharding, out, outSharding)
	fmt.Fprintf(&b, "    %%out = sdy.manual_computation(%%x) in_shardings=[%s] out_shardings=[%s] manual_axes={%s} (%%v0: %s) {\n",
		inSharding, outSharding, strings.Join(axes, ", "), tensor(w.in.Spec.ShardDims(w.mesh, w.in.Dims)))
	for _, line := range w.body {
		fmt.Fprintf(&b, "      %s\n", line)
	}
	fmt.Fprintf(&b, "      sdy.return %s : %s\n    } : (%s) -> %s\n    return %%out : %s\n  }\n}\n", w.last(), tensor(w.dims), in, out, out)
	return engine.FromText(w.mesh, w.name, []byte(b.String()), []engine.Input{w.in}, []engine.Input{w.out})
}

// tensor is the MLIR type of a float32 tensor.
func tensor(dims []int) string {
	text := "tensor<"
	for _, d := range dims {
		text += strconv.Itoa(d) + "x"
	}
	return text + "f32>"
}

func shardingText(mesh sharding.Mesh, spec sharding.Spec, rank int) string {
	dims := make([]string, rank)
	for d := range dims {
		axes := make([]string, len(spec.Axes(d)))
		for i, a := range spec.Axes(d) {
			axes[i] = strconv.Quote(a)
		}
		dims[d] = "{" + strings.Join(axes, ", ") + "}"
	}
	return "<@" + mesh.Name + ", [" + strings.Join(dims, ", ") + "]>"
}
