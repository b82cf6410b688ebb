package plugin

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a waiting install looks whether the other one is done.
const lockPoll = 200 * time.Millisecond

// install puts a plugin into the folder, or finds it there whole.
func (s *store) install(ctx context.Context, sp spec, progress io.Writer) (Info, error) {
	if err := supported(); err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return Info{}, fmt.Errorf("install plugin %s: %w; set %s to a folder that weft may write to", sp.name, err, EnvCache)
	}
	unlock, err := s.lock(ctx, sp, progress)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	info, err := s.installed(sp, true)
	if err == nil {
		fmt.Fprintf(progress, "plugin %s %s is installed: %s\n", sp.name, sp.version, info.Path)
		return info, nil
	}
	verb := "installing"
	if errors.Is(err, ErrDamaged) {
		verb = "repairing"
	}
	fmt.Fprintf(progress, "%s plugin %s: %s %s (%d MB) with pip, into %s\n", verb, sp.name, sp.pkg, sp.version, sp.megabyte, s.dir)
	if err := s.fetch(ctx, sp); err != nil {
		return Info{}, fmt.Errorf("install plugin %s: %w", sp.name, err)
	}
	return s.installed(sp, false)
}

// lock makes this the only install of the plugin on the machine.
func (s *store) lock(ctx context.Context, sp spec, progress io.Writer) (unlock func(), err error) {
	l := flock.New(s.base(sp) + ".lock")
	ok, err := l.TryLock()
	if err == nil && !ok {
		fmt.Fprintf(progress, "another process is installing plugin %s; waiting for it\n", sp.name)
		_, err = l.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return nil, fmt.Errorf("install plugin %s: lock %s: %w; set %s to a folder that weft may write to", sp.name, l.Path(), err, EnvCache)
	}
	return func() { _ = l.Unlock() }, nil
}

// fetch downloads, checks, unpacks and commits. The caller holds the lock.
func (s *store) fetch(ctx context.Context, sp spec) error {
	s.removeLeftovers(sp)
	tmp, err := os.MkdirTemp(s.dir, filepath.Base(s.base(sp))+".tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	wheel, err := pipDownload(ctx, sp, tmp)
	if err != nil {
		return err
	}
	sum, err := hashFile(wheel)
	if err != nil {
		return err
	}
	if sum != sp.wheelSHA {
		return fmt.Errorf("%s %s: the wheel that pip got has sha256 %s, not %s: nothing was installed; check the package index that pip uses, "+
			"or give a plugin's path with --plugin", sp.pkg, sp.version, sum, sp.wheelSHA)
	}
	lib := filepath.Join(tmp, "plugin.so")
	r := record{Name: sp.name, Platform: sp.platform, Package: sp.pkg, Version: sp.version, WheelSHA: sp.wheelSHA}
	if r.SHA, r.Size, err = unpack(wheel, sp.member, lib); err != nil {
		return err
	}
	path := s.base(sp) + ".so"
	if err := os.Rename(lib, path); err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	r.ModTime = st.ModTime().UnixNano()
	return writeRecord(s.base(sp)+".json", r) // the commit
}

// removeLeftovers clears what installs of this plugin left behind that were killed. The caller holds the lock.
func (s *store) removeLeftovers(sp spec) {
	old, _ := filepath.Glob(s.base(sp) + "*.tmp-*")
	for _, path := range old {
		_ = os.RemoveAll(path)
	}
}

// unpack writes one member of a wheel to dst, synced, and returns its sha256 and size.
func unpack(wheel, member, dst string) (sum string, size int64, err error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return "", 0, fmt.Errorf("wheel %s: %w", filepath.Base(wheel), err)
	}
	defer z.Close()
	in, err := z.Open(member)
	if err != nil {
		return "", 0, fmt.Errorf("wheel %s has no %s: %w", filepath.Base(wheel), member, err)
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(out, h), in)
	err = errors.Join(err, out.Sync(), out.Close())
	if err != nil {
		return "", 0, fmt.Errorf("unpack %s: %w; is the disk full?", member, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
