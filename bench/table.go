package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// maxLossDifference is how far the losses of two programs may lie apart at any step: beyond it they do not compute the
// same step and a ratio of their times would mean nothing. float32: the tolerance of the golden fixtures. bfloat16: about
// the error that torch's own bfloat16 shows on these fixtures.
var maxLossDifference = map[string]float64{"float32": 1e-4, "bfloat16": 1e-2}

// checkLosses compares every run with the first of its dtype, step by step.
func checkLosses(runs []figures) error {
	first := map[string]figures{}
	for _, f := range runs {
		want, ok := first[f.DType]
		if !ok {
			first[f.DType] = f
			continue
		}
		if f.NumParameters != want.NumParameters {
			return fmt.Errorf("%s has %d parameters, %s %d: not the same model", f.Contender, f.NumParameters, want.Contender, want.NumParameters)
		}
		for step := range want.Loss {
			// A NaN fails too.
			if diff := math.Abs(f.Loss[step] - want.Loss[step]); !(diff <= maxLossDifference[f.DType]) {
				return fmt.Errorf("%s, step %d: loss %.6f by %s, %.6f by %s: not the same computation, so no table",
					f.DType, step, f.Loss[step], f.Contender, want.Loss[step], want.Contender)
			}
		}
	}
	return nil
}

// spread is the median of one value a repetition, and the least and greatest of them.
type spread struct{ median, min, max float64 }

func spreadOf(values []float64) spread {
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

func (s spread) format(verb string) string {
	return fmt.Sprintf(verb+" ("+verb+"–"+verb+")", s.median, s.min, s.max)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// row is one program with one dtype.
type row struct {
	contender, dtype    string
	step, ratio         spread // seconds; time of the reference program divided by this program's, in the same repetition
	tokensPerS, compile float64
	temp, peak          float64 // GiB; temp is NaN if unknown
}

// rows reduces the runs: medians within a run, then over the repetitions.
func rows(o options, runs []figures) []row {
	var out []row
	for _, dtype := range o.DTypes {
		medians := map[string][]float64{}
		for _, f := range runs {
			if f.DType == dtype {
				medians[f.Contender] = append(medians[f.Contender], median(f.StepS))
			}
		}
		for _, contender := range o.Programs {
			r := row{contender: contender, dtype: dtype, step: spreadOf(medians[contender]), temp: math.NaN()}
			var ratios, compiles []float64
			for i, s := range medians[contender] {
				ratios = append(ratios, medians[o.Programs[0]][i]/s)
			}
			for _, f := range runs {
				if f.DType != dtype || f.Contender != contender {
					continue
				}
				compiles = append(compiles, f.CompileS)
				r.peak = max(r.peak, float64(f.PeakRSSBytes)/(1<<30))
				if f.TempBytes != nil {
					r.temp = float64(*f.TempBytes) / (1 << 30)
				}
			}
			r.ratio, r.compile = spreadOf(ratios), median(compiles)
			r.tokensPerS = float64(o.Batch*o.Seq) / r.step.median
			out = append(out, r)
		}
	}
	return out
}

// printTable writes the Markdown.
func printTable(w io.Writer, o options, machine string, runs []figures) error {
	var b strings.Builder
	versions := map[string]string{}
	for _, f := range runs {
		versions[f.Contender] = f.Version
	}
	fmt.Fprintf(&b, "Training step of %.1f M parameters, %d × %d tokens, AdamW, one device, layers %s. %s.\n", float64(runs[0].NumParameters)/1e6, o.Batch, o.Seq,
		map[string]string{"scan": "scanned", "unrolled": "unrolled"}[o.Layers], machine)
	fmt.Fprintf(&b, "%d interleaved runs of each program, %d timed steps after %d; median of the runs' medians (least–greatest).\n", o.Repeat, o.Steps, o.Warmup)
	fmt.Fprintf(&b, "All programs start from the same weights and batch, and their losses agree at every step (float32 %g, bfloat16 %g).\n\n",
		maxLossDifference["float32"], maxLossDifference["bfloat16"])
	fmt.Fprintf(&b, "| dtype | program | step, s | tokens/s | step of %s ÷ this | compile, s | XLA temporaries, GiB | peak process, GiB |\n", o.Programs[0])
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows(o, runs) {
		temp := "unknown"
		if !math.IsNaN(r.temp) {
			temp = fmt.Sprintf("%.2f", r.temp)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s | %.1f | %s | %.2f |\n", r.dtype, title(r.contender, versions[r.contender]),
			r.step.format("%.3f"), r.tokensPerS, r.ratio.format("%.2f"), r.compile, temp, r.peak)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func title(contender, version string) string {
	switch contender {
	case "jax-plugin":
		return "JAX " + version + " on weft's plugin"
	case "jax-cpu":
		return "JAX " + version + " on jaxlib's CPU"
	}
	return contender
}

// describeMachine names the processor, the cores and the revision that was measured.
func describeMachine() string {
	cpu := runtime.GOARCH
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	revision := "unknown"
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		revision = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%s, %d cores; weft at %s", cpu, runtime.NumCPU(), revision)
}
