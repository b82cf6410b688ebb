package collectives

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/engine/tpu"
)

// Measurement is the speed of one collective over all devices.
type Measurement struct {
	Collective string `json:"collective"`
	// Bytes is the whole: what every device has after an all-gather, before a reduce-scatter, before and after an
	// all-reduce.
	Bytes int `json:"bytes"`
	// TimeS is the median of Repeats runs, from the call to the end on all of this process's devices; MinS the shortest.
	TimeS   float64 `json:"time_s"`
	MinS    float64 `json:"min_s"`
	Repeats int     `json:"repeats"`
	// AlgorithmBandwidth is Bytes over TimeS, bytes/s. BusBandwidth is what each device receives over TimeS: (n−1)/n of Bytes
	// for all-gather and reduce-scatter, twice that for all-reduce, as NCCL's tests count it. On hardware it is what the
	// links of a device carry, whatever the number of devices.
	AlgorithmBandwidth float64 `json:"algorithm_bandwidth"`
	BusBandwidth       float64 `json:"bus_bandwidth"`
	// Checked tells that the result was compared, element by element.
	Checked bool `json:"checked"`
	// Compiled is what the compiler made of it, nil where the plugin does not say.
	Compiled []Found `json:"compiled"`
}

// maxCheckedBytes bounds the results that are brought to the host to be compared.
const maxCheckedBytes = 64 << 20

// SizeUnit is what Bytes is rounded up to a multiple of: whole tiles of a TPU on each of n devices.
func SizeUnit(n int) int { return n * tileRows * lanes * 4 }

// RoundSize rounds a number of bytes up to a multiple of SizeUnit.
func RoundSize(size, n int) int {
	unit := SizeUnit(n)
	return max(1, (size+unit-1)/unit) * unit
}

// copiesPerDevice is how many times Bytes a measurement takes on a device at most: the input, the result and what the
// compiler keeps between them.
const copiesPerDevice = 3

// MaxSize is the largest size that the memory of a device allows, with a tenth of it left, bytes. Every process of a slice
// finds the same. It fails where the plugin does not say how much memory there is (CPU).
func MaxSize(rt *engine.Runtime) (int, error) {
	if chip, ok := tpu.ChipOfKind(rt.DeviceKind()); ok {
		return int(chip.HBMBytesPerDevice()) / 10 * 9 / copiesPerDevice, nil
	}
	m, err := rt.MemoryStats()
	if err != nil {
		return 0, fmt.Errorf("find out how much memory a device has: %w", err)
	}
	return int(m.BytesLimit) / 10 * 9 / copiesPerDevice, nil
}

// MaxSizeOf is MaxSize for n virtual devices that share so much memory of the host, half of which they may take. The
// input of one device is on the host besides.
func MaxSizeOf(memory, n int) int { return memory / 2 / (copiesPerDevice*n + 1) }

// WrongResult says that a device got another result than it must: which rank, where, what was expected and what came.
type WrongResult struct {
	Rank     Rank
	Row, Col int
	Expected float64
	Got      float32
}

func (e *WrongResult) Error() string {
	return fmt.Sprintf("%s has a wrong result in row %d, column %d: expected %s, got %s: train on none of this slice before its hardware is checked",
		e.Rank, e.Row, e.Col, FormatFloat(e.Expected, 32), FormatFloat(float64(e.Got), 32))
}

// Measure times one collective of at least size bytes (RoundSize), warmup runs before repeats that count. Every process of
// the slice must call it. A result that is wrong is a WrongResult, after the other runs, so that no process leaves the
// others waiting.
func Measure(rt *engine.Runtime, kind string, size, warmup, repeats int) (*Measurement, error) {
	n := rt.Mesh().NumDevices()
	m := &Measurement{Collective: kind, Bytes: RoundSize(size, n), Repeats: repeats}
	low, err := LowerBytes(rt.Mesh(), kind, m.Bytes)
	if err != nil {
		return nil, err
	}
	program, err := rt.CompileLowered(low)
	if err != nil {
		return nil, err
	}
	defer program.Destroy()
	m.Compiled = compiledAs(program)
	in := low.Inputs[0]
	ranks := Ranks(rt)
	x, err := rt.NewArray(in.DType, in.Dims, in.Spec, pattern(ranks, kind))
	if err != nil {
		return nil, fmt.Errorf("send the %d bytes of a %s: %w", m.Bytes, kind, err)
	}
	defer x.Destroy()
	if err := m.time(program, x, ranks, warmup); err != nil {
		return m, fmt.Errorf("measure a %s of %d bytes: %w", kind, m.Bytes, err)
	}
	return m, nil
}

