package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"weft/checkpoint"
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
	// folder is the run's; elsewhere opens the candidate of another folder.
	folder    place
	elsewhere *checkpoint.Manager
}

// where is a candidate's folder, for people and for --resume.
func (h *history) where(e checkpoint.Entry) string {
	if h.from != "" {
		return h.from
	}
	return h.folder.of(e)
}

// openStorage takes the storage path for this process, or for its part of what several hosts write there.
func openStorage(c *Config, r *report, o checkpoint.Options) (folder place, m *checkpoint.Manager, err error) {
	if folder, err = openPlace(context.Background(), c.StoragePath); err != nil {
		return folder, nil, fmt.Errorf("--storage-path: %w", err)
	}
	defer folder.tellWaiting(r)()
	o.Keep, o.KeepBy, o.KeepLast, o.KeepEvery = c.Keep, c.KeepBy, c.KeepLast, c.KeepEvery
	m, err = checkpoint.Open(folder.fs, folder.name, o)
	if err != nil {
		return folder, nil, fmt.Errorf("--storage-path: %w", err)
	}
	return folder, m, nil
}

// readHistory looks for what --resume asks to continue, and refuses what it must not touch.
func readHistory(c *Config, folder place, m *checkpoint.Manager) (*history, error) {
	h := &history{folder: folder}
	var err error
	if h.record, h.found, err = readRecord(folder); err != nil {
		return nil, err
	}
	list, err := m.List()
	if err != nil {
		return nil, err
	}
	metrics, err := folder.in(metricsName).size()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	steps := metrics > 0
	trained := len(list) > 0 || steps
	if steps && !h.found && len(list) == 0 {
		return nil, fmt.Errorf("%s holds a %s that no run recorded in a %s there wrote, and weft would write over it: move it away or give another --storage-path", c.StoragePath, metricsName, recordName)
	}
	h.found = h.found && trained
	slices.Reverse(list)
	switch c.Resume {
	case ResumeAuto:
		if h.candidates, err = withIncomplete(m, list); err != nil {
			return nil, err
		}
	case ResumeNever:
		if trained {
			return nil, fmt.Errorf("--resume never: %s holds a run already: give an empty --storage-path or another --run-name, or leave out --resume to continue that run", c.StoragePath)
		}
	default:
		return h, h.findNamed(c.Resume, list)
	}
	return h, nil
}

// withIncomplete puts checkpoints that lost their manifest among the others, newest first, so that they are met and named as
// damaged, not passed over in silence.
func withIncomplete(m *checkpoint.Manager, list []checkpoint.Entry) ([]checkpoint.Entry, error) {
	lost, err := m.Incomplete()
	if err != nil {
		return nil, err
	}
	for _, e := range lost {
		older := func(o checkpoint.Entry) bool {
			return o.Step < e.Step || o.Step == e.Step && o.Revision < e.Revision
		}
		at := slices.IndexFunc(list, older)
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, e)
	}
	return list, nil
}

// findNamed takes the checkpoint that --resume names as the one candidate. One of another folder is where this folder's run
// begins: once that run has checkpoints, it goes on from those. One of this folder must be its newest.
func (h *history) findNamed(url string, list []checkpoint.Entry) error {
	named, err := openPlace(context.Background(), url)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	dir := named.String()
	for i, e := range list {
		if h.folder.of(e) != dir {
			continue
		}
		if i > 0 {
			return fmt.Errorf("--resume %s: %s of the same run is newer, and what follows would be mixed with it: use --resume auto, or give a new --run-name or --storage-path to begin a run of its own from there", url, h.folder.of(list[0]))
		}
		h.named, h.candidates = true, []checkpoint.Entry{e}
		return nil
	}
	if len(list) > 0 {
		if h.record.From != dir {
			return fmt.Errorf("--resume %s: the run in this --storage-path has checkpoints of its own, such as %s, and did not begin from that one: use --resume auto, or give a new --run-name or --storage-path", url, h.folder.of(list[0]))
		}
		h.candidates = list
		return nil
	}
	if _, err := named.in(checkpoint.ManifestFile).size(); err != nil {
		return fmt.Errorf("--resume %s is no checkpoint (%w): give a folder such as STORAGE/checkpoints/epoch-0001-step-00000016", url, err)
	}
	if h.found && h.record.From != dir {
		return fmt.Errorf("--resume %s: %s holds steps of a run that did not begin from there: give a new --run-name or --storage-path", url, h.folder.in(metricsName))
	}
	h.named, h.from = true, dir
	h.candidates = []checkpoint.Entry{{Name: path.Base(named.name), Dir: named.name}}
	h.elsewhere, err = checkpoint.Open(named.fs, path.Dir(named.name), checkpoint.Options{ReadOnly: true})
	return err
}

