package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Names under the storage path.
const (
	// Folder holds the checkpoints.
	Folder = "checkpoints"
	// LockFile is held by the run that owns the storage path.
	LockFile = ".weft.lock"
	// ModelDir and StateDir are the folders inside of a checkpoint.
	ModelDir = "model"
	StateDir = "state"
)

// Retention defaults of the command line.
const (
	DefaultKeep   = 1
	DefaultKeepBy = "loss"
	// KeepByStep keeps the newest checkpoints, whatever their metrics.
	KeepByStep = "step"
)

// Options of Open.
type Options struct {
	// Keep is the number of checkpoints to keep, ranked by KeepBy; 0 keeps none
	// for its rank. A checkpoint stays when one of the rules Keep, KeepLast and
	// KeepEvery keeps it; with none of them set all stay. The newest committed
	// one is kept in any case, so that a run can resume: with Keep 1 there are up
	// to two, the best and the newest.
	Keep int
	// KeepBy is the name of a metric, smaller is better, or KeepByStep. A
	// checkpoint without the metric, or with NaN, ranks last.
	KeepBy string
	// KeepLast is the number of newest checkpoints to keep besides; 0: no such rule.
	KeepLast int
	// KeepEvery keeps for ever the checkpoint at the end of every epoch that it
	// divides: one with a model folder. 0: no such rule.
	KeepEvery int
	// Process is this process's number among the Processes that write each checkpoint together, each the slices that its
	// snapshots have; process 0 owns the storage path and must be opened first. Processes 0 and 1: this one is alone.
	Process, Processes int
	// Session is the same in all of these processes, and another each time that they start.
	Session int64
	// HostWait bounds how long a process waits for another one's part of a save; 0: DefaultHostWait.
	HostWait time.Duration
	// HostName names the host of a process in messages; nil: "host N".
	HostName func(process int) string
	// ReadOnly takes no lock, cleans nothing and refuses Save and Prune; the
	// folder may belong to a running job.
	ReadOnly bool

	poll time.Duration // between two looks at what others wrote; 0: as fits the storage
}

// Entry is one checkpoint of a storage path.
type Entry struct {
	Name     string // of its folder
	Dir      string // its path
	Step     int
	Epoch    int
	Revision int     // from 1; 2 and up when that step was saved again
	Sequence int     // order of commits, from 1; 0 when Err is set
	Metrics  Metrics // nil when Err is set
	Bytes    int64   // sum of its files, without the manifest
	Model    bool    // it has a Hugging Face folder beside the train state
	Linked   bool    // reached through a symbolic link: never deleted
	// Err is set when the manifest cannot be used: a *DamagedError,
	// ErrNewerFormat, or what reading it gave.
	Err error
}

// ModelPath returns the Hugging Face folder inside of the checkpoint.
func (e Entry) ModelPath() string { return path.Join(e.Dir, ModelDir) }

// Manager owns the checkpoints of one storage path. Save and Prune run one at
// a time; reading methods may be called concurrently with them.
type Manager struct {
	fs        FS
	store     ObjectStore // fs, when it is one
	root, dir string      // storage path, folder of the checkpoints
	opts      Options
	lock      io.Closer
	mu        sync.Mutex // Save, Prune, Close
	temps     int        // temporary names given out
	recovered []string
	attempts  int       // at saves together with other processes
	told      *together // what was announced last
}

// Open takes the storage path root for this process, making it when needed,
// and removes what a run that died has left half done (see Recovered). A path
// owned by a live run gives a [*LockedError]. Close gives the path back.
func Open(fsys FS, root string, opts Options) (*Manager, error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	m := &Manager{fs: fsys, root: root, dir: path.Join(root, Folder), opts: opts}
	m.store, _ = fsys.(ObjectStore)
	if opts.ReadOnly || opts.part() {
		return m, nil
	}
	if err := m.take(); err != nil {
		return nil, fmt.Errorf("opening storage path %s: %w", where(fsys, root), explain(root, err))
	}
	return m, nil
}

func (m *Manager) take() error {
	if err := m.fs.MkdirAll(m.dir); err != nil {
		return err
	}
	owner, err := newOwner()
	if err != nil {
		return err
	}
	if m.lock, err = m.fs.Lock(path.Join(m.root, LockFile), owner); err != nil {
		return err
	}
	m.recovered, err = m.clean()
	for _, d := range []string{m.dir, m.root} {
		if err == nil {
			err = m.fs.SyncDir(d)
		}
	}
	if err != nil {
		_ = m.lock.Close()
	}
	return err
}

// newOwner is the content of a lock of this process.
func newOwner() ([]byte, error) {
	host, _ := os.Hostname()
	// The time is for people who meet the lock; nothing is decided by it.
	b, err := json.Marshal(Owner{PID: os.Getpid(), Host: host, Started: time.Now().UTC().Format(time.RFC3339)})
	return append(b, '\n'), err
}

// Recovered lists the temporary folders of dead runs that Open removed.
func (m *Manager) Recovered() []string { return m.recovered }

// Owned returns nil when the storage path is this process's: a lock can be lost
// while it is held.
func (m *Manager) Owned() error { return m.holds() }

// Close gives the storage path back, after a Save that is under way.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock == nil {
		return nil
	}
	l := m.lock
	m.lock = nil
	m.opts.ReadOnly = true
	return l.Close()
}

