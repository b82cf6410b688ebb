package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// File names of a Hugging Face folder.
const (
	SingleFile = "model.safetensors"
	IndexFile  = "model.safetensors.index.json"
)

// Set is the weights of a model folder: one file, or an index with its shards.
// Concurrency and Close are as for [File].
type Set struct {
	dir     string
	pool    *pool // nil for local files
	files   []*File
	tensors []Info
	owner   map[string]*File
}

// OpenDir opens the weights in dir: model.safetensors, else the shards of
// model.safetensors.index.json, else the only *.safetensors file (the order of
// transformers). Tensors of a shard that the index does not list are included,
// as transformers does; a tensor in two shards is a fault.
func OpenDir(dir string) (*Set, error) {
	s := &Set{dir: dir, owner: map[string]*File{}}
	return s.open(localFolder(dir), func(name string) (*File, error) { return Open(filepath.Join(dir, name)) })
}

// OpenFolder is OpenDir for a folder elsewhere, whose files are read by ranges;
// dir stands for it in errors.
func OpenFolder(dir string, folder Folder) (*Set, error) {
	s := &Set{dir: dir, owner: map[string]*File{}, pool: newPool()}
	return s.open(folder, func(name string) (*File, error) {
		r, err := folder.Open(name)
		if err != nil {
			return nil, fmt.Errorf("opening weights: %w", err)
		}
		return openRanges(s.path(name), r, s.pool)
	})
}

// localFolder is a Folder of a local disk, of which only the index is read.
type localFolder string

