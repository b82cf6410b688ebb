package job

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// variation is a setting of a plan and what of it differs from the flags, "" for nothing.
type variation struct {
	name   string
	config PlanConfig
}

// change sets one flag of a plan from text.
type change struct {
	name string
	set  func(c *PlanConfig, value string) error
}

// changes are what --compare knows; the long names are those of the flags.
var changes = []change{
	{"batch", setInt(func(c *PlanConfig) *int { return &c.BatchSizePerDevice })},
	{"batch-size-per-device", setInt(func(c *PlanConfig) *int { return &c.BatchSizePerDevice })},
	{"seq", setInt(func(c *PlanConfig) *int { return &c.MaxSeqLen })},
	{"max-seq-len", setInt(func(c *PlanConfig) *int { return &c.MaxSeqLen })},
	{"remat", setText(func(c *PlanConfig) *string { return &c.Remat }, "none", "full")},
	{"scan", set(func(c *PlanConfig) *bool { return &c.Scan }, strconv.ParseBool, "true or false")},
	{"gathers", func(c *PlanConfig, value string) error {
		if value != "1" && value != "2" {
			return fmt.Errorf("give one of 1, 2")
		}
		c.Gathers = int(value[0] - '0')
		return nil
	}},
	{"compute-dtype", setText(func(c *PlanConfig) *string { return &c.ComputeDType }, "bfloat16", "float32")},
	{"param-dtype", setText(func(c *PlanConfig) *string { return &c.ParamDType }, "auto", "float32", "bfloat16", "float16")},
	{"first-moment-dtype", setText(func(c *PlanConfig) *string { return &c.FirstMomentDType }, "float32", "bfloat16")},
	{"max-grad-norm", set(func(c *PlanConfig) *float64 { return &c.MaxGradNorm }, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, "a number")},
	{"topology", setText(func(c *PlanConfig) *string { return &c.Topology })},
}

// set sets a field to a value that parse reads; what says what that must be.
func set[T any](field func(*PlanConfig) *T, parse func(string) (T, error), what string) func(*PlanConfig, string) error {
	return func(c *PlanConfig, value string) error {
		v, err := parse(value)
		if err != nil {
			return fmt.Errorf("give %s", what)
		}
		*field(c) = v
		return nil
	}
}

func setInt(field func(*PlanConfig) *int) func(*PlanConfig, string) error {
	return set(field, strconv.Atoi, "a whole number")
}

func setText(field func(*PlanConfig) *string, allowed ...string) func(*PlanConfig, string) error {
	return func(c *PlanConfig, value string) error {
		if len(allowed) > 0 && !slices.Contains(allowed, value) {
			return fmt.Errorf("give one of %s", strings.Join(allowed, ", "))
		}
		*field(c) = value
		return nil
	}
}

// parseVariations reads --compare: the settings given first, then each value that differs from them, one at a time.
func parseVariations(c PlanConfig) ([]variation, error) {
	base := c
	base.Compare = nil
	out := []variation{{config: base}}
	for _, text := range c.Compare {
		name, values, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--compare %s: give a name and its values, such as batch=4,8,16", text)
		}
		i := slices.IndexFunc(changes, func(x change) bool { return x.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--compare %s: %s is not known: give one of batch, seq, remat, scan, gathers, compute-dtype, param-dtype, first-moment-dtype, max-grad-norm, topology", text, name)
		}
		for value := range strings.SplitSeq(values, ",") {
			v := variation{name: name + "=" + value, config: base}
			if err := changes[i].set(&v.config, value); err != nil {
				return nil, fmt.Errorf("--compare %s: value %q: %w", text, value, err)
			}
			if !slices.ContainsFunc(out, func(o variation) bool { return o.config.same(v.config) }) {
				out = append(out, v)
			}
		}
	}
	return out, nil
}

// same tells whether two settings shape the same step for the same slice.
func (c *PlanConfig) same(o PlanConfig) bool {
	return c.ModelFlags == o.ModelFlags && c.BatchFlags == o.BatchFlags && c.UpdateFlags == o.UpdateFlags &&
		c.Topology == o.Topology && c.AcceleratorType == o.AcceleratorType && c.NumSlices == o.NumSlices
}

// Attempt is a change that was tried because a step does not fit.
type Attempt struct {
	// Change is what was changed, as flags.
	Change string `json:"change"`
	Fits   bool   `json:"fits"`
	// PeakBytes is what a device needs then. Compiled is false where that is only the arguments, which alone are too much.
	PeakBytes  int64 `json:"peak_bytes"`
	LimitBytes int64 `json:"limit_bytes"`
	Compiled   bool  `json:"compiled"`
}

// fit tries changes, the smallest first, until one fits. Each is compiled, unless its arguments alone, which are known
// exactly, do not fit.
func (p *planner) fit(ctx context.Context) ([]Attempt, error) {
	var tried []Attempt
	for _, v := range p.smallestChanges() {
		step, err := p.lower(v)
		if err != nil {
			return tried, err
		}
		a := Attempt{Change: v.name, PeakBytes: step.argumentBytes(), LimitBytes: step.limitBytes}
		if a.PeakBytes <= a.LimitBytes {
			result, err := p.compile(ctx, step)
			if err != nil {
				return tried, err
			}
			a.Compiled, a.Fits, a.PeakBytes = true, result.Fits, result.HBM.PeakBytes
		}
		if tried = append(tried, a); a.Fits {
			return tried, nil
		}
	}
	return tried, nil
}

// smallestChanges lists what keeps the mathematics of an update first (how the program is written), then smaller batches,
// then the same with a first moment of half the bytes, then more chips of the same type.
func (p *planner) smallestChanges() []variation {
	c := p.config
	c.Compare, c.Save = nil, false
	var out []variation
	var flags []string
	add := func(flag string) {
		out = append(out, variation{strings.Join(append(slices.Clone(flags), flag), " "), c})
	}
	if c.Gathers == 1 {
		c.Gathers = 2
		add("--gathers 2")
		flags = append(flags, "--gathers 2")
	}
	if c.Remat != "full" {
		c.Remat = "full"
		add("--remat full")
		flags = append(flags, "--remat full")
	}
	if !c.Scan {
		c.Scan = true
		add("--scan")
		flags = append(flags, "--scan")
	}
	whole := c.BatchSizePerDevice
	smaller := func() {
		for c.BatchSizePerDevice = whole / 2; c.BatchSizePerDevice > 0; c.BatchSizePerDevice /= 2 {
			add(fmt.Sprintf("--batch-size-per-device %d", c.BatchSizePerDevice))
		}
		c.BatchSizePerDevice = whole
	}
	smaller()
	if kept := flags; c.FirstMomentDType == DTypeFloat32 {
		c.FirstMomentDType = "bfloat16"
		add("--first-moment-dtype bfloat16")
		flags = append(slices.Clone(flags), "--first-moment-dtype bfloat16")
		smaller()
		c.FirstMomentDType, flags = DTypeFloat32, kept
	}
	c.NumWorkers = 0
	if t, err := c.topology(); err == nil {
		for _, larger := range t.Larger() {
			if larger.Devices() > maxGrowth*t.Devices() {
				break
			}
			c.Topology, c.AcceleratorType = larger.SliceName(), ""
			add("--topology " + c.Topology)
		}
	}
	return out
}

// maxGrowth bounds the larger slices that are tried: beyond it the answer is another chip or another model.
const maxGrowth = 4
