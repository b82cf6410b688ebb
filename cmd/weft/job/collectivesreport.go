package job

import (
	"fmt"
	"io"
	"strings"
	"time"

	"weft/engine/collectives"
)

// WriteCollectives prints the check as the published guide's script does: a line for each rank of this host and, on rank
// 0's host and when all is well, the closing line.
func WriteCollectives(w io.Writer, r *CollectivesReport) error {
	var b strings.Builder
	width := max(2, len(fmt.Sprint(r.Devices-1)))
	for _, rank := range r.Ranks {
		fmt.Fprintf(&b, "Rank %*d (%s, ip=%s): all_reduce_sum=%s\n", width, rank.Rank.Rank, rank.Place(), r.IP, collectives.FormatFloats(rank.AllReduceSum))
	}
	if r.First() && r.Err() == nil {
		fmt.Fprintf(&b, "All %d weft ranks verified tensor-parallel parity (max_abs_diff=%.6f) and all_reduce sum = %.1f\n", r.Devices, r.MaxAbsDiff(), r.ExpectedSum)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// measurementLine is the layout of the bandwidth table. It has fixed columns, so that each line is printed when it is known.
const measurementLine = "%-15s %15s %12s %10s %10s  %s\n"

// WriteMeasurementHead prints the head of the bandwidth table.
func WriteMeasurementHead(w io.Writer, r *CollectivesReport) error {
	var left []string
	for _, s := range r.LeftOut {
		left = append(left, size(s))
	}
	if len(left) > 0 {
		if _, err := fmt.Fprintf(w, "\nNot measured, for want of memory: %s\n", strings.Join(left, ", ")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n"+measurementLine, "collective", "bytes", "time", "alg GB/s", "bus GB/s", "compiled as")
	return err
}

// WriteMeasurement prints a line of the bandwidth table.
func WriteMeasurement(w io.Writer, m *collectives.Measurement) error {
	compiled := collectives.FormatFound(m.Compiled)
	if m.Compiled == nil {
		compiled = "?"
	}
	if !m.Checked {
		compiled += " (too large to compare)"
	}
	_, err := fmt.Fprintf(w, measurementLine, m.Collective, count(m.Bytes), brief(m.TimeS),
		fmt.Sprintf("%.3f", m.AlgorithmBandwidth/1e9), fmt.Sprintf("%.3f", m.BusBandwidth/1e9), compiled)
	return err
}

// brief prints a time with three digits or so, as 123.4µs.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Second:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}

// WriteCollectivesAhead prints what the compiler made of the programs.
func WriteCollectivesAhead(w io.Writer, r *CollectivesAhead) error {
	const line = "%-32s %-18s %5s %5s %5s %15s  %s\n"
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d × %s, mesh %s, effort %s\n\n"+line, r.Topology, r.Devices, r.Chip, r.Mesh, r.Effort,
		"program", "collective", "dtype", "count", "group", "bytes", "async")
	for _, p := range r.Programs {
		name := p.Name
		if len(p.Found) == 0 {
			fmt.Fprintf(&b, "%-32s nothing\n", name)
		}
		for _, f := range p.Found {
			async := map[bool]string{true: "yes", false: "no"}[f.Async]
			fmt.Fprintf(&b, line, name, f.Kind, f.DType, fmt.Sprint(f.Count), fmt.Sprint(f.GroupSize), count(int(f.Bytes)), async)
			name = ""
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
