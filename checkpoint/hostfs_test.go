package checkpoint

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// hostFS is what one of several processes has of a storage. Its n-th operation, looks at what others wrote aside, fails, or is
// the last of the process.
type hostFS struct {
	FS
	mu     sync.Mutex
	ops    int
	failAt int
	err    error
	kill   func() // nil: the operation fails with err
	dead   bool
	trace  []string
}

func (h *hostFS) before(what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return errCrash
	}
	if strings.HasPrefix(what, "open ") && (strings.HasSuffix(what, togetherFile) || strings.Contains(what, ".weft-host-")) {
		return nil
	}
	h.ops++
	h.trace = append(h.trace, what)
	if h.ops != h.failAt {
		return nil
	}
	if h.kill == nil {
		return fmt.Errorf("%s: %w", what, h.err)
	}
	h.dead = true
	h.kill()
	return errCrash
}

func (h *hostFS) Create(name string) (File, error) {
	if err := h.before("create " + name); err != nil {
		return nil, err
	}
	f, err := h.FS.Create(name)
	return hostFile{f, h, name}, err
}

type hostFile struct {
	File
	fs   *hostFS
	name string
}

func (f hostFile) Write(p []byte) (int, error) {
	if err := f.fs.before("write " + f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f hostFile) Sync() error {
	if err := f.fs.before("sync " + f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (h *hostFS) Open(name string) (Reader, error) {
	if err := h.before("open " + name); err != nil {
		return nil, err
	}
	return h.FS.Open(name)
}

func (h *hostFS) Rename(from, to string) error {
	if err := h.before("rename " + from); err != nil {
		return err
	}
	return h.FS.Rename(from, to)
}

func (h *hostFS) Replace(name string, content []byte) error {
	if err := h.before("replace " + name); err != nil {
		return err
	}
	return h.FS.Replace(name, content)
}

func (h *hostFS) Remove(name string) error {
	if err := h.before("remove " + name); err != nil {
		return err
	}
	return h.FS.Remove(name)
}

func (h *hostFS) List(dir string) ([]DirEntry, error) {
	if err := h.before("list " + dir); err != nil {
		return nil, err
	}
	return h.FS.List(dir)
}

func (h *hostFS) MkdirAll(dir string) error {
	if err := h.before("mkdir " + dir); err != nil {
		return err
	}
	return h.FS.MkdirAll(dir)
}

func (h *hostFS) SyncDir(dir string) error {
	if err := h.before("syncdir " + dir); err != nil {
		return err
	}
	return h.FS.SyncDir(dir)
}

func (h *hostFS) Lock(name string, owner []byte) (io.Closer, error) {
	if err := h.before("lock " + name); err != nil {
		return nil, err
	}
	return h.FS.Lock(name, owner)
}

// hostStore is the same of an object store.
type hostStore struct {
	*hostFS
	store ObjectStore
}

func (h hostStore) RemoveAll(names []string, own bool) error {
	if err := h.before("remove " + strings.Join(names, " ")); err != nil {
		return err
	}
	return h.store.RemoveAll(names, own)
}
