package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
)

// Kills of a run of the tests, and the variable of the long target that asks for more.
const (
	ciKills  = 40
	killsEnv = "WEFT_CRASH_KILLS"
	// killsPerRun are dealt to one run in succession, before it is let finish.
	killsPerRun = 4
	crashSeed   = 5
)

// crash is a run that is killed again and again, and what it must come to all the same.
type crash struct {
	args []string
	// whole is the storage path of a run that nobody stopped, with every checkpoint; trace is what it did to the storage.
	whole string
	want  []map[string]any
	trace []operation
	// kept are the steps of the checkpoints that a run which prunes keeps.
	kept []int
	// took is how long it lasted.
	took  time.Duration
	kills int
}

// operation is one call of the storage: the n-th of its kind and place.
type operation struct {
	kind, name string
	// of names the checkpoint that it is about, "" for none; n counts, from 1, those of the same kind and checkpoint.
	of string
	n  int
}

// smallestConfig is a Gemma 3 of one layer: what costs time is starting, not training.
func smallestConfig(t *testing.T) string {
	t.Helper()
	dir := tinyModel(t, "gemma3-tiny", nil)
	editConfig(t, dir, func(c map[string]any) {
		c["num_hidden_layers"], c["layer_types"] = 1, []string{"full_attention"}
		c["hidden_size"], c["intermediate_size"] = 32, 32
	})
	return filepath.Join(dir, "config.json")
}

func crashArgs(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"finetune", "--model-id", smallestConfig(t), "--random-init", "--dataset", write(t, "rows.jsonl", differentRows(8)),
		"--platform", "cpu", "--devices", "2", "--batch-size-per-device", "1", "--max-seq-len", "16", "--compute-dtype", "float32",
		"--num-epochs", "3", "--save-every-steps", "3", "--learning-rate", "1e-3", "--compile-cache", cache}, more...)
}

// newCrash makes the run that the others are compared with.
func newCrash(t *testing.T, more ...string) *crash {
	t.Helper()
	c := &crash{args: crashArgs(t, more...), whole: filepath.Join(t.TempDir(), "whole")}
	o := finish(t, c.command(t, c.whole, nil, "--keep", "0"))
	require.Zero(t, o.code, o.err)
	lines := localDisk{c.whole}.files(t)["metrics.jsonl"]
	c.want = lineValues(t, lines)
	requireSaveFigures(t, lines, checkpoints(t, c.whole))
	return c
}

// count lets a run end on a ground, whose operations trace then gives.
func (c *crash) count(t *testing.T, g ground, env []string, trace func() []operation) {
	t.Helper()
	began := time.Now()
	o := finish(t, c.command(t, g.url(), append(g.env(), env...)))
	require.Zero(t, o.code, o.err)
	c.took, c.trace = time.Since(began), trace()
	require.Equal(t, c.want, lineValues(t, g.files(t)["metrics.jsonl"]))
	require.Greater(t, len(c.trace), 100)
	list, err := g.manager(t).List()
	require.NoError(t, err)
	c.kept = steps(list)
	require.Less(t, len(c.kept), len(checkpoints(t, c.whole)), "nothing was pruned")
}

// steps are those of checkpoints, in the order of their commits.
func steps(list []checkpoint.Entry) []int {
	var out []int
	for _, e := range list {
		out = append(out, e.Step)
	}
	return out
}

func (c *crash) command(t testing.TB, storage string, env []string, more ...string) *exec.Cmd {
	t.Helper()
	cmd := withFaults(t, command(t, append(append(slices.Clone(c.args), "--storage-path", storage), more...)...))
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// lineValues reads the lines of a metrics.jsonl without what a clock decides, and without the saves, of which a run that goes
// on knows only its own.
func lineValues(t testing.TB, lines string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for text := range strings.Lines(lines) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
		for key := range line {
			if strings.HasPrefix(key, "save_") || slices.Contains([]string{"step_time_s", "tokens_per_s", "eval_time_s"}, key) {
				delete(line, key)
			}
		}
		out = append(out, line)
	}
	return out
}

