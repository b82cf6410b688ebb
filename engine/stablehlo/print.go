package stablehlo

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// printer writes functions as MLIR. Names are given in printing order, so that they are unique in a function.
type printer struct {
	buf      bytes.Buffer
	indent   int
	live     map[*op]bool
	names    map[*value]string // of the values that are visible here
	undo     []named           // what names held before each change, to leave a region
	next     int
	channels int // collectives printed so far: each has a channel of its own
	err      error
}

type named struct {
	v    *value
	name string
}

// printModule lowers main and the named functions that it reaches.
func printModule(b *builder, program *Program) ([]byte, error) {
	live, called := reach(b.main)
	p := &printer{live: live}
	n := b.backend.mesh.NumDevices()
	p.line("module ", symbol(b.name), " attributes {mhlo.num_partitions = ", strconv.Itoa(n), " : i32, mhlo.num_replicas = 1 : i32} {")
	p.indent++
	if len(b.backend.mesh.Axes) > 0 {
		p.line(meshText(b.backend.mesh))
	}
	p.printMain(b, program)
	for _, f := range b.functions {
		if called[f] {
			p.printFunction(f)
		}
	}
	p.indent--
	p.line("}")
	if p.err != nil {
		return nil, p.err
	}
	return p.buf.Bytes(), nil
}

// reach finds the operations that the outputs of main depend on, and the functions that they call.
func reach(main *function) (live map[*op]bool, called map[*function]bool) {
	live, called = map[*op]bool{}, map[*function]bool{}
	work := append([]*value(nil), main.outputs...)
	for len(work) > 0 {
		o := work[len(work)-1].op
		work = work[:len(work)-1]
		if o == nil || live[o] {
			continue
		}
		live[o] = true
		work = append(work, o.operands...)
		for _, r := range o.regions {
			work = append(work, r.outputs...)
		}
		if o.callee != nil && !called[o.callee] {
			called[o.callee] = true
			work = append(work, o.callee.outputs...)
		}
	}
	return live, called
}

func (p *printer) printMain(b *builder, program *Program) {
	sharded := len(b.backend.mesh.Axes) > 0
	p.begin()
	p.line("func.func public @main(")
	for i, param := range b.main.params {
		in := program.Inputs[i]
		var attrs []string
		if sharded {
			attrs = append(attrs, "sdy.sharding = #sdy.sharding"+shardingText(b.backend.mesh, in.Spec, len(in.Dims)))
		}
		if in.DonatedTo >= 0 {
			attrs = append(attrs, fmt.Sprintf("tf.aliasing_output = %d : i32", in.DonatedTo))
		}
		name := "%arg" + strconv.Itoa(i)
		p.set(param, name)
		p.line("    ", name, ": ", tensorType(param.shape), attributes(attrs), comma(i, len(b.main.params)), " // ", quote(in.Name))
	}
	p.line(") -> (")
	for i, out := range b.main.outputs {
		var attrs []string
		if sharded {
			attrs = append(attrs, "sdy.sharding = #sdy.sharding"+shardingText(b.backend.mesh, program.Outputs[i].Spec, len(program.Outputs[i].Dims)))
		}
		p.line("    ", tensorType(out.shape), attributes(attrs), comma(i, len(b.main.outputs)))
	}
	p.line(") {")
	p.printBody(b.main, "return")
	p.line("}")
}

func (p *printer) printFunction(f *function) {
	p.begin()
	args := make([]string, len(f.params))
	for i, param := range f.params {
		p.set(param, "%arg"+strconv.Itoa(i))
		args[i] = p.names[param] + ": " + tensorType(param.shape)
	}
	p.line("func.func private ", symbol(f.name), "(", strings.Join(args, ", "), ") -> ", resultTypes(f.outputs), " {")
	p.printBody(f, "return")
	p.line("}")
}

// begin starts a function: no value of another one is visible in it.
func (p *printer) begin() {
	p.names, p.undo, p.next = map[*value]string{}, nil, 0
}

// printBody writes the live operations of a function or region and its terminator.
func (p *printer) printBody(f *function, terminator string) {
	p.indent++
	for _, o := range f.ops {
		if p.live[o] {
			p.printOp(o)
		}
	}
	p.start()
	p.text(terminator, " ")
	for i, v := range f.outputs {
		if i > 0 {
			p.text(", ")
		}
		p.text(p.name(v, "Return", f))
	}
	p.text(" : ", typeList(f.outputs))
	p.end()
	p.indent--
}

func (p *printer) printOp(o *op) {
	p.start()
	base := "%" + strconv.Itoa(p.next)
	p.next++
	if len(o.results) == 1 {
		p.text(base, " = ")
	} else {
		p.text(base, ":", strconv.Itoa(len(o.results)), " = ")
	}
	o.print(p, o)
	p.end()
	for i, r := range o.results {
		name := base
		if len(o.results) > 1 {
			name = base + "#" + strconv.Itoa(i)
		}
		p.set(r, name)
	}
}

// printRegion writes `{ ^bb0(…): … }` with the closure's parameters as block arguments.
func (p *printer) printRegion(o *op, f *function) {
	p.text("{")
	p.end()
	mark := len(p.undo)
	if len(f.params) > 0 {
		args := make([]string, len(f.params))
		for i, param := range f.params {
			args[i] = p.fresh(param) + ": " + tensorType(param.shape)
		}
		p.line("^bb0(", strings.Join(args, ", "), "):")
	}
	if o.isolated {
		p.sinkConstants(o, f)
	}
	p.printBody(f, "stablehlo.return")
	p.leave(mark)
	p.start()
	p.text("}")
}

