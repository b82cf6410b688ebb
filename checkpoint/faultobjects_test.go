package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// objects is an object store in memory: objects appear whole and are durable at
// once, there are no folders.
type objects struct {
	mu     sync.Mutex
	data   map[string]object
	gen    int
	leases map[string]*objLease // the one that has the name now
	// late tells which names listings do not show yet.
	late func(name string) bool
}

type object struct {
	data []byte
	gen  int
}

func newObjects() *objects {
	return &objects{data: map[string]object{}, leases: map[string]*objLease{}}
}

func (o *objects) clone() *objects {
	c := newObjects()
	c.data, c.gen = maps.Clone(o.data), o.gen
	return c
}

func (o *objects) put(name, content string) {
	o.gen++
	o.data[name] = object{[]byte(content), o.gen}
}

func (o *objects) tree() map[string]string {
	out := map[string]string{}
	for name, ob := range o.data {
		out[name] = string(ob.data)
	}
	return out
}

// objClient is what one process has of an object store. It can fail, or die, at
// its n-th operation, or wait there.
type objClient struct {
	*objects
	created map[string]int // generations
	injector
	pause chan chan struct{} // at failAt: tells that it waits, and for what
}

func (o *objects) client() *objClient {
	return &objClient{objects: o, created: map[string]int{}, injector: newInjector()}
}

// step counts an operation; only what it does to the objects holds their lock.
func (c *objClient) step(what string, do func() error) error {
	if c.dead {
		return errCrash
	}
	locked := func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return do()
	}
	switch due := c.count(what); {
	case due && c.pause != nil:
		goOn := make(chan struct{})
		c.pause <- goOn
		<-goOn
	case due:
		return c.fail(what, locked)
	}
	return locked()
}

// set makes an object of this client.
func (c *objClient) set(name string, data []byte) {
	c.gen++
	c.data[name] = object{slices.Clone(data), c.gen}
	c.created[name] = c.gen
}

type objFile struct {
	c    *objClient
	name string
	buf  []byte
	done bool
}

func (c *objClient) Create(name string) (File, error) { return &objFile{c: c, name: name}, nil }

func (f *objFile) Write(p []byte) (int, error) {
	if f.done {
		return 0, fs.ErrClosed
	}
	f.buf = append(f.buf, p...)
	return len(p), nil
}

func (f *objFile) Sync() error {
	f.done = true
	return f.c.step("create "+f.name, func() error {
		if _, taken := f.c.data[f.name]; taken {
			return pathErr("create", f.name, fs.ErrExist)
		}
		f.c.set(f.name, f.buf)
		return nil
	})
}

func (f *objFile) Close() error { f.done = true; return nil }

type objReader struct {
	c    *objClient
	name string
	data []byte
}

func (c *objClient) Open(name string) (r Reader, err error) {
	err = c.step("open "+name, func() error {
		ob, ok := c.data[name]
		if !ok {
			return pathErr("open", name, fs.ErrNotExist)
		}
		r = &objReader{c, name, ob.data}
		return nil
	})
	return r, err
}

func (r *objReader) ReadAt(p []byte, off int64) (n int, err error) {
	err = r.c.step("read "+r.name, func() error {
		n = copy(p, r.data[min(off, int64(len(r.data))):])
		if n < len(p) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (r *objReader) Size() int64  { return int64(len(r.data)) }
func (r *objReader) Close() error { return nil }

func (c *objClient) Rename(oldName, newName string) error {
	err := c.step("copy "+oldName+" "+newName, func() error {
		ob, ok := c.data[oldName]
		if !ok {
			return pathErr("rename", oldName, fs.ErrNotExist)
		}
		if _, taken := c.data[newName]; taken {
			return pathErr("rename", newName, fs.ErrExist)
		}
		c.set(newName, ob.data)
		return nil
	})
	if err != nil {
		return err
	}
	return c.step("remove "+oldName, func() error { delete(c.data, oldName); return nil })
}

func (c *objClient) Replace(name string, content []byte) error {
	return c.step("replace "+name, func() error { c.set(name, content); return nil })
}

func (c *objClient) Remove(name string) error {
	return c.step("remove "+name, func() error {
		if _, ok := c.data[name]; !ok {
			return pathErr("remove", name, fs.ErrNotExist)
		}
		delete(c.data, name)
		return nil
	})
}

func (c *objClient) RemoveAll(names []string, own bool) error {
	for _, name := range names {
		err := c.step("remove "+name, func() error {
			if !own || c.data[name].gen == c.created[name] {
				delete(c.data, name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *objClient) List(dir string) (list []DirEntry, err error) {
	err = c.step("list "+dir, func() error {
		dirs := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(c.data)) {
			rest, ok := strings.CutPrefix(name, dir+"/")
			if !ok || c.late != nil && c.late(name) {
				continue
			}
			first, _, deep := strings.Cut(rest, "/")
			if !deep {
				list = append(list, DirEntry{Name: first, Size: int64(len(c.data[name].data))})
			} else if !dirs[first] {
				dirs[first] = true
				list = append(list, DirEntry{Name: first, Dir: true})
			}
		}
		if len(list) == 0 {
			return pathErr("list", dir, fs.ErrNotExist)
		}
		slices.SortFunc(list, func(a, b DirEntry) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return list, err
}

func (c *objClient) MkdirAll(string) error { return nil }
func (c *objClient) SyncDir(string) error  { return nil }

var errLeaseLost = errors.New("the lease is another one's")

type objLease struct {
	c     *objClient
	name  string
	owner []byte
}

// Lock takes the lease from a dead client; of a living one in the same store it
// is refused. steal makes a living one look dead.
func (c *objClient) Lock(name string, owner []byte) (l io.Closer, err error) {
	err = c.step("lock "+name, func() error {
		if held := c.leases[name]; held != nil && !held.c.dead {
			return &LockedError{Name: name, Owner: held.owner}
		}
		mine := &objLease{c, name, owner}
		c.leases[name] = mine
		c.set(name, owner)
		l = mine
		return nil
	})
	return l, err
}

// steal lets the lease of a client that seems dead run out.
func (o *objects) steal(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.leases, name)
}

func (l *objLease) Check() error {
	return l.c.step("check "+l.name, func() error {
		if l.c.leases[l.name] != l {
			return errLeaseLost
		}
		return nil
	})
}

func (l *objLease) Close() error {
	return l.c.step("unlock "+l.name, func() error {
		if l.c.leases[l.name] == l {
			delete(l.c.leases, l.name)
			delete(l.c.data, l.name)
		}
		return nil
	})
}

var _ ObjectStore = (*objClient)(nil)
