package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"weft/bench/internal/sections"
)

var marks = sections.Marks{Begin: "<!-- ckpt: begin; written by make bench-ckpt -->", End: "<!-- ckpt: end -->"}

// round is what one round measured, in seconds and bytes.
type round struct {
	DDZeros     float64 `json:"dd_zeros_s"`
	DDSame      float64 `json:"dd_same_s"`
	Blocking    float64 `json:"blocking_s"`
	Stall       float64 `json:"async_stall_s"`
	AsyncWrite  float64 `json:"async_write_s"`
	AsyncWhole  float64 `json:"async_whole_s"`
	Written     int64   `json:"async_written_bytes"`
	Staged      int64   `json:"async_staged_bytes"`
	ExtraMemory int64   `json:"async_extra_memory_bytes"`
	ReadCold    float64 `json:"read_cold_s"`
	LoadCold    float64 `json:"load_cold_s"`
	ReadWarm    float64 `json:"read_warm_s"`
	ReadKept    float64 `json:"read_kept_s"`
	LoadWarm    float64 `json:"load_warm_s"`
	ReadColdCPU float64 `json:"read_cold_cpu_s"`
	LoadColdCPU float64 `json:"load_cold_cpu_s"`
	ReadWarmCPU float64 `json:"read_warm_cpu_s"`
	LoadWarmCPU float64 `json:"load_warm_cpu_s"`
}

// ratio is a figure with its limit: the median over the rounds of what was compared within each of them, and the range.
type ratio struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	// Limit is the target, 0 where there is none; AtLeast tells of which kind it is.
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least"`
	Held    bool    `json:"held"`
}

type report struct {
	Bytes  int64   `json:"state_bytes"`
	Rounds []round `json:"rounds"`
	Ratios []ratio `json:"ratios"`
}

// ratios fills the figures from the rounds.
func (r *report) ratios() {
	add := func(name string, limit float64, atLeast bool, of func(round) float64) {
		var all []float64
		for _, x := range r.Rounds {
			all = append(all, of(x))
		}
		slices.Sort(all)
		m := median(all)
		r.Ratios = append(r.Ratios, ratio{Name: name, Median: m, Least: all[0], Most: all[len(all)-1], Limit: limit, AtLeast: atLeast,
			Held: atLeast && m >= limit || !atLeast && m < limit})
	}
	add("bytes/s written in the background ÷ dd of zeros with fsync", 0.8, true, func(x round) float64 { return x.DDZeros / x.AsyncWrite })
	add("bytes/s written in the background ÷ dd of the same bytes with fsync", 0.8, true, func(x round) float64 { return x.DDSame / x.AsyncWrite })
	add("bytes/s from the call to the commit ÷ dd of the same bytes with fsync", 0.8, true, func(x round) float64 { return x.DDSame / x.AsyncWhole })
	add("stall of the step ÷ blocking save", 0.15, false, func(x round) float64 { return x.Stall / x.Blocking })
	add("peak extra host memory ÷ state of the device", 1.2, false, func(x round) float64 { return float64(x.ExtraMemory) / float64(r.Bytes) })
	add("bytes/s loaded ÷ plain sequential read, from the disk", 0.7, true, func(x round) float64 { return x.ReadCold / x.LoadCold })
	add("bytes/s loaded ÷ plain sequential read into memory of its own, from the page cache", 0.7, true, func(x round) float64 { return x.ReadKept / x.LoadWarm })
	add("bytes/s loaded ÷ plain sequential read through one buffer, from the page cache", 0.7, true, func(x round) float64 { return x.ReadWarm / x.LoadWarm })
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// markdown is the section.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Saving and loading\n\n", marks.Begin)
	fmt.Fprintf(&b, "A train state of %.2f GB (float32 parameters and two moments, %d tensors) on one device of the CPU plugin, %s, %d cores; weft at %s. "+
		"`make bench-ckpt`: %d rounds in one process, every kind of work in each, one after the other; medians (least–greatest) of the ratios within a round.\n\n",
		float64(r.Bytes)/1e9, 3*(matrices+1), cpuName(), runtime.NumCPU(), sections.Revision(), len(r.Rounds))
	b.WriteString("| ratio | median | least–greatest | target | held |\n|---|---|---|---|---|\n")
	for _, x := range r.Ratios {
		if x.Limit == 0 {
			fmt.Fprintf(&b, "| %s | %.3f | %.3f–%.3f | | |\n", x.Name, x.Median, x.Least, x.Most)
			continue
		}
		fmt.Fprintf(&b, "| %s | %.3f | %.3f–%.3f | %s %g | %s |\n", x.Name, x.Median, x.Least, x.Most, map[bool]string{true: "≥", false: "<"}[x.AtLeast], x.Limit,
			map[bool]string{true: "yes", false: "no"}[x.Held])
	}
	b.WriteString("\n| work | median, s | GB/s | processor time, s |\n|---|---|---|---|\n")
	for _, w := range works {
		cpu := ""
		if w.cpu != nil {
			cpu = fmt.Sprintf("%.3f", r.median(w.cpu))
		}
		wall := r.median(w.wall)
		fmt.Fprintf(&b, "| %s | %.3f | %.2f | %s |\n", w.name, wall, float64(r.Bytes)/1e9/wall, cpu)
	}
	b.WriteString(notes)
	b.WriteString(marks.End + "\n")
	return b.String()
}

// median is that of one figure over the rounds.
func (r *report) median(of func(round) float64) float64 {
	var all []float64
	for _, x := range r.Rounds {
		all = append(all, of(x))
	}
	slices.Sort(all)
	return median(all)
}

// works are the lines of the second table.
var works = []struct {
	name string
	wall func(round) float64
	cpu  func(round) float64
}{
	{"dd of zeros, conv=fsync", func(x round) float64 { return x.DDZeros }, nil},
	{"dd of the same bytes from the page cache, conv=fsync", func(x round) float64 { return x.DDSame }, nil},
	{"blocking save", func(x round) float64 { return x.Blocking }, nil},
	{"background save: stall of the step", func(x round) float64 { return x.Stall }, nil},
	{"background save: writing to the commit", func(x round) float64 { return x.AsyncWrite }, nil},
	{"plain sequential read, from the disk", func(x round) float64 { return x.ReadCold }, func(x round) float64 { return x.ReadColdCPU }},
	{"load to the device, from the disk", func(x round) float64 { return x.LoadCold }, func(x round) float64 { return x.LoadColdCPU }},
	{"plain sequential read, from the page cache", func(x round) float64 { return x.ReadWarm }, func(x round) float64 { return x.ReadWarmCPU }},
	{"plain sequential read into memory of its own, from the page cache", func(x round) float64 { return x.ReadKept }, nil},
	{"load to the device, from the page cache", func(x round) float64 { return x.LoadWarm }, func(x round) float64 { return x.LoadWarmCPU }},
}

// notes say what the lines mean.
const notes = `
"From the disk" means that the file was dropped from this machine's page cache before. The plain read goes through one buffer of 1 MiB and throws
the bytes away. The host memory for saving is taken once, as in a run. The extra memory is the process's peak resident set during a background save, less what it was
before that memory was taken; the device's own state is in the same process. On the CPU plugin a load reads into new memory, four tensors at a time, which the plugin uses from then on
without a copy; every checksum is compared.
`

func cpuName() string {
	out, err := exec.Command("sed", "-n", "s/^model name[^:]*: //p", "/proc/cpuinfo").Output()
	name, _, _ := strings.Cut(string(out), "\n")
	if err != nil || name == "" {
		return runtime.GOARCH
	}
	return name
}
