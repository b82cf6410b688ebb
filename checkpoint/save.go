package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"weft/checkpoint/safetensors"
)

// spaceMargin is left free beside the bytes of a checkpoint, for folders and
// the manifest.
const spaceMargin = 4 << 20

// Save writes a checkpoint, commits it and deletes older ones as Options say.
// On an error wrapping ErrPrune the checkpoint is committed and the entry
// valid; on any other error nothing was committed, unless the disk failed in
// the very act: then either the old or the new checkpoint is the newest, whole.
// A step that was saved before gets a new revision and replaces the old one.
// Host memory: the largest slice, for model tensors that are Parts the slices
// of one state tensor, for a fetched one that is split along an inner dimension
// the whole tensor beside it.
func (m *Manager) Save(ctx context.Context, s *Snapshot) (Entry, error) {
	e, err := m.saveFrom(ctx, s, nil, 1)
	if failed(err) {
		m.giveUp(s, err)
	}
	return e, err
}

// saveFrom is Save with the bytes of the state from elsewhere than Fetch (nil: from it), parallel files at a time.
func (m *Manager) saveFrom(ctx context.Context, s *Snapshot, from stateBytes, parallel int) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opts.ReadOnly {
		return Entry{}, fmt.Errorf("saving step %d: %w", s.Step, ErrReadOnly)
	}
	e, err := m.save(ctx, s, from, parallel)
	if err != nil {
		if m.opts.several() && !m.opts.part() {
			_ = m.tell(announced{Step: s.Step, Epoch: s.Epoch, Attempt: m.attempts, State: saveFailed, Error: err.Error(), Culprit: culprit(err)})
		}
		return Entry{}, fmt.Errorf("saving step %d: %w", s.Step, explain(m.root, err))
	}
	if m.opts.part() {
		return e, nil
	}
	if _, err := m.pruneAfterSave(); err != nil {
		return e, fmt.Errorf("%w after step %d was saved: %w", ErrPrune, s.Step, explain(m.root, err))
	}
	return e, nil
}

// CheckSpace reports, before anything of it is fetched, that a snapshot would not fit on the disk as it is now: the
// error is ErrNoSpace. A file system that cannot say is taken to have room.
func (m *Manager) CheckSpace(s *Snapshot) error {
	job, err := newSaveJob(s, m.opts)
	if err == nil {
		err = checkSpace(m.fs, m.dir, job.bytes())
	}
	if err != nil {
		return fmt.Errorf("saving a checkpoint: %w", explain(m.root, err))
	}
	return nil
}

func (m *Manager) save(ctx context.Context, s *Snapshot, from stateBytes, parallel int) (Entry, error) {
	if err := s.check(m.opts.Processes); err != nil {
		return Entry{}, err
	}
	job, err := newSaveJob(s, m.opts)
	if err != nil {
		return Entry{}, err
	}
	job.from, job.parallel = from, parallel
	if m.opts.part() {
		return m.savePart(ctx, job)
	}
	m.attempts++
	if err := m.holds(); err != nil {
		return Entry{}, err
	}
	if s.Before != nil {
		if err := s.Before(); err != nil {
			return Entry{}, err
		}
	}
	// What an earlier failure could not remove is in the way of disk space only.
	_, _ = m.clean()
	if err := checkSpace(m.fs, m.dir, job.bytes()); err != nil {
		return Entry{}, err
	}
	e, err := m.nextEntry(s)
	if err != nil {
		return Entry{}, err
	}
	if m.store != nil {
		e, err = m.saveObjects(ctx, job, e)
	} else {
		err = m.saveFolder(ctx, job, e)
	}
	if err != nil {
		return Entry{}, err
	}
	if m.opts.several() {
		m.tellCommitted(announced{Step: s.Step, Epoch: s.Epoch, Attempt: m.attempts, State: saveCommitted, Dir: e.Name, Sequence: e.Sequence})
	}
	e.Metrics, e.Bytes, e.Model = s.Metrics, job.manifest.Bytes(), job.manifest.HasModel()
	return e, nil
}

// saveFolder writes and commits job on a file system that renames folders.
func (m *Manager) saveFolder(ctx context.Context, job *saveJob, e Entry) error {
	job.manifest.Sequence = e.Sequence
	tmp, err := makeTemp(m.fs, m.dir, tempSave, e.Name, &m.temps)
	if err != nil {
		return err
	}
	if err := job.write(ctx, m, tmp); err != nil {
		m.discard(tmp)
		return err
	}
	err = m.holds()
	if err == nil {
		err = m.fs.Rename(tmp, e.Dir)
	}
	if err != nil {
		m.discard(tmp)
		return err
	}
	return m.fs.SyncDir(m.dir)
}

