package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// OS is the FS of local disks and mounted file systems. Rename never replaces
// anything; locks are advisory (flock) and end with the process.
type OS struct{}

// Create implements FS.
func (OS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return newOSFile(f), nil
}

// diskPiece is the size of one read of a slice from a disk, small enough that its bytes are still in the processor's cache when
// their checksum is taken. Elsewhere a read is a request, and large.
const diskPiece = 256 << 10

type osReader struct {
	*os.File
	size int64
	turn *sync.Mutex
}

// InTurn implements inTurn. What the end of a slice tells counts, since the system reads ahead of the slice before.
func (r osReader) InTurn(off, n int64, read func() error) error {
	if n > 0 && !inPageCache(r.File, off+n-1) {
		r.turn.Lock()
		defer r.turn.Unlock()
	}
	return read()
}

func (r osReader) Size() int64 { return r.size }

// Open implements FS.
func (OS) Open(name string) (Reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return osReader{f, st.Size(), new(sync.Mutex)}, nil
}

// Rename implements FS.
func (OS) Rename(oldName, newName string) error { return renameNoReplace(oldName, newName) }

// renameChecked is for file systems without an exclusive rename; within a
// locked storage path nobody else makes newName between the two calls.
func renameChecked(oldName, newName string) error {
	if _, err := os.Lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return os.Rename(oldName, newName)
}

// replacePrefix begins the name of the file in which ReplaceBy writes; a crash
// leaves it at most, and the next one for that file writes over it.
const replacePrefix = ".weft-replace-"

// Replace implements FS.
func (o OS) Replace(name string, content []byte) error {
	return o.ReplaceBy(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// ReplaceBy is Replace for content that need not be in memory at once.
func (o OS) ReplaceBy(name string, write func(io.Writer) error) error {
	dir, base := filepath.Split(filepath.Clean(name))
	tmp := filepath.Join(dir, replacePrefix+base)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return o.SyncDir(filepath.Dir(name))
}

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// List implements FS.
func (OS) List(dir string) ([]DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	list := make([]DirEntry, 0, len(entries))
	for _, e := range entries {
		d := DirEntry{Name: e.Name(), Dir: e.IsDir(), Link: e.Type()&fs.ModeSymlink != 0}
		st, err := os.Stat(filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			d.Dir, d.Size = st.IsDir(), st.Size()
		case errors.Is(err, fs.ErrNotExist) && !d.Link:
			continue // removed since ReadDir
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// MkdirAll implements FS; new folders are synced into those above them where
// the system allows it.
func (o OS) MkdirAll(dir string) error {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range made {
		// A folder above may be writable but not readable: then this cannot be done.
		_ = o.SyncDir(filepath.Dir(d))
	}
	return nil
}

// SyncDir implements FS. File systems that have no sync of folders (FUSE) say
// so by EINVAL or ENOTSUP, which is no error here.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Lock implements FS.
func (OS) Lock(name string, owner []byte) (io.Closer, error) {
	l := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	if !ok {
		_ = l.Close()
		held, _ := os.ReadFile(name)
		return nil, &LockedError{Name: name, Owner: held}
	}
	// In place: a new inode would not be the one that is locked.
	if err := os.WriteFile(name, owner, 0o644); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	return osLock{l}, nil
}

// osLock is a held lock file.
type osLock struct{ *flock.Flock }

// Check implements Lease: the name must still be the file that is locked. Where the folder was renamed or the lock file
// deleted, a second run could have begun under the name.
func (l osLock) Check() error {
	held, err := l.Stat()
	if err != nil {
		return fmt.Errorf("looking at the lock %s: %w", l.Path(), err)
	}
	named, err := os.Stat(l.Path())
	if err == nil && !os.SameFile(held, named) {
		err = fmt.Errorf("%w: it is another file now", ErrLocked)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: it is gone", ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("the lock %s was lost (%w): the folder was moved or deleted, or its lock file was, while the run went on; give the folder its name back and run the same command again", l.Path(), err)
	}
	return nil
}

// FreeSpace implements SpaceReporter.
func (OS) FreeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
