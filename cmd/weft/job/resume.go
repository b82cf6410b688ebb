package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	// named tells that --resume names the checkpoint.
	named bool
}

// openStorage takes the storage path for this process.
func openStorage(c *Config) (*checkpoint.Manager, error) {
	path, err := filepath.Abs(c.StoragePath)
	if err != nil {
		return nil, err
	}
	m, err := checkpoint.Open(checkpoint.OS{}, path, checkpoint.Options{Keep: c.Keep, KeepBy: c.KeepBy})
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
			return nil, fmt.Errorf("--resume never: %s holds a run already: give an empty --storage-path, or leave out --resume to continue that run", c.StoragePath)
		}
	default:
		h.named = true
		entry, err := findCheckpoint(c.Resume, list)
		if err != nil {
			return nil, err
		}
		h.candidates = []checkpoint.Entry{entry}
	}
	return h, nil
}

// findCheckpoint is the checkpoint that --resume names: a folder in this storage path, of which it must be the newest,
// or in another one.
func findCheckpoint(path string, list []checkpoint.Entry) (checkpoint.Entry, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return checkpoint.Entry{}, err
	}
	for i, e := range list {
		if e.Dir != dir {
			continue
		}
		if i > 0 {
			return e, fmt.Errorf("--resume %s: %s is newer and would be mixed with what follows: use --resume auto, or give another --storage-path", path, list[0].Dir)
		}
		return e, nil
	}
	if len(list) > 0 {
		return checkpoint.Entry{}, fmt.Errorf("--resume %s: --storage-path holds checkpoints of its own, such as %s: give an empty one", path, list[0].Dir)
	}
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestFile)); err != nil {
		return checkpoint.Entry{}, fmt.Errorf("--resume %s is no checkpoint (%w): give a folder such as STORAGE/checkpoints/epoch-0001-step-00000016", path, err)
	}
	return checkpoint.Entry{Name: filepath.Base(dir), Dir: dir}, nil
}

// resumePoint is a checkpoint that was restored, or chosen to be.
type resumePoint struct {
	entry checkpoint.Entry
	at    trainer.Position
	// record is of the run that wrote it.
	record runRecord
}

// usable reads a candidate's position and record and checks that the run may continue it.
func usable(m *checkpoint.Manager, e checkpoint.Entry, now runRecord) (*resumePoint, *checkpoint.StateReader, error) {
	if e.Err != nil {
		return nil, nil, e.Err
	}
	reader, err := m.OpenState(e)
	if err != nil {
		return nil, nil, err
	}
	p, err := readPoint(e, reader.Manifest(), now)
	if err != nil {
		return nil, nil, errors.Join(err, reader.Close())
	}
	return p, reader, nil
}

func readPoint(e checkpoint.Entry, manifest *checkpoint.Manifest, now runRecord) (*resumePoint, error) {
	p := &resumePoint{entry: e}
	if err := json.Unmarshal(manifest.Data, &p.at); err != nil {
		return nil, fmt.Errorf("checkpoint %s does not say where in the data it stands: %w: was it written by weft finetune?", e.Dir, err)
	}
	var err error
	if p.record, err = parseRecord(manifest.Config, e.Dir); err != nil {
		return nil, err
	}
	return p, now.continues(p.record, e.Dir)
}

// choose picks the checkpoint to continue from: the newest that is whole. Those that are damaged are passed over with a
// warning, unless --resume named one. Nil: there is none, begin.
func (h *history) choose(m *checkpoint.Manager, now runRecord, r *report) (*resumePoint, *checkpoint.StateReader, error) {
	var faults []string
	for len(h.candidates) > 0 {
		e := h.candidates[0]
		p, reader, err := usable(m, e, now)
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
