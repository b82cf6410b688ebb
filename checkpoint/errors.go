package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

var (
	// ErrDamaged is wrapped by every [*DamagedError].
	ErrDamaged = errors.New("checkpoint is damaged")
	// ErrNewerFormat: the manifest was written by a newer weft.
	ErrNewerFormat = errors.New("checkpoint format is newer than this weft reads")
	// ErrLocked is wrapped by every [*LockedError].
	ErrLocked = errors.New("in use by another run")
	// ErrNoSpace: the disk is full, or would be.
	ErrNoSpace = errors.New("not enough disk space")
	// ErrReadOnly: the manager was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("checkpoints are open read-only")
	// ErrPrune: the checkpoint was saved, but an older one could not be deleted.
	ErrPrune = errors.New("deleting older checkpoints failed")
	// ErrNotEmpty: the folder to export to holds files already.
	ErrNotEmpty = errors.New("folder is not empty")
	// ErrSnapshot: what was given to Save is not consistent.
	ErrSnapshot = errors.New("snapshot is not valid")
)

// DamagedError says which file of a checkpoint is not what was written.
type DamagedError struct {
	Dir    string // the checkpoint's folder
	File   string // path inside of it
	Tensor string // of the train state, whose bytes differ; "" when it is not known or not one tensor
	Reason string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("checkpoint %s is damaged: %s: %s; restore that file or resume from another checkpoint", e.Dir, e.File, e.Reason)
}

// Unwrap returns ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

func damaged(dir, file, format string, args ...any) error {
	return &DamagedError{Dir: dir, File: file, Reason: fmt.Sprintf(format, args...)}
}

// explain adds what the user can do to an error of the storage.
func explain(root string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoSpace), advised(err):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w; earlier checkpoints are untouched: free space under %s or give --storage-path on a larger disk", ErrNoSpace, err, root)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; weft needs to write under %s: change its permissions or give another --storage-path", err, root)
	case (errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOENT)) && below(root, err):
		return fmt.Errorf("%w; weft keeps its files under %s: make that a folder that nothing else changes, or give another --storage-path", err, root)
	}
	return err
}

// below tells that err is about something under root or on the way there, not about the source of what is saved.
func below(root string, err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && (strings.HasPrefix(p.Path, root) || strings.HasPrefix(root, p.Path))
}

// advised tells that the storage has said already what the user can do.
func advised(err error) bool {
	var a interface{ Advice() string }
	return errors.As(err, &a) && a.Advice() != ""
}

// formatBytes writes a size for people, in powers of 1000.
func formatBytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1000, 0
	for v >= 999.95 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	return strings.Replace(fmt.Sprintf("%.1f %cB", v, units[i]), ".0 ", " ", 1)
}
