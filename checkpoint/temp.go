package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kinds of temporary folders. A name says kind, for which folder, process and
// number: .weft-tmp-save-epoch-0001-step-00000192-4711-1.
const (
	tempSave   = "save"   // being written
	tempDelete = "delete" // being deleted
	tempExport = "export" // being written by WriteModelFolder
)

// intentFile lists what will be written into a temporary folder. It is durable
// before the first of those files is made and goes when the manifest, which
// lists them too, is durable: so whoever cleans up knows weft's files by name.
const intentFile = ".weft-intent.json"

const intentFormat = "weft-intent"

type intent struct {
	Format string   `json:"format"`
	Files  []string `json:"files"`
	// Processes is how many write there: the state files and part manifests of those but the first are weft's, too.
	Processes int `json:"processes,omitempty"`
}

// others lists the files in dir that are those of other processes than the first.
func (in intent) others(fsys FS, dir string) ([]string, error) {
	if in.Processes < 2 {
		return nil, nil
	}
	files := partNames(in.Processes)
	list, err := fsys.List(path.Join(dir, StateDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range list {
		name, _, _ := strings.Cut(d.Name, PartSuffix)
		var process, shard int
		if n, err := fmt.Sscanf(name, "process-%d-shard-%d.safetensors", &process, &shard); d.Dir || n != 2 || err != nil || process < 1 || process >= in.Processes {
			continue
		}
		if file := stateFileName(process, shard); path.Base(file) == name && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, nil
}

var tempName = regexp.MustCompile(`^\.weft-tmp-(save|delete|export)-(.+)-(\d+)-(\d+)$`)

func parseTemp(name string) (kind, target string, ok bool) {
	match := tempName.FindStringSubmatch(name)
	if match == nil {
		return "", "", false
	}
	return match[1], match[2], true
}

// newTempName picks a temporary name that nothing in dir has.
func newTempName(fsys FS, dir, kind, target string, counter *int) (string, error) {
	list, err := fsys.List(dir)
	if err != nil {
		return "", err
	}
	for {
		*counter++
		name := fmt.Sprintf(".weft-tmp-%s-%s-%d-%d", kind, target, os.Getpid(), *counter)
		if !slices.ContainsFunc(list, func(d DirEntry) bool { return d.Name == name }) {
			return path.Join(dir, name), nil
		}
	}
}

func makeTemp(fsys FS, dir, kind, target string, counter *int) (string, error) {
	tmp, err := newTempName(fsys, dir, kind, target, counter)
	if err != nil {
		return "", err
	}
	return tmp, fsys.MkdirAll(tmp)
}

func writeIntent(fsys FS, tmp string, files []*planned, processes int) error {
	in := intent{Format: intentFormat, Files: []string{}}
	if processes > 1 {
		in.Processes = processes
	}
	for _, f := range files {
		in.Files = append(in.Files, f.path)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if err := writeSynced(context.Background(), fsys, tmp, intentFile, b); err != nil {
		return err
	}
	return fsys.SyncDir(tmp)
}

// ownedFiles returns the paths in dir that weft wrote or was going to write.
// known is false when there is a list that cannot be read: then nothing may be
// touched, except that a list of intent cut by a crash was the first file.
func ownedFiles(fsys FS, dir string) (files map[string]bool, known bool, err error) {
	files, known = map[string]bool{}, true
	m, err := readManifest(fsys, dir)
	switch {
	case err == nil:
		for _, f := range m.Files {
			files[f.Path] = true
		}
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrNewerFormat):
		known = false
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	b, err := readSmall(fsys, path.Join(dir, intentFile), maxManifest)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return files, known, nil
		}
		return nil, false, err
	}
	var in intent
	if json.Unmarshal(b, &in) == nil && in.Format == intentFormat {
		known = true
		for _, f := range in.Files {
			if fs.ValidPath(f) && strings.Count(f, "/") <= 1 {
				files[f] = true
			}
		}
		others, err := in.others(fsys, dir)
		if err != nil {
			return nil, false, err
		}
		for _, f := range others {
			files[f] = true
		}
	}
	return files, known, nil
}

// removeOwned deletes from the temporary folder dir what weft wrote there, and
// the folder when nothing else is in it. gone tells whether the folder went.
// It can be cut at any point and called again: the lists go last.
func removeOwned(fsys FS, dir string) (gone bool, err error) {
	files, known, err := ownedFiles(fsys, dir)
	if err != nil || !known {
		return false, err
	}
	bySub := map[string]map[string]bool{}
	for f := range files {
		sub := path.Dir(f)
		if bySub[sub] == nil {
			bySub[sub] = map[string]bool{}
		}
		bySub[sub][path.Base(f)] = true
	}
	list, err := fsys.List(dir)
	if err != nil {
		return false, err
	}
	for _, sub := range slices.Sorted(maps.Keys(bySub)) {
		if sub == "." {
			continue
		}
		real := slices.ContainsFunc(list, func(d DirEntry) bool { return d.Name == sub && d.Dir && !d.Link })
		if !real {
			continue
		}
		if err := removeSub(fsys, path.Join(dir, sub), bySub[sub]); err != nil {
			return false, err
		}
	}
	if _, err := removeNamed(fsys, dir, bySub["."]); err != nil {
		return false, err
	}
	// The lists may only go when the removals cannot come back.
	if err := fsys.SyncDir(dir); err != nil {
		return false, err
	}
	left, err := removeNamed(fsys, dir, map[string]bool{intentFile: true, manifestTmp: true, ManifestFile: true, LockFile: true})
	if err != nil {
		return false, err
	}
	if left > 0 {
		// Under its old name a manifest that came back would claim files that are gone.
		return false, fsys.SyncDir(dir)
	}
	return true, fsys.Remove(dir)
}

// removeSub deletes the named files of a folder and, if it is empty then, the
// folder.
func removeSub(fsys FS, dir string, names map[string]bool) error {
	left, err := removeNamed(fsys, dir, names)
	if err != nil {
		return err
	}
	if left > 0 {
		return fsys.SyncDir(dir)
	}
	return fsys.Remove(dir)
}

// removeNamed deletes the named plain files of a folder and counts what is left.
func removeNamed(fsys FS, dir string, names map[string]bool) (left int, err error) {
	list, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	for _, d := range list {
		if !names[d.Name] || d.Dir {
			left++
			continue
		}
		if err := fsys.Remove(path.Join(dir, d.Name)); err != nil {
			return 0, err
		}
	}
	return left, nil
}

// clean removes the temporary folders of dead runs; the lock of the storage
// path, held by the caller, is the proof that no live run owns one. A deletion
// that was cut is finished.
func (m *Manager) clean() (removed []string, err error) {
	if m.store != nil {
		return m.cleanObjects()
	}
	list, err := m.fs.List(m.dir)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		kind, target, ok := parseTemp(d.Name)
		if !ok || !d.Dir || d.Link || kind == tempExport {
			continue
		}
		dir := path.Join(m.dir, d.Name)
		gone, err := removeOwned(m.fs, dir)
		if err != nil {
			return removed, fmt.Errorf("removing the unfinished %s: %w", dir, err)
		}
		if gone {
			removed = append(removed, d.Name)
		} else if kind == tempDelete {
			if err := m.putBack(dir, target); err != nil {
				return removed, err
			}
		}
	}
	if len(removed) > 0 {
		return removed, m.fs.SyncDir(m.dir)
	}
	return removed, nil
}

// putBack gives a folder with files that are not weft's its old name, or the
// next free one like it.
func (m *Manager) putBack(dir, target string) error {
	name := path.Join(m.dir, target)
	for i := 1; ; i++ {
		err := m.fs.Rename(dir, name)
		if !errors.Is(err, fs.ErrExist) {
			if err != nil {
				return fmt.Errorf("giving %s its name back: %w", name, err)
			}
			return m.fs.SyncDir(m.dir)
		}
		name = path.Join(m.dir, fmt.Sprintf("%s-leftover-%d", target, i))
	}
}

// deleteEntry takes a checkpoint out of the list by one rename and then removes
// what weft wrote of it.
func (m *Manager) deleteEntry(e Entry) error {
	if m.store != nil {
		return m.deleteObjects(e)
	}
	if err := m.holds(); err != nil {
		return err
	}
	tmp, err := newTempName(m.fs, m.dir, tempDelete, e.Name, &m.temps)
	if err != nil {
		return err
	}
	if err := m.fs.Rename(e.Dir, tmp); err != nil {
		return err
	}
	// Before anything in it goes, the folder must not be able to come back.
	if err := m.fs.SyncDir(m.dir); err != nil {
		return err
	}
	gone, err := removeOwned(m.fs, tmp)
	if err != nil {
		return err
	}
	if !gone {
		return m.putBack(tmp, e.Name)
	}
	return m.fs.SyncDir(m.dir)
}
