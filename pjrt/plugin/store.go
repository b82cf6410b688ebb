package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// EnvPlugin is the environment variable that names a plugin's file, or one of [Names].
const EnvPlugin = "WEFT_PJRT_PLUGIN"

// EnvCache is the environment variable that moves the cache folder.
const EnvCache = "WEFT_CACHE"

var (
	// ErrNotInstalled is matched by the error of a plugin that is not on this machine.
	ErrNotInstalled = errors.New("not installed")
	// ErrDamaged is matched by the error of an installed plugin whose file was changed.
	ErrDamaged = errors.New("damaged")
)

// Info is a plugin that is on this machine.
type Info struct {
	Name     string // "cpu", "cpu-alt", "tpu"; empty for a file that weft did not install
	Platform string // "cpu" or "tpu"
	Version  string // the package's version; empty if unknown
	Path     string // of the library
	SHA256   string // of the library, in hex
	Size     int64  // of the library, in bytes
	Source   string // where it was found: "--plugin", "WEFT_PJRT_PLUGIN", "cache", "TPU_LIBRARY_PATH" or "site-packages"
}

// CacheDir is weft's cache folder: WEFT_CACHE, else $XDG_CACHE_HOME/weft, else ~/.cache/weft. It is not created.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weft"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w; set %s to a folder that weft may write to", err, EnvCache)
	}
	return filepath.Join(home, ".cache", "weft"), nil
}

// store is a folder of installed plugins.
type store struct {
	dir   string
	specs []spec
}

func defaultStore() (*store, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return &store{dir: filepath.Join(cache, "plugins"), specs: specs}, nil
}

// record is what the json beside a library says.
type record struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Package  string `json:"package"`
	Version  string `json:"version"`
	WheelSHA string `json:"wheel_sha256"`
	SHA      string `json:"sha256"`
	Size     int64  `json:"size"`
	ModTime  int64  `json:"mod_time_ns"` // of the library when it was last hashed
}

func (r record) info(path string) Info {
	return Info{Name: r.Name, Platform: r.Platform, Version: r.Version, Path: path, SHA256: r.SHA, Size: r.Size, Source: "cache"}
}

// base is the path of a plugin's files without their ending.
func (s *store) base(sp spec) string { return filepath.Join(s.dir, sp.name+"-"+sp.version) }

func damaged(path, what, name string) error {
	return fmt.Errorf("plugin %s is %w: %s; repair it with: weft plugin install %s", path, ErrDamaged, what, name)
}

func readRecord(path string) (record, error) {
	var r record
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("record %s is unreadable: %w", path, err)
	}
	return r, nil
}

func writeRecord(path string, r record) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(b, '\n'))
}

// installed is the plugin of a spec if the cache has it whole; rehash forces the sha256 to be computed. The error matches
// ErrNotInstalled or ErrDamaged.
func (s *store) installed(sp spec, rehash bool) (Info, error) {
	path, recordPath := s.base(sp)+".so", s.base(sp)+".json"
	r, err := readRecord(recordPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, fmt.Errorf("plugin %s %s is %w; install it with: weft plugin install %s", sp.name, sp.version, ErrNotInstalled, sp.name)
	case err != nil:
		return Info{}, damaged(path, err.Error(), sp.name)
	case r.WheelSHA != sp.wheelSHA:
		return Info{}, damaged(path, "its record names another wheel than "+sp.pkg+" "+sp.version, sp.name)
	}
	st, err := os.Stat(path)
	if err != nil {
		return Info{}, damaged(path, err.Error(), sp.name)
	}
	if st.Size() != r.Size {
		return Info{}, damaged(path, fmt.Sprintf("it has %d bytes, not %d", st.Size(), r.Size), sp.name)
	}
	if !rehash && st.ModTime().UnixNano() == r.ModTime {
		return r.info(path), nil
	}
	sum, err := hashFile(path)
	if err != nil {
		return Info{}, fmt.Errorf("plugin %s cannot be checked: %w", path, err)
	}
	if sum != r.SHA {
		return Info{}, damaged(path, "its sha256 is "+sum+", not "+r.SHA, sp.name)
	}
	if r.ModTime != st.ModTime().UnixNano() {
		r.ModTime = st.ModTime().UnixNano()
		_ = writeRecord(recordPath, r) // a cache folder without write permission only costs the hash again
	}
	return r.info(path), nil
}

// list is every plugin that the folder's records name, whole or not, in the order of the file names.
func (s *store) list() ([]Info, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var infos []Info
	for _, path := range paths {
		r, err := readRecord(path)
		if err != nil || r.Name == "" {
			continue // Find and Verify say what is wrong with it
		}
		infos = append(infos, r.info(strings.TrimSuffix(path, ".json")+".so"))
	}
	return infos, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeFile replaces a file in one step: a reader sees the old content or the new.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
