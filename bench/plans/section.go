package main

import (
	"fmt"
	"strings"

	"weft/bench/internal/sections"
)

// figures are the fields of `weft plan --json` that the section shows.
type figures struct {
	name     string
	Topology string  `json:"topology"`
	Chip     string  `json:"chip"`
	Setting  string  `json:"setting"`
	Devices  int     `json:"devices"`
	Mesh     string  `json:"mesh"`
	Fits     bool    `json:"fits"`
	CompileS float64 `json:"compile_s"`
	Error    string  `json:"error"`
	Trained  int     `json:"trained_parameters"`
	HBM      struct {
		Limit       int64 `json:"limit_bytes"`
		Peak        int64 `json:"peak_bytes"`
		Parameters  int64 `json:"parameters_bytes"`
		Moments     int64 `json:"moments_bytes"`
		Frozen      int64 `json:"frozen_bytes"`
		Gathered    int64 `json:"gathered_bytes"`
		Gradients   int64 `json:"gradients_bytes"`
		Activations int64 `json:"activations_bytes"`
		Temporaries int64 `json:"temporaries_bytes"`
	} `json:"hbm"`
	FLOPs struct {
		Useful   float64 `json:"useful"`
		Executed float64 `json:"executed"`
	} `json:"flops"`
	HBMBytes    int64 `json:"hbm_bytes"`
	WireBytes   int64 `json:"wire_bytes"`
	Collectives []struct {
		Kind  string `json:"kind"`
		DType string `json:"dtype"`
		Count int64  `json:"count"`
		Bytes int64  `json:"bytes"`
		Async bool   `json:"async"`
	} `json:"collectives"`
	Roofline struct {
		Compute float64 `json:"compute_s"`
		HBM     float64 `json:"hbm_s"`
		ICI     float64 `json:"ici_s"`
		Bound   string  `json:"bound"`
	} `json:"roofline"`
	Estimate struct {
		StepLow    float64 `json:"step_s_low"`
		StepHigh   float64 `json:"step_s_high"`
		TokensLow  float64 `json:"tokens_per_s_low"`
		TokensHigh float64 `json:"tokens_per_s_high"`
		MFULow     float64 `json:"mfu_low"`
		MFUHigh    float64 `json:"mfu_high"`
	} `json:"estimate"`
	Tried []struct {
		Change   string `json:"change"`
		Fits     bool   `json:"fits"`
		Compiled bool   `json:"compiled"`
		Peak     int64  `json:"peak_bytes"`
	} `json:"tried"`
}

// released are those of the section of released sizes.
var released = sections.Marks{Begin: "<!-- plans: begin; written by make plan-goldens -->", End: "<!-- plans: end -->"}

func gib(n int64) string { return fmt.Sprintf("%.2f", float64(n)/(1<<30)) }

// section is the Markdown.
func section(plans []*figures, effort, revision string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Plans for TPU slices\n\n", released.Begin)
	fmt.Fprintf(&b, "`weft plan`, batch 4 × 512 tokens a device, full remat, scanned layers, bfloat16 compute, float32 master weights and moments; compiled by libtpu at effort %s "+
		"with no chip present, weft at %s. Nothing here was measured on a TPU: [docs/plan.md](docs/plan.md) says what the figures mean.\n\n", effort, revision)
	b.WriteString("| model | slice | trained, M | compiled in, s | fits | peak of a device, GiB | limit | state | gathered | gradients | activations | other |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range plans {
		h := p.HBM
		fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %s | %s | %s | %s | %s | %s | %s | %s |\n", p.name, p.Topology, float64(p.Trained)/1e6, p.CompileS,
			map[bool]string{true: "yes", false: "no"}[p.Fits], gib(h.Peak), gib(h.Limit), gib(h.Parameters+h.Moments+h.Frozen),
			gib(h.Gathered), gib(h.Gradients), gib(h.Activations), gib(h.Temporaries))
	}
	b.WriteString("\n| model | slice | executed ÷ useful FLOPs | HBM, GB | wire, GB | of it asynchronous | compute, ms | HBM, ms | ICI, ms | bound | step, ms | tokens/s | MFU, % |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range plans {
		if p.Error != "" {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %.3f | %.1f | %.2f | %.0f%% | %.1f | %.1f | %.1f | %s | %.0f–%.0f | %.0f–%.0f | %.1f–%.1f |\n", p.name, p.Topology,
			p.FLOPs.Executed/p.FLOPs.Useful, float64(p.HBMBytes)/1e9, float64(p.WireBytes)/1e9, 100*p.asyncShare(),
			1e3*p.Roofline.Compute, 1e3*p.Roofline.HBM, 1e3*p.Roofline.ICI, p.Roofline.Bound, 1e3*p.Estimate.StepLow, 1e3*p.Estimate.StepHigh,
			p.Estimate.TokensLow, p.Estimate.TokensHigh, 100*p.Estimate.MFULow, 100*p.Estimate.MFUHigh)
	}
	for _, p := range plans {
		writeTried(&b, p)
	}
	b.WriteString(released.End + "\n")
	return b.String()
}

// asyncShare is how much of what goes over the wire may overlap with computation.
func (p *figures) asyncShare() float64 {
	var n int64
	for _, c := range p.Collectives {
		if c.Async {
			n += c.Bytes
		}
	}
	return float64(n) / float64(max(1, p.WireBytes))
}

func writeTried(b *strings.Builder, p *figures) {
	if p.Fits {
		return
	}
	fmt.Fprintf(b, "\n%s on %s does not fit.", p.name, p.Topology)
	for _, t := range p.Tried {
		outcome := "does not fit"
		if t.Fits {
			outcome = "fits"
		} else if !t.Compiled {
			outcome = "does not fit, by its arguments alone"
		}
		fmt.Fprintf(b, " Tried `%s`: %s, %s GiB.", t.Change, outcome, gib(t.Peak))
	}
	b.WriteString("\n")
}
