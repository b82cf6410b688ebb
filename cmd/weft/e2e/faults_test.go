package e2e

import (
	"cmp"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"weft/checkpoint"
	"weft/data/demo"
)

// faultCase is something wrong with a run of two epochs and what comes of it when the run goes on to a third.
type faultCase struct {
	name string
	// damage is done to the storage path before the start; fault is put under the process's storage.
	damage func(t *testing.T, run string)
	fault  string

	// code is the exit code; says is on standard error or output, silent is not.
	code         int
	says, silent []string
	// from is the step it goes on from; 0: it does not.
	from int
	// lost are the steps whose lines metrics.jsonl has lost, which standard error then says.
	lost []int
	// verify is the file that `weft checkpoint verify` names as damaged.
	verify string
}

// What a run says that goes back by a checkpoint.
const passedOver = "checkpoint cannot be used, trying an older one"

// Steps of the run of two epochs that faults happen to: its checkpoints are those of the ends of epochs.
const firstEpoch, secondEpoch = 4, 8

const newestCheckpoint = "checkpoints/epoch-0002-step-00000008"

// flip changes one bit in a file at a part of its length.
func flip(name string, at float64) func(*testing.T, string) {
	return func(t *testing.T, run string) {
		path := filepath.Join(run, name)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		raw[int(at*float64(len(raw)-1))] ^= 1 << 4
		require.NoError(t, os.WriteFile(path, raw, 0o644))
	}
}

// flipLine changes one bit in the first byte of a line.
func flipLine(name string, line int) func(*testing.T, string) {
	return func(t *testing.T, run string) {
		path := filepath.Join(run, name)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.SplitAfter(string(raw), "\n")
		lines[line-1] = string(lines[line-1][0]^1<<4) + lines[line-1][1:]
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644))
	}
}

// cut keeps a part of a file.
func cut(name string, keep float64) func(*testing.T, string) {
	return func(t *testing.T, run string) {
		path := filepath.Join(run, name)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, int64(keep*float64(info.Size()))))
	}
}

// cutInLine keeps the lines before one, and half of that.
func cutInLine(name string, line int) func(*testing.T, string) {
	return func(t *testing.T, run string) {
		path := filepath.Join(run, name)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.SplitAfter(string(raw), "\n")
		keep := len(strings.Join(lines[:line-1], "")) + len(lines[line-1])/2
		require.NoError(t, os.Truncate(path, int64(keep)))
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, run string) { require.NoError(t, os.Remove(filepath.Join(run, name))) }
}

// stateFaults are in what a run needs to go on: it goes back to the checkpoint before, saying so.
func stateFaults() []faultCase {
	const shard, manifest = newestCheckpoint + "/state/process-0000-shard-00000.safetensors", newestCheckpoint + "/manifest.json"
	back := func(name, verify string, damage func(*testing.T, string), says string) faultCase {
		return faultCase{name: name, damage: damage, says: []string{passedOver, "is damaged: " + says}, from: firstEpoch, verify: verify}
	}
	const file, whole = "state/process-0000-shard-00000.safetensors", "manifest.json"
	return []faultCase{
		back("state: bit in a tensor", file, flip(shard, 0.9), file),
		back("state: bit in the length of the header", file, flip(shard, 0), file),
		back("state: bit in the header", file, flip(shard, 0.002), file),
		back("state: truncated", file, cut(shard, 0.5), file),
		back("state: empty", file, cut(shard, 0), file),
		back("state: deleted", file, remove(shard), file),
		back("manifest: bit in the middle", whole, flip(manifest, 0.5), whole),
		back("manifest: first bit", whole, flip(manifest, 0), whole),
		back("manifest: truncated", whole, cut(manifest, 0.7), whole),
		back("manifest: empty", whole, cut(manifest, 0), whole),
		{
			name: "manifest: deleted", damage: remove(manifest), from: firstEpoch,
			says: []string{passedOver, "epoch-0002-step-00000008 is damaged: manifest.json: it is missing"},
		},
		{
			name: "manifest: all deleted", code: 2, says: []string{passedOver, "none of the checkpoints can be used"},
			damage: func(t *testing.T, run string) {
				remove(manifest)(t, run)
				remove("checkpoints/epoch-0001-step-00000004/manifest.json")(t, run)
			},
		},
	}
}