// set names a value until the region that is being printed ends.
func (p *printer) set(v *value, name string) {
	p.undo = append(p.undo, named{v, p.names[v]})
	p.names[v] = name
}

// leave takes back every name given since mark: the values of a region get out of sight.
func (p *printer) leave(mark int) {
	for i := len(p.undo) - 1; i >= mark; i-- {
		if n := p.undo[i]; n.name == "" {
			delete(p.names, n.v)
		} else {
			p.names[n.v] = n.name
		}
	}
	p.undo = p.undo[:mark]
}

// fresh names a block argument.
func (p *printer) fresh(v *value) string {
	p.set(v, "%"+strconv.Itoa(p.next))
	p.next++
	return p.names[v]
}

// sinkConstants repeats, inside an isolated region, the constants that it reads from outside, and refuses any other
// outside value.
func (p *printer) sinkConstants(o *op, f *function) {
	p.indent++
	defer func() { p.indent-- }()
	sunk := map[*value]bool{}
	visit := func(user string, v *value) {
		if v.fn == f || sunk[v] {
			return
		}
		sunk[v] = true
		if v.op == nil || !v.op.isConst {
			p.fail(fmt.Errorf("%s: its closure reads %s from outside (in %s): XLA allows only constants there, pass it as an operand", o.what, shapeText(v.shape), user))
			return
		}
		p.printOp(v.op)
	}
	for _, inner := range f.ops {
		if p.live[inner] {
			for _, v := range inner.operands {
				visit(inner.what, v)
			}
			if len(inner.regions) > 0 {
				p.fail(fmt.Errorf("%s: its closure uses %s: XLA does not allow control flow there", o.what, inner.what))
			}
		}
	}
	for _, v := range f.outputs {
		visit("Return", v)
	}
}

// name is the SSA name of a value, which must be visible where it is used.
func (p *printer) name(v *value, user string, in *function) string {
	if name, ok := p.names[v]; ok {
		return name
	}
	source := "a parameter"
	if v.op != nil {
		source = "the result of " + v.op.what
	}
	p.fail(fmt.Errorf("%s in %s uses %s (%s) of %s, which is not visible there: return it from that closure or function, pass it as an argument, or build it again",
		user, in.describe(), source, shapeText(v.shape), v.fn.describe()))
	return "%invalid"
}

func (p *printer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *printer) start() {
	for range p.indent {
		p.buf.WriteString("  ")
	}
}

func (p *printer) end() { p.buf.WriteByte('\n') }

func (p *printer) text(parts ...string) {
	for _, s := range parts {
		p.buf.WriteString(s)
	}
}

func (p *printer) line(parts ...string) {
	p.start()
	p.text(parts...)
	p.end()
}

// operandList prints `%1, %2`.
func (p *printer) operandList(o *op, operands []*value) string {
	names := make([]string, len(operands))
	for i, v := range operands {
		names[i] = p.name(v, o.what, o.fn)
	}
	return strings.Join(names, ", ")
}

// attributes prints a dictionary, nothing when it is empty.
func attributes(attrs []string) string {
	if len(attrs) == 0 {
		return ""
	}
	return " {" + strings.Join(attrs, ", ") + "}"
}

func comma(i, n int) string {
	if i < n-1 {
		return ","
	}
	return ""
}

// typeList prints `tensor<…>, tensor<…>`.
func typeList(values []*value) string {
	types := make([]string, len(values))
	for i, v := range values {
		types[i] = tensorType(v.shape)
	}
	return strings.Join(types, ", ")
}

// resultTypes prints one type bare and several in parentheses.
func resultTypes(values []*value) string {
	if len(values) == 1 {
		return tensorType(values[0].shape)
	}
	return "(" + typeList(values) + ")"
}

// printSameType prints `op %a, %b : type`, for operations whose operands and result have one type.
func printSameType(p *printer, o *op) {
	p.text(o.mnemonic, " ", p.operandList(o, o.operands), " : ", tensorType(o.results[0].shape))
}

// printFunctional prints `op %a, %b<details> : (types) -> type`.
func printFunctional(details string) func(*printer, *op) {
	return func(p *printer, o *op) {
		p.text(o.mnemonic, " ", p.operandList(o, o.operands), details, " : (", typeList(o.operands), ") -> ", resultTypes(o.results))
	}
}

// printGeneric prints MLIR's generic form, with attributes and regions.
func printGeneric(attrs ...string) func(*printer, *op) {
	return func(p *printer, o *op) {
		p.text(quote(o.mnemonic), "(", p.operandList(o, o.operands), ")")
		if len(attrs) > 0 {
			p.text(" <{", strings.Join(attrs, ", "), "}>")
		}
		if len(o.regions) > 0 {
			p.text(" (")
			for i, r := range o.regions {
				if i > 0 {
					p.text(", ")
				}
				p.printRegion(o, r)
			}
			p.text(")")
		}
		p.text(" : (", typeList(o.operands), ") -> ", resultTypes(o.results))
	}
}
