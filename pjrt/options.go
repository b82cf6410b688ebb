package pjrt

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// EffortLevel is how much work the compiler spends (xla.ExecutionOptions.EffortLevel).
type EffortLevel int32

// The levels of effort. EffortDefault leaves the choice to the plugin.
const (
	EffortDefault EffortLevel = 0
	EffortO0      EffortLevel = 9 // compiles many times faster; memory figures are not those of a real run
	EffortO1      EffortLevel = 19
	EffortO2      EffortLevel = 29
	EffortO3      EffortLevel = 39
)

// CompileOptions say how a program is compiled. The zero value is one replica and one partition on the plugin's default device.
type CompileOptions struct {
	NumReplicas   int // 0 means 1
	NumPartitions int // 0 means 1

	// DeviceAssignment has the global ids of the devices that the program runs on, replica-major: the device of replica r and
	// partition p is at r*NumPartitions+p. Empty leaves the choice to the plugin; a topology without a client needs none.
	DeviceAssignment []int

	UseSPMD   bool // partition one program over the partitions
	UseShardy bool // with Shardy, whose shardings are in the sdy dialect

	OptimizationLevel  EffortLevel
	MemoryFittingLevel EffortLevel
	ExecTimeEffort     float32 // -1 to 1, 0 is the default; older form of OptimizationLevel
	MemoryFitEffort    float32 // -1 to 1, 0 is the default; older form of MemoryFittingLevel

	// Whether the compiler may choose other shardings than those of the program for parameters and outputs: one value for all, or one
	// for each. Empty means no.
	PropagateToParameters, PropagateToOutputs []bool

	AliasPassthrough bool // alias parameters that are outputs unchanged
	DeduplicateHLO   bool
	Portable         bool // compile for any single device rather than the assigned one

	// EnvOptions override flags of XLA and of the plugin by name, such as "xla_dump_to": string, bool, int, int64 or float64.
	EnvOptions map[string]any
}

// replicas and partitions with the default put in.
func (o *CompileOptions) counts() (replicas, partitions int) {
	return max(o.NumReplicas, 1), max(o.NumPartitions, 1)
}

// Marshal writes the options as an xla.CompileOptionsProto. The same options give the same bytes. It is an error if the device
// assignment does not fit the counts or an option of EnvOptions has a type that cannot be written.
func (o *CompileOptions) Marshal() ([]byte, error) {
	if o.NumReplicas < 0 || o.NumPartitions < 0 {
		return nil, fmt.Errorf("pjrt: compile options: %d replicas and %d partitions: neither can be negative", o.NumReplicas, o.NumPartitions)
	}
	build, err := o.marshalBuild()
	if err != nil {
		return nil, err
	}
	var w protoWriter
	w.bytes(3, build) // executable_build_options
	w.bool(4, o.Portable)
	for _, name := range slices.Sorted(maps.Keys(o.EnvOptions)) {
		value, err := marshalOverride(name, o.EnvOptions[name])
		if err != nil {
			return nil, err
		}
		var entry protoWriter
		entry.bytes(1, []byte(name))
		entry.bytes(2, value)
		w.bytes(7, entry) // env_option_overrides
	}
	return w, nil
}

// marshalBuild writes xla.ExecutableBuildOptionsProto.
func (o *CompileOptions) marshalBuild() ([]byte, error) {
	replicas, partitions := o.counts()
	var w protoWriter
	w.int(1, -1) // device_ordinal: not set
	w.int(4, int64(replicas))
	w.int(5, int64(partitions))
	w.bool(6, o.UseSPMD)
	w.bool(8, o.DeduplicateHLO)
	if len(o.DeviceAssignment) != 0 {
		if len(o.DeviceAssignment) != replicas*partitions {
			return nil, fmt.Errorf("pjrt: compile options: device assignment has %d devices; %d replicas of %d partitions need %d",
				len(o.DeviceAssignment), replicas, partitions, replicas*partitions)
		}
		for i, id := range o.DeviceAssignment {
			if id < 0 {
				return nil, fmt.Errorf("pjrt: compile options: device assignment has id %d at place %d; ids are not negative", id, i)
			}
		}
		w.bytes(9, marshalAssignment(o.DeviceAssignment, replicas, partitions))
	}
	w.bool(10, o.AliasPassthrough)
	w.bools(12, o.PropagateToOutputs)
	w.bools(18, o.PropagateToParameters)
	w.bool(19, o.UseShardy)
	w.float32(20, o.ExecTimeEffort)
	w.float32(21, o.MemoryFitEffort)
	if o.OptimizationLevel != 0 {
		w.int(24, int64(o.OptimizationLevel))
	}
	if o.MemoryFittingLevel != 0 {
		w.int(25, int64(o.MemoryFittingLevel))
	}
	return w, nil
}

// marshalAssignment writes xla.DeviceAssignmentProto, which lists the replicas of each partition ("computation").
func marshalAssignment(ids []int, replicas, partitions int) []byte {
	var w protoWriter
	w.int(1, int64(replicas))
	w.int(2, int64(partitions))
	for p := range partitions {
		var packed protoWriter
		for r := range replicas {
			packed.varint(uint64(ids[r*partitions+p]))
		}
		var comp protoWriter
		comp.bytes(1, packed)
		w.bytes(3, comp)
	}
	return w
}

// marshalOverride writes xla.OptionOverrideProto, in which a zero is written too: it is a choice.
func marshalOverride(name string, value any) ([]byte, error) {
	var w protoWriter
	switch v := value.(type) {
	case string:
		w.bytes(1, []byte(v))
	case bool:
		w.tag(2, 0)
		if v {
			w.varint(1)
		} else {
			w.varint(0)
		}
	case int:
		w.int(3, int64(v))
	case int64:
		w.int(3, v)
	case float64:
		w.tag(4, 1)
		for bits, i := math.Float64bits(v), 0; i < 8; i++ {
			w = append(w, byte(bits>>(8*i)))
		}
	default:
		return nil, fmt.Errorf("pjrt: compile options: env option %q has type %T; string, bool, int, int64 and float64 are possible", name, value)
	}
	return w, nil
}

// protoWriter appends fields in protobuf's wire format.
type protoWriter []byte

func (w *protoWriter) varint(v uint64) {
	for v >= 0x80 {
		*w = append(*w, byte(v)|0x80)
		v >>= 7
	}
	*w = append(*w, byte(v))
}

func (w *protoWriter) tag(field, wire int) { w.varint(uint64(field)<<3 | uint64(wire)) }

func (w *protoWriter) int(field int, v int64) {
	w.tag(field, 0)
	w.varint(uint64(v))
}

// bool writes only true, as proto3 does.
func (w *protoWriter) bool(field int, v bool) {
	if v {
		w.int(field, 1)
	}
}

func (w *protoWriter) bools(field int, vs []bool) {
	if len(vs) == 0 {
		return
	}
	packed := make([]byte, len(vs))
	for i, v := range vs {
		if v {
			packed[i] = 1
		}
	}
	w.bytes(field, packed)
}

// float32 writes only what is not 0, as proto3 does.
func (w *protoWriter) float32(field int, v float32) {
	if v == 0 {
		return
	}
	w.tag(field, 5)
	for bits, i := math.Float32bits(v), 0; i < 4; i++ {
		*w = append(*w, byte(bits>>(8*i)))
	}
}

func (w *protoWriter) bytes(field int, b []byte) {
	w.tag(field, 2)
	w.varint(uint64(len(b)))
	*w = append(*w, b...)
}
