package main

import (
	"context"
	"fmt"
	"strings"

	"weft/bench/internal/sections"
)

// compareStep is what the comparison plans: the published job.
var compareStep = step{"gemma-4-E2B", "v6e:4x4"}

// comparisons are the values of `weft plan --compare`, by effort. What takes long at the default effort is compared at the
// lowest one, whose memory and overlap are not those of a run: only columns of one table can be compared.
var comparisons = map[string][]string{
	"default": {"gathers=1"},
	"O0":      {"gathers=1", "batch=8,16", "remat=none", "scan=false"},
}

// compared are the marks of the section of an effort.
func compared(effort string) sections.Marks {
	return sections.Marks{
		Begin: fmt.Sprintf("<!-- plans compared at %s: begin; written by make plan-goldens -->", effort),
		End:   fmt.Sprintf("<!-- plans compared at %s: end -->", effort),
	}
}

// compare plans all settings of the effort and writes its section.
func (o options) compare(ctx context.Context) error {
	changes, ok := comparisons[o.Effort]
	if !ok {
		return fmt.Errorf("--compare --effort %s: give default or O0", o.Effort)
	}
	var more []string
	for _, change := range changes {
		more = append(more, "--compare", change)
	}
	var result struct{ Plans []*figures }
	if err := o.plan(ctx, compareStep, o.Effort, more, &result); err != nil {
		return err
	}
	return sections.Write(o.Out, compared(o.Effort), comparedSection(result.Plans, o.Effort, sections.Revision()))
}

// rows are those of the table; a program's are empty where the compiler found none.
var rows = []struct {
	name    string
	program bool
	cell    func(p *figures) string
}{
	{"fits", false, func(p *figures) string { return map[bool]string{true: "yes", false: "no"}[p.Fits] }},
	{"peak of a device, GiB", false, func(p *figures) string { return gib(p.HBM.Peak) }},
	{"state", false, func(p *figures) string { return gib(p.HBM.Parameters + p.HBM.Moments + p.HBM.Frozen) }},
	{"gathered", true, func(p *figures) string { return gib(p.HBM.Gathered) }},
	{"gradients", true, func(p *figures) string { return gib(p.HBM.Gradients) }},
	{"activations", true, func(p *figures) string { return gib(p.HBM.Activations) }},
	{"other", false, func(p *figures) string { return gib(p.HBM.Temporaries) }},
	{"executed ÷ useful FLOPs", true, func(p *figures) string { return fmt.Sprintf("%.3f", p.FLOPs.Executed/p.FLOPs.Useful) }},
	{"HBM, GB", true, func(p *figures) string { return fmt.Sprintf("%.1f", float64(p.HBMBytes)/1e9) }},
	{"wire, GB", true, func(p *figures) string { return fmt.Sprintf("%.2f", float64(p.WireBytes)/1e9) }},
	{"of it asynchronous", true, func(p *figures) string { return fmt.Sprintf("%.0f%%", 100*p.asyncShare()) }},
	{"compute, ms", true, func(p *figures) string { return fmt.Sprintf("%.1f", 1e3*p.Roofline.Compute) }},
	{"HBM, ms", true, func(p *figures) string { return fmt.Sprintf("%.1f", 1e3*p.Roofline.HBM) }},
	{"ICI, ms", true, func(p *figures) string { return fmt.Sprintf("%.1f", 1e3*p.Roofline.ICI) }},
	{"bound", true, func(p *figures) string { return p.Roofline.Bound }},
	{"step, ms", true, func(p *figures) string {
		return fmt.Sprintf("%.0f–%.0f", 1e3*p.Estimate.StepLow, 1e3*p.Estimate.StepHigh)
	}},
	{"tokens/s", true, func(p *figures) string {
		return fmt.Sprintf("%.0f–%.0f", p.Estimate.TokensLow, p.Estimate.TokensHigh)
	}},
	{"MFU, %", true, func(p *figures) string {
		return fmt.Sprintf("%.1f–%.1f", 100*p.Estimate.MFULow, 100*p.Estimate.MFUHigh)
	}},
}

// comparedSection is the Markdown.
func comparedSection(plans []*figures, effort, revision string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Settings of one plan, side by side, at effort %s\n\n", compared(effort).Begin, effort)
	fmt.Fprintf(&b, "`weft plan --compare`, %s on %s; as given: batch 4 × 512 tokens a device, full remat, scanned layers, weights gathered twice a step, bfloat16 compute, "+
		"float32 master weights and moments; weft at %s. One setting is changed at a time. Nothing here was measured on a TPU.\n\n| |", compareStep.model, compareStep.topology, revision)
	for _, p := range plans {
		name := p.Setting
		if name == "" {
			name = "as given"
		}
		fmt.Fprintf(&b, " %s |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(plans)) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row.name)
		for _, p := range plans {
			cell := "–"
			if p.Error == "" || !row.program {
				cell = row.cell(p)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	b.WriteString(compared(effort).End + "\n")
	return b.String()
}
