package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"weft/engine/plan"
	"weft/engine/tpu"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// planner compiles plans, one after the other.
type planner struct {
	config   PlanConfig
	progress io.Writer
	files    *modelFiles
	cacheDir string
	plugin   plan.Plugin
	lock     *flock.Flock
}

// offTPUAccelerator is what libtpu is told that this machine is; topologies are named apart from it.
const offTPUAccelerator = "v6e-16"

// open finds libtpu, or installs it, and loads it once no other plan uses it.
func (p *planner) open(ctx context.Context) error {
	info, err := plugin.Find("tpu", p.config.Plugin)
	if errors.Is(err, plugin.ErrNotInstalled) {
		info, err = plugin.Ensure(ctx, "tpu", p.progress)
	}
	if err != nil {
		return err
	}
	if err := p.takeLock(); err != nil {
		return err
	}
	if err := quietLibtpu(); err != nil {
		return errors.Join(err, p.close())
	}
	loaded, err := pjrt.Load(info.Path)
	if err != nil {
		return errors.Join(err, p.close())
	}
	p.plugin = plan.Plugin{Plugin: loaded, ID: info.SHA256}
	return nil
}

// quietLibtpu sets what libtpu reads from the environment when it is loaded, where the user has not. A plan opens no chip,
// so it needs no turn at the chips of this machine.
func quietLibtpu() error {
	for name, value := range plugin.OffTPUEnv(offTPUAccelerator) {
		if _, set := os.LookupEnv(name); set && name != "ALLOW_MULTIPLE_LIBTPU_LOAD" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("prepare libtpu: %w", err)
		}
	}
	return nil
}

// takeLock makes this the only plan of the user on this machine: a compilation takes gigabytes of memory and all cores.
func (p *planner) takeLock() error {
	dir, err := plugin.CacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("lock libtpu: %w", err)
	}
	path := filepath.Join(dir, "plan.lock")
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	ok, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock libtpu: %s: %w: check the folder's permissions", path, err)
	}
	if !ok {
		holder := "another process"
		if raw, err := os.ReadFile(path); err == nil && len(raw) > 0 {
			holder = "process " + strings.TrimSpace(string(raw))
		}
		return errors.Join(fmt.Errorf("%s compiles with libtpu (it holds %s): wait until it ends, or end it", holder, path), lock.Close())
	}
	p.lock = lock
	// In place: a new inode would not be the one that is locked.
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o644); err != nil {
		return errors.Join(fmt.Errorf("lock libtpu: %w", err), p.close())
	}
	return nil
}

// close gives the lock up. Its file stays: removing it would let two processes lock two files of one name.
func (p *planner) close() error {
	if p.lock == nil {
		return nil
	}
	lock := p.lock
	p.lock = nil
	return lock.Close()
}

// all plans every variation, the first being the settings given, and what would fit when that is all.
func (p *planner) all(ctx context.Context, variations []variation) ([]*StepPlan, error) {
	var plans []*StepPlan
	for _, v := range variations {
		step, err := p.lower(v)
		if err != nil {
			return plans, err
		}
		one, err := p.compile(ctx, step)
		if err != nil {
			return plans, err
		}
		plans = append(plans, one)
	}
	if first := plans[0]; len(plans) == 1 && !first.Fits {
		var err error
		first.Tried, err = p.fit(ctx)
		return plans, err
	}
	return plans, nil
}

// compile compiles and analyses one setting.
func (p *planner) compile(ctx context.Context, s *plannedStep) (*StepPlan, error) {
	c := s.config
	fmt.Fprintf(p.progress, "weft: compiling for %s, %d devices%s (%s effort); this may take minutes\n", s.topology, s.topology.Devices(), prefixed(", ", s.name), c.Effort)
	compiled, err := plan.Compile(ctx, p.plugin, s.topology, s.lowered, efforts[c.Effort])
	if err != nil {
		return nil, explainSlices(err, s.topology)
	}
	report, err := plan.Analyze(compiled, s.facts)
	if err != nil {
		return nil, errors.Join(err, compiled.Close())
	}
	out := p.describe(s)
	out.Report = *report
	if c.Save && compiled.Exceeded == nil {
		if out.Saved, err = compiled.Save(p.cacheDir); err != nil {
			return nil, errors.Join(err, compiled.Close())
		}
	}
	return out, compiled.Close()
}

// explainSlices says what a failure with several slices leaves unplanned.
func explainSlices(err error, t tpu.Topology) error {
	if t.Slices == 1 || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: libtpu did not compile for %d slices; plan one, with --num-slices 1", err, t.Slices)
}

func (p *planner) describe(s *plannedStep) *StepPlan {
	c := s.config
	out := &StepPlan{
		Setting: s.name, Model: p.files.arch.Info().Name + " (" + p.files.name + ")",
		Settings: PlanSettings{
			BatchSizePerDevice: c.BatchSizePerDevice, GlobalBatch: c.BatchSizePerDevice * s.topology.Devices(), MaxSeqLen: c.MaxSeqLen,
			ComputeDType: c.ComputeDType, ParamDType: c.ParamDType, Freeze: c.Freeze, Remat: c.Remat, Scan: c.Scan, Gathers: c.Gathers,
			MaxGradNorm: c.MaxGradNorm, FirstMomentDType: c.FirstMomentDType, Effort: c.Effort,
		},
	}
	out.TrainedParameters, out.FrozenParameters = countParameters(s.facts.Params)
	return out
}

// prefixed is text with something before it, "" for none.
func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
