package hlo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Parse reads a program in one of the formats that plugins give: "hlo" (HloModuleProto) or "hlo_with_config".
func Parse(format string, data []byte) (*Module, error) {
	m := &Module{byID: map[int64]*Computation{}}
	switch format {
	case "hlo":
	case "hlo_with_config":
		inner, err := m.parseEnvelope(data)
		if err != nil {
			return nil, fmt.Errorf("read an hlo_with_config program: %w", err)
		}
		data = inner
	default:
		return nil, fmt.Errorf("read the optimised program: the plugin gives it as %q, weft reads hlo and hlo_with_config", format)
	}
	if err := m.parse(data); err != nil {
		return nil, fmt.Errorf("read an HLO module: %w", err)
	}
	if len(m.Computations) == 0 {
		return nil, errors.New("read an HLO module: it has no computations")
	}
	m.link()
	return m, nil
}

// parseEnvelope reads HloModuleProtoWithConfig: the module (1) and its HloModuleConfigProto (2).
func (m *Module) parseEnvelope(data []byte) (module []byte, err error) {
	err = fields(data, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			module = v.bytes
		case 2:
			return numbers(v.bytes, map[protowire.Number]*int64{4: &m.Replicas, 5: &m.Partitions})
		}
		return nil
	})
	return module, err
}

// link marks what fusions call, and notes who uses what.
func (m *Module) link() {
	for _, c := range m.Computations {
		c.users = map[int64][]*Instruction{}
		for _, in := range c.Instructions {
			for i, id := range in.Operands {
				if !slices.Contains(in.Operands[:i], id) {
					c.users[id] = append(c.users[id], in)
				}
			}
			for _, id := range in.Calls {
				if callee := m.byID[id]; callee != nil && in.Opcode == "fusion" {
					callee.Fused = true
				}
			}
		}
	}
}

func (m *Module) parse(data []byte) error {
	var schedule []byte
	err := fields(data, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			m.Name = string(v.bytes)
		case 6:
			m.EntryID = v.int()
		case 3:
			c, err := parseComputation(v.bytes)
			if err != nil {
				return fmt.Errorf("computation %s: %w", c.Name, err)
			}
			if m.byID[c.ID] != nil {
				return fmt.Errorf("computations %s and %s have one id", m.byID[c.ID].Name, c.Name)
			}
			m.byID[c.ID] = c
			m.Computations = append(m.Computations, c)
		case 7:
			schedule = v.bytes
		case 8:
			return m.parseAliases(v.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.parseSchedule(schedule)
}

// parseSchedule reads an HloScheduleProto, a map from computations to sequences of instructions, and puts the
// instructions in that order.
func (m *Module) parseSchedule(data []byte) error {
	return fields(data, func(_ protowire.Number, v value) error {
		var id int64
		var order []int64
		err := fields(v.bytes, func(num protowire.Number, v value) error {
			switch num {
			case 1:
				id = v.int()
			case 2:
				return lists(v.bytes, map[protowire.Number]*[]int64{1: &order})
			}
			return nil
		})
		c := m.byID[id]
		if err != nil || c == nil {
			return err
		}
		var sequence []*Instruction
		for _, i := range order {
			if in := c.byID[i]; in != nil {
				sequence = append(sequence, in)
			}
		}
		if len(sequence) != len(c.Instructions) || len(sequence) != len(c.byID) {
			return fmt.Errorf("the schedule of computation %s has %d instructions of %d", c.Name, len(sequence), len(c.Instructions))
		}
		if c.RootID == 0 && len(c.Instructions) > 0 {
			c.RootID = c.Instructions[len(c.Instructions)-1].ID
		}
		c.Instructions, c.Scheduled = sequence, true
		return nil
	})
}

// parseAliases reads an HloInputOutputAliasProto.
func (m *Module) parseAliases(data []byte) error {
	return fields(data, func(num protowire.Number, v value) error {
		if num != 1 {
			return nil
		}
		var a Alias
		err := fields(v.bytes, func(num protowire.Number, v value) (err error) {
			switch num {
			case 1:
				a.Output, err = v.ints(a.Output)
			case 2:
				a.Parameter = v.int()
			}
			return err
		})
		m.Aliases = append(m.Aliases, a)
		return err
	})
}

func parseComputation(data []byte) (*Computation, error) {
	c := &Computation{byID: map[int64]*Instruction{}}
	err := fields(data, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			c.Name = string(v.bytes)
		case 5:
			c.ID = v.int()
		case 6:
			c.RootID = v.int()
		case 2:
			in, err := parseInstruction(v.bytes)
			if err != nil {
				return fmt.Errorf("instruction %s: %w", in.Name, err)
			}
			c.byID[in.ID] = in
			c.Instructions = append(c.Instructions, in)
		}
		return nil
	})
	return c, err
}