// Names implements Folder.
func (dir localFolder) Names() ([]string, error) {
	entries, err := os.ReadDir(string(dir))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// Open implements Folder.
func (dir localFolder) Open(name string) (Reader, error) {
	b, err := os.ReadFile(filepath.Join(string(dir), name))
	return memory{bytes.NewReader(b)}, err
}

// memory is the content of a small file.
type memory struct{ *bytes.Reader }

func (m memory) Close() error { return nil }

// path is the name of a file for people.
func (s *Set) path(name string) string {
	if s.pool == nil {
		return filepath.Join(s.dir, name)
	}
	return strings.TrimSuffix(s.dir, "/") + "/" + name
}

// open opens the files that hold the weights.
func (s *Set) open(folder Folder, open func(name string) (*File, error)) (*Set, error) {
	err := s.openFiles(folder, open)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) openFiles(folder Folder, open func(name string) (*File, error)) error {
	names, index, err := s.weightFiles(folder)
	if err != nil {
		return err
	}
	if err := s.addFiles(names, index != nil, open); err != nil {
		return err
	}
	for _, tensor := range slices.Sorted(mapKeys(index)) {
		want := s.path(index[tensor])
		got, ok := s.owner[tensor]
		if !ok || got.path != want {
			if ok {
				return fault(want, tensor, ErrMissingTensor, "%s says it is here, it is in %s", IndexFile, path.Base(got.path))
			}
			return fault(want, tensor, ErrMissingTensor, "%s says it is here", IndexFile)
		}
	}
	return nil
}

func mapKeys(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// addFiles opens the files, several at once, and takes them in their order.
func (s *Set) addFiles(names []string, sharded bool, open func(name string) (*File, error)) error {
	files, errs := make([]*File, len(names)), make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for i, name := range names {
		g.Go(func() error {
			if files[i], errs[i] = open(name); errs[i] != nil && sharded && errors.Is(errs[i], fs.ErrNotExist) {
				errs[i] = fault(s.path(name), "", ErrMissingFile, "%s names it; download it again", IndexFile)
			}
			return nil
		})
	}
	_ = g.Wait()
	for _, f := range files {
		if f != nil {
			s.files = append(s.files, f)
		}
	}
	for i, f := range files {
		if errs[i] != nil {
			return errs[i]
		}
		if err := s.add(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) add(f *File) error {
	for _, t := range f.Tensors() {
		if other, twice := s.owner[t.Name]; twice {
			return fault(f.path, t.Name, ErrDuplicate, "it is in %s too", path.Base(other.path))
		}
		s.owner[t.Name] = f
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// weightFiles decides which files of the folder hold its weights; index is nil
// without an index file.
func (s *Set) weightFiles(folder Folder) (names []string, index map[string]string, err error) {
	entries, err := folder.Names()
	if err != nil {
		return nil, nil, fmt.Errorf("opening model folder: %w", err)
	}
	var all []string
	hasIndex := false
	for _, e := range entries {
		switch {
		case e == SingleFile:
			return []string{SingleFile}, nil, nil
		case e == IndexFile:
			hasIndex = true
		case strings.HasSuffix(e, ".safetensors"):
			all = append(all, e)
		}
	}
	if hasIndex {
		return readIndex(s.path(IndexFile), folder)
	}
	switch len(all) {
	case 1:
		return all, nil, nil
	case 0:
		return nil, nil, fault(s.dir, "", ErrNoWeights, "the folder has no *.safetensors file; weft reads no other weights")
	}
	return nil, nil, fault(s.dir, "", ErrNoWeights, "%d *.safetensors files, but neither %s nor %s", len(all), SingleFile, IndexFile)
}

// readIndex reads the weight map and the sorted list of its files.
func readIndex(path string, folder Folder) (names []string, index map[string]string, err error) {
	r, err := folder.Open(IndexFile)
	if err != nil {
		return nil, nil, fmt.Errorf("opening model folder: %w", err)
	}
	b, err := readAll(r, path)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, nil, err
	}
	var doc struct {
		WeightMap json.RawMessage `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, nil, fault(path, "", ErrIndex, "%v", err)
	}
	if doc.WeightMap == nil {
		return nil, nil, fault(path, "", ErrIndex, "it has no weight_map")
	}
	p := &headerParser{file: path, dec: json.NewDecoder(bytes.NewReader(doc.WeightMap))}
	index = map[string]string{}
	files := map[string]bool{}
	err = p.object(func(key string) error {
		file, err := p.string()
		if err != nil {
			return err
		}
		if _, twice := index[key]; twice {
			return fault(path, key, ErrDuplicate, "weight_map has it twice")
		}
		if !filepath.IsLocal(file) {
			return fault(path, key, ErrIndex, "file %q is not inside of the model folder", file)
		}
		index[key] = file
		files[file] = true
		return nil
	})
	if err != nil {
		var fe *FormatError
		if errors.As(err, &fe) {
			return nil, nil, err
		}
		return nil, nil, fault(path, "", ErrIndex, "weight_map: %v", err)
	}
	if len(index) == 0 {
		return nil, nil, fault(path, "", ErrIndex, "weight_map names no tensor")
	}
	for f := range files {
		names = append(names, f)
	}
	slices.Sort(names)
	return names, index, nil
}

// Dir returns the folder given to OpenDir or OpenFolder.
func (s *Set) Dir() string { return s.dir }

// Files lists the open files by name.
func (s *Set) Files() []*File { return s.files }

// Tensors lists all tensors, file by file in the order of their bytes; offsets
// count within each tensor's own file. Do not change the list.
func (s *Set) Tensors() []Info { return s.tensors }

// Lookup finds a tensor by its name.
func (s *Set) Lookup(name string) (Info, bool) {
	f, ok := s.owner[name]
	if !ok {
		return Info{}, false
	}
	return f.Lookup(name)
}

// Bytes is [File.Bytes] of the file that holds the tensor.
func (s *Set) Bytes(name string) []byte {
	f, ok := s.owner[name]
	if !ok {
		return nil
	}
	return f.Bytes(name)
}

// ReadAt is [File.ReadAt] of the file that holds the tensor.
func (s *Set) ReadAt(name string, p []byte, off int64) error {
	f, ok := s.owner[name]
	if !ok {
		return fault(s.dir, name, ErrMissingTensor, "")
	}
	return f.ReadAt(name, p, off)
}

// ReadRegion is [File.ReadRegion] of the file that holds the tensor.
func (s *Set) ReadRegion(name string, start, size []int, dst []byte) error {
	f, ok := s.owner[name]
	if !ok {
		return fault(s.dir, name, ErrMissingTensor, "")
	}
	return f.ReadRegion(name, start, size, dst)
}

// Check is [File.Check] of every file; checked is the number of those whose bytes
// were all read and are those of the store.
func (s *Set) Check() (checked int, err error) {
	for _, f := range s.files {
		ok, err := f.Check()
		if err != nil {
			return checked, err
		}
		if ok {
			checked++
		}
	}
	return checked, nil
}

// Release gives back the host memory that is kept for reading scattered regions.
func (s *Set) Release() {
	if s.pool != nil {
		s.pool.drop()
	}
}

// Close closes every file.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
