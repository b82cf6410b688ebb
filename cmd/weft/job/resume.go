package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weft/checkpoint"
	"weft/checkpoint/storage"
	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/trainer"
)

// history is what the storage path holds of earlier runs.
type history struct {
	record runRecord
	// found tells that a run is there that has trained: one that never made a step binds nobody.
	found bool
	// candidates are the checkpoints to continue from, the one to prefer first.
	candidates []checkpoint.Entry
	// named tells that --resume names the one candidate; from is its folder when it is that of another run.
	named bool
	from  string
}

// openStorage takes the storage path for this process.
func openStorage(c *Config) (*checkpoint.Manager, error) {
	fsys, path, err := storage.Open(context.Background(), c.StoragePath)
	if err != nil {
		return nil, fmt.Errorf("--storage-path: %w", err)
	}
	m, err := checkpoint.Open(fsys, path, checkpoint.Options{Keep: c.Keep, KeepBy: c.KeepBy, KeepLast: c.KeepLast, KeepEvery: c.KeepEvery})
	if err != nil {
		return nil, fmt.Errorf("--storage-path: %w", err)
	}
	return m, nil
}

// readHistory looks for what --resume asks to continue, and refuses what it must not touch.
func readHistory(c *Config, m *checkpoint.Manager) (*history, error) {
	h := &history{}
	var err error
	if h.record, h.found, err = readRecord(c.StoragePath); err != nil {
		return nil, err
	}
	list, err := m.List()
	if err != nil {
		return nil, err
	}
	metrics, err := os.Stat(filepath.Join(c.StoragePath, metricsName))
	steps := err == nil && metrics.Size() > 0
	trained := len(list) > 0 || steps
	if steps && !h.found && len(list) == 0 {
		return nil, fmt.Errorf("%s holds a %s that no run recorded in a %s there wrote, and weft would write over it: move it away or give another --storage-path", c.StoragePath, metricsName, recordName)
	}
	h.found = h.found && trained
	slices.Reverse(list)
	switch c.Resume {
	case ResumeAuto:
		h.candidates = list
	case ResumeNever:
		if trained {
			return nil, fmt.Errorf("--resume never: %s holds a run already: give an empty --storage-path or another --run-name, or leave out --resume to continue that run", c.StoragePath)
		}
	default:
		return h, h.findNamed(c.StoragePath, c.Resume, list)
	}
	return h, nil
}

// findNamed takes the checkpoint that --resume names as the one candidate. One of another folder is where this folder's run
// begins: once that run has checkpoints, it goes on from those. One of this folder must be its newest.
func (h *history) findNamed(storage, path string, list []checkpoint.Entry) error {
	dir, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for i, e := range list {
		if e.Dir != dir {
			continue
		}
		if i > 0 {
			return fmt.Errorf("--resume %s: %s of the same run is newer, and what follows would be mixed with it: use --resume auto, or give a new --run-name or --storage-path to begin a run of its own from there", path, list[0].Dir)
		}
		h.named, h.candidates = true, []checkpoint.Entry{e}
		return nil
	}
	if len(list) > 0 {
		if h.record.From != dir {
			return fmt.Errorf("--resume %s: the run in this --storage-path has checkpoints of its own, such as %s, and did not begin from that one: use --resume auto, or give a new --run-name or --storage-path", path, list[0].Dir)
		}
		h.candidates = list
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestFile)); err != nil {
		return fmt.Errorf("--resume %s is no checkpoint (%w): give a folder such as STORAGE/checkpoints/epoch-0001-step-00000016", path, err)
	}
	if h.found && h.record.From != dir {
		return fmt.Errorf("--resume %s: %s holds steps of a run that did not begin from there: give a new --run-name or --storage-path", path, filepath.Join(storage, metricsName))
	}
	h.named, h.from = true, dir
	h.candidates = []checkpoint.Entry{{Name: filepath.Base(dir), Dir: dir}}
	return nil
}

// request is the run that is asked for, before it is known where it begins.
type request struct {
	record  runRecord
	allowed map[string]bool
	// scheduleSteps is the number of updates of a run that stands at a position, 0 where no schedule depends on it.
	scheduleSteps func(at trainer.Position) int
	// tensors are those of the train state, by name.
	tensors map[string]checkpoint.TensorInfo
}

// resumePoint is a checkpoint that was restored, or chosen to be.
type resumePoint struct {
	entry checkpoint.Entry
	// at is the checkpoint's position, in steps of the run that continues.
	at trainer.Position
	// was is the record of the run that wrote it, now that of the run that continues.
	was, now runRecord
	// changed are the settings that differ.
	changed []difference
}

// usable reads a candidate's position and record and checks that the run may continue it.
func (h *history) usable(m *checkpoint.Manager, e checkpoint.Entry, want *request) (*resumePoint, *checkpoint.StateReader, error) {
	if e.Err != nil {
		return nil, nil, e.Err
	}
	reader, err := m.OpenState(e)
	if err != nil {
		return nil, nil, err
	}
	p, err := h.point(e, reader.Manifest(), want)
	if err == nil {
		err = want.fits(e, reader)
	}
	if err != nil {
		return nil, nil, errors.Join(err, reader.Close())
	}
	return p, reader, nil
}