func parseInstruction(data []byte) (*Instruction, error) {
	in := &Instruction{FeatureGroupCount: 1, BatchGroupCount: 1, Passes: 1}
	err := fields(data, func(num protowire.Number, v value) error {
		known, err := in.parseScalar(num, v)
		if known || err != nil {
			return err
		}
		return in.parseMessage(num, v)
	})
	return in, err
}

// parseScalar reads the fields that are numbers, strings and lists of numbers.
func (in *Instruction) parseScalar(num protowire.Number, v value) (known bool, err error) {
	switch num {
	case 1:
		in.Name = string(v.bytes)
	case 2:
		in.Opcode = string(v.bytes)
	case 9:
		in.ParameterNumber = v.int()
	case 11:
		in.FusionKind = string(v.bytes)
	case 13:
		in.TupleIndex = v.int()
	case 14:
		in.Dimensions, err = v.ints(in.Dimensions)
	case 20, 34:
		in.SliceSizes, err = v.ints(in.SliceSizes)
	case 26:
		in.ChannelID = v.int()
	case 28:
		in.Target = string(v.bytes)
	case 35:
		in.ID = v.int()
	case 36:
		in.Operands, err = v.ints(in.Operands)
	case 38:
		in.Calls, err = v.ints(in.Calls)
	case 43:
		in.BackendConfig = string(v.bytes)
	case 50:
		in.FeatureGroupCount = max(1, v.int())
	case 58:
		in.BatchGroupCount = max(1, v.int())
	case 63:
		in.Direction = string(v.bytes)
	case 71:
		in.GlobalIDs = v.number != 0
	default:
		return false, nil
	}
	return true, err
}

// parseMessage reads the fields that are messages.
func (in *Instruction) parseMessage(num protowire.Number, v value) (err error) {
	switch num {
	case 3:
		in.Shape, err = parseShape(v.bytes, 0)
	case 7:
		err = fields(v.bytes, func(num protowire.Number, v value) error {
			if num == 2 {
				in.OpName = string(v.bytes)
			}
			return nil
		})
	case 8:
		in.Constant, err = parseScalarLiteral(v.bytes)
	case 15:
		err = in.parseWindow(v.bytes)
	case 16:
		in.Convolution, err = parseConvolution(v.bytes)
	case 17:
		s := Slice{Stride: 1}
		err = numbers(v.bytes, map[protowire.Number]*int64{1: &s.Start, 2: &s.Limit, 3: &s.Stride})
		in.Slices = append(in.Slices, s)
	case 30:
		d := &DotDimensions{}
		in.Dot = d
		err = lists(v.bytes, map[protowire.Number]*[]int64{1: &d.LHSContracting, 2: &d.RHSContracting, 3: &d.LHSBatch, 4: &d.RHSBatch})
	case 49:
		in.Groups, err = appendGroup(in.Groups, v.bytes)
	case 51:
		in.Passes, err = parsePrecision(v.bytes)
	case 52:
		var p [2]int64
		err = numbers(v.bytes, map[protowire.Number]*int64{1: &p[0], 2: &p[1]})
		in.Pairs = append(in.Pairs, p)
	case 68:
		in.Attributes, err = parseMap(v.bytes)
	case 74:
		var r Reuse
		err = fields(v.bytes, func(num protowire.Number, v value) (err error) {
			switch num {
			case 1:
				r.Output, err = v.ints(r.Output)
			case 2:
				r.Operand = v.int()
			case 3:
				r.OperandIndex, err = v.ints(r.OperandIndex)
			}
			return err
		})
		in.Reused = append(in.Reused, r)
	case 87:
		in.Groups, err = parseDeviceList(v.bytes)
	case 92:
		in.Groups, err = parseIota(v.bytes)
	case 93:
		in.Groups, err = parseMeshAxes(v.bytes)
	}
	return err
}

