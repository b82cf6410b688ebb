package checkpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func renameNoReplace(oldName, newName string) error {
	err := unix.Renameat2(unix.AT_FDCWD, oldName, unix.AT_FDCWD, newName, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return renameChecked(oldName, newName)
	}
	return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
}

// inPageCache tells whether the byte of a file at off can be read without waiting for a disk; false where no system tells.
func inPageCache(f *os.File, off int64) bool {
	n, err := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 1)}, off, unix.RWF_NOWAIT)
	return err == nil && n == 1
}