// time runs the program and fills in the times; the result of the first run is compared.
func (m *Measurement) time(program *engine.Program, x *engine.Array, ranks []Rank, warmup int) error {
	var seconds []float64
	var wrong error
	for i := range warmup + m.Repeats {
		start := time.Now()
		out, err := program.Run(x)
		if err != nil {
			return err
		}
		err = out[0].Wait()
		elapsed := time.Since(start)
		if err == nil && i == 0 && m.Bytes <= maxCheckedBytes {
			m.Checked = true
			wrong, err = checkPattern(out[0], ranks, m.Collective)
		}
		engine.DestroyAll(out)
		if err != nil {
			return err
		}
		if i >= warmup {
			seconds = append(seconds, elapsed.Seconds())
		}
	}
	m.figures(seconds, len(ranks))
	return wrong
}

// figures fills in what follows from the times of the runs on n devices.
func (m *Measurement) figures(seconds []float64, n int) {
	slices.Sort(seconds)
	m.MinS = seconds[0]
	m.TimeS = (seconds[(len(seconds)-1)/2] + seconds[len(seconds)/2]) / 2
	m.AlgorithmBandwidth = float64(m.Bytes) / m.TimeS
	m.BusBandwidth = m.AlgorithmBandwidth * float64(n-1) / float64(n)
	if m.Collective == hlo.AllReduce {
		m.BusBandwidth *= 2
	}
}

// compiledAs reads what the compiler made, nil where that cannot be read.
func compiledAs(p *engine.Program) []Found {
	format, code, err := p.OptimizedProgram()
	if err != nil {
		return nil
	}
	m, err := hlo.Parse(format, code)
	if err != nil {
		return nil
	}
	found, err := Find(m, p.Mesh.NumDevices())
	if err != nil {
		return nil
	}
	return found
}

// patternOf is what every element of a row holds: small integers, so that the sums over up to 700 ranks are exact.
func patternOf(row int) float32 { return float32(row%61 + 1) }

// pattern fills the input: rows by their number, for a reduction times rank + 1.
func pattern(ranks []Rank, kind string) engine.Fill {
	return func(r sharding.Region, dst []byte) error {
		factor, first, rows := float32(1), r.Start[0], r.Size[0]
		if kind != hlo.AllGather {
			factor, first, rows = float32(ranks[r.Start[0]].Rank+1), r.Start[1], r.Size[1]
		}
		line := make([]float32, lanes)
		for row := range rows {
			for i := range line {
				line[i] = factor * patternOf(first+row)
			}
			putFloats(dst[4*lanes*row:], line)
		}
		return nil
	}
}

// ownVector fills a [devices, n] input with what value gives each rank.
func ownVector(ranks []Rank, value func(Rank) float32) engine.Fill {
	return func(r sharding.Region, dst []byte) error {
		for i := range r.Elements() {
			putFloats(dst[4*i:], []float32{value(ranks[r.Start[0]])})
		}
		return nil
	}
}

// checkPattern compares every local device's result with what the pattern must become. wrong is the first difference.
func checkPattern(a *engine.Array, ranks []Rank, kind string) (wrong, err error) {
	factor := 1.0
	if n := float64(len(ranks)); kind != hlo.AllGather {
		factor = n * (n + 1) / 2
	}
	want := make([]byte, 4*lanes)
	for _, s := range a.Shards() {
		got := make([]byte, 4*s.Region.Elements())
		if err := s.Read(got); err != nil {
			return nil, fmt.Errorf("read the result: %w", err)
		}
		for row := range s.Region.Size[0] {
			value := factor * float64(patternOf(s.Region.Start[0]+row))
			putFloats(want, slices.Repeat([]float32{float32(value)}, lanes))
			line := got[4*lanes*row:][:4*lanes]
			if bytes.Equal(line, want) {
				continue
			}
			for i, v := range floats(line) {
				if !isSum(float64(v), value, len(ranks)) {
					return &WrongResult{Rank: ranks[s.Position], Row: s.Region.Start[0] + row, Col: i, Expected: value, Got: v}, nil
				}
			}
		}
	}
	return nil, nil
}
