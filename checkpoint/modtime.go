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

// Committed returns when a checkpoint was committed, by the clock of the storage
// and for people to read: nothing is decided by it. ok is false where the storage
// cannot say; a copy may tell the time of the copying.
func (m *Manager) Committed(e Entry) (at time.Time, ok bool) {
	timer, ok := m.fs.(ModTimer)
	if !ok {
		return at, false
	}
	at, err := timer.ModTime(path.Join(e.Dir, ManifestFile))
	return at, err == nil
}
