package job

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// comparedPlans is how many columns stand side by side before another block of rows begins.
const comparedPlans = 5

// comparedRows are the rows of a comparison. Those that need a program are empty where the compiler found none.
var comparedRows = []struct {
	name    string
	program bool
	cell    func(p *StepPlan) string
}{
	{"fits", false, func(p *StepPlan) string { return map[bool]string{true: "yes", false: "no"}[p.Fits] }},
	{"peak of a device, GiB", false, func(p *StepPlan) string { return fmt.Sprintf("%.2f", gibs(p.HBM.PeakBytes)) }},
	{"  limit", false, func(p *StepPlan) string { return fmt.Sprintf("%.2f", gibs(p.HBM.LimitBytes)) }},
	{"  state", false, func(p *StepPlan) string {
		return fmt.Sprintf("%.2f", gibs(p.HBM.ParametersBytes+p.HBM.MomentsBytes+p.HBM.FrozenBytes))
	}},
	{"  gathered weights", true, func(p *StepPlan) string { return fmt.Sprintf("%.2f", gibs(p.HBM.GatheredBytes)) }},
	{"  gradients", true, func(p *StepPlan) string { return fmt.Sprintf("%.2f", gibs(p.HBM.GradientsBytes)) }},
	{"  activations", true, func(p *StepPlan) string { return fmt.Sprintf("%.2f", gibs(p.HBM.ActivationsBytes)) }},
	{"  other temporaries", false, func(p *StepPlan) string { return fmt.Sprintf("%.2f", gibs(p.HBM.TemporariesBytes)) }},
	{"executed/useful FLOPs", true, func(p *StepPlan) string { return fmt.Sprintf("%.3f", p.FLOPs.Executed/p.FLOPs.Useful) }},
	{"HBM traffic, GB", true, func(p *StepPlan) string { return fmt.Sprintf("%.2f", float64(p.HBMBytes)/1e9) }},
	{"on the wire, GB", true, func(p *StepPlan) string { return fmt.Sprintf("%.2f", float64(p.WireBytes)/1e9) }},
	{"compute, ms", true, func(p *StepPlan) string { return fmt.Sprintf("%.1f", 1e3*p.Roofline.ComputeS) }},
	{"HBM, ms", true, func(p *StepPlan) string { return fmt.Sprintf("%.1f", 1e3*p.Roofline.HBMS) }},
	{"ICI, ms", true, func(p *StepPlan) string { return fmt.Sprintf("%.1f", 1e3*p.Roofline.ICIS) }},
	{"bound", true, func(p *StepPlan) string { return p.Roofline.Bound }},
	{"step, ms", true, func(p *StepPlan) string {
		return fmt.Sprintf("%.0f–%.0f", 1e3*p.Estimate.StepSLow, 1e3*p.Estimate.StepSHigh)
	}},
	{"tokens/s, thousands", true, func(p *StepPlan) string {
		return fmt.Sprintf("%.0f–%.0f", p.Estimate.TokensPerSLow/1e3, p.Estimate.TokensPerSHigh/1e3)
	}},
	{"MFU, %", true, func(p *StepPlan) string {
		return fmt.Sprintf("%.1f–%.1f", 100*p.Estimate.MFULow, 100*p.Estimate.MFUHigh)
	}},
	{"compiled in, s", false, func(p *StepPlan) string { return fmt.Sprintf("%.1f", p.CompileS) }},
}

// writeComparison prints plans side by side, the settings given first.
func writeComparison(b *strings.Builder, plans []*StepPlan) {
	writeHead(b, plans[0])
	for from := 0; from < len(plans); from += comparedPlans {
		b.WriteByte('\n')
		block := plans[from:min(from+comparedPlans, len(plans))]
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "\t")
		for _, p := range block {
			name := p.Setting
			if name == "" {
				name = "as given"
			}
			fmt.Fprintf(w, "%s\t", name)
		}
		fmt.Fprintln(w)
		for _, row := range comparedRows {
			fmt.Fprintf(w, "%-*s\t", rowNameWidth, row.name)
			for _, p := range block {
				cell := "–"
				if p.Error == "" || !row.program {
					cell = row.cell(p)
				}
				fmt.Fprintf(w, "%s\t", cell)
			}
			fmt.Fprintln(w)
		}
		w.Flush()
	}
	for _, p := range plans {
		if p.Saved != "" {
			fmt.Fprintf(b, "\nkept in the compile cache%s:\n  %s\n", prefixed(", ", p.Setting), p.Saved)
		}
	}
	heading(b, "assumptions")
	for _, a := range plans[0].Assumptions {
		wrap(b, "- ", a)
	}
}

// rowNameWidth pads the names, so that right-aligned columns leave them to the left.
const rowNameWidth = 24
