//go:build weftfault

package storage

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/checkpoint"
)

// Variables of the environment that the crash test sets. Only a binary built with the tag weftfault knows them.
const (
	// FaultEnv is KIND[/NAME]:N:WHAT. At the N-th operation of the KIND ("any": of every kind) whose path contains NAME, the
	// process is sent SIGTERM during it ("term"; "hang": and the operation never ends) or stands still until it gets SIGCONT
	// ("stop"), or kills itself "before" it, "half" way through a write, or "after" it; or the operation fails with "eacces",
	// "enospc" or "eio", a read comes back "short". N "*" is every one: for errors.
	FaultEnv = "WEFT_FAULT"
	// TraceEnv names a file that gets a line of kind and path for every operation.
	TraceEnv = "WEFT_FAULT_TRACE"
)

// hooked puts faults under the local disk's operations.
func hooked(fsys checkpoint.FS) checkpoint.FS {
	if disk, local := fsys.(checkpoint.OS); local {
		return faultFS{disk, process()}
	}
	return fsys
}

// File puts faults under a file that is not of an FS.
func File(name string, f checkpoint.File) checkpoint.File { return faultFile{f, name, process()} }

// Reach puts faults at a place of the run that is no operation of the storage. Only "term", "hang" and "stop" happen there.
func Reach(kind, name string) { process().meet(kind, name) }

// process counts all operations of this process.
var process = sync.OnceValue(func() *faults {
	f := &faults{}
	if path := os.Getenv(TraceEnv); path != "" {
		trace, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			panic(err)
		}
		f.trace = trace
	}
	if spec := os.Getenv(FaultEnv); spec != "" {
		if err := f.parse(spec); err != nil {
			panic(err)
		}
	}
	return f
})

// faults counts operations and decides what happens to them.
type faults struct {
	mu         sync.Mutex
	trace      io.Writer
	kind, name string
	at         int // 0: never, -1: always
	what       string
	met        int
}

func (f *faults) parse(spec string) (err error) {
	part := strings.Split(spec, ":")
	if len(part) != 3 {
		return fmt.Errorf("%s=%q is not KIND[/NAME]:N:WHAT", FaultEnv, spec)
	}
	f.kind, f.name, _ = strings.Cut(part[0], "/")
	f.what = part[2]
	if part[1] == "*" {
		f.at = -1
		return nil
	}
	f.at, err = strconv.Atoi(part[1])
	return err
}

// errorsOf are the faults that are errors.
var errorsOf = map[string]error{"eacces": unix.EACCES, "enospc": unix.ENOSPC, "eio": unix.EIO}

// meet counts an operation and returns the fault that it meets, "" for none. What comes before it happens here.
func (f *faults) meet(kind, name string) string {
	what := f.count(kind, name)
	switch what {
	case "before":
		die()
	case "hang":
		raise(unix.SIGTERM, unix.SIGTERM)
		select {}
	case "term":
		raise(unix.SIGTERM, unix.SIGTERM)
		answer()
	case "stop":
		raise(unix.SIGSTOP, unix.SIGCONT)
		answer() // what came with SIGCONT
	}
	return what
}

// raise sends this process a signal and returns when all that listen for until have it.
func raise(sig, until unix.Signal) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, until)
	_ = unix.Kill(os.Getpid(), sig)
	<-came
	signal.Stop(came) // waits for the others' turn
}

// answer gives time to answer a signal, as far as that is possible during an operation: in slices, of which a machine that
// stands still for a while takes one.
func answer() {
	for range 20 {
		time.Sleep(10 * time.Millisecond)
	}
}

func (f *faults) count(kind, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trace != nil {
		fmt.Fprintf(f.trace, "%s %s\n", kind, name)
	}
	if f.at == 0 || f.kind != "any" && f.kind != kind || !strings.Contains(name, f.name) {
		return ""
	}
	f.met++
	if f.at != -1 && f.at != f.met {
		return ""
	}
	return f.what
}

