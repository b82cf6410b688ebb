// Package pyenv makes Python environments for tests and benchmarks that compare weft with a Python library. weft itself
// never runs Python.
//
// An environment is a virtual environment with exactly the packages asked for, each at an exact version, in
// CACHE/pyenv/NAME-HASH. CACHE is WEFT_CACHE, else XDG_CACHE_HOME/weft, else ~/.cache/weft. HASH covers the
// requirements and the interpreter, so a changed pin makes another environment. A file lock lets one process install
// while others wait; a marker written last tells a whole environment from an interrupted one, which is made again.
package pyenv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// ErrUnavailable says that the machine lacks what an environment is made from: a Python interpreter that is new enough
// with venv and pip, or a package index that answers.
var ErrUnavailable = errors.New("no Python environment can be made here")

const (
	// minMinor is the oldest Python 3 minor version that the pinned packages (numpy 2.4) support.
	minMinor = 11
	// marker is the file that makes an environment whole; it is written last.
	marker = "weft-complete"
	// lockPoll is the time between two tries for the lock that another process holds.
	lockPoll = 200 * time.Millisecond
)

// Ensure returns the interpreter of the environment name with the given requirements, and installs it the first time.
// Requirements are lines as in requirements.txt, each pinned (NAME==VERSION, with an optional "; marker"); they are
// installed without their dependencies, so the list must be whole.
//
// Where no environment can be made (see ErrUnavailable) the test is skipped, or fails if WEFT_CI is set. Any other
// fault fails the test.
func Ensure(t testing.TB, name string, requirements []string) (python string) {
	t.Helper()
	ctx := t.Context()
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok {
			// Stop a little earlier than the test binary is killed, so that the message below is seen.
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-10*time.Second))
			defer cancel()
		}
	}
	python, err := Install(ctx, os.Stderr, name, requirements)
	switch {
	case err == nil:
		return python
	case errors.Is(err, ErrUnavailable) && os.Getenv("WEFT_CI") == "":
		t.Skipf("SKIPPED: %v", err)
	default:
		t.Fatalf("%v", err)
	}
	return ""
}

// Install is Ensure without a test: it returns the interpreter of the environment, or an error, which is
// ErrUnavailable (as errors.Is tells) if the machine lacks Python or the index. It says on log when it installs.
func Install(ctx context.Context, log io.Writer, name string, requirements []string) (python string, err error) {
	if err := checkPinned(requirements); err != nil {
		return "", fmt.Errorf("make the Python environment %s: %w", name, err)
	}
	base, err := findPython(ctx)
	if err != nil {
		return "", fmt.Errorf("make the Python environment %s: %w", name, err)
	}
	cache, err := cacheDir()
	if err != nil {
		return "", fmt.Errorf("make the Python environment %s: %w", name, err)
	}
	dir := filepath.Join(cache, "pyenv", name+"-"+digest(base, requirements))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make the Python environment %s: make its folder: %w; set WEFT_CACHE to a writable folder", name, err)
	}
	lock := flock.New(dir + ".lock")
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return "", fmt.Errorf("make the Python environment %s: wait for the lock %s: %w; another process is installing it", name, lock.Path(), err)
	}
	defer lock.Unlock()
	python = filepath.Join(dir, "bin", "python")
	if isWhole(dir, python) {
		return python, nil
	}
	start := time.Now()
	fmt.Fprintf(log, "pyenv: installing %d Python packages into %s\n", len(requirements), dir)
	if err := install(ctx, base, dir, requirements); err != nil {
		return "", fmt.Errorf("make the Python environment %s: %w", name, err)
	}
	fmt.Fprintf(log, "pyenv: installed %s in %.0f s\n", name, time.Since(start).Seconds())
	return python, nil
}

// isWhole reports whether the environment was installed to its end and its interpreter still exists: the link in bin
// dangles after the base Python was removed.
func isWhole(dir, python string) bool {
	_, markerErr := os.Stat(filepath.Join(dir, marker))
	_, pythonErr := os.Stat(python)
	return markerErr == nil && pythonErr == nil
}

