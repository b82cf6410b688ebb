package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/pjrt"
)

// Report is a plan. Its JSON form is what `weft plan --json` prints. Bytes and FLOPs are those of one device and one step,
// unless a field says otherwise.
type Report struct {
	// Topology is the slice's name, Devices the number of devices of all slices, Chip what one of its chips is called.
	Topology string `json:"topology"`
	Chip     string `json:"chip"`
	Devices  int    `json:"devices"`
	// Mesh is how the program arranges them.
	Mesh string `json:"mesh"`
	// Fits tells whether PeakBytes are within LimitBytes.
	Fits     bool    `json:"fits"`
	CompileS float64 `json:"compile_s"`
	// Error is the compiler's message when it found no way to fit the program; there is no program to count then.
	Error string `json:"error,omitempty"`

	HBM         HBM          `json:"hbm"`
	FLOPs       FLOPs        `json:"flops"`
	HBMBytes    int64        `json:"hbm_bytes"`
	WireBytes   int64        `json:"wire_bytes"`
	Collectives []Collective `json:"collectives"`
	Roofline    Roofline     `json:"roofline"`
	Estimate    Estimate     `json:"estimate"`
	// Assumptions say what the figures rest on, a sentence each.
	Assumptions []string `json:"assumptions"`
}

// HBM is the memory of a device, in bytes. The classes add up to PeakBytes. Parameters, moments, frozen tensors and batch
// are exact, computed from the shards; padding, outputs and code are the compiler's figures; the others divide the
// compiler's temporaries by what is alive at the fullest moment of the optimised program's schedule.
type HBM struct {
	LimitBytes int64 `json:"limit_bytes"`
	PeakBytes  int64 `json:"peak_bytes"`

	// ParametersBytes are master weights that are trained, MomentsBytes the optimizer's slots, FrozenBytes tensors that
	// are not trained, BatchBytes the other arguments.
	ParametersBytes int64 `json:"parameters_bytes"`
	MomentsBytes    int64 `json:"moments_bytes"`
	FrozenBytes     int64 `json:"frozen_bytes"`
	BatchBytes      int64 `json:"batch_bytes"`
	// PaddingBytes is what the arguments take beyond their elements.
	PaddingBytes int64 `json:"padding_bytes"`
	// OutputsBytes are results that are not written over an argument.
	OutputsBytes int64 `json:"outputs_bytes"`
	// GatheredBytes are weights made whole: those of one layer, if any, or all that are kept for the backward pass;
	// GradientsBytes gradients of the shape of a parameter's shard.
	GatheredBytes  int64 `json:"gathered_bytes"`
	GradientsBytes int64 `json:"gradients_bytes"`
	// ActivationsBytes are values that loops carry, or that are kept from the forward to the backward pass.
	ActivationsBytes int64 `json:"activations_bytes"`
	// TemporariesBytes are all other temporaries, CodeBytes the program itself.
	TemporariesBytes int64 `json:"temporaries_bytes"`
	CodeBytes        int64 `json:"code_bytes"`
}

// FLOPs is arithmetic of one device and step.
type FLOPs struct {
	// Useful is what the model's mathematics needs, by its own count, divided by the devices.
	Useful float64 `json:"useful"`
	// Executed is what the dots and convolutions of the optimised program do, loops included: with rematerialisation and
	// masked attention.
	Executed float64 `json:"executed"`
	// Elementwise is one for each element of any other arithmetic.
	Elementwise float64 `json:"elementwise"`
}

// Facts are what a program does not know about itself.
type Facts struct {
	// Params and Slots are the model's parameters and the optimizer's slots of a trained one.
	Params []engine.Param
	Slots  []engine.Slot
	// UsefulFLOPs is the model's own count for the global batch of one step, TokensPerStep that batch's tokens.
	UsefulFLOPs   float64
	TokensPerStep int
}