var ofCheckpoint = regexp.MustCompile(`epoch-\d+-step-\d+`)

// number counts operations of the same kind and checkpoint.
func number(ops []operation) []operation {
	counts := map[[2]string]int{}
	for i := range ops {
		key := [2]string{ops[i].kind, ops[i].of}
		counts[key]++
		if ops[i].of != "" {
			counts[[2]string{ops[i].kind, ""}]++
		}
		ops[i].n = counts[key]
	}
	return ops
}

// place is where in a save an operation is, whichever the save.
func (o operation) place() string {
	folder := filepath.Base(filepath.Dir(o.name))
	return o.kind + " " + regexp.MustCompile(`\d+`).ReplaceAllString(folder+"/"+filepath.Base(o.name), "N")
}

// kill is one way to die: at a boundary of the storage, or, where spec is empty, from outside after a part of a run's time.
type kill struct {
	spec  string
	order int // in the trace
	after float64
}

// boundaries are n moments before, within or after operations, spread evenly over all kinds of places: from each place one
// by turns, until there are enough.
func boundaries(trace []operation, n int, rng *rand.Rand) []kill {
	var places []string
	at := map[string][]kill{}
	for i, op := range trace {
		whens := []string{"before", "after"}
		if slices.Contains([]string{"write", "replace", "insert"}, op.kind) {
			whens = []string{"before", "half", "after"}
		}
		for _, when := range whens {
			place := op.place() + " " + when
			if at[place] == nil {
				places = append(places, place)
			}
			at[place] = append(at[place], kill{spec: fmt.Sprintf("%s/%s:%d:%s", op.kind, op.of, op.n, when), order: i})
		}
	}
	if n < len(places) {
		some := make([]string, n)
		for i := range some {
			some[i] = places[i*len(places)/n]
		}
		places = some
	}
	var out []kill
	for len(out) < n && len(places) > 0 {
		var left []string
		for _, p := range places {
			if len(out) == n {
				break
			}
			i := rng.IntN(len(at[p]))
			out = append(out, at[p][i])
			if at[p] = slices.Delete(at[p], i, i+1); len(at[p]) > 0 {
				left = append(left, p)
			}
		}
		places = left
	}
	return out
}

// runs deals kills to runs. Within one they follow each other in the order of the trace, so that each is reached.
func runs(kills []kill, rng *rand.Rand) [][]kill {
	rng.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	var out [][]kill
	for chain := range slices.Chunk(kills, killsPerRun) {
		slices.SortStableFunc(chain, func(a, b kill) int { return a.order - b.order })
		out = append(out, chain)
	}
	return out
}

// crashKills is how many kills there are to be.
func crashKills(t *testing.T) int {
	t.Helper()
	v := os.Getenv(killsEnv)
	if v == "" {
		return ciKills
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err, killsEnv)
	return n
}

// instants are n random moments of a run. The first quarter of its time is before the storage is open.
func instants(n, operations int, rng *rand.Rand) []kill {
	var out []kill
	for range n {
		part := 0.25 + 0.75*rng.Float64()
		out = append(out, kill{after: part, order: int(part * float64(operations))})
	}
	return out
}

// deal kills runs until all kills were met; each run is on a new ground.
func (c *crash) deal(t *testing.T, points, moments []kill, rng *rand.Rand, fresh func(n int) ground) {
	t.Helper()
	began, all := time.Now(), len(points)+len(moments)
	queue := runs(slices.Concat(points, moments), rng)
	for n := 0; len(queue) > 0; n++ {
		require.Less(t, n, 4*all, "a kill is never reached: %v", queue)
		missed := c.run(t, fresh(n), queue[0], n)
		if queue = queue[1:]; len(missed) > 0 {
			queue = append(queue, missed)
		}
	}
	require.GreaterOrEqual(t, c.kills, all)
	minutes := time.Since(began).Minutes()
	t.Logf("%d kills at %d boundaries of %d operations and %d random instants in %.1f minutes, %.0f a minute",
		c.kills, len(points), len(c.trace), len(moments), minutes, float64(c.kills)/minutes)
}