// do runs one operation under what it meets.
func (f *faults) do(kind, name string, op func() error) error {
	met := f.meet(kind, name)
	if err := errorsOf[met]; err != nil {
		return &os.PathError{Op: kind, Path: name, Err: err}
	}
	err := op()
	if met == "after" {
		die()
	}
	return err
}

// die ends the process as the kernel's out-of-memory killer or a lost machine does.
func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// faultFS is the local disk with faults.
type faultFS struct {
	checkpoint.OS
	f *faults
}

func (s faultFS) Create(name string) (file checkpoint.File, err error) {
	err = s.f.do("create", name, func() (err error) { file, err = s.OS.Create(name); return err })
	if err != nil {
		return nil, err
	}
	return faultFile{file, name, s.f}, nil
}

func (s faultFS) Open(name string) (r checkpoint.Reader, err error) {
	err = s.f.do("open", name, func() (err error) { r, err = s.OS.Open(name); return err })
	if err != nil {
		return nil, err
	}
	return faultReader{r, name, s.f}, nil
}

func (s faultFS) Rename(oldName, newName string) error {
	return s.f.do("rename", newName, func() error { return s.OS.Rename(oldName, newName) })
}

func (s faultFS) Replace(name string, content []byte) error {
	met := s.f.meet("replace", name)
	if err := errorsOf[met]; err != nil {
		return &os.PathError{Op: "replace", Path: name, Err: err}
	}
	if met == "half" { // it writes another file, then gives it the name
		_ = os.WriteFile(filepath.Join(filepath.Dir(name), ".weft-replace-"+filepath.Base(name)), content[:len(content)/2], 0o644)
		die()
	}
	err := s.OS.Replace(name, content)
	if met == "after" {
		die()
	}
	return err
}

func (s faultFS) Remove(name string) error {
	return s.f.do("remove", name, func() error { return s.OS.Remove(name) })
}

func (s faultFS) List(dir string) (list []checkpoint.DirEntry, err error) {
	err = s.f.do("list", dir, func() (err error) { list, err = s.OS.List(dir); return err })
	return list, err
}

func (s faultFS) MkdirAll(dir string) error {
	return s.f.do("mkdir", dir, func() error { return s.OS.MkdirAll(dir) })
}

func (s faultFS) SyncDir(dir string) error {
	return s.f.do("syncdir", dir, func() error { return s.OS.SyncDir(dir) })
}

func (s faultFS) Lock(name string, owner []byte) (l io.Closer, err error) {
	err = s.f.do("lock", name, func() (err error) { l, err = s.OS.Lock(name, owner); return err })
	return l, err
}

// faultFile is a file being written.
type faultFile struct {
	checkpoint.File
	name string
	f    *faults
}

func (w faultFile) Write(b []byte) (n int, err error) {
	met := w.f.meet("write", w.name)
	if err := errorsOf[met]; err != nil {
		return 0, &os.PathError{Op: "write", Path: w.name, Err: err}
	}
	if met == "half" {
		b = b[:len(b)/2]
	}
	n, err = w.File.Write(b)
	if met == "half" || met == "after" {
		die()
	}
	return n, err
}

func (w faultFile) Sync() error  { return w.f.do("sync", w.name, w.File.Sync) }
func (w faultFile) Close() error { return w.f.do("close", w.name, w.File.Close) }

// faultReader is a file being read.
type faultReader struct {
	checkpoint.Reader
	name string
	f    *faults
}

func (r faultReader) ReadAt(b []byte, off int64) (n int, err error) {
	met := r.f.meet("read", r.name)
	if err := errorsOf[met]; err != nil {
		return 0, &os.PathError{Op: "read", Path: r.name, Err: err}
	}
	if met == "short" {
		n, err = r.Reader.ReadAt(b[:len(b)/2], off)
		if err == nil {
			err = io.EOF
		}
		return n, err
	}
	n, err = r.Reader.ReadAt(b, off)
	if met == "after" {
		die()
	}
	return n, err
}
