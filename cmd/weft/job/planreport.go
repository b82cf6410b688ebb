package job

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"weft/engine/plan"
)

// planWidth is where the prose of a plan is wrapped, in columns.
const planWidth = 96

// WritePlans prints one plan in full, or several side by side.
func WritePlans(w io.Writer, plans []*StepPlan) error {
	var b strings.Builder
	if len(plans) == 1 {
		writePlan(&b, plans[0])
	} else {
		writeComparison(&b, plans)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func writePlan(b *strings.Builder, p *StepPlan) {
	writeHead(b, p)
	writeFit(b, p)
	writeMemory(b, p.HBM, momentsText(p.Settings.FirstMomentDType))
	if p.Error == "" {
		writeWork(b, p)
		writeCollectives(b, p.Collectives, p.WireBytes)
		writeTimes(b, p)
	}
	heading(b, "assumptions")
	for _, a := range p.Assumptions {
		wrap(b, "- ", a)
	}
	if p.Saved != "" {
		fmt.Fprintf(b, "\nkept in the compile cache: %s\n", p.Saved)
	}
}

// writeHead says what was planned.
func writeHead(b *strings.Builder, p *StepPlan) {
	s := p.Settings
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-9s "+format+"\n", append([]any{name}, args...)...)
	}
	line("model", "%s: %s parameters trained, %s frozen", p.Model, count(p.TrainedParameters), count(p.FrozenParameters))
	line("devices", "%s: %d × %s, mesh %s", p.Topology, p.Devices, p.Chip, p.Mesh)
	line("step", "batch %d × %d tokens a device, %d × %d in all", s.BatchSizePerDevice, s.MaxSeqLen, s.GlobalBatch, s.MaxSeqLen)
	line("program", "compute %s, remat %s, layers %s, weights gathered %s", s.ComputeDType, s.Remat,
		map[bool]string{true: "scanned", false: "unrolled"}[s.Scan], map[bool]string{true: "once", false: "twice"}[s.Gathers == 1])
	line("compiled", "in %.1f s, effort %s", p.CompileS, s.Effort)
}

// writeFit says whether the step fits and, when it does not, what was tried.
func writeFit(b *strings.Builder, p *StepPlan) {
	b.WriteByte('\n')
	share := 100 * float64(p.HBM.PeakBytes) / float64(max(1, p.HBM.LimitBytes))
	if p.Fits {
		fmt.Fprintf(b, "It fits: %s of a device's %s (%.0f%%).\n", gib(p.HBM.PeakBytes), gib(p.HBM.LimitBytes), share)
		return
	}
	fmt.Fprintf(b, "It does not fit: %s of a device's %s (%.0f%%).\n", gib(p.HBM.PeakBytes), gib(p.HBM.LimitBytes), share)
	if p.Error != "" {
		wrap(b, "", "The compiler says: "+p.Error)
	}
	for _, a := range p.Tried {
		fmt.Fprintf(b, "  %s: %s\n", a.Change, a.outcome())
	}
	switch n := len(p.Tried); {
	case n == 0:
	case p.Tried[n-1].Fits:
		fmt.Fprintf(b, "The smallest change tried that fits: %s\n", p.Tried[n-1].Change)
	default:
		b.WriteString("Nothing that was tried fits: use another chip, or freeze more of the model (--freeze).\n")
	}
}

func (a Attempt) outcome() string {
	switch {
	case a.Fits:
		return "fits, " + gib(a.PeakBytes)
	case a.Compiled:
		return "does not fit, " + gib(a.PeakBytes)
	}
	return "does not fit, the arguments alone take " + gib(a.PeakBytes) + " of " + gib(a.LimitBytes)
}

func writeMemory(b *strings.Builder, h plan.HBM, moments string) {
	heading(b, "memory of a device, GiB")
	w := columns(b)
	for _, class := range memoryClasses(h, moments) {
		fmt.Fprintf(w, "  %s\t%.3f\t%s\n", class.name, gibs(class.bytes), class.note)
	}
	fmt.Fprintf(w, "  peak\t%.3f\tof %.3f\n", gibs(h.PeakBytes), gibs(h.LimitBytes))
	w.Flush()
}

func writeWork(b *strings.Builder, p *StepPlan) {
	heading(b, "work of a device in a step")
	w := columns(b)
	fmt.Fprintf(w, "  useful arithmetic\t%.2f TFLOP\tthe model's own count, 1/%d of it\n", p.FLOPs.Useful/1e12, p.Devices)
	fmt.Fprintf(w, "  executed products\t%.2f TFLOP\t%.3f × useful: recomputation, masked attention\n", p.FLOPs.Executed/1e12, p.FLOPs.Executed/p.FLOPs.Useful)
	fmt.Fprintf(w, "  elementwise\t%.2f TFLOP\t\n", p.FLOPs.Elementwise/1e12)
	fmt.Fprintf(w, "  HBM traffic\t%.2f GB\tread and written\n", float64(p.HBMBytes)/1e9)
	fmt.Fprintf(w, "  on the wire\t%.2f GB\tsent, and as much received\n", float64(p.WireBytes)/1e9)
	w.Flush()
}

func writeCollectives(b *strings.Builder, list []plan.Collective, wire int64) {
	heading(b, "collectives of a step")
	if len(list) == 0 {
		b.WriteString("  none\n")
		return
	}
	w := columns(b)
	fmt.Fprintln(w, "  kind\tdtype\tcount\tgroup\taxes\tMB on wire\tshare\tasync\tas")
	for _, c := range list {
		async := "no"
		if c.Async {
			async = "yes"
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%s\t%.2f\t%.1f%%\t%s\t%s\n", c.Kind, c.DType, c.Count, c.GroupSize, c.Axes,
			float64(c.Bytes)/1e6, 100*float64(c.Bytes)/float64(max(1, wire)), async, shortened(c.Algorithm, 20))
	}
	w.Flush()
}

func writeTimes(b *strings.Builder, p *StepPlan) {
	heading(b, "roofline: each resource at its nominal rate, alone")
	w := columns(b)
	for _, r := range resources(p.Roofline) {
		if r.name == "dcn" && r.seconds == 0 {
			continue
		}
		mark := ""
		if r.name == p.Roofline.Bound {
			mark = "the bound"
		}
		fmt.Fprintf(w, "  %s\t%.2f ms\t%s\n", r.title, 1e3*r.seconds, mark)
	}
	w.Flush()
	e := p.Estimate
	heading(b, "estimate, from everything overlapping to what the compiler made overlap")
	fmt.Fprintf(b, "  step %.1f–%.1f ms, %s–%s tokens/s, MFU %.1f–%.1f%%\n", 1e3*e.StepSLow, 1e3*e.StepSHigh,
		count(int(e.TokensPerSLow)), count(int(e.TokensPerSHigh)), 100*e.MFULow, 100*e.MFUHigh)
}

// shortened cuts a name to n columns; --json has it whole.
func shortened(name string, n int) string {
	if len(name) <= n {
		return name
	}
	return name[:n-1] + "…"
}

// heading begins a section.
func heading(b *strings.Builder, text string) { fmt.Fprintf(b, "\n%s\n", text) }

// columns aligns cells that end with a tab.
func columns(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
}

// wrap writes prose in lines of planWidth, the first with a mark, the others indented as far.
func wrap(b *strings.Builder, mark, text string) {
	line := "  " + mark
	indent := strings.Repeat(" ", len(line))
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0 || strings.TrimSpace(line) == "":
			line += word
		case len(line)+1+len(word) > planWidth:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
}

func gibs(n int64) float64 { return float64(n) / (1 << 30) }

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", gibs(n)) }

// memoryClass is a class of HBM and what it is.
type memoryClass struct {
	name  string
	bytes int64
	note  string
}

func memoryClasses(h plan.HBM, moments string) []memoryClass {
	return []memoryClass{
		{"master parameters", h.ParametersBytes, "float32, this device's shards"},
		{"moments", h.MomentsBytes, moments},
		{"frozen tensors", h.FrozenBytes, ""},
		{"batch", h.BatchBytes, ""},
		{"padding", h.PaddingBytes, "of the arguments, to whole tiles"},
		{"outputs", h.OutputsBytes, "not written over an argument"},
		{"gathered weights", h.GatheredBytes, "at the fullest moment"},
		{"gradients", h.GradientsBytes, "at the fullest moment"},
		{"activations", h.ActivationsBytes, "at the fullest moment"},
		{"other temporaries", h.TemporariesBytes, ""},
		{"code", h.CodeBytes, ""},
	}
}

// resource is one line of a roofline.
type resource struct {
	name, title string
	seconds     float64
}

func resources(r plan.Roofline) []resource {
	return []resource{
		{"compute", "matrix units", r.ComputeS}, {"hbm", "HBM", r.HBMS}, {"ici", "ICI links", r.ICIS}, {"dcn", "data center network", r.DCNS},
	}
}
