package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"weft/engine"
	"weft/engine/plan"
	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/optim"
	"weft/pjrt"
)

// PlanConfig is everything a plan is told. Its field tags are the flags of `weft plan`.
type PlanConfig struct {
	ModelFlags
	BatchFlags
	UpdateFlags

	Topology        string `group:"devices" placeholder:"NAME" help:"Slice to compile for: chip and chips along each side, such as v6e:4x4, tpu7x:2x2x2, v5p:2x2x2 or v5e:2x4; or only the sides, such as 4x4, with --accelerator-type. An unknown one gets a list of the known."`
	AcceleratorType string `name:"accelerator-type" group:"devices" placeholder:"TYPE" help:"Chip of the slice, such as TPU-V6E or TPU-V7X, where --topology does not name it."`
	NumWorkers      int    `name:"num-workers" group:"devices" default:"0" placeholder:"N" help:"Devices that are expected; a slice with another number is an error."`
	NumSlices       int    `name:"num-slices" group:"devices" default:"1" placeholder:"N" help:"Equal slices, joined by the data center network: parameters are split within each, gradients summed over all (HSDP)."`
	Plugin          string `group:"devices" placeholder:"PATH" help:"libtpu to load instead of the installed one. Also WEFT_PJRT_PLUGIN. Default: the installed one; the first time it is downloaded."`

	Effort       string   `group:"plan" default:"default" enum:"default,O0,O1,O2,O3" help:"What the compiler spends: ${enum}. default is that of a run. O0 compiles several times faster; its memory and its overlap of communication are not those of a run."`
	Compare      []string `group:"plan" sep:"none" placeholder:"NAME=V,…" help:"Plan variations beside the settings given, one changed at a time: batch, seq, remat, scan, gathers, compute-dtype, param-dtype, first-moment-dtype, max-grad-norm, topology. Repeatable: --compare batch=4,8,16 --compare remat=none,full --compare gathers=1,2."`
	Save         bool     `group:"plan" help:"Keep what was compiled in the compile cache, where a run with the same settings, slice and libtpu finds it: its first step starts warm."`
	CompileCache string   `name:"compile-cache" group:"plan" placeholder:"DIR" help:"Folder for --save. Default: weft/compile in the user's cache folder."`
}

// StepPlan is the plan of one step: its settings and, flattened in JSON, the report of package plan.
type StepPlan struct {
	// Setting is what differs from the flags, "" for nothing.
	Setting string `json:"setting,omitempty"`
	Model   string `json:"model"`
	// TrainedParameters and FrozenParameters count elements of all devices.
	TrainedParameters int          `json:"trained_parameters"`
	FrozenParameters  int          `json:"frozen_parameters"`
	Settings          PlanSettings `json:"settings"`
	plan.Report
	// Tried are the changes that were tried because the step does not fit, the last one being that which does, if any.
	Tried []Attempt `json:"tried,omitempty"`
	// Saved is the entry of the compile cache.
	Saved string `json:"saved,omitempty"`
}

// PlanSettings are the flags that shaped the step.
type PlanSettings struct {
	BatchSizePerDevice int     `json:"batch_size_per_device"`
	GlobalBatch        int     `json:"global_batch"`
	MaxSeqLen          int     `json:"max_seq_len"`
	ComputeDType       string  `json:"compute_dtype"`
	ParamDType         string  `json:"param_dtype"`
	Freeze             string  `json:"freeze"`
	Remat              string  `json:"remat"`
	Scan               bool    `json:"scan"`
	Gathers            int     `json:"gathers"`
	MaxGradNorm        float64 `json:"max_grad_norm"`
	FirstMomentDType   string  `json:"first_moment_dtype"`
	Effort             string  `json:"effort"`
}

// efforts are the values of --effort.
var efforts = map[string]pjrt.EffortLevel{
	"default": pjrt.EffortDefault, "O0": pjrt.EffortO0, "O1": pjrt.EffortO1, "O2": pjrt.EffortO2, "O3": pjrt.EffortO3,
}

// Plan compiles the training step for a slice that need not be there and says what it needs: the plan of the settings
// given, then those of --compare. When the first does not fit, and there is nothing to compare, it tries changes until one
// fits. progress gets a line for each compilation, which may take minutes. What is wrong with the input is an InputError.
func Plan(ctx context.Context, c PlanConfig, progress io.Writer) ([]*StepPlan, error) {
	p := &planner{config: c, progress: progress}
	variations, err := p.check()
	if err != nil {
		return nil, Input(err)
	}
	if err := p.open(ctx); err != nil {
		return nil, Input(err)
	}
	plans, err := p.all(ctx, variations)
	return plans, errors.Join(err, p.close())
}

