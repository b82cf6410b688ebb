package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// orPath ends the errors that have nothing to do with the plugin itself.
const orPath = "or give the path of a PJRT plugin with --plugin PATH or " + EnvPlugin

// pipWaitDelay bounds the wait for what a stopped pip has started itself and left running.
const pipWaitDelay = time.Second

// pipDownload has pip put one wheel into dir and returns its path.
func pipDownload(ctx context.Context, sp spec, dir string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("python3 is needed to download %s and was not found; install Python 3 with pip, %s", sp.pkg, orPath)
	}
	args := append([]string{"-m", "pip", "download", "--no-deps", "--no-input", "--no-cache-dir", "--disable-pip-version-check",
		"--progress-bar", "off", "--dest", dir}, sp.pip...)
	cmd := exec.CommandContext(ctx, python, append(args, sp.pkg+"=="+sp.version)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = pipWaitDelay
	if err := cmd.Run(); err != nil {
		return "", pipError(ctx, sp, err, output.String())
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return "", err
	}
	if len(wheels) != 1 {
		return "", fmt.Errorf("pip download %s==%s left %d wheels instead of one; update pip, %s", sp.pkg, sp.version, len(wheels), orPath)
	}
	return wheels[0], nil
}

// pipError says in one line why pip failed.
func pipError(ctx context.Context, sp spec, err error, output string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("download of %s was stopped: %w", sp.pkg, context.Cause(ctx))
	}
	if strings.Contains(output, "No module named pip") {
		return fmt.Errorf("python3 has no pip, which is needed to download %s; install it (python3 -m ensurepip), %s", sp.pkg, orPath)
	}
	reason := lastLine(output)
	if reason == "" {
		reason = err.Error()
	}
	return fmt.Errorf("python3 -m pip download %s==%s failed: %s; check the network and pip's package index, %s", sp.pkg, sp.version, reason, orPath)
}

// lastLine is the last line that pip marks as an error, or simply the last.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		text, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), "ERROR: ")
		if ok && text != "Exception:" { // which begins a Python traceback, whose last line tells more
			return text
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// sitePackagesScript prints the folder and version of an installed libtpu without importing it.
const sitePackagesScript = `import importlib.util, importlib.metadata as m
s = importlib.util.find_spec("libtpu")
if s and s.submodule_search_locations:
    print(list(s.submodule_search_locations)[0])
    for name in ("libtpu", "libtpu-nightly"):
        try:
            print(m.version(name))
            break
        except m.PackageNotFoundError:
            pass
`

// sitePackagesLibtpu finds the libtpu of the machine's Python.
func sitePackagesLibtpu() (path, version string, err error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", "", ErrNotInstalled
	}
	out, err := exec.Command(python, "-c", sitePackagesScript).Output()
	if err != nil {
		return "", "", errors.Join(ErrNotInstalled, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if lines[0] == "" {
		return "", "", ErrNotInstalled
	}
	path = filepath.Join(strings.TrimSpace(lines[0]), "libtpu.so")
	if _, err := os.Stat(path); err != nil {
		return "", "", errors.Join(ErrNotInstalled, err)
	}
	if len(lines) > 1 {
		version = strings.TrimSpace(lines[1])
	}
	return path, version, nil
}
