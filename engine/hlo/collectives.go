package hlo

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kinds of communication.
const (
	AllGather     = "all-gather"
	AllReduce     = "all-reduce"
	ReduceScatter = "reduce-scatter"
	AllToAll      = "all-to-all"
	Permute       = "collective-permute"
	Broadcast     = "collective-broadcast"
)

var kinds = []string{AllGather, AllReduce, ReduceScatter, AllToAll, Permute, Broadcast}

// Collective is one kind of communication of a program: an opcode on a shape.
type Collective struct {
	// Opcode is all-gather, all-reduce, reduce-scatter, all-to-all or collective-permute; an asynchronous pair counts
	// once, under its plain name, and what a fusion does is named as Communication does.
	Opcode string
	// Shape is the result on one device.
	Shape Shape
	// Count is how often it is executed in one run of the program, loops included.
	Count int64
}

// Communication is an instruction that sends data between devices.
type Communication struct {
	// Kind is one of the constants. An all-reduce of which a device keeps a slice is a reduce-scatter when both stand in
	// one fusion: that is how a TPU's compiler writes one.
	Kind string
	// Instruction holds the groups, the pairs and the operands. It lies in Computation.
	Instruction *Instruction
	Computation *Computation
	// Operand and Result are the data on one device before and after, without handles and context.
	Operand, Result Shape
	// Slices is the number of slices that it joins over the data center network, 0 within a slice. Each device exchanges
	// with those that stand where it does in the other slices.
	Slices int
	// Async tells that other instructions may run while the data travels.
	Async bool
	// Algorithm is the compiler's own name of how it is done, "" when it does not say.
	Algorithm string
}

// plainKind returns the kind of a collective's opcode and whether it begins an asynchronous pair; "" for any other
// instruction and for the done half of a pair.
func plainKind(opcode string) (kind string, async bool) {
	kind, async = strings.CutSuffix(opcode, "-start")
	if slices.Contains(kinds, kind) {
		return kind, async
	}
	if opcode == "ragged-all-to-all" {
		return AllToAll, false
	}
	return "", false
}

// Communication returns what an instruction of a computation itself communicates: nil for most. The contents of
// fusions, calls and asynchronous wrappers are instructions of other computations.
func (c *Computation) Communication(in *Instruction) *Communication {
	if in.Opcode == "send" {
		return c.betweenSlices(in)
	}
	kind, async := plainKind(in.Opcode)
	if kind == "" {
		return nil
	}
	x := &Communication{Kind: kind, Instruction: in, Computation: c, Result: in.Shape, Async: async, Algorithm: in.emitter()}
	if async {
		x.Result = startedResult(kind, in)
	}
	x.Operand = c.operandShape(in)
	if kind == AllReduce {
		if slice := c.keptSlice(in); slice != nil {
			x.Kind, x.Result = ReduceScatter, slice.Shape
		}
	}
	return x
}

// transferTypes are the kinds by the names that the runtime of several slices has for them.
var transferTypes = map[string]string{
	"ALL_GATHER": AllGather, "ALL_REDUCE": AllReduce, "REDUCE_SCATTER": ReduceScatter, "ALL_TO_ALL": AllToAll, "ONE_TO_ONE": Permute,
}

var targetSlices = regexp.MustCompile(`^\{([^}]*)\}x`)

// betweenSlices reads what a send hands to the runtime of several slices, nil for any other send. A device sends its own
// part; what it receives is the result of a recv.
func (c *Computation) betweenSlices(in *Instruction) *Communication {
	kind := transferTypes[in.Attributes["_xla_megascale_transfer_type"]]
	operand := c.Operand(in, 0)
	if kind == "" || operand == nil {
		return nil
	}
	x := &Communication{Kind: kind, Instruction: in, Computation: c, Operand: operand.Shape, Result: operand.Shape, Async: true, Slices: 2}
	if list := targetSlices.FindStringSubmatch(in.Attributes["_xla_megascale_target"]); list != nil {
		x.Slices = strings.Count(list[1], ",") + 1
		if first, last, ok := strings.Cut(list[1], ":"); ok && x.Slices == 1 { // a range
			a, err1 := strconv.Atoi(first)
			b, err2 := strconv.Atoi(last)
			if err1 == nil && err2 == nil && b > a && b-a < maxDevices {
				x.Slices = b - a + 1
			}
		}
	}
	if kind == AllGather {
		x.Result.Dims = append([]int64{int64(x.Slices)}, operand.Shape.Dims...)
	}
	return x
}

// startedResult is the result of an asynchronous collective's start, whose shape has operands and handles too: that of
// an all-reduce is its result alone, others are (operands, results, …).
func startedResult(kind string, in *Instruction) Shape {
	if kind == AllReduce || len(in.Shape.Tuple) < 2 {
		return in.Shape
	}
	return in.Shape.Tuple[1]
}

// operandShape is the shape of an instruction's operands, a tuple when there are several.
func (c *Computation) operandShape(in *Instruction) Shape {
	var parts []Shape
	for i := range in.Operands {
		if o := c.Operand(in, i); o != nil {
			parts = append(parts, o.Shape)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return Shape{DType: "tuple", Tuple: parts}
}

// keptSlice is the dynamic-slice which alone uses the result of an all-reduce within a fusion, nil when other
// instructions need it whole.
func (c *Computation) keptSlice(in *Instruction) *Instruction {
	if !c.Fused {
		return nil
	}
	for range len(c.Instructions) {
		users := c.Users(in)
		if len(users) != 1 || !slices.Contains([]string{"bitcast", "reshape", "copy", "convert", "dynamic-slice"}, users[0].Opcode) {
			return nil
		}
		if in = users[0]; in.Opcode == "dynamic-slice" {
			return in
		}
	}
	return nil
}

var emitterName = regexp.MustCompile(`"emitter":"([^"]*)"(?:,"strategy":"([^"]*)")?`)

// emitter is the name of the algorithm in a TPU's configuration of a collective.
func (in *Instruction) emitter() string {
	m := emitterName.FindStringSubmatch(in.BackendConfig)
	if m == nil {
		return ""
	}
	return strings.TrimSuffix(m[1]+"/"+m[2], "/")
}

// Collectives counts what a program communicates, sorted by opcode and shape. A loop that communicates and whose trip
// count is unknown is an error.
func (m *Module) Collectives() ([]Collective, error) {
	found := map[string]*Collective{}
	err := m.Walk(func(s Site) error {
		x := s.Computation.Communication(s.Instruction)
		if x == nil {
			return nil
		}
		if s.Unknown != nil {
			return fmt.Errorf("the loop %s communicates and its trip count is unknown", s.Unknown.Name)
		}
		key := x.Kind + " " + x.Result.String()
		if found[key] == nil {
			found[key] = &Collective{Opcode: x.Kind, Shape: x.Result}
		}
		found[key].Count += s.Times
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(func(yield func(Collective) bool) {
		for c := range maps.Values(found) {
			if !yield(*c) {
				return
			}
		}
	}, func(a, b Collective) int {
		return cmp.Or(cmp.Compare(a.Opcode, b.Opcode), cmp.Compare(a.Shape.String(), b.Shape.String()))
	}), nil
}

// FormatCollectives prints one line a kind: `8 × all-gather f32[64,64]`.
func FormatCollectives(list []Collective) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%d × %s %s\n", c.Count, c.Opcode, c.Shape)
	}
	return b.String()
}
