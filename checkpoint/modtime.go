package checkpoint

import (
	"os"
	"path"
	"time"
)

// ModTimer is implemented by an FS that knows when a file was written.
type ModTimer interface {
	// ModTime returns when the content of a file was last written.
	ModTime(name string) (time.Time, error)
}

// ModTime implements ModTimer.
func (OS) ModTime(name string) (time.Time, error) {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// WrittenAt returns when a file was written, by the clock of its storage; ok is false where that cannot say.
func WrittenAt(fsys FS, name string) (at time.Time, ok bool) {
	timer, ok := fsys.(ModTimer)
	if !ok {
		return at, false
	}
	at, err := timer.ModTime(name)
	return at, err == nil
}

// Committed returns when a checkpoint was committed, by the clock of the storage
// and for people to read: nothing is decided by it. ok is false where the storage
// cannot say; a copy may tell the time of the copying.
func (m *Manager) Committed(e Entry) (at time.Time, ok bool) {
	return WrittenAt(m.fs, path.Join(e.Dir, ManifestFile))
}