// modelFaults are in what a run does not read back: it goes on from there, and verify names the file.
func modelFaults() []faultCase {
	var out []faultCase
	for _, file := range []string{"model/model.safetensors", "model/config.json", "model/tokenizer.json", "model/generation_config.json"} {
		for _, d := range []struct {
			what   string
			damage func(*testing.T, string)
		}{
			{"a bit", flip(newestCheckpoint+"/"+file, 0.6)}, {"truncated", cut(newestCheckpoint+"/"+file, 0.5)}, {"deleted", remove(newestCheckpoint + "/" + file)},
		} {
			out = append(out, faultCase{name: file + ": " + d.what, damage: d.damage, from: secondEpoch, silent: []string{passedOver}, verify: file})
		}
	}
	return out
}

// runFaults are in the files beside the checkpoints.
func runFaults() []faultCase {
	const record = "is not the record of a run"
	return []faultCase{
		{name: "run.json: bit in a name", damage: flip("run.json", 0.003), code: 2, says: []string{"run.json", record}},
		{name: "run.json: truncated", damage: cut("run.json", 0.5), code: 2, says: []string{"run.json", record}},
		{name: "run.json: empty", damage: cut("run.json", 0), code: 2, says: []string{"run.json", record}},
		// The checkpoint has the same record.
		{name: "run.json: deleted", damage: remove("run.json"), from: secondEpoch},
		{name: "metrics.jsonl: bit in the middle", damage: flipLine("metrics.jsonl", 4), from: secondEpoch, lost: []int{4}},
		{name: "metrics.jsonl: torn last line", damage: cutInLine("metrics.jsonl", 8), from: secondEpoch, lost: []int{8}},
		{name: "metrics.jsonl: truncated", damage: cutInLine("metrics.jsonl", 4), from: secondEpoch, lost: []int{4, 5, 6, 7, 8}},
		{name: "metrics.jsonl: deleted", damage: remove("metrics.jsonl"), from: secondEpoch, lost: []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{name: "lock: a bit", damage: flip(checkpoint.LockFile, 0.5), from: secondEpoch},
		{name: "lock: empty", damage: cut(checkpoint.LockFile, 0), from: secondEpoch},
		{name: "lock: deleted", damage: remove(checkpoint.LockFile), from: secondEpoch},
	}
}

// storageFaults are of the disk, while the run is up.
func storageFaults() []faultCase {
	const untouched, readable = "earlier checkpoints are untouched", "make the checkpoint readable and run the same command again"
	return []faultCase{
		{name: "short read of the state, once", fault: "read/epoch-0002-step-00000008/state/process:1:short", says: []string{passedOver}, from: firstEpoch},
		{name: "short reads of every state", fault: "read/state/process:*:short", code: 1, says: []string{passedOver, "no other checkpoint is left"}},
		{name: "short read of a manifest", fault: "read/epoch-0002-step-00000008/manifest:*:short", says: []string{passedOver}, from: firstEpoch},
		{name: "no permission to read the state", fault: "open/state/process:*:eacces", code: 1, says: []string{"permission denied", "state/process-0000", readable}},
		{name: "no permission to read a manifest", fault: "open/epoch-0002-step-00000008/manifest:*:eacces", code: 2, says: []string{"permission denied", "manifest.json", readable}},
		{name: "no permission to list", fault: "list:*:eacces", code: 2, says: []string{"--storage-path", "permission denied"}},
		{name: "an error of the disk while the state is read", fault: "read/state/process:*:eio", code: 1, says: []string{"input/output error", "state/process-0000", readable}},
		{name: "permission lost before a save", fault: "mkdir/epoch-0003:*:eacces", code: 1, from: secondEpoch, says: []string{"saving step 12", "permission denied"}},
		{name: "permission lost within a save", fault: "create/epoch-0003-step-00000012-:3:eacces", code: 1, from: secondEpoch, says: []string{"saving step 12", "permission denied"}},
		{name: "disk full in a save, once", fault: "write/epoch-0003:3:enospc", from: secondEpoch, says: []string{"at try 2"}},
		{name: "disk full in saves", fault: "write/epoch-0003:*:enospc", code: 1, from: secondEpoch, says: []string{"not enough disk space", untouched}},
		{name: "disk full at the sync", fault: "sync/epoch-0003:*:enospc", code: 1, from: secondEpoch, says: []string{"not enough disk space", untouched}},
		{name: "an error of the disk in a sync, once", fault: "sync/epoch-0003:2:eio", from: secondEpoch, says: []string{"at try 2"}},
		{name: "an error of the disk at the commit, once", fault: "rename/epoch-0003:1:eio", from: secondEpoch, says: []string{"at try 2"}},
		{name: "an error of the disk behind the commit", fault: "syncdir/checkpoints:3:eio", from: secondEpoch},
		{name: "an old checkpoint that cannot be deleted", fault: "remove/.weft-tmp-delete:*:eacces", from: secondEpoch, says: []string{"deleting older checkpoints failed"}},
	}
}

// cacheFaults are in the compile cache, a copy of which is the run's: its folder is CACHE.
func cacheFaults() []faultCase {
	size := func(t *testing.T, file string) int64 {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size()
	}
	entries := func(n int, damage func(name string) func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, run string) {
			list, err := filepath.Glob(filepath.Join(run, "..", "cache", "*.weftexe"))
			require.NoError(t, err)
			require.Greater(t, len(list), 1)
			slices.SortFunc(list, func(a, b string) int { return cmp.Compare(size(t, a), size(t, b)) })
			for _, e := range list[:min(n, len(list))] {
				damage(filepath.Join("..", "cache", filepath.Base(e)))(t, run)
			}
		}
	}
	// Compiling the step again takes long, so that it is done for one kind of damage.
	const all, smallest = math.MaxInt, 1
	const again = "compile cache entry cannot be used, compiling again"
	return []faultCase{
		{name: "compile cache: a bit", damage: entries(all, func(n string) func(*testing.T, string) { return flip(n, 0.5) }), from: secondEpoch, says: []string{again, "its checksum does not agree"}},
		{name: "compile cache: truncated", damage: entries(smallest, func(n string) func(*testing.T, string) { return cut(n, 0.5) }), from: secondEpoch, says: []string{again}},
		{name: "compile cache: deleted", damage: entries(smallest, remove), from: secondEpoch, silent: []string{again}},
	}
}

