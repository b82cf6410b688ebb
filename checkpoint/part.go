package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// savePart adds this process's part to the checkpoint that process 0 saves, as often as that one tries, and returns when it
// is committed or given up.
func (m *Manager) savePart(ctx context.Context, job *saveJob) (Entry, error) {
	var failure error // of this process, in the last attempt
	for answered := 0; ; {
		a, err := m.await(ctx, job.snapshot, answered)
		switch {
		case err != nil:
			return Entry{}, errors.Join(failure, err)
		case a.State == saveCommitted:
			return Entry{Name: a.Dir, Dir: path.Join(m.dir, a.Dir), Step: a.Step, Epoch: a.Epoch, Revision: 1, Sequence: a.Sequence, Metrics: job.snapshot.Metrics, Bytes: job.bytes()}, nil
		case a.State == saveGivenUp && failure != nil && a.Culprit == m.opts.Process:
			return Entry{}, failure
		case a.State == saveGivenUp:
			// A failure here, too, is of the folder that process 0 took away, or says less than what ended the save.
			return Entry{}, &HostError{Host: m.opts.hostName(0), Reason: a.Error, Final: true}
		}
		answered = a.Attempt
		spent := failure != nil && !job.again()
		if !spent {
			if failure = m.writePart(ctx, job, a); failure == nil {
				continue
			}
		}
		// A folder that is not there any more was given up by process 0, which says why.
		gone := !spent && errors.Is(failure, fs.ErrNotExist)
		final := ctx.Err() != nil || hopeless(failure) || !job.again() && !gone
		m.refuse(a, failure, final)
		if final {
			return Entry{}, failure
		}
	}
}

// await waits for what process 0 says of a save: an attempt after the one that was answered, or the outcome.
func (m *Manager) await(ctx context.Context, s *Snapshot, answered int) (a announced, err error) {
	limit := m.opts.wait()
	if answered > 0 {
		limit *= 4 // it waits for the others, too, and makes the model folder
	}
	err = m.poll(ctx, limit, func() (bool, error) {
		t, ok, err := m.readTogether()
		if err != nil || !ok {
			return false, err
		}
		a = t.Save
		if !a.of(s) {
			if t.Before == nil || !t.Before.of(s) {
				return false, nil
			}
			a = *t.Before
		}
		return a.State == saveCommitted || a.State == saveGivenUp || a.State == saveWriting && a.Attempt > answered, nil
	}, func() error {
		what := "did not begin to save this step"
		if answered > 0 {
			what = "did not say how the save of this step ended"
		}
		return &HostError{Host: m.opts.hostName(0), Final: true, Reason: fmt.Sprintf("it %s within %v: does it run, and is --storage-path the same folder on all hosts?", what, limit)}
	})
	return a, err
}

// writePart writes the files of this process into the announced folder, and then the part manifest.
func (m *Manager) writePart(ctx context.Context, job *saveJob, a announced) error {
	dir := path.Join(m.dir, a.Dir)
	if err := checkSpace(m.fs, m.dir, job.bytes()); err != nil {
		return err
	}
	if m.store != nil {
		// A folder of an object store bears the same name at each attempt.
		if err := m.removePart(job, dir); err != nil {
			return err
		}
	}
	if err := job.writeFiles(ctx, m.fs, dir); err != nil {
		return err
	}
	if err := m.fs.SyncDir(path.Join(dir, StateDir)); err != nil {
		return err
	}
	p := &partManifest{Session: m.opts.Session, Attempt: a.Attempt, Process: m.opts.Process, Files: job.manifest.Files}
	for _, t := range job.manifest.State {
		if len(t.Slices) > 0 {
			p.State = append(p.State, t)
		}
	}
	return m.putPart(ctx, dir, p)
}

func (m *Manager) putPart(ctx context.Context, dir string, p *partManifest) error {
	b, err := p.encode()
	if err != nil {
		return err
	}
	if err := writeSynced(ctx, m.fs, dir, partName(p.Process), b); err != nil {
		return err
	}
	return m.fs.SyncDir(dir)
}

// removePart removes the objects of this process's earlier attempt.
func (m *Manager) removePart(job *saveJob, dir string) error {
	files := []string{partName(m.opts.Process)}
	for _, f := range job.files() {
		files = append(files, f.path)
	}
	parts, err := m.parts(dir, files)
	if err != nil {
		return err
	}
	for i := range parts {
		parts[i] = path.Join(dir, parts[i])
	}
	for _, f := range files {
		parts = append(parts, path.Join(dir, f))
	}
	return m.store.RemoveAll(parts, true)
}

// refuse tells process 0 that this one has no part in an attempt. Where that cannot be told, it waits until it is too late.
func (m *Manager) refuse(a announced, why error, final bool) {
	dir := path.Join(m.dir, a.Dir)
	if m.store != nil {
		_ = m.store.RemoveAll([]string{path.Join(dir, partName(m.opts.Process))}, true)
	} else {
		_ = m.fs.Remove(path.Join(dir, partName(m.opts.Process)))
	}
	_ = m.putPart(context.Background(), dir, &partManifest{Session: m.opts.Session, Attempt: a.Attempt, Process: m.opts.Process, Error: explain(m.root, why).Error(), Final: final})
}

// abstain has no part in a save, which process 0 then gives up; it returns when that is told.
func (m *Manager) abstain(ctx context.Context, s *Snapshot, why error) {
	if a, err := m.await(ctx, s, 0); err == nil && a.State == saveWriting {
		m.refuse(a, why, true)
	}
}
