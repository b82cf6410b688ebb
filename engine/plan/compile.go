package plan

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/tpu"
	"weft/pjrt"
)

// Plugin is a loaded PJRT plugin that compiles ahead of time: libtpu.
type Plugin struct {
	*pjrt.Plugin
	// ID names its build, as engine.Options.PluginID does.
	ID string
}

// Compiled is a step that was compiled for a topology, or that does not fit on it.
type Compiled struct {
	Lowered  *engine.Lowered
	Topology tpu.Topology
	// Module is the optimised program of one device, nil when the compiler found that it does not fit.
	Module *hlo.Module
	// Memory is the compiler's plan of a device's memory, LimitBytes what of it a program may use.
	Memory     pjrt.CompiledMemoryStats
	LimitBytes int64
	// Exceeded is set when the compiler found no way to fit the program in memory.
	Exceeded *Exceeded
	// Effort is what the compiler spent, CompileTime how long that took.
	Effort      pjrt.EffortLevel
	CompileTime time.Duration

	ahead *engine.Ahead
}

// Exceeded is how far a program is from fitting.
type Exceeded struct {
	// UsedBytes is all that the program would take on a device, 0 where the compiler does not say. It has two messages: one
	// speaks of "HLO temporaries" and counts arguments and results as well, a donated argument and its result once.
	UsedBytes int64
	// Message is the compiler's own, on one line.
	Message string
}

// Describe asks the plugin for a topology's device memory, bytes, and checks that the plugin and package tpu agree on it.
func Describe(p Plugin, t tpu.Topology) (top *pjrt.Topology, limitBytes int64, err error) {
	top, err = p.NewTopology(t.SliceName(), t.PluginOptions())
	if err != nil {
		return nil, 0, fmt.Errorf("describe %s: %w", t, err)
	}
	if limitBytes, err = checkDevices(top, t); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("describe %s: %w", t, err), top.Destroy())
	}
	return top, limitBytes, nil
}

// checkDevices compares the plugin's devices with where Place says that they stand.
func checkDevices(top *pjrt.Topology, t tpu.Topology) (limitBytes int64, err error) {
	devices, err := engine.AheadDevices(top, t.Devices())
	if err != nil {
		return 0, err
	}
	if all, err := top.Devices(); err != nil || len(all) != t.Devices() {
		return 0, errors.Join(err, fmt.Errorf("the plugin has %d devices there, weft expects %d: use another version of either", len(all), t.Devices()))
	}
	for i, d := range devices {
		if _, ok := tpu.ChipOfKind(d.Kind()); !ok {
			return 0, fmt.Errorf("the plugin calls device %d %q, which weft does not know: use another version of either", i, d.Kind())
		}
		coords, _ := d.Attributes()["coords"].([]int64)
		core, _ := d.Attributes()["core_on_chip"].(int64)
		place := t.Place(i)
		want := []int64{int64(place.Chip[0]), int64(place.Chip[1]), int64(place.Chip[2])}
		if len(coords) != 3 || [3]int64(coords) != [3]int64(want) || core != int64(place.Core) {
			return 0, fmt.Errorf("the plugin has device %d at %v, core %d; weft expects %v, core %d: use another version of either", i, coords, core, want, place.Core)
		}
		if n, ok := d.Attributes()["device_memory_bytes_limit"].(int64); ok && (limitBytes == 0 || n < limitBytes) {
			limitBytes = n
		}
	}
	if limitBytes == 0 {
		limitBytes = t.Chip.HBMBytesPerDevice()
	}
	return limitBytes, nil
}

// Compile compiles a lowered step for a slice that need not be there. A step that does not fit is no error: its Exceeded
// is set. When ctx ends, Compile returns at once; the compiler, which cannot be stopped, goes on in the background, and
// the plugin must not be used until the process ends. The caller must call Close.
func Compile(ctx context.Context, p Plugin, t tpu.Topology, low *engine.Lowered, effort pjrt.EffortLevel) (*Compiled, error) {
	if n := low.Mesh.NumDevices(); n != t.Devices() {
		return nil, fmt.Errorf("the mesh %v has %d devices, %s has %d: they must agree", low.Mesh, n, t, t.Devices())
	}
	type result struct {
		c   *Compiled
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := compile(p, t, low, effort)
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.c, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("compile for %s: %w", t, context.Cause(ctx))
	}
}

func compile(p Plugin, t tpu.Topology, low *engine.Lowered, effort pjrt.EffortLevel) (*Compiled, error) {
	top, limit, err := Describe(p, t)
	if err != nil {
		return nil, err
	}
	c := &Compiled{Lowered: low, Topology: t, LimitBytes: limit, Effort: effort}
	start := time.Now()
	c.ahead, err = engine.CompileAhead(top, p.ID, low, effort)
	c.CompileTime = time.Since(start)
	if c.Exceeded = exceeded(err); c.Exceeded != nil {
		return c, top.Destroy()
	}
	if err == nil {
		c.Module, c.Memory, err = read(c.ahead.Executable)
	}
	if err = errors.Join(err, top.Destroy()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// read takes the optimised program and the plan of memory out of an executable.
func read(e *pjrt.Executable) (*hlo.Module, pjrt.CompiledMemoryStats, error) {
	memory, err := e.MemoryStats()
	if err != nil {
		return nil, memory, err
	}
	format, code, err := e.OptimizedProgram()
	if err != nil {
		return nil, memory, err
	}
	m, err := hlo.Parse(format, code)
	return m, memory, err
}

// Save keeps the executable in the compile cache in dir, so that the first step on the slice starts warm, and returns the
// entry's path. Only an executable of default effort is what a run looks for.
func (c *Compiled) Save(dir string) (string, error) {
	switch {
	case c.ahead == nil:
		return "", fmt.Errorf("keep the step for %s: it does not fit, there is no executable", c.Topology)
	case c.Effort != pjrt.EffortDefault:
		return "", fmt.Errorf("keep the step for %s: it was compiled at another effort than a run asks for: compile it at the default one", c.Topology)
	}
	return c.ahead.Save(dir)
}

// Close releases the executable; the rest stays valid.
func (c *Compiled) Close() error {
	if c == nil || c.ahead == nil {
		return nil
	}
	defer func() { c.ahead = nil }()
	return c.ahead.Destroy()
}

// usedOf finds the figure in the messages of libtpu.
var usedOf = []*regexp.Regexp{
	regexp.MustCompile(`temporaries \(([0-9.]+)([KMGT]?)\) exceeds`),
	regexp.MustCompile(`Used ([0-9.]+)([KMGT]?) of [0-9.]+[KMGT]? hbm`),
}

// exceeded reads the error of a program that does not fit, nil for any other.
func exceeded(err error) *Exceeded {
	var pe *pjrt.Error
	if !errors.As(err, &pe) || pe.Code != pjrt.ResourceExhausted {
		return nil
	}
	e := &Exceeded{Message: pe.Error()}
	for _, of := range usedOf {
		if m := of.FindStringSubmatch(pe.Message); m != nil {
			e.UsedBytes = max(e.UsedBytes, size(m[1], m[2]))
		}
	}
	return e
}

// size reads a figure such as 82.42 with a unit such as G, of 1024³ bytes.
func size(number, unit string) int64 {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	for _, u := range []string{"", "K", "M", "G", "T"} {
		if u == unit {
			break
		}
		n *= 1024
	}
	return int64(n)
}
