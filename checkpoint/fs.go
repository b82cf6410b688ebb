package checkpoint

import (
	"encoding/json"
	"fmt"
	"io"
)

// FS is the storage under checkpoints. Names are slash-separated paths. Methods
// return errors that satisfy errors.Is with the values of io/fs (ErrNotExist,
// ErrExist, ErrPermission) where those apply, and may be called concurrently.
type FS interface {
	// Create makes a new file for writing; fs.ErrExist when the name is taken,
	// which an object store may say only at Sync.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (Reader, error)
	// Rename gives a file or folder another name within the same folder, at
	// once or not at all; fs.ErrExist when the new name is taken.
	Rename(oldName, newName string) error
	// Replace makes a small file with this content, whatever file had the name:
	// at once, and durable when it returns. One call at a time for a name.
	Replace(name string, content []byte) error
	// Remove deletes a file or an empty folder. It never follows a link.
	Remove(name string) error
	// List returns the entries of a folder, sorted by name.
	List(dir string) ([]DirEntry, error)
	// MkdirAll makes a folder and those above it; an existing one is no error.
	MkdirAll(dir string) error
	// SyncDir makes creations, renames and removals in dir survive a crash.
	SyncDir(dir string) error
	// Lock takes the lock file name for this process, writing owner into it,
	// until Close of the result or the end of the process. A lock held by
	// somebody else gives a [*LockedError] with that one's owner text.
	Lock(name string, owner []byte) (io.Closer, error)
}

// ObjectStore is an FS without folders: they are prefixes of names, exist when
// something is under them, and only single objects can be renamed. Every call is
// durable when it returns. Rename of an object takes place only if the object is
// still there, so whoever removes it first prevents the renaming. Locks are
// leases: see [Lease].
type ObjectStore interface {
	FS
	// RemoveAll deletes objects, in any order; a name without one is no error.
	// With own, only those that this value of the FS made are deleted.
	RemoveAll(names []string, own bool) error
}

// PartSuffix and digits behind the name of a file are the names of objects out
// of which an ObjectStore makes the file.
const PartSuffix = ".weft-part-"

// Lease is what Lock of an ObjectStore and of OS gives: it can be lost while it
// is held.
type Lease interface {
	io.Closer
	// Check returns nil when the lease is this process's at some moment during
	// the call.
	Check() error
}

// File is a file being written.
type File interface {
	io.Writer
	// Sync returns when the bytes written survive a crash. On an object store it
	// makes the object: nothing can be written after it.
	Sync() error
	// Close ends the writing; without Sync the file may be there or not.
	Close() error
}

// Reader is a file open for reading; ReadAt may be called concurrently.
type Reader interface {
	io.ReaderAt
	Size() int64
	Close() error
}

// DirEntry is one entry of a folder.
type DirEntry struct {
	Name string
	Dir  bool  // a folder, or a link to one
	Link bool  // a symbolic link: read through, never deleted through
	Size int64 // bytes of a file
}

// SpaceReporter is implemented by an FS that knows how much room it has.
type SpaceReporter interface {
	// FreeSpace returns the bytes that can still be written under dir.
	FreeSpace(dir string) (int64, error)
}

// Owner says who holds a lock.
type Owner struct {
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Started string `json:"started"` // RFC 3339
}

// LockedError: another process holds the lock.
type LockedError struct {
	Name  string // path of the lock file
	Owner []byte // what the holder wrote into it
}

func (e *LockedError) Error() string {
	who := "another process"
	if o, ok := e.Holder(); ok {
		who = fmt.Sprintf("process %d on host %s (since %s)", o.PID, o.Host, o.Started)
	}
	return fmt.Sprintf("%s is locked by %s; wait for it, stop it, or give another --storage-path", e.Name, who)
}

// Holder returns the owner as weft writes it; ok is false for anything else.
func (e *LockedError) Holder() (o Owner, ok bool) {
	err := json.Unmarshal(e.Owner, &o)
	return o, err == nil && o.PID != 0
}

// Unwrap returns ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }
