package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"weft/pjrt"
)

// cacheMagic begins every entry. Its number changes with the layout: magic, sha256 of the key, sha256 of the payload,
// payload.
const cacheMagic = "weft compiled program 1\n"

// compileCache keeps serialised executables in a folder, one file a program. An entry is used only when its key and
// its payload's checksum agree and the plugin accepts it; anything else is compiled again and overwritten. A nil cache
// never hits.
type compileCache struct {
	dir      string
	topology string
	log      *slog.Logger
	told     sync.Once
}

// unusable warns, once for all programs, of a folder that cannot be read or written. It only costs time.
func (c *compileCache) unusable(err error) {
	c.told.Do(func() {
		c.log.Warn("the compile cache cannot be used, programs are compiled at each start", "folder", c.dir, "reason", err)
	})
}

func newCompileCache(dir, topology string, log *slog.Logger) *compileCache {
	return &compileCache{dir: dir, topology: topology, log: log}
}

// cacheKey identifies what an executable was compiled from: program, options, topology and plugin.
type cacheKey [sha256.Size]byte

func (c *compileCache) key(text []byte, opts pjrt.CompileOptions) (cacheKey, error) {
	options, err := opts.Marshal()
	if err != nil {
		return cacheKey{}, err
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(cacheMagic), []byte(c.topology), options, text} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return cacheKey(h.Sum(nil)), nil
}

func (c *compileCache) path(key cacheKey) string {
	return filepath.Join(c.dir, hex.EncodeToString(key[:])+".weftexe")
}

// load returns the executable of an earlier run, or nil when there is none that can be trusted.
func (c *compileCache) load(client *pjrt.Client, text []byte, opts pjrt.CompileOptions) (*pjrt.LoadedExecutable, error) {
	if c == nil {
		return nil, nil
	}
	key, err := c.key(text, opts)
	if err != nil {
		return nil, err
	}
	path := c.path(key)
	entry, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		c.unusable(err)
		return nil, nil
	}
	payload, err := openEntry(entry, key)
	if err == nil {
		var exe *pjrt.LoadedExecutable
		if exe, err = client.Load(payload, &opts); err == nil {
			return exe, nil
		}
	}
	c.log.Warn("compile cache entry cannot be used, compiling again", "file", path, "reason", err)
	return nil, nil
}

// openEntry checks an entry's header and checksums and returns the serialised executable.
func openEntry(entry []byte, key cacheKey) ([]byte, error) {
	rest, ok := bytes.CutPrefix(entry, []byte(cacheMagic))
	if !ok || len(rest) < 2*sha256.Size {
		return nil, errors.New("not an entry of this version of weft, or truncated")
	}
	if !bytes.Equal(rest[:sha256.Size], key[:]) {
		return nil, errors.New("it belongs to another program")
	}
	payload := rest[2*sha256.Size:]
	if sum := sha256.Sum256(payload); !bytes.Equal(rest[sha256.Size:2*sha256.Size], sum[:]) {
		return nil, errors.New("its checksum does not agree")
	}
	return payload, nil
}

// store writes an entry under a temporary name and renames it.
func (c *compileCache) store(exe *pjrt.LoadedExecutable, text []byte, opts pjrt.CompileOptions) {
	if c == nil {
		return
	}
	inner, err := exe.Executable()
	if err == nil {
		_, err = c.write(inner, text, opts)
		err = errors.Join(err, inner.Destroy())
	}
	if err != nil {
		c.unusable(err)
	}
}

// write makes the entry of an executable and returns its path.
func (c *compileCache) write(exe *pjrt.Executable, text []byte, opts pjrt.CompileOptions) (string, error) {
	key, err := c.key(text, opts)
	if err != nil {
		return "", err
	}
	payload, err := exe.Serialize()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(c.dir, "tmp-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	sum := sha256.Sum256(payload)
	for _, part := range [][]byte{[]byte(cacheMagic), key[:], sum[:], payload} {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return c.path(key), os.Rename(f.Name(), c.path(key))
}

// platform is what a compiled executable depends on, besides its program and options.
type platform struct {
	// pluginID names the plugin's build; name and version are the platform's.
	pluginID, name, version string
	devices                 []*pjrt.DeviceDescription
}

// key describes the platform for the compile cache. A slice and its description without a chip have the same.
func (p platform) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s\nplatform %s %s\n", p.pluginID, p.name, p.version)
	for _, d := range p.devices {
		fmt.Fprintf(&b, "device %d process %d %s\n", d.ID(), d.ProcessIndex(), d.Kind())
	}
	if p.name == "cpu" {
		// XLA compiles for the instruction set of the host it runs on.
		fmt.Fprintf(&b, "host %s\n", hostCPU())
	}
	return b.String()
}

// hostCPU identifies the instruction set of this host as the kernel lists it.
func hostCPU() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	var model, flags string
	for line := range strings.Lines(string(info)) {
		switch {
		case model == "" && strings.HasPrefix(line, "model name"):
			model = strings.TrimSpace(line)
		case flags == "" && (strings.HasPrefix(line, "flags") || strings.HasPrefix(line, "Features")):
			flags = strings.TrimSpace(line)
		}
	}
	sum := sha256.Sum256([]byte(model + flags))
	return hex.EncodeToString(sum[:])
}
