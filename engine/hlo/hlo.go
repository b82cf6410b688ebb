// Package hlo reads the optimised program that a PJRT plugin gives back: XLA's HloModuleProto, bare or in its "with
// config" envelope. It reads what a report of collectives and loops needs, and passes over the rest.
//
// Field numbers: xla/service/hlo.proto and xla/xla_data.proto of openxla/xla.
package hlo

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Module is a compiled program.
type Module struct {
	Name         string
	Computations []*Computation
	// EntryID is the id of the computation that runs first.
	EntryID int64
}

// Computation is one function of a module; a loop's body and condition are computations too.
type Computation struct {
	ID           int64
	Name         string
	Instructions []*Instruction
}

// Instruction is one operation.
type Instruction struct {
	ID     int64
	Name   string
	Opcode string
	Shape  Shape
	// Operands are ids of instructions of the same computation, Calls of computations.
	Operands, Calls []int64
	// Groups are the sets of devices that a collective works in, empty for all devices in one group.
	Groups [][]int64
	// BackendConfig is the backend's own text, JSON for most.
	BackendConfig string
}

// Shape is an array of a dtype (XLA's lower-case name) and dimensions, or a tuple of shapes.
type Shape struct {
	DType string
	Dims  []int64
	Tuple []Shape
}

// Bytes is the size of the shape's elements, a tuple's being the sum of its parts.
func (s Shape) Bytes() int64 {
	if len(s.Tuple) > 0 {
		var n int64
		for _, t := range s.Tuple {
			n += t.Bytes()
		}
		return n
	}
	n := dtypeBytes[s.DType]
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// String prints the shape as XLA does: bf16[4,128], or (f32[], f32[8]).
func (s Shape) String() string {
	var parts []string
	if len(s.Tuple) > 0 {
		for _, t := range s.Tuple {
			parts = append(parts, t.String())
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	for _, d := range s.Dims {
		parts = append(parts, strconv.FormatInt(d, 10))
	}
	return s.DType + "[" + strings.Join(parts, ",") + "]"
}

// dtypeNames are XLA's PrimitiveType numbers that a training step meets.
var dtypeNames = map[uint64]string{
	1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
	12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn",
}

var dtypeBytes = map[string]int64{
	"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4,
	"s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16, "f8e5m2": 1, "f8e4m3fn": 1,
}

// Parse reads a program in one of the formats that plugins give: "hlo" (HloModuleProto) or "hlo_with_config".
func Parse(format string, data []byte) (*Module, error) {
	switch format {
	case "hlo":
	case "hlo_with_config":
		var inner []byte
		err := fields(data, func(num protowire.Number, v value) error {
			if num == 1 {
				inner = v.bytes
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read an hlo_with_config program: %w", err)
		}
		data = inner
	default:
		return nil, fmt.Errorf("read the optimised program: the plugin gives it as %q, weft reads hlo and hlo_with_config", format)
	}
	m := &Module{}
	err := fields(data, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			m.Name = string(v.bytes)
		case 6:
			m.EntryID = int64(v.number)
		case 3:
			c, err := parseComputation(v.bytes)
			m.Computations = append(m.Computations, c)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read an HLO module: %w", err)
	}
	if len(m.Computations) == 0 {
		return nil, errors.New("read an HLO module: it has no computations")
	}
	return m, nil
}

func parseComputation(data []byte) (*Computation, error) {
	c := &Computation{}
	err := fields(data, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			c.Name = string(v.bytes)
		case 5:
			c.ID = int64(v.number)
		case 2:
			in, err := parseInstruction(v.bytes)
			c.Instructions = append(c.Instructions, in)
			return err
		}
		return nil
	})
	return c, err
}

func parseInstruction(data []byte) (*Instruction, error) {
	in := &Instruction{}
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			in.Name = string(v.bytes)
		case 2:
			in.Opcode = string(v.bytes)
		case 3:
			in.Shape, err = parseShape(v.bytes)
		case 35:
			in.ID = int64(v.number)
		case 36:
			in.Operands, err = v.ints(in.Operands)
		case 38:
			in.Calls, err = v.ints(in.Calls)
		case 43:
			in.BackendConfig = string(v.bytes)
		case 49:
			in.Groups, err = appendGroup(in.Groups, v.bytes)
		case 87:
			in.Groups, err = parseDeviceList(v.bytes)
		}
		return err
	})
	return in, err
}

func parseShape(data []byte) (Shape, error) {
	var s Shape
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 2:
			s.DType = dtypeNames[v.number]
			if s.DType == "" {
				s.DType = "type" + strconv.FormatUint(v.number, 10)
			}
		case 3:
			s.Dims, err = v.ints(s.Dims)
		case 4:
			t, err := parseShape(v.bytes)
			s.Tuple = append(s.Tuple, t)
			return err
		}
		return err
	})
	return s, err
}

func appendGroup(groups [][]int64, data []byte) ([][]int64, error) {
	var ids []int64
	err := fields(data, func(num protowire.Number, v value) (err error) {
		if num == 1 {
			ids, err = v.ints(ids)
		}
		return err
	})
	return append(groups, ids), err
}

// parseDeviceList reads a CollectiveDeviceListProto: groups written out, or as a transposed and reshaped iota.
func parseDeviceList(data []byte) ([][]int64, error) {
	var groups [][]int64
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			groups, err = appendGroup(groups, v.bytes)
		case 2:
			groups, err = parseIota(v.bytes)
		}
		return err
	})
	return groups, err
}

func parseIota(data []byte) ([][]int64, error) {
	var count, size int64
	var dims, perm []int64
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			count = int64(v.number)
		case 2:
			size = int64(v.number)
		case 3:
			dims, err = v.ints(dims)
		case 4:
			perm, err = v.ints(perm)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	order := transposedIota(dims, perm)
	if int64(len(order)) != count*size || size == 0 {
		return nil, fmt.Errorf("a list of %d devices for %d groups of %d", len(order), count, size)
	}
	groups := make([][]int64, count)
	for i := range groups {
		groups[i] = order[int64(i)*size : int64(i+1)*size]
	}
	return groups, nil
}

// transposedIota returns the elements of iota reshaped to dims and transposed by perm, in row-major order.
func transposedIota(dims, perm []int64) []int64 {
	total := int64(1)
	strides := make([]int64, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		strides[d] = total
		total *= dims[d]
	}
	order := make([]int64, 0, total)
	index := make([]int64, len(perm))
	for range total {
		var at int64
		for i, p := range perm {
			at += index[i] * strides[p]
		}
		order = append(order, at)
		for i := len(perm) - 1; i >= 0; i-- {
			if index[i]++; index[i] < dims[perm[i]] {
				break
			}
			index[i] = 0
		}
	}
	return order
}

// value is one field's content: a number or bytes.
type value struct {
	number uint64
	bytes  []byte
}

// ints appends a repeated integer field, packed or not.
func (v value) ints(to []int64) ([]int64, error) {
	if v.bytes == nil {
		return append(to, int64(v.number)), nil
	}
	for b := v.bytes; len(b) > 0; {
		n, size := protowire.ConsumeVarint(b)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		to, b = append(to, int64(n)), b[size:]
	}
	return to, nil
}

// fields calls f for every varint or length-delimited field of a message.
func fields(data []byte, f func(protowire.Number, value) error) error {
	for len(data) > 0 {
		num, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(data)
			if v.bytes == nil {
				v.bytes = []byte{}
			}
		default:
			if n = protowire.ConsumeFieldValue(num, kind, data); n >= 0 {
				data = data[n:]
				continue
			}
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(num, v); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

var tripCount = regexp.MustCompile(`"known_trip_count":\{"n":"(\d+)"`)

// TripCount returns how often a while instruction runs its body, when the compiler knows.
func (in *Instruction) TripCount() (int64, bool) {
	m := tripCount.FindStringSubmatch(in.BackendConfig)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}
