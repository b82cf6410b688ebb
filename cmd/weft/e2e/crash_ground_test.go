package e2e

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
)

// ground is the storage that a run is killed on.
type ground interface {
	// url is the --storage-path, env what the process needs to reach it.
	url() string
	env() []string
	remote() bool
	// arm prepares a kill of a command that is not started yet. ended is called when the process has, and returns when the storage
	// stands still.
	arm(v *killable, k kill) (ended func())
	// quiet checks what a run said on standard error.
	quiet(t *testing.T, errs, label string)
	// manager reads the checkpoints, whoever owns them.
	manager(t *testing.T) *checkpoint.Manager
	// files are all files by their path under the storage path; an empty folder ends in a slash.
	files(t testing.TB) map[string]string
	// put makes a file; false when its folder is not there.
	put(t *testing.T, name, content string) bool
	// temporary are folders of things under way.
	temporary(t *testing.T) []string
	// noTemporary wants nothing left of processes other than pid.
	noTemporary(t *testing.T, files, foreign map[string]string, pid int, label string)
}

// localDisk is a storage path on a disk.
type localDisk struct{ dir string }

func (d localDisk) url() string   { return d.dir }
func (d localDisk) env() []string { return nil }
func (d localDisk) remote() bool  { return false }

func (d localDisk) arm(v *killable, k kill) (ended func()) {
	if k.spec != "" {
		v.Env = append(v.Env, "WEFT_FAULT="+k.spec)
	}
	return func() {}
}

// readTrace reads what a process wrote of its operations.
func readTrace(t *testing.T, file string) []operation {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []operation
	for line := range strings.Lines(string(raw)) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		op := operation{kind: kind, name: name, of: ofCheckpoint.FindString(name)}
		if base := filepath.Base(name); base == "metrics.jsonl" || base == "run.json" {
			op.of = base
		}
		out = append(out, op)
	}
	return number(out)
}

func (d localDisk) quiet(t *testing.T, errs, label string) {
	t.Helper()
	require.Empty(t, errs, label)
}

func (d localDisk) manager(t *testing.T) *checkpoint.Manager {
	t.Helper()
	m, err := checkpoint.Open(checkpoint.OS{}, d.dir, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	return m
}

func (d localDisk) files(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(d.dir, func(name string, entry os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // killed before it was made
		}
		require.NoError(t, err)
		rel, err := filepath.Rel(d.dir, name)
		require.NoError(t, err)
		if !entry.IsDir() {
			raw, err := os.ReadFile(name)
			out[rel] = string(raw)
			return err
		}
		inside, err := os.ReadDir(name)
		if len(inside) == 0 {
			out[rel+"/"] = ""
		}
		return err
	}))
	return out
}

func (d localDisk) put(t *testing.T, name, content string) bool {
	t.Helper()
	file := filepath.Join(d.dir, name)
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return false
	}
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	return true
}

var temporaryFolder = regexp.MustCompile(`^checkpoints/\.weft-tmp-(?:save|delete)-[^/]+-(\d+)-\d+`)

func (d localDisk) temporary(t *testing.T) []string {
	t.Helper()
	out := map[string]bool{}
	for name := range d.files(t) {
		if dir := temporaryFolder.FindString(name); dir != "" {
			out[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// noTemporary: a folder that had to stay for somebody else's file has only that in it.
func (d localDisk) noTemporary(t *testing.T, files, foreign map[string]string, pid int, label string) {
	t.Helper()
	for name := range files {
		base := path.Base(name)
		if folder := temporaryFolder.FindStringSubmatch(name); folder != nil {
			require.True(t, folder[1] == strconv.Itoa(pid) || foreign[base] != "", "%s: %s is left", label, name)
			continue
		}
		underWay := pid != 0 && (base == ".weft-replace-run.json" || base == ".weft-replace-metrics.jsonl")
		require.True(t, !strings.Contains(name, ".weft-") || underWay, "%s: %s is left", label, name)
	}
}