// check reads everything that needs no plugin, of the variations too.
func (p *planner) check() (variations []variation, err error) {
	c := &p.config
	if c.ModelID == "" {
		return nil, fmt.Errorf("--model-id is missing: give a model's folder, a config.json or a preset such as gemma-4-E2B")
	}
	if c.Topology == "" {
		return nil, fmt.Errorf("--topology is missing: give the chip and the chips along each side; the known are %s", tpu.Known())
	}
	if c.Save && c.Effort != "default" {
		return nil, fmt.Errorf("--save keeps what a run looks for, which is compiled at the default effort: leave out --effort %s", c.Effort)
	}
	if p.cacheDir, err = compileCacheDir(c.CompileCache); err != nil {
		return nil, err
	}
	if c.Save && p.cacheDir == "" {
		return nil, fmt.Errorf("--save contradicts --compile-cache off: leave out one of them")
	}
	if p.files, err = readModelFiles(c.ModelID, true); err != nil {
		return nil, err
	}
	if variations, err = parseVariations(*c); err != nil {
		return nil, err
	}
	for _, v := range variations {
		if err := p.checkOne(v.config); err != nil {
			if v.name != "" {
				err = fmt.Errorf("--compare %s: %w", v.name, err)
			}
			return nil, err
		}
	}
	return variations, nil
}

func (p *planner) checkOne(c PlanConfig) error {
	if err := c.BatchFlags.check(); err != nil {
		return err
	}
	if err := c.UpdateFlags.check(); err != nil {
		return err
	}
	if err := c.checkLength(p.files.arch.Info()); err != nil {
		return err
	}
	top, err := c.topology()
	if err != nil {
		return err
	}
	if c.NumWorkers > 0 && c.NumWorkers != top.Devices() {
		return fmt.Errorf("--num-workers is %d, %s has %d devices: correct it or leave it out", c.NumWorkers, top, top.Devices())
	}
	// What is wrong with --freeze or --remat does not depend on the mesh.
	one, err := sharding.NewMesh(sharding.Axis{Name: engine.FSDPAxis, Size: 1})
	if err != nil {
		return err
	}
	_, err = c.declare(p.files, one)
	return err
}

// topology reads --topology, --accelerator-type and --num-slices.
func (c *PlanConfig) topology() (t tpu.Topology, err error) {
	chip, _, named := strings.Cut(c.Topology, ":")
	switch {
	case c.AcceleratorType == "":
		t, err = tpu.Parse(c.Topology)
	case named:
		if t, err = tpu.Parse(c.Topology); err != nil {
			break
		}
		want, err := tpu.FindChip(c.AcceleratorType)
		if err != nil {
			return t, fmt.Errorf("--accelerator-type: %w", err)
		}
		if want != t.Chip {
			return t, fmt.Errorf("--accelerator-type %s contradicts %s in --topology %s: leave out one of them", c.AcceleratorType, chip, c.Topology)
		}
	default:
		t, err = tpu.ParseJob(c.Topology, c.AcceleratorType)
	}
	if err != nil {
		return t, fmt.Errorf("--topology: %w", err)
	}
	if t, err = t.WithSlices(c.NumSlices); err != nil {
		return t, fmt.Errorf("--num-slices: %w", err)
	}
	return t, nil
}

// plannedStep is the step of one setting, not yet compiled.
type plannedStep struct {
	variation
	topology   tpu.Topology
	limitBytes int64
	lowered    *engine.Lowered
	facts      plan.Facts
}

// lower writes the step of one setting for its slice.
func (p *planner) lower(v variation) (*plannedStep, error) {
	c := v.config
	t, err := c.topology()
	if err != nil {
		return nil, Input(err)
	}
	s := &plannedStep{variation: v, topology: t}
	top, limit, err := plan.Describe(p.plugin, t)
	if err != nil {
		return nil, err
	}
	s.limitBytes = limit
	devices, err := top.Devices()
	if err != nil {
		return nil, errors.Join(err, top.Destroy())
	}
	mesh, shardAxes, err := engine.HSDPMesh(devices, t.Slices)
	if err := errors.Join(err, top.Destroy()); err != nil {
		return nil, fmt.Errorf("arrange the devices of %s: %w", t, err)
	}
	model, err := c.declare(p.files, mesh, shardAxes...)
	if err != nil {
		return nil, err
	}
	// The program does not depend on the numbers of AdamW: they are arguments.
	opt, err := c.adamW(optim.Constant(1e-5), optim.DefaultBeta1, optim.DefaultBeta2, optim.DefaultEps, optim.DefaultWeightDecay)
	if err != nil {
		return nil, err
	}
	batch := c.BatchSizePerDevice * mesh.NumDevices()
	s.facts = plan.Facts{
		Params: model.Params(), Slots: opt.Slots(), UsefulFLOPs: model.UsefulFLOPs(batch, c.MaxSeqLen), TokensPerStep: batch * c.MaxSeqLen,
	}
	s.lowered, err = engine.LowerStep(mesh, model, opt, stepConfig(mesh, batch, c.MaxSeqLen, c.MaxGradNorm))
	return s, err
}

// argumentBytes is what the arguments of the step take on a device, exactly.
func (s *plannedStep) argumentBytes() int64 {
	h := plan.Arguments(s.lowered.Mesh, s.facts.Params, s.facts.Slots, s.lowered.Inputs)
	return h.ParametersBytes + h.MomentsBytes + h.FrozenBytes + h.BatchBytes
}