// Analyze reads a compiled step. It fails on a program that it cannot count, never on one that does not fit.
func Analyze(c *Compiled, f Facts) (*Report, error) {
	mesh := c.Lowered.Mesh
	devices := mesh.NumDevices()
	r := &Report{
		Topology: c.Topology.String(), Chip: c.Topology.Chip.Title, Devices: devices, Mesh: mesh.String(), CompileS: c.CompileTime.Seconds(),
		FLOPs: FLOPs{Useful: f.UsefulFLOPs / float64(devices)}, Collectives: []Collective{},
	}
	r.HBM = Arguments(mesh, f.Params, f.Slots, c.Lowered.Inputs)
	r.HBM.LimitBytes = c.LimitBytes
	if c.Exceeded != nil {
		r.Error = c.Exceeded.Message
		r.HBM.PeakBytes = max(c.Exceeded.UsedBytes, r.HBM.argumentBytes())
		r.HBM.TemporariesBytes = r.HBM.PeakBytes - r.HBM.argumentBytes()
		r.Assumptions = []string{"the compiler gave up on fitting the step in memory: peak_bytes is its last figure, and there is no program to count"}
		return r, nil
	}
	w, err := measure(c.Module, &c.Topology, devices)
	if err != nil {
		return nil, fmt.Errorf("analyse the step compiled for %s: %w", c.Topology, err)
	}
	live := liveAtPeak(c.Module, knownShapes(mesh, f.Params))
	r.HBM.fill(c.Memory, live)
	r.Fits = r.HBM.PeakBytes <= r.HBM.LimitBytes
	r.FLOPs.Executed, r.FLOPs.Elementwise = w.flops.products, w.flops.elementwise
	r.HBMBytes = int64(w.hbm.total())
	r.Collectives = w.network.collectives()
	for _, x := range r.Collectives {
		r.WireBytes += x.Bytes
	}
	r.Roofline = w.roofline(c.Topology)
	r.Estimate = w.estimate(r.Roofline, c.Topology, f.TokensPerStep, f.UsefulFLOPs)
	r.Assumptions = w.assumptions(c)
	return r, nil
}

// Arguments returns the classes of HBM that are arguments of a step: those of the parameters and their slots, and of the
// inputs that are neither. They are exact, without padding.
func Arguments(mesh sharding.Mesh, params []engine.Param, slots []engine.Slot, inputs []engine.Input) HBM {
	var h HBM
	state := map[string]bool{}
	for _, p := range params {
		elements := sharding.Region{Size: p.Spec.ShardDims(mesh, p.Dims)}.Elements()
		n := int64(elements * p.DType.Size())
		state[p.Name] = true
		if !p.Trainable {
			h.FrozenBytes += n
			continue
		}
		h.ParametersBytes += n
		for _, s := range slots {
			state[p.Name+"/"+s.Name] = true
			h.MomentsBytes += int64(elements * s.DType.Size())
		}
	}
	for _, in := range inputs {
		if !state[in.Name] {
			h.BatchBytes += int64(sharding.Region{Size: in.Spec.ShardDims(mesh, in.Dims)}.Elements() * in.DType.Size())
		}
	}
	return h
}

func (h *HBM) argumentBytes() int64 {
	return h.ParametersBytes + h.MomentsBytes + h.FrozenBytes + h.BatchBytes
}

// fill adds the compiler's figures.
func (h *HBM) fill(m pjrt.CompiledMemoryStats, live sizes) {
	h.PaddingBytes = m.Argument - h.argumentBytes()
	h.OutputsBytes = m.Output - m.Alias
	h.CodeBytes = m.GeneratedCode
	h.PeakBytes = m.Argument + h.OutputsBytes + m.Temp + m.GeneratedCode
	// The compiler's buffers are what counts: what of them the schedule explains is divided, the rest is temporary.
	scale := 1.0
	if n := live.total(); n > m.Temp {
		scale = float64(m.Temp) / float64(n)
	}
	h.GatheredBytes = int64(scale * float64(live[gathered]))
	h.GradientsBytes = int64(scale * float64(live[gradient]))
	h.ActivationsBytes = int64(scale * float64(live[activation]))
	h.TemporariesBytes = m.Temp - h.GatheredBytes - h.GradientsBytes - h.ActivationsBytes
}