// Every fault in a run's files and under its storage is an error that names it, another try, or a warning and the checkpoint
// before; the bits that a run comes to are never others.
func TestFaults(t *testing.T) {
	dir := tinyModel(t, "gemma3-tiny", nil)
	editConfig(t, dir, func(c map[string]any) {
		c["num_hidden_layers"], c["layer_types"] = 1, []string{"full_attention"}
		c["hidden_size"], c["intermediate_size"], c["vocab_size"] = 32, 32, 2048
	})
	require.NoError(t, os.Remove(filepath.Join(dir, "model.safetensors")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), demo.TokenizerJSON(), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(`{"do_sample": true}`), 0o644))
	f := &faultBase{crash: &crash{}, dir: t.TempDir()}
	f.args = []string{"finetune", "--model-id", dir, "--random-init", "--dataset", write(t, "rows.jsonl", differentRows(8)),
		"--platform", "cpu", "--devices", "2", "--batch-size-per-device", "1", "--max-seq-len", "16", "--compute-dtype", "float32", "--learning-rate", "1e-3"}
	f.whole = filepath.Join(f.dir, "whole")
	f.cache = filepath.Join(f.dir, "cache")
	base := finish(t, f.run(t, filepath.Join(f.dir, "base"), f.cache, nil, "--num-epochs", "2"))
	require.Zero(t, base.code, base.err)
	o := finish(t, f.run(t, f.whole, f.cache, nil, "--num-epochs", "3"))
	require.Zero(t, o.code, o.err)
	f.want = lineValues(t, localDisk{f.whole}.files(t)["metrics.jsonl"])

	for _, cases := range [][]faultCase{stateFaults(), modelFaults(), runFaults(), storageFaults(), cacheFaults()} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { f.check(t, c) })
		}
	}
}

// faultBase is the run of two epochs that faults happen to; whole is the one of three without any.
type faultBase struct {
	*crash
	dir, cache string
}

func (f *faultBase) run(t *testing.T, storage, cache string, env []string, more ...string) *exec.Cmd {
	t.Helper()
	return f.command(t, storage, env, append([]string{"--keep", "0", "--compile-cache", cache}, more...)...)
}

