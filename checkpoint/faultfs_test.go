package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// memFS is a file system in memory that can fail or crash at its n-th
// operation. It knows what is durable: file bytes up to the last Sync, folder
// entries up to the last SyncDir. reboot drops the rest, or keeps some of it.
type memFS struct {
	mu    sync.Mutex
	root  *node
	locks map[string][]byte
	free  int64
	injector
}

// injector counts operations and has the one that it is armed for fail.
type injector struct {
	ops    int
	failAt int // 0: never
	fault  fault
	err    error // of failBefore and failAfter
	rng    *rand.Rand
	dead   bool
	trace  []string
}

func newInjector() injector { return injector{rng: rand.New(rand.NewSource(1))} }

// arm makes the n-th operation from now on fail.
func (i *injector) arm(n int, f fault, err error, seed int64) {
	i.ops, i.failAt, i.fault, i.err, i.rng, i.trace = 0, n, f, err, rand.New(rand.NewSource(seed)), nil
}

// fired tells whether the armed fault has happened, and disarms.
func (i *injector) fired() bool {
	f := i.ops >= i.failAt
	i.failAt = 0
	return f
}

// count counts an operation; due tells that it is the one to fail.
func (i *injector) count(what string) (due bool) {
	i.ops++
	i.trace = append(i.trace, what)
	return i.ops == i.failAt
}

// fail is the operation that fails.
func (i *injector) fail(what string, do func() error) error {
	switch i.fault {
	case failBefore:
		return fmt.Errorf("%s: %w", what, i.err)
	case failAfter:
		if err := do(); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", what, i.err)
	}
	if i.rng.Intn(2) == 0 {
		_ = do()
	}
	i.dead = true
	return errCrash
}

// fault is what happens at the operation failAt.
type fault int

const (
	failBefore fault = iota // it returns err and does nothing (a write: half of it)
	failAfter               // it is done and returns err all the same
	crash                   // the machine stops, before or after it
)

var errCrash = errors.New("the machine crashed")

// node is a file or a folder.
type node struct {
	dir             bool
	data, durable   []byte
	entries, synced map[string]*node
	pending         []dirOp // since the last SyncDir, in order
}

// dirOp changes the entries of a folder that bear names.
type dirOp struct {
	names []string
	apply func(entries map[string]*node)
}

func newDir() *node {
	return &node{dir: true, entries: map[string]*node{}, synced: map[string]*node{}}
}

func (n *node) change(apply func(map[string]*node), names ...string) {
	apply(n.entries)
	n.pending = append(n.pending, dirOp{names, apply})
}

func newMemFS() *memFS {
	return &memFS{root: newDir(), locks: map[string][]byte{}, free: 1 << 40, injector: newInjector()}
}

// step counts an operation. do is run unless a fault forbids it.
func (m *memFS) step(what string, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.dead:
		return errCrash
	case m.count(what):
		return m.fail(what, do)
	}
	return do()
}

// clone copies the tree as it is; everything in the copy is durable.
func (n *node) clone() *node {
	if !n.dir {
		return &node{data: slices.Clone(n.data), durable: slices.Clone(n.data)}
	}
	c := newDir()
	for name, child := range n.entries {
		c.entries[name] = child.clone()
	}
	c.synced = maps.Clone(c.entries)
	return c
}

func (m *memFS) clone() *memFS {
	c := newMemFS()
	c.root = m.root.clone()
	return c
}

// survive returns what of the tree is there after a crash.
func (n *node) survive(rng *rand.Rand) *node {
	if !n.dir {
		data := slices.Clone(n.durable)
		if rest := n.data[len(n.durable):]; len(rest) > 0 && rng.Intn(3) > 0 {
			kept := slices.Clone(rest[:rng.Intn(len(rest)+1)])
			if rng.Intn(3) == 0 {
				clear(kept) // the length was written, the bytes were not
			}
			data = append(data, kept...)
		}
		return &node{data: data, durable: slices.Clone(data)}
	}
	entries := maps.Clone(n.synced)
	for _, op := range survivors(n.pending, rng) {
		op.apply(entries)
	}
	c := newDir()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		c.entries[name] = entries[name].survive(rng)
	}
	c.synced = maps.Clone(c.entries)
	return c
}

