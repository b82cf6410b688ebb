// Package hlo reads the optimised program that a PJRT plugin gives back: XLA's HloModuleProto, bare or in its "with
// config" envelope. It reads what a count of arithmetic, memory traffic and communication needs, and passes over the
// rest: shapes with their layouts, the operands of every instruction, contractions and convolutions, slices, called
// computations, the devices of a collective in every form that XLA writes, and how often a loop runs.
//
// Field numbers: xla/service/hlo.proto and xla/xla_data.proto of openxla/xla.
package hlo

import "fmt"

// Module is a compiled program.
type Module struct {
	Name         string
	Computations []*Computation
	// EntryID is the id of the computation that runs first.
	EntryID int64
	// Replicas and Partitions are the numbers of copies that run; 0 where the program comes without its configuration.
	Replicas, Partitions int64
	// Aliases are the outputs that are written over an argument.
	Aliases []Alias

	byID map[int64]*Computation
}

// Alias says that an output is written over an argument.
type Alias struct {
	// Output is the index of the output in the tuple of results, nested where tuples are.
	Output []int64
	// Parameter is the argument's number.
	Parameter int64
}

// Computation returns the computation with an id, nil when there is none.
func (m *Module) Computation(id int64) *Computation { return m.byID[id] }

// Entry returns the computation that runs first.
func (m *Module) Entry() (*Computation, error) {
	if c := m.byID[m.EntryID]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("the module %s has no entry computation %d", m.Name, m.EntryID)
}

// Computation is one function of a module; a loop's body and condition are computations too.
type Computation struct {
	ID   int64
	Name string
	// RootID is the id of the instruction whose value is the computation's; 0 where the file does not say: the last one.
	RootID int64
	// Fused tells that a fusion runs it: it is one piece of code, and what it computes between need not exist in memory.
	Fused        bool
	Instructions []*Instruction
	// Scheduled tells that Instructions are in the order in which they run, not only in one that their operands allow.
	Scheduled bool

	byID  map[int64]*Instruction
	users map[int64][]*Instruction
}

// Root returns the instruction whose value is the computation's, nil in an empty computation.
func (c *Computation) Root() *Instruction {
	if in := c.byID[c.RootID]; in != nil {
		return in
	}
	if len(c.Instructions) == 0 {
		return nil
	}
	return c.Instructions[len(c.Instructions)-1]
}

// Instruction returns the instruction with an id, nil when there is none.
func (c *Computation) Instruction(id int64) *Instruction { return c.byID[id] }

// Operand returns operand i of an instruction of this computation, nil when there is none.
func (c *Computation) Operand(in *Instruction, i int) *Instruction {
	if i < 0 || i >= len(in.Operands) {
		return nil
	}
	return c.byID[in.Operands[i]]
}

// Parameter returns parameter i of the computation, nil when there is none.
func (c *Computation) Parameter(i int64) *Instruction {
	for _, in := range c.Instructions {
		if in.Opcode == "parameter" && in.ParameterNumber == i {
			return in
		}
	}
	return nil
}

// Users returns the instructions of the computation that take in as an operand, each once. It must not be changed.
func (c *Computation) Users(in *Instruction) []*Instruction { return c.users[in.ID] }

// Instruction is one operation. Fields that its opcode does not have are zero.
type Instruction struct {
	ID     int64
	Name   string
	Opcode string
	Shape  Shape
	// Operands are ids of instructions of the same computation, Calls of computations.
	Operands, Calls []int64
	// OpName is what the program before compilation called the operation that this came from.
	OpName string
	// Attributes are the frontend's hints.
	Attributes map[string]string
	// BackendConfig is the backend's own text, JSON for most.
	BackendConfig string

	// ParameterNumber is a parameter's position, TupleIndex a get-tuple-element's.
	ParameterNumber, TupleIndex int64
	// FusionKind is kLoop, kInput, kOutput or kCustom.
	FusionKind string
	// Target is the name of what a custom-call calls.
	Target string
	// Direction is a compare's: LT, LE, GT, GE, EQ or NE.
	Direction string
	// Constant is the value of an integer scalar.
	Constant *int64
	// Dimensions are those that a broadcast, reduce, transpose, concatenate or collective works along.
	Dimensions []int64
	// Slices are the bounds of a slice; SliceSizes the size of a dynamic-slice or of a gather's windows.
	Slices     []Slice
	SliceSizes []int64
	// Passes is how many products of the hardware's own precision make one of this instruction's, at least 1: with
	// float32 operands 3 at HIGH and 6 at HIGHEST precision.
	Passes int64
	// Dot has the dimensions of a dot.
	Dot *DotDimensions
	// Convolution and Window have the dimensions of a convolution; the groups are at least 1.
	Convolution                        *ConvolutionDimensions
	Window                             []WindowDimension
	FeatureGroupCount, BatchGroupCount int64
	// Reused are the operands that the results of a fusion or custom-call are written over.
	Reused []Reuse

	// Groups are the sets of devices that a collective works in, empty for all devices in one group. GlobalIDs tells
	// that they count replica·partitions + partition, otherwise they count partitions when ChannelID is positive.
	Groups    [][]int64
	GlobalIDs bool
	ChannelID int64
	// Pairs are the sources and targets of a collective-permute.
	Pairs [][2]int64
}

// Slice is the half-open range [Start, Limit) of a dimension, with a step.
type Slice struct{ Start, Limit, Stride int64 }

// Reuse says that a result is written over an operand. Output and OperandIndex lead into tuples.
type Reuse struct {
	Output       []int64
	Operand      int64
	OperandIndex []int64
}

// DotDimensions are the dimensions that a dot contracts and those that it goes through side by side.
type DotDimensions struct{ LHSContracting, RHSContracting, LHSBatch, RHSBatch []int64 }

// ConvolutionDimensions say what each dimension of the input, kernel and output of a convolution is.
type ConvolutionDimensions struct {
	InputBatch, InputFeature                int64
	InputSpatial                            []int64
	KernelInputFeature, KernelOutputFeature int64
	KernelSpatial                           []int64
	OutputBatch, OutputFeature              int64
	OutputSpatial                           []int64
}

// WindowDimension is a window's extent along one spatial dimension. Dilations and strides are at least 1.
type WindowDimension struct {
	Size, Stride, PadLow, PadHigh, WindowDilation, BaseDilation int64
	Reversal                                                    bool
}
