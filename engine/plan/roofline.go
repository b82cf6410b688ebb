package plan

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/engine/hlo"
	"weft/engine/tpu"
	"weft/pjrt"
)

// Shares of the nominal rates that programs are known to sustain; the upper end of an estimate uses them.
const (
	// sustainedLinks: the design's figures for ICI are 90 to 100 GB/s of a link's 100.
	sustainedLinks = 0.9
)

// Roofline is how long each resource is busy in a step, at its nominal rate, if it never waits for another.
type Roofline struct {
	ComputeS float64 `json:"compute_s"`
	HBMS     float64 `json:"hbm_s"`
	ICIS     float64 `json:"ici_s"`
	// DCNS is the data center network's, between slices.
	DCNS float64 `json:"dcn_s,omitempty"`
	// Bound names the one that is busy longest: compute, hbm, ici or dcn.
	Bound string `json:"bound"`
}

// Estimate is a range of times of a step, and what follows from it.
type Estimate struct {
	StepSLow       float64 `json:"step_s_low"`
	StepSHigh      float64 `json:"step_s_high"`
	TokensPerSLow  float64 `json:"tokens_per_s_low"`
	TokensPerSHigh float64 `json:"tokens_per_s_high"`
	// MFU is the share of the devices' peak that useful FLOPs make.
	MFULow  float64 `json:"mfu_low"`
	MFUHigh float64 `json:"mfu_high"`
}

// longest returns the bound.
func (r Roofline) longest() float64 { return max(r.ComputeS, r.HBMS, r.ICIS, r.DCNS) }

func (w *work) roofline(t tpu.Topology) Roofline {
	r := Roofline{
		ComputeS: w.flops.passes / t.Chip.PeakBF16PerDevice(),
		HBMS:     w.hbm.total() / t.Chip.HBMBandwidthPerDevice(),
		ICIS:     w.network.load.Seconds(),
		DCNS:     w.network.load.DCNSeconds(),
	}
	for _, part := range []struct {
		name    string
		seconds float64
	}{{"compute", r.ComputeS}, {"hbm", r.HBMS}, {"ici", r.ICIS}, {"dcn", r.DCNS}} {
		if r.Bound == "" || part.seconds > 0 && part.seconds == r.longest() {
			r.Bound = part.name
		}
	}
	return r
}

// estimate is the range from everything overlapping to nothing overlapping that the compiler has not made asynchronous.
func (w *work) estimate(r Roofline, t tpu.Topology, tokens int, useful float64) Estimate {
	e := Estimate{StepSLow: r.longest()}
	instructions := math.Max(w.serialSeconds, w.compilerSeconds)
	e.StepSHigh = math.Max(e.StepSLow, math.Max(instructions, w.network.asyncSeconds)+w.network.syncSeconds)
	peak := t.Chip.PeakBF16PerDevice() * float64(t.Devices())
	if e.StepSLow > 0 {
		e.TokensPerSHigh, e.MFUHigh = float64(tokens)/e.StepSLow, useful/peak/e.StepSLow
		e.TokensPerSLow, e.MFULow = float64(tokens)/e.StepSHigh, useful/peak/e.StepSHigh
	}
	return e
}

var cycles = regexp.MustCompile(`"estimated_cycles":"(\d+)"`)

// estimatedCycles is the compiler's own estimate of an instruction, 0 when it has none.
func estimatedCycles(in *hlo.Instruction) float64 {
	m := cycles.FindStringSubmatch(in.BackendConfig)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	return n
}

// assumptions says what the figures of a plan rest on.
func (w *work) assumptions(c *Compiled) []string {
	t := c.Topology
	axes := make([]string, len(t.Dims))
	for i, a := range t.Axes() {
		axes[i] = fmt.Sprintf("%s of %d", string("xyz"[i]), a.Size)
		if a.Wrap {
			axes[i] += " (wraps around)"
		}
	}
	out := []string{
		fmt.Sprintf("a device does %.4g bfloat16 FLOP/s and reaches its memory at %.4g GB/s, nominally", t.Chip.PeakBF16PerDevice(), t.Chip.HBMBandwidthPerDevice()/1e9),
		fmt.Sprintf("chips are joined along %s; one in a corner has %d ICI links of %.4g GB/s in each direction", strings.Join(axes, ", "), t.Links(), t.Chip.LinkBandwidth/1e9),
		"low: arithmetic, memory and communication overlap without a gap at nominal rates, and communication along several axes uses their links together",
		fmt.Sprintf("high: instructions run one after the other, each as long as its arithmetic or its memory traffic takes, or as the compiler estimates if that is longer; "+
			"communication that is not asynchronous waits for its turn, with links at %.0f%% and 1 µs a hop", 100*sustainedLinks),
		"FLOPs and bytes are counted in the optimised program, loops included; useful FLOPs are the model's own count",
		"every instruction reads its operands and writes its results in HBM once; slices and updates in place count what they touch; what the compiler keeps in vector memory counts nothing",
		"communication by rings: (n-1)/n of the whole on the wire of each device, twice that for an all-reduce",
	}
	if t.Chip.DevicesPerChip > 1 {
		out = append(out, fmt.Sprintf("the %d devices of a chip share what arrives over its links, and exchange it at %.4g GB/s", t.Chip.DevicesPerChip, t.Chip.OnChipBandwidth/1e9))
	}
	if t.Slices > 1 {
		out = append(out, fmt.Sprintf("slices are joined by a data center network of %.4g GB/s a chip; what crosses it is reduced within the slice first", t.Chip.DCNBandwidth/1e9))
	}
	if c.Effort == pjrt.EffortO0 {
		out = append(out, "compiled at the lowest effort: its memory, its fusions and what is asynchronous are not those of a real run")
	}
	if len(w.unknownLoops) > 0 {
		out = append(out, "loops whose trip count is unknown count once: "+strings.Join(slices.Sorted(maps.Keys(w.unknownLoops)), ", "))
	}
	if len(w.conditionals) > 0 {
		out = append(out, "all branches of a conditional count, though one runs: "+strings.Join(slices.Sorted(maps.Keys(w.conditionals)), ", "))
	}
	return out
}