var entryName = regexp.MustCompile(`^epoch-(\d{4,})-step-(\d{8,})(?:-r(\d+))?$`)

// nameOf returns the folder of a step; revisions from 2 on carry their number.
func nameOf(epoch, step, revision int) string {
	name := fmt.Sprintf("epoch-%04d-step-%08d", epoch, step)
	if revision > 1 {
		name += fmt.Sprintf("-r%d", revision)
	}
	return name
}

func parseName(name string) (e Entry, ok bool) {
	match := entryName.FindStringSubmatch(name)
	if match == nil {
		return e, false
	}
	e = Entry{Name: name, Revision: 1}
	var errs [3]error
	e.Epoch, errs[0] = strconv.Atoi(match[1])
	e.Step, errs[1] = strconv.Atoi(match[2])
	if match[3] != "" {
		e.Revision, errs[2] = strconv.Atoi(match[3])
	}
	return e, errors.Join(errs[:]...) == nil && nameOf(e.Epoch, e.Step, e.Revision) == name
}

// List returns the committed checkpoints in the order of their commits, newest
// last. One whose manifest is unusable is listed with Err set, after all of
// earlier steps; folders without a manifest are not weft's and are left out.
func (m *Manager) List() ([]Entry, error) {
	found, err := m.found()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing checkpoints: %w", err)
	}
	var list []Entry
	for _, e := range m.named(found) {
		if e.read(m.fs) {
			list = append(list, e)
		}
	}
	sortByCommit(list)
	return list, nil
}

// named are the folders of a listing that have the name of a checkpoint, which says nothing of what is in them.
func (m *Manager) named(found []DirEntry) []Entry {
	var list []Entry
	for _, d := range found {
		if e, ok := parseName(d.Name); ok && d.Dir {
			e.Dir, e.Linked = path.Join(m.dir, d.Name), d.Link
			list = append(list, e)
		}
	}
	return list
}

// read fills in what the manifest in e.Dir says, or what is wrong with it. False:
// there is none, the folder is no checkpoint.
func (e *Entry) read(fsys FS) bool {
	man, err := readManifest(fsys, e.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		e.Err = err
	case man.Step != e.Step || man.Epoch != e.Epoch:
		e.Err = damaged(where(fsys, e.Dir), ManifestFile, "it is that of epoch %d step %d; was the folder renamed?", man.Epoch, man.Step)
	default:
		e.Metrics, e.Bytes, e.Sequence, e.Model = man.Metrics, man.Bytes(), man.Sequence, man.HasModel()
	}
	return true
}

// At returns the checkpoint in the folder dir, wherever it lies: it may have been
// copied to another place and name. ok is false when dir has no manifest; a
// manifest that cannot be used is in the entry's Err.
func (m *Manager) At(dir string) (e Entry, ok bool) {
	e, named := parseName(path.Base(dir))
	e.Name, e.Dir = path.Base(dir), dir
	if named {
		ok = e.read(m.fs)
		return e, ok
	}
	if man, err := readManifest(m.fs, dir); err == nil {
		e.Step, e.Epoch, e.Revision = man.Step, man.Epoch, 1
	}
	ok = e.read(m.fs)
	return e, ok
}

// Manifest reads the manifest of a checkpoint.
func (m *Manager) Manifest(e Entry) (*Manifest, error) { return readManifest(m.fs, e.Dir) }

// sortByCommit sorts by sequence. An entry without one, its manifest being
// unusable, counts as committed after every readable one of an earlier step: so
// a damaged newest checkpoint is met, not passed over.
func sortByCommit(list []Entry) {
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Revision, b.Revision))
	})
	key := make(map[string]int, len(list))
	last := 0
	for _, e := range list {
		key[e.Name] = 2 * e.Sequence
		if e.Err != nil {
			key[e.Name] = 2*last + 1
		}
		last = max(last, e.Sequence)
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(key[a.Name], key[b.Name]) })
}

// Latest returns the newest committed checkpoint; ok is false when there is
// none. It checks the manifest and that every file is there in its size, not
// the checksums (Verify, or reading the state, does). When that one is not
// usable, Latest says so in err and falls back to nothing: see LatestGood.
func (m *Manager) Latest() (e Entry, ok bool, err error) {
	list, err := m.List()
	if err != nil || len(list) == 0 {
		return Entry{}, false, err
	}
	e = list[len(list)-1]
	if e.Err != nil {
		return e, true, e.Err
	}
	man, err := readManifest(m.fs, e.Dir)
	if err == nil {
		err = checkSizes(m.fs, e.Dir, man.Files)
	}
	return e, true, err
}

// Skipped is a checkpoint that LatestGood passed over, and why.
type Skipped struct {
	Entry Entry
	Err   error
}

// LatestGood returns the newest checkpoint that verifies completely, and the
// newer ones that do not. It reads every byte of those it looks at.
func (m *Manager) LatestGood() (e Entry, ok bool, skipped []Skipped, err error) {
	list, err := m.List()
	if err != nil {
		return Entry{}, false, nil, err
	}
	for _, e := range slices.Backward(list) {
		if err := m.Verify(e); err != nil {
			skipped = append(skipped, Skipped{e, err})
			continue
		}
		return e, true, skipped, nil
	}
	return Entry{}, false, skipped, nil
}