func (h *history) point(e checkpoint.Entry, manifest *checkpoint.Manifest, want *request) (*resumePoint, error) {
	p := &resumePoint{entry: e}
	if err := json.Unmarshal(manifest.Data, &p.at); err != nil {
		return nil, fmt.Errorf("checkpoint %s does not say where in the data it stands: %w: was it written by weft finetune?", e.Dir, err)
	}
	var err error
	if p.was, err = parseRecord(manifest.Config, e.Dir); err != nil {
		return nil, err
	}
	return p, h.continues(p, want)
}

// continues checks that a run may go on from a point, or begin again where the point has no checkpoint, and completes it.
func (h *history) continues(p *resumePoint, want *request) error {
	where := p.entry.Dir
	at, cannot := adapt(p.at, p.was.Settings, want.record.Settings)
	p.now = want.record
	p.now.Settings.ScheduleSteps = want.scheduleSteps(at)
	var err error
	if p.changed, err = p.was.Settings.differences(p.now.Settings); err != nil {
		return err
	}
	before, err := h.alreadyChanged(p)
	if err != nil {
		return err
	}
	unallowed := refused(p.changed, func(field string) bool { return want.allowed[field] || before[field] })
	if len(unallowed) > 0 {
		batch := batchHint{was: p.was.Settings.GlobalBatch, devices: p.now.Placement.Devices}
		return refusal(where, p.changed, unallowed, batch, cannot)
	}
	if cannot != nil {
		return fmt.Errorf("%s cannot be continued with these settings: %w, or resume from another checkpoint", where, cannot)
	}
	p.now.From = p.was.From
	if h.from != "" {
		p.now.From = h.from
	}
	p.now.Changes = recordChanges(p.was.Changes, p.changed, p.at)
	p.at = at
	return nil
}

// alreadyChanged are the fields whose new values the run of this folder has had before: it was allowed then, and no checkpoint
// was written since, or those since are damaged.
func (h *history) alreadyChanged(p *resumePoint) (map[string]bool, error) {
	out := map[string]bool{}
	if h.record.Format == 0 || h.from != "" && h.record.From != h.from {
		return out, nil
	}
	still, err := h.record.Settings.differences(p.now.Settings)
	if err != nil {
		return nil, err
	}
	for _, d := range p.changed {
		out[d.field] = !slices.ContainsFunc(still, func(s difference) bool { return s.field == d.field })
	}
	return out, nil
}

// fits checks that a checkpoint's state is that of the model: a tensor more or less would be lost, or begin anew, unnoticed.
func (want *request) fits(e checkpoint.Entry, reader *checkpoint.StateReader) error {
	seen := 0
	for _, have := range reader.Tensors() {
		t, ok := want.tensors[have.Name]
		switch {
		case !ok:
			return fmt.Errorf("checkpoint %s holds the trained tensor %s, which this model does not train: use the --model-id, --freeze and --scan it was written with, or begin a new run from its model/ folder", e.Dir, have.Name)
		case !slices.Equal(t.Shape, have.Shape) || t.DType != have.DType:
			return fmt.Errorf("checkpoint %s holds the tensor %s as %s %v, this model as %s %v: use the --model-id it was written with", e.Dir, have.Name, have.DType, have.Shape, t.DType, t.Shape)
		}
		seen++
	}
	if seen == len(want.tensors) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(want.tensors)) {
		if _, ok := reader.Lookup(name); !ok {
			return fmt.Errorf("checkpoint %s lacks the tensor %s, which this model trains: use the --model-id, --freeze and --scan it was written with, or begin a new run from its model/ folder", e.Dir, name)
		}
	}
	return nil
}

// choose picks the checkpoint to continue from: the newest that is whole. Those that are damaged are passed over with a
// warning, unless --resume named one. Nil: there is none, begin.
func (h *history) choose(m *checkpoint.Manager, want *request, r *report) (*resumePoint, *checkpoint.StateReader, error) {
	var faults []string
	for len(h.candidates) > 0 {
		e := h.candidates[0]
		p, reader, err := h.usable(m, e, want)
		if err == nil {
			return p, reader, nil
		}
		if !errors.Is(err, checkpoint.ErrDamaged) || h.named {
			return nil, nil, err
		}
		h.pass(e, err, r)
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return nil, nil, fmt.Errorf("none of the checkpoints can be used: %s: give another --storage-path to begin again", strings.Join(faults, "; "))
	}
	return nil, nil, nil
}

// begin is the record of a run without a checkpoint to continue from. One that made steps before it was killed binds it.
func (h *history) begin(dir string, want *request) (runRecord, error) {
	p := &resumePoint{entry: checkpoint.Entry{Dir: dir}, was: h.record}
	if !h.found {
		now := want.record
		now.Settings.ScheduleSteps = want.scheduleSteps(p.at)
		return now, nil
	}
	err := h.continues(p, want)
	return p.now, err
}

// pass drops the first candidate.
func (h *history) pass(e checkpoint.Entry, err error, r *report) {
	r.Log.Warn("checkpoint cannot be used, trying an older one", "checkpoint", e.Dir, "reason", oneLineError(err))
	h.candidates = h.candidates[1:]
}

// restore fills the trained tensors of the state from a checkpoint.
func restore(state *engine.State, reader *checkpoint.StateReader, at trainer.Position) error {
	trained := func(e engine.Entry) bool { return e.Param.Trainable }
	err := state.Restore(trained, func(e engine.Entry, r sharding.Region, dst []byte) error {
		return reader.ReadRegion(e.Name, r.Start, r.Size, dst)
	})
	state.Step = at.Step
	return err
}

// oneLineError is an error's text without line breaks.
func oneLineError(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