func install(ctx context.Context, base interpreter, dir string, requirements []string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the unfinished environment %s: %w", dir, err)
	}
	if out, err := run(ctx, base.path, "-I", "-m", "venv", dir); err != nil {
		return fmt.Errorf("%w: %s -m venv failed (%v): %s; install Python's venv module (python3-venv on Debian)",
			ErrUnavailable, base.path, err, lastLines(out))
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(strings.Join(requirements, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the requirements: %w", err)
	}
	// pip's own cache lies beside the environment until the install is done: an install that was interrupted goes on
	// from the wheels it has, and nothing is kept twice afterwards.
	pipCache := dir + ".pip"
	out, err := run(ctx, filepath.Join(dir, "bin", "python"), "-I", "-m", "pip", "install", "--quiet", "--no-input",
		"--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--cache-dir", pipCache, "-r", list)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("pip install ran out of time (%w): give go test a longer -timeout; what was downloaded is kept", ctx.Err())
		}
		if indexIsAbsent(out) {
			return fmt.Errorf("%w: the package index does not answer: %s; connect, or point PIP_INDEX_URL at a mirror", ErrUnavailable, lastLines(out))
		}
		return fmt.Errorf("pip install (%v): %s; check the pinned versions in %s", err, lastLines(out), list)
	}
	if err := os.RemoveAll(pipCache); err != nil {
		return fmt.Errorf("remove pip's cache: %w", err)
	}
	return writeMarker(dir)
}

// writeMarker commits the environment: the marker appears by a rename, after its bytes are on disk.
func writeMarker(dir string) error {
	path := filepath.Join(dir, marker)
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return fmt.Errorf("mark the environment as whole: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(path+".tmp", path)); err != nil {
		return fmt.Errorf("mark the environment as whole: %w", err)
	}
	return nil
}

// indexIsAbsent tells a machine without a network from a wrong pin, by the words of pip and urllib3.
func indexIsAbsent(out []byte) bool {
	for _, sign := range []string{"NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyError",
		"NameResolutionError", "Temporary failure in name resolution", "Network is unreachable", "Max retries exceeded"} {
		if bytes.Contains(out, []byte(sign)) {
			return true
		}
	}
	return false
}

var pinned = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9._+!-]*(\s*;.*)?$`)

func checkPinned(requirements []string) error {
	if len(requirements) == 0 {
		return errors.New("no requirements given")
	}
	for _, r := range requirements {
		if !pinned.MatchString(r) {
			return fmt.Errorf("requirement %q is not pinned: write NAME==VERSION", r)
		}
	}
	return nil
}

// ParseRequirements returns the lines of a requirements file without comments and empty lines.
func ParseRequirements(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func digest(base interpreter, requirements []string) string {
	lines := slices.Clone(requirements)
	slices.Sort(lines)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", base.path, base.version, strings.Join(lines, "\n"))
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func cacheDir() (string, error) {
	if dir := os.Getenv("WEFT_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weft"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set WEFT_CACHE", err)
	}
	return filepath.Join(home, ".cache", "weft"), nil
}

// interpreter is a Python that is new enough; path is its real file, as Python names it, not a shim or a link.
type interpreter struct {
	path, version string
	minor         int
}

// findPython returns WEFT_PYTHON, or the newest interpreter on PATH. Each is run, because a name on PATH may be a shim
// with nothing behind it.
func findPython(ctx context.Context) (interpreter, error) {
	names := []string{"python3.13", "python3.12", "python3.11", "python3"} // as far as wheels exist for every pin
	if name := os.Getenv("WEFT_PYTHON"); name != "" {
		names = []string{name}
	}
	var tried []string
	for _, name := range names {
		found, err := probe(ctx, name)
		if err == nil && found.minor >= minMinor {
			return found, nil
		}
		if err == nil {
			err = fmt.Errorf("it is Python %s", found.version)
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", name, err))
	}
	return interpreter{}, fmt.Errorf("%w: no Python 3.%d or newer: tried %s; install one or set WEFT_PYTHON",
		ErrUnavailable, minMinor, strings.Join(tried, ", "))
}

func probe(ctx context.Context, name string) (interpreter, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return interpreter{}, errors.New("not on PATH")
	}
	const code = `import sys, os; print(os.path.realpath(sys.executable)); print("%d.%d.%d" % sys.version_info[:3])`
	cmd := command(ctx, path, "-I", "-c", code)
	out, err := cmd.Output()
	if err != nil {
		return interpreter{}, fmt.Errorf("does not run: %w", err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 2 {
		return interpreter{}, fmt.Errorf("unexpected answer %q", out)
	}
	found := interpreter{path: lines[0], version: lines[1]}
	if _, err := fmt.Sscanf(found.version, "3.%d.", &found.minor); err != nil {
		return interpreter{}, fmt.Errorf("version %s is not Python 3", found.version)
	}
	return found, nil
}

func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	return command(ctx, name, args...).CombinedOutput()
}

// command ends a cancelled Python by SIGKILL; its children hold the pipes, so waiting for them is bounded.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// lastLines is the end of a tool's output on one line, where its reason stands.
func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	lines = lines[max(0, len(lines)-3):]
	return strings.Join(lines, " | ")
}
