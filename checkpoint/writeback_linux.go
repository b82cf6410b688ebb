package checkpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A file's bytes go to the disk while the next ones are written, writeBehind at a time, and at most writeWindow of them wait
// there: so the sync at its end is short, a full disk is met early, and a save that is given up ends soon.
const (
	writeBehind = 8 << 20
	writeWindow = 128 << 20
)

// osFile is a file being written.
type osFile struct {
	*os.File
	written, started int64 // bytes given to the kernel, and of these to the disk
}

func newOSFile(f *os.File) File { return &osFile{File: f} }

func (f *osFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	if err == nil && f.written-f.started >= writeBehind {
		err = f.pushOut()
	}
	return n, err
}

// pushOut starts writing what is new and waits for what is older than the window. Its errors count: the kernel tells of a
// failed write once, and would not tell Sync.
func (f *osFile) pushOut() error {
	from, to := f.started, f.written
	f.started = to
	err := f.syncRange(from, to-from, unix.SYNC_FILE_RANGE_WRITE)
	if old := from - writeWindow; err == nil && old >= 0 {
		err = f.syncRange(old, to-from, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
	}
	// File systems that have no such call (FUSE, overlays) write at Sync.
	for _, none := range []error{unix.ENOSYS, unix.EINVAL, unix.ENOTSUP, unix.ESPIPE} {
		if errors.Is(err, none) {
			return nil
		}
	}
	if err != nil {
		return &os.PathError{Op: "write", Path: f.Name(), Err: err}
	}
	return nil
}

// syncRange is sync_file_range(2), again when a signal came between.
func (f *osFile) syncRange(off, n int64, flags int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = unix.SyncFileRange(int(fd), off, n, flags); failed != unix.EINTR {
				return
			}
		}
	})
	return errors.Join(err, failed)
}