// Wherever a run is killed, the newest committed checkpoint is whole, nothing of somebody else's is touched, the next start
// leaves no temporary file, and the run comes to the bits of one that was never stopped.
func TestCrash(t *testing.T) {
	kills := crashKills(t) * 3 / 4
	c := newCrash(t)
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	c.count(t, localDisk{filepath.Join(dir, "counted")}, []string{"WEFT_FAULT_TRACE=" + trace}, func() []operation { return readTrace(t, trace) })
	rng := rand.New(rand.NewPCG(crashSeed, uint64(kills)))
	moments := instants(kills/4, len(c.trace), rng)
	c.deal(t, boundaries(c.trace, kills-len(moments), rng), moments, rng, func(n int) ground {
		return localDisk{filepath.Join(dir, strconv.Itoa(n))}
	})
}

// run kills one run as the chain says, lets it finish and checks it. It returns the kills that the run did not meet.
func (c *crash) run(t *testing.T, g ground, chain []kill, name int) (missed []kill) {
	v := &victim{crash: c, ground: g, foreign: map[string]string{}}
	for i, k := range chain {
		label := fmt.Sprintf("run %d, kill %d of %+v", name, i, chain)
		if !v.start(t, k, label) {
			v.finished(t, label)
			if k.after > 0 {
				k.after = 0.8 * min(k.after, float64(v.lasted)/float64(v.took)) // it was faster than when the time was taken
			} else {
				require.NotZero(t, i, "%s: the first start of a run does not reach it", label)
			}
			return append([]kill{k}, chain[i+1:]...)
		}
		c.kills++
		v.check(t, label)
		v.plant(t, i)
	}
	label := fmt.Sprintf("run %d, after %+v", name, chain)
	require.False(t, v.start(t, kill{}, label), label)
	v.finished(t, label)
	return nil
}

// victim is one run.
type victim struct {
	*crash
	ground
	// newest is the newest checkpoint that was seen.
	newest checkpoint.Entry
	// foreign are files of somebody else: content by name, which is unique.
	foreign map[string]string
	pid     int
	out     string
	// lasted is how long its last process did.
	lasted time.Duration
}

// start runs until the kill, or to the end: then it returns false.
func (v *victim) start(t *testing.T, k kill, label string) (killed bool) {
	t.Helper()
	cmd := newKillable(v.command(t, v.url(), v.env()))
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	defer v.arm(cmd, k)()
	began := time.Now()
	cmd.start(t)
	if k.after > 0 {
		timer := time.AfterFunc(time.Duration(k.after*float64(v.took)), cmd.kill)
		defer timer.Stop()
	}
	err := cmd.Wait()
	v.lasted = time.Since(began)
	v.pid, v.out = cmd.Process.Pid, out.String()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		v.quiet(t, errs.String(), label)
		return true
	}
	require.NoError(t, err, "%s: %s%s", label, v.out, errs.String())
	v.quiet(t, errs.String(), label)
	return false
}

// entries are the committed checkpoints, seen from outside: each is whole and has the bits of the one of the same step of the
// run that nobody stopped.
func (v *victim) entries(t *testing.T, label string) []checkpoint.Entry {
	t.Helper()
	m := v.manager(t)
	list, err := m.List()
	require.NoError(t, err, label)
	lost, err := m.Incomplete()
	require.NoError(t, err, label)
	if !v.remote() { // there a checkpoint appears at once
		require.Empty(t, lost, label)
	}
	have := v.files(t)
	for _, e := range list {
		require.NoError(t, m.Verify(e), label)
		sameBits(t, v.whole, have, e.Name, label)
	}
	return list
}

var revision = regexp.MustCompile(`-r\d+$`)

