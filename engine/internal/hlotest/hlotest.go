// Package hlotest writes small HLO modules for tests, in the protobuf format that plugins give.
package hlotest

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Msg is a protobuf message under construction. Its methods return a longer one and leave it as it is.
type Msg []byte

// Str adds a string or message field.
func (m Msg) Str(num protowire.Number, s string) Msg {
	return protowire.AppendString(protowire.AppendTag(slices.Clone(m), num, protowire.BytesType), s)
}

// Num adds an integer field.
func (m Msg) Num(num protowire.Number, v int64) Msg {
	return protowire.AppendVarint(protowire.AppendTag(slices.Clone(m), num, protowire.VarintType), uint64(v))
}

// Sub adds a message field.
func (m Msg) Sub(num protowire.Number, s Msg) Msg { return m.Str(num, string(s)) }

// Ints adds a packed list of integers.
func (m Msg) Ints(num protowire.Number, values ...int64) Msg {
	var packed []byte
	for _, v := range values {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return m.Str(num, string(packed))
}

// Calls adds the computations that an instruction calls.
func (m Msg) Calls(ids ...int64) Msg { return m.Ints(38, ids...) }

// Op is an instruction.
func Op(id int64, name, opcode string, shape Msg, operands ...int64) Msg {
	m := Msg{}.Str(1, name).Str(2, opcode).Sub(3, shape).Num(35, id)
	if len(operands) > 0 {
		m = m.Ints(36, operands...)
	}
	return m
}

// Param is parameter number n.
func Param(id, n int64, shape Msg) Msg { return Op(id, "param", "parameter", shape).Num(9, n) }

// Constant is an s32 scalar.
func Constant(id, v int64) Msg {
	return Op(id, "constant", "constant", S32).Sub(8, Msg{}.Sub(1, S32).Ints(4, v))
}

// Func is a computation; it has the last instruction as its root.
func Func(id int64, name string, instructions ...Msg) Msg {
	m := Msg{}.Str(1, name).Num(5, id)
	for _, in := range instructions {
		m = m.Sub(2, in)
	}
	return m
}

// Program is a module that runs the computation with id entry first.
func Program(entry int64, computations ...Msg) Msg {
	m := Msg{}.Str(1, "jit").Num(6, entry)
	for _, c := range computations {
		m = m.Sub(3, c)
	}
	return m
}

// Array is a shape of a dtype by XLA's number: 16 is bf16, 21 is s4.
func Array(dtype int64, dims ...int64) Msg { return Msg{}.Num(2, dtype).Ints(3, dims...) }

// F32 is a float32 shape.
func F32(dims ...int64) Msg { return Array(11, dims...) }

// In puts a shape in a memory space.
func In(space int64, shape Msg) Msg { return shape.Sub(5, Msg{}.Num(8, space)) }

// Tuple is a shape of shapes.
func Tuple(parts ...Msg) Msg {
	m := Msg{}.Num(2, 13)
	for _, p := range parts {
		m = m.Sub(4, p)
	}
	return m
}

// S32 and Pred are scalars.
var S32, Pred = Msg{}.Num(2, 4), Msg{}.Num(2, 1)
