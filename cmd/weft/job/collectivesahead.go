package job

import (
	"context"
	"errors"
	"fmt"
	"io"

	"weft/engine"
	"weft/engine/collectives"
	"weft/engine/plan"
	"weft/engine/sharding"
	"weft/engine/tpu"
)

// CollectivesAhead is what the compiler made of the programs of `weft collectives` for a slice; its JSON form is what
// --ahead --json prints.
type CollectivesAhead struct {
	Topology string         `json:"topology"`
	Chip     string         `json:"chip"`
	Devices  int            `json:"devices"`
	Mesh     string         `json:"mesh"`
	Effort   string         `json:"effort"`
	Programs []AheadProgram `json:"programs"`
}

// AheadProgram is one compiled program.
type AheadProgram struct {
	Name     string              `json:"name"`
	CompileS float64             `json:"compile_s"`
	Found    []collectives.Found `json:"collectives"`
}

// defaultAheadSizes are those of --sizes with --ahead.
const defaultAheadSizes = "16MiB"

// CompileCollectives compiles the programs of a check, and a measurement of each size, for the slice that c.Ahead names.
// progress gets a line when it begins.
func CompileCollectives(ctx context.Context, c CollectivesConfig, progress io.Writer) (*CollectivesAhead, error) {
	if c.Sizes == "" {
		c.Sizes = defaultAheadSizes
	}
	sizes, err := c.check()
	if err != nil {
		return nil, Input(err)
	}
	top, err := c.aheadTopology()
	if err != nil {
		return nil, Input(err)
	}
	p := &planner{config: PlanConfig{Plugin: c.Plugin}, progress: progress}
	if err := p.open(ctx); err != nil {
		return nil, Input(err)
	}
	fmt.Fprintf(progress, "weft: compiling for %s, %d devices (%s effort)\n", top, top.Devices(), c.Effort)
	out, err := c.compileAll(ctx, p.plugin, top, sizes)
	return out, errors.Join(err, p.close())
}

// aheadTopology reads --ahead, which the flags of the devices must not contradict.
func (c *CollectivesConfig) aheadTopology() (tpu.Topology, error) {
	if c.Platform == PlatformCPU {
		return tpu.Topology{}, fmt.Errorf("--ahead %s contradicts --platform cpu: leave out one of them", c.Ahead)
	}
	if c.Topology != "" {
		return tpu.Topology{}, fmt.Errorf("--ahead %s names the slice, and --topology %s too: leave out --topology", c.Ahead, c.Topology)
	}
	flags := PlanConfig{Topology: c.Ahead, AcceleratorType: c.AcceleratorType, NumSlices: 1}
	top, err := flags.topology()
	if err != nil {
		return top, fmt.Errorf("--ahead %s: %w", c.Ahead, err)
	}
	for name, n := range map[string]int{"--num-workers": c.NumWorkers, "--devices": c.Devices} {
		if n > 0 && n != top.Devices() {
			return top, fmt.Errorf("%s is %d, %s has %d devices: correct it or leave it out", name, n, top, top.Devices())
		}
	}
	return top, nil
}

func (c *CollectivesConfig) compileAll(ctx context.Context, p plan.Plugin, top tpu.Topology, sizes []int) (*CollectivesAhead, error) {
	mesh, err := meshAhead(p, top)
	if err != nil {
		return nil, err
	}
	out := &CollectivesAhead{Topology: top.String(), Chip: top.Chip.Title, Devices: top.Devices(), Mesh: mesh.String(), Effort: c.Effort}
	compile := func(name string, low *engine.Lowered, err error) error {
		if err != nil {
			return err
		}
		one, err := compileOne(ctx, p, top, low, c.Effort)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		one.Name = name
		out.Programs = append(out.Programs, *one)
		return nil
	}
	block := collectives.Draw(c.Seed)
	low, err := collectives.LowerFeedForward(mesh, block, collectives.Default)
	if err := compile("feed-forward", low, err); err != nil {
		return nil, err
	}
	low, err = collectives.LowerFeedForward(mesh, block, collectives.Highest)
	if err := compile("feed-forward, float32 arithmetic", low, err); err != nil {
		return nil, err
	}
	if err := compile("sum of ranks", collectives.LowerAllReduce(mesh, 4), nil); err != nil {
		return nil, err
	}
	if !c.Bandwidth {
		return out, nil
	}
	for _, kind := range collectives.Kinds {
		for _, s := range sizes {
			s = collectives.RoundSize(s, mesh.NumDevices())
			low, err := collectives.LowerBytes(mesh, kind, s)
			if err := compile(kind+" of "+size(s), low, err); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// meshAhead is the mesh in which a run on the slice would arrange its devices.
func meshAhead(p plan.Plugin, top tpu.Topology) (mesh sharding.Mesh, err error) {
	described, _, err := plan.Describe(p, top)
	if err != nil {
		return mesh, err
	}
	devices, err := described.Devices()
	if err == nil {
		mesh, err = engine.FSDPMesh(devices, top.Devices())
	}
	return mesh, errors.Join(err, described.Destroy())
}

func compileOne(ctx context.Context, p plan.Plugin, top tpu.Topology, low *engine.Lowered, effort string) (*AheadProgram, error) {
	compiled, err := plan.Compile(ctx, p, top, low, efforts[effort])
	if err != nil {
		return nil, err
	}
	out := &AheadProgram{CompileS: compiled.CompileTime.Seconds()}
	if compiled.Exceeded != nil {
		return nil, errors.Join(fmt.Errorf("it does not fit in a device's memory: give smaller --sizes (%s)", compiled.Exceeded.Message), compiled.Close())
	}
	out.Found, err = collectives.Find(compiled.Module, low.Mesh.NumDevices())
	return out, errors.Join(err, compiled.Close())
}