// parsePrecision reads a PrecisionConfig: of its operands' precisions the highest counts.
func parsePrecision(data []byte) (passes int64, err error) {
	var list []int64
	err = lists(data, map[protowire.Number]*[]int64{1: &list})
	passes = 1
	for _, p := range list {
		passes = max(passes, map[int64]int64{1: 3, 2: 6}[p])
	}
	return passes, err
}

// maxDepth bounds tuples in tuples.
const maxDepth = 64

func parseShape(data []byte, depth int) (Shape, error) {
	var s Shape
	if depth > maxDepth {
		return s, fmt.Errorf("tuples more than %d deep", maxDepth)
	}
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
			t, err := parseShape(v.bytes, depth+1)
			s.Tuple = append(s.Tuple, t)
			return err
		case 5:
			return fields(v.bytes, func(num protowire.Number, v value) (err error) {
				switch num {
				case 1:
					s.MinorToMajor, err = v.ints(s.MinorToMajor)
				case 8:
					s.MemorySpace = v.int()
				}
				return err
			})
		}
		return err
	})
	return s, err
}

// parseWindow reads a Window.
func (in *Instruction) parseWindow(data []byte) error {
	return fields(data, func(num protowire.Number, v value) error {
		if num != 1 {
			return nil
		}
		var w WindowDimension
		var reversal int64
		err := numbers(v.bytes, map[protowire.Number]*int64{1: &w.Size, 2: &w.Stride, 3: &w.PadLow, 4: &w.PadHigh, 5: &w.WindowDilation, 6: &w.BaseDilation, 7: &reversal})
		w.Stride, w.WindowDilation, w.BaseDilation = max(1, w.Stride), max(1, w.WindowDilation), max(1, w.BaseDilation)
		w.Reversal = reversal != 0
		in.Window = append(in.Window, w)
		return err
	})
}

// parseConvolution reads a ConvolutionDimensionNumbers.
func parseConvolution(data []byte) (*ConvolutionDimensions, error) {
	c := &ConvolutionDimensions{}
	single := map[protowire.Number]*int64{
		3: &c.KernelInputFeature, 4: &c.KernelOutputFeature, 7: &c.InputBatch, 8: &c.InputFeature, 9: &c.OutputBatch, 10: &c.OutputFeature,
	}
	spatial := map[protowire.Number]*[]int64{6: &c.KernelSpatial, 11: &c.InputSpatial, 12: &c.OutputSpatial}
	return c, errors.Join(numbers(data, single), lists(data, spatial))
}

// parseMap reads a message whose field 1 is a map from string to string.
func parseMap(data []byte) (map[string]string, error) {
	var out map[string]string
	err := fields(data, func(num protowire.Number, v value) error {
		var kv [2]string
		err := fields(v.bytes, func(num protowire.Number, v value) error {
			if num == 1 || num == 2 {
				kv[num-1] = string(v.bytes)
			}
			return nil
		})
		if num == 1 {
			if out == nil {
				out = map[string]string{}
			}
			out[kv[0]] = kv[1]
		}
		return err
	})
	return out, err
}

// parseScalarLiteral returns the value of an integer scalar, nil for any other literal.
func parseScalarLiteral(data []byte) (*int64, error) {
	var s Shape
	var raw []byte
	var list []int64
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			s, err = parseShape(v.bytes, 0)
		case 3, 15, 16, 17: // u8s, s8s, u16s, s16s: little-endian bytes
			raw = v.bytes
		case 4, 5, 6, 7: // s32s, s64s, u32s, u64s
			if len(v.bytes) <= binary.MaxVarintLen64 {
				list, err = v.ints(list)
			}
		}
		return err
	})
	if err != nil || len(s.Dims) > 0 {
		return nil, err
	}
	var n int64
	switch {
	case len(list) == 1:
		n = list[0]
	case s.DType == "s8" && len(raw) == 1:
		n = int64(int8(raw[0]))
	case s.DType == "u8" && len(raw) == 1:
		n = int64(raw[0])
	case s.DType == "s16" && len(raw) == 2:
		n = int64(int16(binary.LittleEndian.Uint16(raw)))
	case s.DType == "u16" && len(raw) == 2:
		n = int64(binary.LittleEndian.Uint16(raw))
	default:
		return nil, nil
	}
	return &n, nil
}