// request is the run that is asked for, before it is known where it begins.
type request struct {
	record  runRecord
	allowed map[string]bool
	// stepsPerEpoch is how many steps an epoch has.
	stepsPerEpoch int
	// scheduleSteps is the number of updates of a run that stands at a position, 0 where no schedule depends on it.
	scheduleSteps func(at trainer.Position) int
	// tensors are those of the train state, by name.
	tensors map[string]checkpoint.TensorInfo
	// moments names those of them that are read from another dtype, where --first-moment-dtype may change.
	moments map[string]bool
}

// resumePoint is a checkpoint that was restored, or chosen to be.
type resumePoint struct {
	entry checkpoint.Entry
	// where is its folder, for people and for --resume.
	where string
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
		return nil, nil, readable(e.Err)
	}
	reader, err := m.OpenState(e)
	if err != nil {
		return nil, nil, readable(err)
	}
	p, err := h.point(e, reader.Manifest(), want)
	if err == nil {
		err = want.fits(p.where, reader)
	}
	if err != nil {
		return nil, nil, errors.Join(err, reader.Close())
	}
	return p, reader, nil
}

func (h *history) point(e checkpoint.Entry, manifest *checkpoint.Manifest, want *request) (*resumePoint, error) {
	p := &resumePoint{entry: e, where: h.where(e)}
	if err := json.Unmarshal(manifest.Data, &p.at); err != nil {
		return nil, fmt.Errorf("checkpoint %s does not say where in the data it stands: %w: was it written by weft finetune?", p.where, err)
	}
	var err error
	if p.was, err = parseRecord(manifest.Config, p.where); err != nil {
		return nil, err
	}
	return p, h.continues(p, want)
}

// continues checks that a run may go on from a point, or begin again where the point has no checkpoint, and completes it.
func (h *history) continues(p *resumePoint, want *request) error {
	where := p.where
	at, cannot := adapt(p.at, p.was.Settings, want.record.Settings, want.stepsPerEpoch)
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
func (want *request) fits(where string, reader *checkpoint.StateReader) error {
	seen := 0
	for _, have := range reader.Tensors() {
		t, ok := want.tensors[have.Name]
		switch {
		case !ok:
			return fmt.Errorf("checkpoint %s holds the trained tensor %s, which this model does not train: use the --model-id, --freeze and --scan it was written with, or begin a new run from its model/ folder", where, have.Name)
		case !slices.Equal(t.Shape, have.Shape) || t.DType != have.DType && !want.moments[have.Name]:
			return fmt.Errorf("checkpoint %s holds the tensor %s as %s %v, this model as %s %v: use the --model-id it was written with", where, have.Name, have.DType, have.Shape, t.DType, t.Shape)
		}
		seen++
	}
	if seen == len(want.tensors) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(want.tensors)) {
		if _, ok := reader.Lookup(name); !ok {
			return fmt.Errorf("checkpoint %s lacks the tensor %s, which this model trains: use the --model-id, --freeze and --scan it was written with, or begin a new run from its model/ folder", where, name)
		}
	}
	return nil
}

// choose picks the checkpoint to continue from: the newest that is whole. Those that are damaged are passed over with a
// warning, unless --resume named one. Nil: there is none, begin.
func (h *history) choose(m *checkpoint.Manager, want *request, r *report) (*resumePoint, *checkpoint.StateReader, error) {
	var faults []string
	if h.elsewhere != nil {
		m = h.elsewhere
	}
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

// take is the candidate that another host has chosen; "" when it has chosen none.
func (h *history) take(m *checkpoint.Manager, want *request, name string) (*resumePoint, *checkpoint.StateReader, error) {
	if h.elsewhere != nil {
		m = h.elsewhere
	}
	for _, e := range h.candidates {
		if e.Name == name {
			return h.usable(m, e, want)
		}
	}
	if name == "" {
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("host 0 goes on from the checkpoint %s, which this host does not see: is %s the same folder on all hosts?", name, h.folder)
}

// begin is the record of a run without a checkpoint to continue from. One that made steps before it was killed binds it.
func (h *history) begin(want *request) (runRecord, error) {
	p := &resumePoint{where: h.folder.String(), was: h.record}
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
	r.Log.Warn("checkpoint cannot be used, trying an older one", "checkpoint", h.where(e), "reason", OneLine(err))
	h.candidates = slices.DeleteFunc(slices.Clone(h.candidates), func(o checkpoint.Entry) bool { return o.Name == e.Name })
}

// restore fills the trained tensors of the state from a checkpoint.
func restore(state *engine.State, reader *checkpoint.StateReader, at trainer.Position) error {
	trained := func(e engine.Entry) bool { return e.Param.Trainable }
	err := state.Restore(trained, func(e engine.Entry, r sharding.Region, dst []byte) error {
		return reader.ReadRegionAs(e.Name, fileDTypes[e.Array.DType], r.Start, r.Size, dst)
	})
	state.Step = at.Step
	return readable(err)
}

// readable adds to an error of reading a checkpoint what helps, when it tells of no damage.
func readable(err error) error {
	if err == nil || errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, checkpoint.ErrNewerFormat) {
		return err
	}
	return fmt.Errorf("%w: nothing is lost: make the checkpoint readable and run the same command again", err)
}