// work is what a step does.
type work struct {
	flops   flops
	hbm     bytes
	network *network
	// serialSeconds is the time of all instructions one after the other, each as long as its arithmetic or its memory
	// traffic takes, whichever is longer; communication apart. compilerSeconds is the same by the compiler's own estimates,
	// where it has any.
	serialSeconds, compilerSeconds float64
	// unknownLoops and conditionals are what could not be counted exactly.
	unknownLoops, conditionals map[string]bool
}

// measure counts a program. topology may be nil: nothing is laid on links then, and there are no times.
func measure(m *hlo.Module, topology *tpu.Topology, devices int) (*work, error) {
	w := &work{network: newNetwork(topology), unknownLoops: map[string]bool{}, conditionals: map[string]bool{}}
	return w, m.Walk(func(s hlo.Site) error {
		times := float64(s.Times)
		if s.Unknown != nil {
			w.unknownLoops[s.Unknown.Name] = true
		}
		if s.Branch != nil {
			w.conditionals[s.Branch.Name] = true
		}
		f, err := flopsOf(s.Computation, s.Instruction)
		if err != nil {
			return err
		}
		w.flops.add(f, times)
		x := s.Computation.Communication(s.Instruction)
		if x != nil {
			if err := w.network.add(newExchange(x, s.Times, x.Async || s.Async != nil, devices)); err != nil {
				return err
			}
		}
		if s.Fused {
			return nil
		}
		b := trafficOf(m, s.Computation, s.Instruction)
		w.hbm.add(b, times)
		if topology == nil || x != nil || s.Async != nil || s.Instruction.Opcode == "copy-start" {
			return nil // others run meanwhile
		}
		inner, err := fusedFLOPs(m, s.Instruction)
		if err != nil {
			return err
		}
		inner.add(f, 1)
		compute, memory := inner.passes/topology.Chip.PeakBF16PerDevice(), b.total()/topology.Chip.HBMBandwidthPerDevice()
		w.serialSeconds += times * math.Max(compute, memory)
		w.compilerSeconds += times * estimatedCycles(s.Instruction) / topology.Chip.ClockHz
		return nil
	})
}

// fusedFLOPs is the arithmetic inside a fusion.
func fusedFLOPs(m *hlo.Module, in *hlo.Instruction) (sum flops, err error) {
	if in.Opcode != "fusion" {
		return sum, nil
	}
	for _, id := range in.Calls {
		callee := m.Computation(id)
		if callee == nil {
			continue
		}
		for _, inner := range callee.Instructions {
			f, err1 := flopsOf(callee, inner)
			g, err2 := fusedFLOPs(m, inner)
			if err := firstOf(err1, err2); err != nil {
				return sum, err
			}
			sum.add(f, 1)
			sum.add(g, 1)
		}
	}
	return sum, nil
}

// Counts is what a program does on one device, without a topology to lay it on.
type Counts struct {
	// FLOPs has no useful ones.
	FLOPs               FLOPs
	HBMBytes, WireBytes int64
	Collectives         []Collective
	// UnknownLoops lists loops whose trip count could not be found; they count once.
	UnknownLoops []string
}

// Count counts an optimised program that runs on so many devices, of any platform.
func Count(m *hlo.Module, devices int) (*Counts, error) {
	w, err := measure(m, nil, devices)
	if err != nil {
		return nil, fmt.Errorf("count the program %s: %w", m.Name, err)
	}
	c := &Counts{
		FLOPs: FLOPs{Executed: w.flops.products, Elementwise: w.flops.elementwise}, HBMBytes: int64(w.hbm.total()),
		Collectives: w.network.collectives(), UnknownLoops: slices.Sorted(maps.Keys(w.unknownLoops)),
	}
	for _, x := range c.Collectives {
		c.WireBytes += x.Bytes
	}
	return c, nil
}
