package checkpoint

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

var stateName = regexp.MustCompile(`^process-\d+-shard-\d+\.safetensors$`)

// Incomplete returns the folders with the name of a checkpoint that hold files of
// train state and neither a manifest nor a list of intent, in the order of their
// steps. No save leaves one, so each was a checkpoint until somebody lost its manifest: Err is a [*DamagedError].
// A run must not pass one over for an older checkpoint without saying so.
func (m *Manager) Incomplete() ([]Entry, error) {
	found, err := m.fs.List(m.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(m.root, err)
	}
	var list []Entry
	for _, e := range m.named(found) {
		if e.read(m.fs) {
			continue
		}
		inside, err := m.fs.List(e.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, explain(m.root, err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(inside, func(f DirEntry) bool { return f.Name == name })
		}
		if has(intentFile) {
			continue // being written or deleted, on an object store, or left so by a run that died
		}
		if has(ManifestFile) && e.read(m.fs) {
			continue // committed, on an object store, since it was looked for
		}
		state, err := m.fs.List(path.Join(e.Dir, StateDir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, explain(m.root, err)
		}
		for _, f := range state {
			if stateName.MatchString(f.Name) {
				e.Err = damaged(where(m.fs, e.Dir), ManifestFile, "it is missing, though there is train state")
				list = append(list, e)
				break
			}
		}
	}
	sortByCommit(list)
	return list, nil
}