// sameBits compares a checkpoint, among the files of a storage path, with the one of the same step under whole.
func sameBits(t *testing.T, whole string, have map[string]string, name, label string) {
	t.Helper()
	want := filepath.Join(whole, "checkpoints", revision.ReplaceAllString(name, ""))
	compared := 0
	for _, pattern := range []string{"state/*.safetensors", "model/*"} {
		files, err := filepath.Glob(filepath.Join(want, pattern))
		require.NoError(t, err)
		for _, file := range files {
			rel, err := filepath.Rel(want, file)
			require.NoError(t, err)
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			require.True(t, string(raw) == have[path.Join("checkpoints", name, rel)], "%s: %s of %s has other bits", label, rel, name)
			compared++
		}
	}
	require.NotZero(t, compared, "%s: there should be no checkpoint %s", label, name)
}

var (
	announced = regexp.MustCompile(`Checkpoint successfully created at: (\S+)`)
	resumed   = regexp.MustCompile(`resuming from (\S+): `)
)

// check is what holds after every kill.
func (v *victim) check(t *testing.T, label string) {
	t.Helper()
	list := v.entries(t, label)
	if from := resumed.FindStringSubmatch(v.out); from != nil {
		require.Equal(t, v.newest.Name, path.Base(from[1]), "%s: it goes on from the newest", label)
	} else if strings.Contains(v.out, "step 1/") {
		require.Zero(t, v.newest.Step, "%s: it began although there was a checkpoint", label)
	}
	if v.newest.Step > 0 {
		require.NotEmpty(t, list, label)
	}
	var now checkpoint.Entry
	if len(list) > 0 {
		now = list[len(list)-1]
	}
	require.GreaterOrEqual(t, now.Step, v.newest.Step, "%s: an older checkpoint is the newest", label)
	for _, said := range announced.FindAllStringSubmatch(v.out, -1) {
		require.GreaterOrEqual(t, now.Name, path.Base(said[1]), "%s: a checkpoint that was announced is gone", label)
	}
	v.newest = now
	if strings.Contains(v.out, "program  ") { // it had the storage, and cleaned it
		v.noTemporary(t, v.files(t), v.foreign, v.pid, label)
	}
	v.untouched(t, label)
}

// plant puts files of somebody else where the run works.
func (v *victim) plant(t *testing.T, n int) {
	t.Helper()
	put := func(dir string) {
		name := fmt.Sprintf("foreign-%d.safetensors", len(v.foreign))
		content := strings.Repeat(name, len(v.foreign)+1)
		if v.put(t, path.Join(dir, name), content) {
			v.foreign[name] = content
		}
	}
	switch n % 4 {
	case 0:
		put("")
		put("checkpoints")
	case 1:
		if v.newest.Name != "" {
			put("checkpoints/" + v.newest.Name)
			put("checkpoints/" + v.newest.Name + "/state")
		}
	case 2:
		for _, dir := range v.temporary(t) {
			put(dir)
			put(path.Join(dir, "state"))
		}
	}
}

// untouched wants every foreign file to be there, in whichever folder it had to stay.
func (v *victim) untouched(t *testing.T, label string) {
	t.Helper()
	found := map[string]string{}
	for name, content := range v.files(t) {
		if base := path.Base(name); v.foreign[base] != "" {
			found[base] = content
		}
	}
	require.Equal(t, v.foreign, found, label)
}

// finished is what a run must have come to that was let end.
func (v *victim) finished(t *testing.T, label string) {
	t.Helper()
	require.Contains(t, v.out, "Training completed!", label)
	list := v.entries(t, label)
	if announced.MatchString(v.out) { // its last save pruned
		require.Equal(t, v.kept, steps(list), "%s: other checkpoints are kept", label)
	}
	last := checkpoints(t, v.whole)
	require.Equal(t, filepath.Base(last[len(last)-1]), revision.ReplaceAllString(list[len(list)-1].Name, ""), label)
	have := v.files(t)
	require.Equal(t, v.want, lineValues(t, have["metrics.jsonl"]), label)
	v.noTemporary(t, have, v.foreign, 0, label)
	v.untouched(t, label)
}