// nextEntry picks sequence and folder of the checkpoint: the first revision
// that nothing has, neither a checkpoint nor a folder of somebody else.
func (m *Manager) nextEntry(s *Snapshot) (Entry, error) {
	found, err := m.fs.List(m.dir)
	if err != nil && (m.store == nil || !errors.Is(err, fs.ErrNotExist)) {
		return Entry{}, err
	}
	committed, err := m.List()
	if err != nil {
		return Entry{}, err
	}
	next := Entry{Step: s.Step, Epoch: s.Epoch, Revision: 1, Sequence: 1}
	for _, d := range found {
		if e, ok := parseName(d.Name); ok && e.Epoch == s.Epoch && e.Step == s.Step {
			next.Revision = max(next.Revision, e.Revision+1)
		}
	}
	for _, e := range committed {
		next.Sequence = max(next.Sequence, e.Sequence+1)
		if e.Epoch == s.Epoch && e.Step == s.Step {
			next.Revision = max(next.Revision, e.Revision+1)
		}
	}
	next.Name = nameOf(s.Epoch, s.Step, next.Revision)
	next.Dir = path.Join(m.dir, next.Name)
	return next, nil
}

func checkSpace(fsys FS, dir string, need int64) error {
	sp, ok := fsys.(SpaceReporter)
	if !ok {
		return nil
	}
	free, err := sp.FreeSpace(dir)
	if err != nil {
		return err
	}
	if free < need+spaceMargin {
		return fmt.Errorf("%w: %s are needed under %s, %s are free; earlier checkpoints are untouched: free space there or give --storage-path on a larger disk",
			ErrNoSpace, formatBytes(need+spaceMargin), dir, formatBytes(free))
	}
	return nil
}

// discard removes a temporary folder after a failure; what it cannot remove
// now the next Save or Open will.
func (m *Manager) discard(tmp string) { _, _ = removeOwned(m.fs, tmp) }

// saveJob is a snapshot laid out in files.
type saveJob struct {
	snapshot *Snapshot
	state    []statePart
	model    []planned
	plan     *loadPlan
	manifest *Manifest
	// from gives the bytes of the state; nil: they are fetched as they are written.
	from stateBytes
	// parallel is the number of files written at a time, 1 at least.
	parallel int
	// others, if any, gives the other processes' parts, when they are all written into a folder.
	others func(ctx context.Context, dir string) error
}

// newSaveJob lays out what this process writes of a snapshot.
func newSaveJob(s *Snapshot, o Options) (*saveJob, error) {
	state, err := planState(s.State, o.Process)
	if err != nil {
		return nil, err
	}
	job := &saveJob{snapshot: s, state: state}
	if s.Model != nil && !o.part() {
		if job.model, err = planModel(s.Model, ModelDir, s.State); err != nil {
			return nil, err
		}
	}
	job.plan = planLoads(s.State, job.state, job.model)
	job.manifest = &Manifest{Step: s.Step, Epoch: s.Epoch, Metrics: s.Metrics, Data: s.Data, Config: s.Config, Versions: s.Versions, State: []StateTensor{}, Files: []FileEntry{}}
	for _, t := range s.State {
		job.manifest.State = append(job.manifest.State, StateTensor{Name: t.Name, DType: t.DType, Shape: orEmpty(t.Shape), Slices: []Slice{}})
	}
	return job, nil
}

// orEmpty makes nil dimensions [] in JSON.
func orEmpty(dims []int) []int { return append([]int{}, dims...) }

// again tells that the state's bytes can be had once more.
func (j *saveJob) again() bool {
	s, staged := j.from.(*stage)
	return !staged || s.holds
}

// files lists all files in the order of writing.
func (j *saveJob) files() []*planned {
	var list []*planned
	for i := range j.model {
		list = append(list, &j.model[i])
	}
	for i := range j.state {
		list = append(list, &j.state[i].planned)
	}
	return list
}

func (j *saveJob) bytes() int64 {
	var n int64
	for _, f := range j.files() {
		n += f.size()
	}
	return n
}

// write fills the temporary folder: the list of what will be in it, the files,
// the manifest; everything is durable when it returns.
func (j *saveJob) write(ctx context.Context, m *Manager, tmp string) error {
	fsys, files := m.fs, j.files()
	if err := writeIntent(fsys, tmp, files, m.opts.Processes); err != nil {
		return err
	}
	dirs, err := makeDirs(fsys, tmp, files, m.opts.several())
	if err != nil {
		return err
	}
	if err := m.beginTogether(j, tmp); err != nil {
		return err
	}
	if err := j.writeFiles(ctx, fsys, tmp); err != nil {
		return err
	}
	for _, name := range partNames(m.opts.Processes) {
		if err := fsys.Remove(path.Join(tmp, name)); err != nil {
			return err
		}
	}
	for _, d := range append(dirs, tmp) {
		if err := fsys.SyncDir(d); err != nil {
			return err
		}
	}
	return j.seal(ctx, fsys, tmp)
}

// written is a file that is whole.
type written struct {
	entry  FileEntry
	writer *safetensors.Writer
}

