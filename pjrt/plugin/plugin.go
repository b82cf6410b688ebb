package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find is the plugin to use for a platform, "cpu" or "tpu". override, if not empty, is the path of a plugin's file or one of [Names]. The
// error matches [ErrNotInstalled] if the machine has none, and [ErrDamaged] if an installed file was changed; both say what to do.
func Find(platform, override string) (Info, error) {
	s, err := defaultStore()
	if err != nil && override == "" && os.Getenv(EnvPlugin) == "" {
		return Info{}, err // only the cache needs a folder
	}
	if s == nil {
		s = &store{specs: specs}
	}
	return s.findPlugin(platform, override)
}

func (s *store) findPlugin(platform, override string) (Info, error) {
	if platform != "cpu" && platform != "tpu" {
		return Info{}, fmt.Errorf("platform %q is not known; choose cpu or tpu", platform)
	}
	if override != "" {
		return s.explicit(platform, override, "--plugin")
	}
	if path := os.Getenv(EnvPlugin); path != "" {
		return s.explicit(platform, path, EnvPlugin)
	}
	var missing error
	for _, sp := range s.specs {
		if sp.platform != platform {
			continue
		}
		info, err := s.installed(sp, false)
		if err == nil || !errors.Is(err, ErrNotInstalled) {
			return info, err
		}
		if missing == nil {
			missing = err // the platform's default is the one to recommend
		}
	}
	if platform == "tpu" {
		if info, err := s.machineLibtpu(); err == nil || !errors.Is(err, ErrNotInstalled) {
			return info, err
		}
	}
	return Info{}, missing
}

// explicit is a plugin that the user named: a file, or an installed plugin by name.
func (s *store) explicit(platform, value, source string) (Info, error) {
	if st, err := os.Stat(value); err == nil {
		if !st.Mode().IsRegular() {
			return Info{}, fmt.Errorf("%s: %s is not a file; give the path of a PJRT plugin (.so)", source, value)
		}
		return s.external(platform, value, "", source)
	}
	if sp, err := s.find(value); err == nil {
		return s.installed(sp, false)
	}
	return Info{}, fmt.Errorf("%s: there is no file %s: %w; give the path of a PJRT plugin (.so)", source, value, fs.ErrNotExist)
}

// machineLibtpu is the libtpu that a TPU VM comes with.
func (s *store) machineLibtpu() (Info, error) {
	if path := os.Getenv("TPU_LIBRARY_PATH"); path != "" {
		info, err := s.external("tpu", path, "", "TPU_LIBRARY_PATH")
		if errors.Is(err, fs.ErrNotExist) {
			return Info{}, fmt.Errorf("TPU_LIBRARY_PATH: there is no file %s; correct or unset it", path)
		}
		return info, err
	}
	path, version, err := sitePackagesLibtpu()
	if err != nil {
		return Info{}, err
	}
	return s.external("tpu", path, version, "site-packages")
}

// external describes a file that weft did not install. Its sha256 is remembered by size and modification time, so that only the first
// start hashes it.
func (s *store) external(platform, path, version, source string) (Info, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Info{}, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return Info{}, fmt.Errorf("%s: %w", source, err)
	}
	info := Info{Platform: platform, Version: version, Path: abs, Size: st.Size(), Source: source}
	memo := ""
	if s.dir != "" {
		key := sha256.Sum256([]byte(abs))
		memo = filepath.Join(s.dir, "hashes", hex.EncodeToString(key[:8])+".json")
		if r, err := readRecord(memo); err == nil && r.Size == st.Size() && r.ModTime == st.ModTime().UnixNano() && len(r.SHA) == 64 {
			info.SHA256 = r.SHA
			return info, nil
		}
	}
	if info.SHA256, err = hashFile(abs); err != nil {
		return Info{}, fmt.Errorf("%s: plugin %s cannot be read: %w", source, abs, err)
	}
	if memo != "" && os.MkdirAll(filepath.Dir(memo), 0o755) == nil {
		// Without write permission the next start hashes again.
		_ = writeRecord(memo, record{SHA: info.SHA256, Size: st.Size(), ModTime: st.ModTime().UnixNano()})
	}
	return info, nil
}

// Install downloads a plugin, "cpu", "cpu-alt" or "tpu", with python3's pip, and repairs one that is damaged. One that is there and
// whole is left alone. Installs of several processes at once are safe: one does the work, the others wait. progress gets a line or two.
func Install(ctx context.Context, name string, progress io.Writer) (Info, error) {
	s, err := defaultStore()
	if err != nil {
		return Info{}, err
	}
	sp, err := s.find(name)
	if err != nil {
		return Info{}, err
	}
	return s.install(ctx, sp, progress)
}

// Ensure is the installed plugin of that name; the first time it is installed, which progress is told in one line. A damaged one is an
// error that matches [ErrDamaged], not a silent repair.
func Ensure(ctx context.Context, name string, progress io.Writer) (Info, error) {
	s, err := defaultStore()
	if err != nil {
		return Info{}, err
	}
	return s.ensure(ctx, name, progress)
}

func (s *store) ensure(ctx context.Context, name string, progress io.Writer) (Info, error) {
	sp, err := s.find(name)
	if err != nil {
		return Info{}, err
	}
	info, err := s.installed(sp, false)
	if !errors.Is(err, ErrNotInstalled) {
		return info, err
	}
	return s.install(ctx, sp, progress)
}

// Resolve is [Find], except that a CPU plugin that is not on the machine is installed, which progress is told in one line. It is what a
// run calls.
func Resolve(ctx context.Context, platform, override string, progress io.Writer) (Info, error) {
	info, err := Find(platform, override)
	if platform == "cpu" && errors.Is(err, ErrNotInstalled) {
		return Ensure(ctx, "cpu", progress)
	}
	return info, err
}

// Verify hashes an installed plugin's file and compares it with what was installed. The error matches [ErrNotInstalled] or [ErrDamaged].
func Verify(name string) (Info, error) {
	s, err := defaultStore()
	if err != nil {
		return Info{}, err
	}
	sp, err := s.find(name)
	if err != nil {
		return Info{}, err
	}
	return s.installed(sp, true)
}

// List is every plugin that was installed into the cache folder, of earlier versions too, without checking the files.
func List() ([]Info, error) {
	s, err := defaultStore()
	if err != nil {
		return nil, err
	}
	infos, err := s.list()
	slices.SortStableFunc(infos, func(a, b Info) int { return strings.Compare(a.Path, b.Path) })
	return infos, err
}
