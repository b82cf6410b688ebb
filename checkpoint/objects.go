package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// How checkpoints are committed and deleted on an ObjectStore, which has no
// rename of folders: the files are written where they shall stay, with the list
// of intent before the first and the manifest, which is the commit, last.

// newestFile lies beside the checkpoints of an object store and names those that
// a listing must not lack.
const newestFile = ".weft-newest.json"

const newestFormat = "weft-newest"

// newest is the content of newestFile. It is written before a commit: of its
// names the last is the checkpoint that was going to be committed, the one before
// it the newest at that time.
type newest struct {
	Format   string   `json:"format"`
	Sequence int      `json:"sequence"` // of the last name
	Names    []string `json:"names"`
}

// readNewest reads the pointer; the zero value when there is none.
func readNewest(fsys FS, dir string) (n newest, err error) {
	name := path.Join(dir, newestFile)
	b, err := readSmall(fsys, name, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return newest{}, nil
	}
	if err != nil {
		return n, err
	}
	if json.Unmarshal(b, &n) != nil || n.Format != newestFormat {
		return n, fmt.Errorf("%w: %s is not as weft writes it, so a listing that is out of date would not be noticed: delete that object when the listing of %s shows all your checkpoints", ErrDamaged, where(fsys, name), where(fsys, dir))
	}
	return n, nil
}

// found lists the folder of the checkpoints. On an object store that is what the
// listing says and, should it be out of date, what the pointer names: whether a
// folder is a checkpoint its manifest tells.
func (m *Manager) found() ([]DirEntry, error) {
	list, err := m.fs.List(m.dir)
	if m.store == nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return list, err
	}
	n, nerr := readNewest(m.fs, m.dir)
	if nerr != nil {
		return nil, nerr
	}
	for _, name := range n.Names {
		if _, ok := parseName(name); ok && !slices.ContainsFunc(list, func(d DirEntry) bool { return d.Name == name }) {
			list = append(list, DirEntry{Name: name, Dir: true})
		}
	}
	if len(list) > 0 {
		err = nil
	}
	return list, err
}

// holds asks whether this process still has the lock.
func (m *Manager) holds() error {
	if l, ok := m.lock.(Lease); ok {
		return l.Check()
	}
	return nil
}

// saveObjects writes and commits job on an object store.
func (m *Manager) saveObjects(ctx context.Context, job *saveJob, e Entry) (Entry, error) {
	if err := m.holds(); err != nil {
		return Entry{}, err
	}
	n, err := readNewest(m.fs, m.dir)
	if err != nil {
		return Entry{}, err
	}
	// One that was announced and never committed has used its number up.
	e.Sequence = max(e.Sequence, n.Sequence+1)
	job.manifest.Sequence = e.Sequence
	files := job.files()
	if err := m.claim(&e, files); err != nil {
		return Entry{}, err
	}
	err = m.beginTogether(job, e.Dir)
	if err == nil {
		err = job.writeFiles(ctx, m.fs, e.Dir)
	}
	if err == nil {
		err = m.commitObjects(ctx, job, e)
	}
	if err != nil {
		m.withdraw(e.Dir, files)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			// Somebody else was at these objects, who perhaps took the lock.
			if lost := m.holds(); lost != nil {
				err = lost
			}
		}
		return Entry{}, err
	}
	return e, nil
}

// claim writes the list of intent, into the first revision's folder that is free
// whatever the listing said.
func (m *Manager) claim(e *Entry, files []*planned) error {
	for {
		err := writeIntent(m.fs, e.Dir, files, m.opts.Processes)
		if err == nil {
			_, err = m.fs.Open(path.Join(e.Dir, ManifestFile))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				err = fs.ErrExist
			}
			_ = m.store.RemoveAll([]string{path.Join(e.Dir, intentFile)}, true)
		}
		if !errors.Is(err, fs.ErrExist) {
			m.withdraw(e.Dir, files)
			return err
		}
		e.Revision++
		e.Name = nameOf(e.Epoch, e.Step, e.Revision)
		e.Dir = path.Join(m.dir, e.Name)
	}
}

