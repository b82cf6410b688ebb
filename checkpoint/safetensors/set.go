package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	files   []*File
	tensors []Info
	owner   map[string]*File
}

// OpenDir opens the weights in dir: model.safetensors, else the shards of
// model.safetensors.index.json, else the only *.safetensors file (the order of
// transformers). Tensors of a shard that the index does not list are included,
// as transformers does; a tensor in two shards is a fault.
func OpenDir(dir string) (*Set, error) {
	names, index, err := weightFiles(dir)
	if err != nil {
		return nil, err
	}
	s := &Set{dir: dir, owner: map[string]*File{}}
	for _, name := range names {
		if err := s.add(filepath.Join(dir, name), index != nil); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	for _, tensor := range slices.Sorted(mapKeys(index)) {
		want := filepath.Join(dir, index[tensor])
		got, ok := s.owner[tensor]
		if !ok || got.path != want {
			_ = s.Close()
			if ok {
				return nil, fault(want, tensor, ErrMissingTensor, "%s says it is here, it is in %s", IndexFile, filepath.Base(got.path))
			}
			return nil, fault(want, tensor, ErrMissingTensor, "%s says it is here", IndexFile)
		}
	}
	return s, nil
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

func (s *Set) add(path string, sharded bool) error {
	f, err := Open(path)
	if err != nil {
		if sharded && errors.Is(err, fs.ErrNotExist) {
			return fault(path, "", ErrMissingFile, "%s names it; download it again", IndexFile)
		}
		return err
	}
	s.files = append(s.files, f)
	for _, t := range f.Tensors() {
		if other, twice := s.owner[t.Name]; twice {
			return fault(path, t.Name, ErrDuplicate, "it is in %s too", filepath.Base(other.path))
		}
		s.owner[t.Name] = f
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// weightFiles decides which files of dir hold its weights; index is nil
// without an index file.
func weightFiles(dir string) (names []string, index map[string]string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("opening model folder: %w", err)
	}
	var all []string
	hasIndex := false
	for _, e := range entries {
		switch {
		case e.Name() == SingleFile:
			return []string{SingleFile}, nil, nil
		case e.Name() == IndexFile:
			hasIndex = true
		case strings.HasSuffix(e.Name(), ".safetensors"):
			all = append(all, e.Name())
		}
	}
	if hasIndex {
		return readIndex(filepath.Join(dir, IndexFile))
	}
	switch len(all) {
	case 1:
		return all, nil, nil
	case 0:
		return nil, nil, fault(dir, "", ErrNoWeights, "the folder has no *.safetensors file; weft reads no other weights")
	}
	return nil, nil, fault(dir, "", ErrNoWeights, "%d *.safetensors files, but neither %s nor %s", len(all), SingleFile, IndexFile)
}

// readIndex reads the weight map and the sorted list of its files.
func readIndex(path string) (names []string, index map[string]string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening model folder: %w", err)
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

// Dir returns the folder given to OpenDir.
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

// ReadRegion is [File.ReadRegion] of the file that holds the tensor.
func (s *Set) ReadRegion(name string, start, size []int, dst []byte) error {
	f, ok := s.owner[name]
	if !ok {
		return fault(s.dir, name, ErrMissingTensor, "")
	}
	return f.ReadRegion(name, start, size, dst)
}

// Close closes every file.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