func (f *faultBase) check(t *testing.T, c faultCase) {
	at := t.TempDir()
	run, cache := filepath.Join(at, "run"), f.cache
	require.NoError(t, os.CopyFS(run, os.DirFS(filepath.Join(f.dir, "base"))))
	if strings.HasPrefix(c.name, "compile cache") {
		cache = filepath.Join(at, "cache")
		require.NoError(t, os.CopyFS(cache, os.DirFS(f.cache)))
	}
	if c.damage != nil {
		c.damage(t, run)
	}
	if c.verify != "" {
		o := weft(t, "checkpoint", "verify", run)
		require.Equal(t, 1, o.code, o.out+o.err)
		require.Contains(t, o.out+o.err, c.verify)
	}
	keep := []string{"--num-epochs", "3"}
	if strings.Contains(c.fault, "delete") {
		keep = append(keep, "--keep", "1")
	}
	o := finish(t, f.run(t, run, cache, []string{"WEFT_FAULT=" + c.fault}, keep...))
	t.Log(strings.TrimSpace(o.err))
	require.Equal(t, c.code, o.code, "%s\n%s", o.out, o.err)
	for _, want := range c.says {
		require.Contains(t, o.out+o.err, want)
	}
	for _, not := range c.silent {
		require.NotContains(t, o.out+o.err, not)
	}
	if c.from > 0 {
		require.Regexp(t, `resuming from \S+-step-0*`+strconv.Itoa(c.from)+": ", o.out)
	} else {
		require.NotContains(t, o.out, "Epoch 3/3")
	}
	if c.code != 0 {
		require.Equal(t, 1, strings.Count(o.err, "weft: "), "one line: %s", o.err)
		require.True(t, strings.HasSuffix(o.err, "\n") && strings.LastIndex(o.err[:len(o.err)-1], "\n") < strings.Index(o.err, "weft: "), o.err)
		if c.damage != nil {
			return
		}
	}
	if c.code == 0 && c.fault == "" { // the run ended well, and nothing was in its way
		f.same(t, c, run, o.err)
		return
	}
	again := finish(t, f.run(t, run, cache, nil, "--num-epochs", "3"))
	require.Zero(t, again.code, "the fault is over: %s", again.err)
	if c.code != 0 {
		require.Contains(t, again.out, "resuming from "+filepath.Join(run, newestCheckpoint))
	} else {
		require.Contains(t, again.out, "All 3 epochs of this run are done already")
	}
	f.same(t, c, run, o.err)
}

// same wants the bits and the lines of the run without a fault.
func (f *faultBase) same(t *testing.T, c faultCase, run, said string) {
	at := localDisk{run}
	m, have := at.manager(t), at.files(t)
	list, err := m.List()
	require.NoError(t, err)
	last := list[len(list)-1]
	require.Equal(t, 12, last.Step)
	require.NoError(t, m.Verify(last))
	sameBits(t, f.whole, have, last.Name, c.name)
	at.noTemporary(t, have, nil, 0, c.name)
	var want []map[string]any
	for i, line := range f.want {
		if !slices.Contains(c.lost, i+1) {
			want = append(want, line)
		}
	}
	require.Equal(t, want, lineValues(t, have["metrics.jsonl"]))
	if len(c.lost) > 0 {
		require.Contains(t, said, "metrics.jsonl")
	}
}

// A disk that turned read-only is named at the start, and costs nothing.
func TestReadOnlyDisk(t *testing.T) {
	disk, _ := smallDisk(t, "200m")
	c := &crash{args: crashArgs(t)}
	whole, run := filepath.Join(t.TempDir(), "whole"), filepath.Join(disk, "run")
	require.Zero(t, finish(t, c.command(t, whole, nil)).code)
	require.Zero(t, finish(t, c.command(t, run, nil, "--num-epochs", "2")).code)
	require.NoError(t, unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, "size=200m"))
	o := finish(t, c.command(t, run, nil))
	require.Equal(t, 2, o.code, o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
	require.Contains(t, o.err, "--storage-path")
	require.Contains(t, o.err, "read-only file system")
	require.NoError(t, unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT, "size=200m"))
	require.Contains(t, must(t, append(slices.Clone(c.args), "--storage-path", run)...), "resuming from ")
	metrics := func(dir string) []map[string]any { return lineValues(t, localDisk{dir}.files(t)["metrics.jsonl"]) }
	require.Equal(t, metrics(whole), metrics(run))
	last := checkpoints(t, whole)
	got := checkpoints(t, run)
	requireSameCheckpoint(t, last[len(last)-1], got[len(got)-1])
}

// Two runs in one folder: the second is refused, names the holder and changes nothing. The lock goes with its holder, even
// one that was killed.
func TestTwoRunsInOneFolder(t *testing.T) {
	c := &crash{args: crashArgs(t, "--num-epochs", "2000")}
	run := filepath.Join(t.TempDir(), "run")
	first, log := start(t, run, 3, append(slices.Clone(c.args), "--storage-path", run)...)
	pause(t, first, log)
	before := localDisk{run}.files(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	message := refused(t, append(slices.Clone(c.args), "--storage-path", run)...)
	require.Contains(t, message, "--storage-path")
	require.Contains(t, message, "is locked by process "+strconv.Itoa(first.Process.Pid)+" on host "+host)
	require.Contains(t, message, "wait for it, stop it, or give another --storage-path")
	require.Equal(t, before, localDisk{run}.files(t))
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	start(t, run, lines(run)+1, append(slices.Clone(c.args), "--storage-path", run)...)
}