// commitObjects announces the checkpoint and writes its manifest, under a
// temporary name first. Whoever takes over a lease removes that before anything
// else; this process looks whether it still has the lease while that is there: so
// either the lease is seen to be lost, or the rename fails, or it came first.
func (m *Manager) commitObjects(ctx context.Context, job *saveJob, e Entry) error {
	if err := m.announce(e); err != nil {
		return err
	}
	b, err := job.manifest.encode()
	if err != nil {
		return err
	}
	if err := writeSynced(ctx, m.fs, e.Dir, manifestTmp, b); err != nil {
		return err
	}
	if err := m.holds(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.fs.Rename(path.Join(e.Dir, manifestTmp), path.Join(e.Dir, ManifestFile)); err != nil {
		// Done all the same? Without the temporary name it cannot be done any more.
		if m.withdraw(e.Dir, job.files()) && sameContent(m.fs, path.Join(e.Dir, ManifestFile), b) {
			return nil
		}
		return err
	}
	// It is committed; a list that stays goes with the next start or save.
	if m.removeParts(e.Dir, m.opts.Processes) == nil {
		_ = m.store.RemoveAll([]string{path.Join(e.Dir, intentFile)}, true)
	}
	return nil
}

// announce writes the pointer for the checkpoint that is about to be committed.
func (m *Manager) announce(e Entry) error {
	if err := m.holds(); err != nil {
		return err
	}
	n, err := readNewest(m.fs, m.dir)
	if err != nil {
		return err
	}
	if n.Sequence >= e.Sequence {
		return fmt.Errorf("%w: %s says that it has begun checkpoint number %d; only one run may go on", ErrLocked, where(m.fs, path.Join(m.dir, newestFile)), n.Sequence)
	}
	list, err := m.List()
	if err != nil {
		return err
	}
	n = newest{Format: newestFormat, Sequence: e.Sequence, Names: []string{}}
	if len(list) > 0 {
		n.Names = append(n.Names, list[len(list)-1].Name)
	}
	n.Names = append(n.Names, e.Name)
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return m.fs.Replace(path.Join(m.dir, newestFile), append(b, '\n'))
}

// withdraw removes, after a failure, the objects that this process has made of a
// checkpoint, unless it is committed after all; what it cannot remove the next
// start will. Objects of another run that took the storage path stay.
func (m *Manager) withdraw(dir string, files []*planned) (committed bool) {
	in := intent{Processes: m.opts.Processes}
	for _, f := range files {
		in.Files = append(in.Files, f.path)
	}
	committed, _ = m.settle(dir, in, true)
	return committed
}

// removeParts removes the part manifests of a committed checkpoint.
func (m *Manager) removeParts(dir string, processes int) error {
	if processes < 2 {
		return nil
	}
	names := partNames(processes)
	for i := range names {
		names[i] = path.Join(dir, names[i])
	}
	return m.store.RemoveAll(names, false)
}

// settle ends what is half done in the folder of a checkpoint: with a manifest it
// is committed and only the list of intent goes, without one the files go and the
// list last. With own, only objects of this process go, and none where other
// processes write too: then they go together, by the list. It can be cut at any
// point and called again.
func (m *Manager) settle(dir string, in intent, own bool) (committed bool, err error) {
	at := func(names ...string) []string {
		for i, n := range names {
			names[i] = path.Join(dir, n)
		}
		return names
	}
	// From here on nobody can commit it.
	if err := m.store.RemoveAll(at(manifestTmp), own); err != nil {
		return false, err
	}
	switch _, err := readManifest(m.fs, dir); {
	case err == nil:
		if err := m.removeParts(dir, in.Processes); err != nil {
			return true, err
		}
		return true, m.store.RemoveAll(at(intentFile), own)
	case !errors.Is(err, fs.ErrNotExist):
		return false, err // whether it is committed is not known
	}
	if own && in.Processes > 1 {
		return false, nil
	}
	others, err := in.others(m.fs, dir)
	if err != nil {
		return false, err
	}
	files := append(others, in.Files...)
	parts, err := m.parts(dir, files)
	if err != nil {
		return false, err
	}
	if err := m.store.RemoveAll(at(append(parts, files...)...), own); err != nil {
		return false, err
	}
	return false, m.store.RemoveAll(at(intentFile), own)
}

// parts finds the objects out of which files were being made.
func (m *Manager) parts(dir string, files []string) (parts []string, err error) {
	owned := map[string]bool{}
	var subs []string
	for _, f := range files {
		owned[f] = true
		if s := path.Dir(f); !slices.Contains(subs, s) {
			subs = append(subs, s)
		}
	}
	for _, sub := range subs {
		list, err := m.fs.List(path.Join(dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, d := range list {
			name := path.Join(sub, d.Name)
			if file, number, ok := strings.Cut(name, PartSuffix); ok && !d.Dir && owned[file] && strings.Trim(number, "0123456789") == "" {
				parts = append(parts, name)
			}
		}
	}
	return parts, nil
}

// readIntent returns the list of intent in dir; ok is false without one, or with
// one that weft did not write.
func readIntent(fsys FS, dir string) (in intent, ok bool, err error) {
	b, err := readSmall(fsys, path.Join(dir, intentFile), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return in, false, nil
	}
	if err != nil {
		return in, false, err
	}
	if json.Unmarshal(b, &in) != nil || in.Format != intentFormat {
		return in, false, nil
	}
	for _, f := range in.Files {
		if !fs.ValidPath(f) || strings.Count(f, "/") > 1 {
			return in, false, nil
		}
	}
	return in, true, nil
}

// cleanObjects ends what dead runs, or failures of this one, have left half
// done; the lease, held by the caller, is the proof that no live run is at it.
func (m *Manager) cleanObjects() (removed []string, err error) {
	found, err := m.found()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range m.named(found) {
		in, ok, err := readIntent(m.fs, e.Dir)
		if err != nil {
			return removed, fmt.Errorf("looking for an unfinished checkpoint in %s: %w", where(m.fs, e.Dir), err)
		}
		if !ok {
			continue
		}
		committed, err := m.settle(e.Dir, in, false)
		if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNewerFormat) {
			continue // List tells of it
		}
		if err != nil {
			return removed, fmt.Errorf("removing the unfinished %s: %w", where(m.fs, e.Dir), err)
		}
		if !committed {
			removed = append(removed, e.Name)
		}
	}
	return removed, nil
}

// deleteObjects takes a checkpoint out of the list by deleting its manifest, and
// then removes what weft wrote of it.
func (m *Manager) deleteObjects(e Entry) error {
	if err := m.holds(); err != nil {
		return err
	}
	man, err := readManifest(m.fs, e.Dir)
	if err != nil {
		return err
	}
	in := intent{Format: intentFormat, Files: []string{}}
	for _, f := range man.Files {
		in.Files = append(in.Files, f.Path)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if err := m.fs.Replace(path.Join(e.Dir, intentFile), b); err != nil {
		return err
	}
	if err := m.holds(); err != nil {
		_ = m.store.RemoveAll([]string{path.Join(e.Dir, intentFile)}, true)
		return err
	}
	if err := m.fs.Remove(path.Join(e.Dir, ManifestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = m.settle(e.Dir, in, false)
	return err
}

// exportObjects writes a Hugging Face folder on an object store. The list of
// intent is there from before the first file until all are whole, and config.json,
// without which nothing loads the folder, is the last of them.
func exportObjects(ctx context.Context, store ObjectStore, dir string, plan []planned, check func(dir string) error) (err error) {
	if err := emptyButForExport(store, dir); err != nil {
		return err
	}
	owner, err := newOwner()
	if err != nil {
		return err
	}
	lock, err := store.Lock(path.Join(dir, LockFile), owner)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := lock.Close(); err == nil {
			err = cerr
		}
	}()
	m := &Manager{fs: store, store: store}
	if in, ok, err := readIntent(store, dir); err != nil {
		return err
	} else if ok { // of an export that died
		if _, err := m.settle(dir, in, false); err != nil {
			return err
		}
	}
	if err := emptyButForExport(store, dir); err != nil {
		return err
	}
	files := make([]*planned, len(plan))
	for i := range plan {
		files[i] = &plan[i]
	}
	last := func(p *planned) int {
		if p.path == "config.json" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(files, func(a, b *planned) int { return last(a) - last(b) })
	err = writeAll(ctx, store, dir, files)
	if err == nil {
		err = check(dir)
	}
	if l, ok := lock.(Lease); ok && err == nil {
		err = l.Check()
	}
	if err != nil {
		m.withdraw(dir, files)
		return err
	}
	return store.RemoveAll([]string{path.Join(dir, intentFile)}, true)
}

// emptyButForExport refuses a folder that holds more than what an export that
// died, or is at work, has put there.
func emptyButForExport(store ObjectStore, dir string) error {
	list, err := store.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, ok, err := readIntent(store, dir)
	if err != nil {
		return err
	}
	for _, d := range list {
		name, _, _ := strings.Cut(d.Name, PartSuffix)
		if d.Name == LockFile || ok && (d.Name == intentFile || slices.Contains(in.Files, name)) {
			continue
		}
		return fmt.Errorf("%w: it holds %s; give a new folder or empty it", ErrNotEmpty, d.Name)
	}
	return nil
}

// where is a name in fsys as the user writes it.
func where(fsys FS, name string) string {
	if u, ok := fsys.(interface{ URL(name string) string }); ok {
		return u.URL(name)
	}
	return name
}

// sameContent tells whether a small file has these bytes.
func sameContent(fsys FS, name string, want []byte) bool {
	b, err := readSmall(fsys, name, maxManifest)
	return err == nil && bytes.Equal(b, want)
}