// survivors are the changes of a folder that reached the disk: those up to some
// moment, or, on a disk that keeps order for each name only, any that do not
// stand on a lost one.
func survivors(ops []dirOp, rng *rand.Rand) (kept []dirOp) {
	if len(ops) == 0 {
		return nil
	}
	if rng.Intn(2) == 0 {
		return ops[:rng.Intn(len(ops)+1)]
	}
	lost := map[string]bool{}
	for _, op := range ops {
		if rng.Intn(2) == 0 || slices.ContainsFunc(op.names, func(n string) bool { return lost[n] }) {
			for _, n := range op.names {
				lost[n] = true
			}
			continue
		}
		kept = append(kept, op)
	}
	return kept
}

// reboot is the machine after the crash: no locks, only what survived.
func (m *memFS) reboot(seed int64) *memFS {
	c := newMemFS()
	c.root = m.root.survive(rand.New(rand.NewSource(seed)))
	return c
}

func pathErr(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func (m *memFS) find(name string) (*node, error) {
	n := m.root
	for _, part := range strings.Split(strings.Trim(path.Clean(name), "/"), "/") {
		if part == "" || part == "." {
			continue
		}
		if n = n.entries[part]; n == nil {
			return nil, pathErr("find", name, fs.ErrNotExist)
		}
	}
	return n, nil
}

func (m *memFS) parent(name string) (*node, string, error) {
	d, err := m.find(path.Dir(name))
	if err == nil && !d.dir {
		err = pathErr("find", name, syscall.ENOTDIR)
	}
	return d, path.Base(name), err
}

type memFile struct {
	fs     *memFS
	name   string
	n      *node
	closed bool
}

func (m *memFS) Create(name string) (f File, err error) {
	err = m.step("create "+name, func() error {
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		if d.entries[base] != nil {
			return pathErr("create", name, fs.ErrExist)
		}
		n := &node{}
		d.change(func(e map[string]*node) { e[base] = n }, base)
		f = &memFile{fs: m, name: name, n: n}
		return nil
	})
	return f, err
}

func (f *memFile) Write(p []byte) (int, error) {
	n := 0
	write := func(p []byte) { f.n.data = append(f.n.data, p...); n += len(p) }
	err := f.fs.step("write "+f.name, func() error { write(p); return nil })
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err != nil && n == 0 && !f.fs.dead {
		write(p[:len(p)/2])
	}
	return n, err
}

func (f *memFile) Sync() error {
	return f.fs.step("sync "+f.name, func() error { f.n.durable = slices.Clone(f.n.data); return nil })
}

func (f *memFile) Close() error {
	return f.fs.step("close "+f.name, func() error {
		if f.closed {
			return fs.ErrClosed
		}
		f.closed = true
		return nil
	})
}

type memReader struct {
	fs   *memFS
	name string
	data []byte
}

func (m *memFS) Open(name string) (r Reader, err error) {
	err = m.step("open "+name, func() error {
		n, err := m.find(name)
		if err != nil {
			return err
		}
		if n.dir {
			return pathErr("open", name, syscall.EISDIR)
		}
		r = &memReader{m, name, n.data}
		return nil
	})
	return r, err
}

func (r *memReader) ReadAt(p []byte, off int64) (n int, err error) {
	err = r.fs.step("read "+r.name, func() error {
		if off < int64(len(r.data)) {
			n = copy(p, r.data[off:])
		}
		if n < len(p) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (r *memReader) Size() int64  { return int64(len(r.data)) }
func (r *memReader) Close() error { return nil }

func (m *memFS) Rename(oldName, newName string) error {
	return m.step("rename "+oldName+" "+newName, func() error {
		d, from, err := m.parent(oldName)
		if err != nil {
			return err
		}
		d2, to, err := m.parent(newName)
		if err != nil {
			return err
		}
		if d != d2 {
			return pathErr("rename", newName, syscall.EXDEV)
		}
		n := d.entries[from]
		if n == nil {
			return pathErr("rename", oldName, fs.ErrNotExist)
		}
		if d.entries[to] != nil {
			return pathErr("rename", newName, fs.ErrExist)
		}
		d.change(func(e map[string]*node) { delete(e, from); e[to] = n }, from, to)
		return nil
	})
}

func (m *memFS) Replace(name string, content []byte) error {
	return m.step("replace "+name, func() error {
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		if n := d.entries[base]; n != nil && n.dir {
			return pathErr("replace", name, syscall.EISDIR)
		}
		n := &node{data: slices.Clone(content), durable: slices.Clone(content)}
		d.change(func(e map[string]*node) { e[base] = n }, base)
		d.synced, d.pending = maps.Clone(d.entries), nil
		return nil
	})
}

func (m *memFS) Remove(name string) error {
	return m.step("remove "+name, func() error {
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		n := d.entries[base]
		if n == nil {
			return pathErr("remove", name, fs.ErrNotExist)
		}
		if len(n.entries) > 0 {
			return pathErr("remove", name, syscall.ENOTEMPTY)
		}
		d.change(func(e map[string]*node) { delete(e, base) }, base)
		return nil
	})
}

func (m *memFS) List(dir string) (list []DirEntry, err error) {
	err = m.step("list "+dir, func() error {
		d, err := m.find(dir)
		if err != nil {
			return err
		}
		if !d.dir {
			return pathErr("list", dir, syscall.ENOTDIR)
		}
		for _, name := range slices.Sorted(maps.Keys(d.entries)) {
			n := d.entries[name]
			list = append(list, DirEntry{Name: name, Dir: n.dir, Size: int64(len(n.data))})
		}
		return nil
	})
	return list, err
}

func (m *memFS) MkdirAll(dir string) error {
	return m.step("mkdir "+dir, func() error {
		n := m.root
		for _, part := range strings.Split(strings.Trim(path.Clean(dir), "/"), "/") {
			if n.entries[part] == nil {
				child := newDir()
				n.change(func(e map[string]*node) { e[part] = child }, part)
			}
			if n = n.entries[part]; !n.dir {
				return pathErr("mkdir", dir, syscall.ENOTDIR)
			}
		}
		return nil
	})
}

func (m *memFS) SyncDir(dir string) error {
	return m.step("syncdir "+dir, func() error {
		d, err := m.find(dir)
		if err != nil {
			return err
		}
		d.synced, d.pending = maps.Clone(d.entries), nil
		return nil
	})
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

func (m *memFS) Lock(name string, owner []byte) (c io.Closer, err error) {
	err = m.step("lock "+name, func() error {
		if held, ok := m.locks[name]; ok {
			return &LockedError{Name: name, Owner: held}
		}
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		n := &node{data: slices.Clone(owner)}
		d.change(func(e map[string]*node) { e[base] = n }, base)
		m.locks[name] = owner
		c = unlock(func() { delete(m.locks, name) })
		return nil
	})
	return c, err
}

func (m *memFS) FreeSpace(string) (int64, error) { return m.free, nil }

// put makes a durable file, as somebody else would.
func (m *memFS) put(name, content string) {
	n := m.root
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		if n.entries[part] == nil {
			d := newDir()
			n.entries[part], n.synced[part] = d, d
		}
		n = n.entries[part]
	}
	f := &node{data: []byte(content), durable: []byte(content)}
	n.entries[parts[len(parts)-1]], n.synced[parts[len(parts)-1]] = f, f
}

// tree lists all files with their content.
func (m *memFS) tree() map[string]string {
	out := map[string]string{}
	var walk func(prefix string, n *node)
	walk = func(prefix string, n *node) {
		if !n.dir {
			out[prefix] = string(n.data)
			return
		}
		if len(n.entries) == 0 {
			out[prefix+"/"] = ""
		}
		for name, c := range n.entries {
			walk(prefix+"/"+name, c)
		}
	}
	walk("", m.root)
	return out
}