// writeFiles writes the state first, then the model's folder, up to parallel files at a time, and enters them into the
// manifest: the folder first. The folder waits for the state of other processes, where there are any.
func (j *saveJob) writeFiles(ctx context.Context, fsys FS, dir string) (err error) {
	from := j.from
	if from == nil {
		from = newFetched(j.snapshot.State, j.plan.loads)
	}
	var model, state []planned
	for i := range j.state {
		state = append(state, j.state[i].planned)
	}
	model = append(model, j.model...)
	spare := sync.Pool{New: func() any { return newBuffers(from) }}
	var folder, own []written
	if j.others == nil {
		all, err := j.writeEach(ctx, fsys, dir, append(state, model...), &spare)
		if err != nil {
			return err
		}
		own, folder = all[:len(state)], all[len(state):]
		j.enter(own)
	} else {
		if own, err = j.writeEach(ctx, fsys, dir, state, &spare); err != nil {
			return err
		}
		j.enter(own)
		if folder, err = j.writeFolder(ctx, fsys, dir, model, from); err != nil {
			return err
		}
	}
	var files []FileEntry
	for _, w := range folder {
		files = append(files, w.entry)
	}
	j.manifest.Files = append(files, j.manifest.Files...)
	return nil
}

// enter begins the manifest with the state files of this process.
func (j *saveJob) enter(own []written) {
	j.manifest.Files = []FileEntry{}
	for i := range j.manifest.State {
		j.manifest.State[i].Slices = []Slice{}
	}
	for i, w := range own {
		j.record(&j.state[i], w.entry, w.writer)
	}
}

// writeFolder waits for the other processes and makes the model's folder of what all have written.
func (j *saveJob) writeFolder(ctx context.Context, fsys FS, dir string, model []planned, from stateBytes) (_ []written, err error) {
	if err := j.others(ctx, dir); err != nil {
		return nil, err
	}
	reader, err := openState(fsys, dir, j.manifest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	spare := sync.Pool{New: func() any {
		b := newBuffers(from)
		b.written = reader
		return b
	}}
	return j.writeEach(ctx, fsys, dir, model, &spare)
}

// writeEach writes files with buffers from a pool.
func (j *saveJob) writeEach(ctx context.Context, fsys FS, dir string, files []planned, spare *sync.Pool) ([]written, error) {
	out := make([]written, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, j.parallel))
	for i := range files {
		group.Go(func() (err error) {
			buf := spare.Get().(*buffers)
			defer spare.Put(buf)
			out[i].entry, out[i].writer, err = files[i].write(ctx, fsys, dir, buf)
			return err
		})
	}
	return out, group.Wait()
}

// record enters a finished state file into the manifest.
func (j *saveJob) record(p *statePart, e FileEntry, w *safetensors.Writer) {
	h := w.Header()
	e.HeaderSize, e.HeaderCRC32C = h.DataStart, CRC32C(w.HeaderCRC32C())
	j.manifest.Files = append(j.manifest.Files, e)
	for i, t := range p.tensors {
		st, shard := &j.manifest.State[t], &j.snapshot.State[t].Shards[p.shards[i]]
		st.Slices = append(st.Slices, Slice{
			File: e.Path, Start: orEmpty(shard.Start), Size: orEmpty(shard.Size),
			Offset: h.DataStart + h.Tensors[i].Start, CRC32C: CRC32C(w.TensorCRC32C(i)),
		})
	}
}

// seal writes the manifest, then takes away the list of intent.
func (j *saveJob) seal(ctx context.Context, fsys FS, tmp string) error {
	b, err := j.manifest.encode()
	if err != nil {
		return err
	}
	if err := writeSynced(ctx, fsys, tmp, manifestTmp, b); err != nil {
		return err
	}
	if err := fsys.Rename(path.Join(tmp, manifestTmp), path.Join(tmp, ManifestFile)); err != nil {
		return err
	}
	if err := fsys.SyncDir(tmp); err != nil {
		return err
	}
	if err := fsys.Remove(path.Join(tmp, intentFile)); err != nil {
		return err
	}
	return fsys.SyncDir(tmp)
}

func writeSynced(ctx context.Context, fsys FS, dir, name string, content []byte) error {
	p := planned{path: name, content: content}
	_, _, err := p.write(ctx, fsys, dir, nil)
	return err
}

// makeDirs makes the folders below dir that files need.
func makeDirs(fsys FS, dir string, files []*planned, state bool) ([]string, error) {
	var dirs []string
	if state {
		dirs = append(dirs, path.Join(dir, StateDir))
		if err := fsys.MkdirAll(dirs[0]); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		sub := path.Join(dir, path.Dir(f.path))
		if sub == path.Clean(dir) || slices.Contains(dirs, sub) {
			continue
		}
		if err := fsys.MkdirAll(sub); err != nil {
			return nil, err
		}
		dirs = append(dirs, sub)
	}
	return dirs, nil
}
