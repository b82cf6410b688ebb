package e2e

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"weft/checkpoint/gcs"
	"weft/checkpoint/gcs/gcstest"
	"weft/data/demo"
)

// leaseTime is that of the runs of these tests: how long a dead one keeps its folder.
const leaseTime = "4s"

// cloud is a fake Cloud Storage with the inputs of a run, which lie in local files too.
type cloud struct {
	*gcstest.Server
	model, rows, tokenizer string // local
}

func startCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{Server: gcstest.Start(t, "bucket", "own"), model: tinyModel(t, "gemma4-tiny-sharded-bf16", nil)}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(differentRows(14)))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	c.rows = write(t, "rows.jsonl.gz", packed.String())
	c.tokenizer = write(t, "tokenizer.json", string(demo.TokenizerJSON()))
	files, err := os.ReadDir(c.model)
	require.NoError(t, err)
	for _, f := range files {
		c.upload(t, filepath.Join(c.model, f.Name()), "models/tiny/"+f.Name())
	}
	c.upload(t, c.rows, "data/rows.jsonl.gz")
	c.upload(t, c.tokenizer, "tok/tokenizer.json")
	return c
}

func (c *cloud) upload(t *testing.T, file, name string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	c.Put("bucket", name, raw)
}

// args train three epochs of six steps; flags of a later place win.
func (c *cloud) args(model, rows, tokenizer, storage string, more ...string) []string {
	return append([]string{"finetune", "--model-id", model, "--dataset", rows, "--dataset-split", "train[:12]", "--tokenizer", tokenizer,
		"--eval-dataset", rows, "--eval-split", "train[12:]", "--storage-path", storage, "--keep", "0",
		"--platform", "cpu", "--devices", "2", "--batch-size-per-device", "1", "--max-seq-len", "16", "--compute-dtype", "float32",
		"--num-epochs", "3", "--learning-rate", "1e-3", "--compile-cache", cache}, more...)
}

func (c *cloud) local(storage string, more ...string) []string {
	return c.args(c.model, c.rows, c.tokenizer, storage, more...)
}

func (c *cloud) remote(storage string, more ...string) []string {
	return c.args("gs://bucket/models/tiny", "gs://bucket/data/rows.jsonl.gz", "gs://bucket/tok/tokenizer.json", storage, more...)
}

// command is the binary that talks to the fake.
func (c *cloud) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, c.Env(), gcs.LeaseEnv+"="+leaseTime)
	return cmd
}

func (c *cloud) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, c.command(t, args...))
}

// download copies what is under a prefix into a folder.
func (c *cloud) download(t *testing.T, prefix string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range c.Objects("bucket") {
		if rest, ok := strings.CutPrefix(name, prefix+"/"); ok {
			path := filepath.Join(dir, rest)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, content, 0o644))
		}
	}
	return dir
}

// killAt starts the command and kills it when the server is asked to make an object whose name contains part.
func (c *cloud) killAt(t *testing.T, part string, args ...string) (log string) {
	t.Helper()
	client := c.Client()
	cmd := newKillable(c.command(t, args...))
	cmd.Env = append(cmd.Env, client.Env())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c.Inject(gcstest.Fault{Op: gcstest.Insert, Name: part, Do: gcstest.Before(cmd.kill)})
	cmd.start(t)
	_ = cmd.Wait()
	client.Gone()
	require.Equal(t, []int{1}, c.Heal(), "%s", &out)
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "%s", &out)
	return out.String()
}

// A run all of whose inputs and outputs are on Cloud Storage, killed twice and started again each time, gives the bits of a
// local run that was never stopped.
func TestRunOnCloudStorage(t *testing.T) {
	c := startCloud(t)
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, c.local(whole)...)
	want := checkpoints(t, whole)
	require.Len(t, want, 3)

	const storage, name = "gs://bucket/runs", "gemma"
	again := c.remote(storage, "--run-name", name)
	// In the middle of the second save.
	log := c.killAt(t, "epoch-0002-step-00000012/model/", again...)
	require.Contains(t, log, "Checkpoint successfully created at: gs://bucket/runs/gemma/checkpoints/epoch-0001-step-00000006\n")

	// The next one waits until the dead run's lease is over. It is killed in the third save, before which it puts the metrics.
	log = c.killAt(t, "epoch-0003-step-00000018/state/", again...)
	require.Regexp(t, `storage +waiting up to 4s for the lease of process \d+ on host `, log)
	require.Contains(t, log, "resuming from gs://bucket/runs/gemma/checkpoints/epoch-0001-step-00000006: epoch 2, step 7\n")
	require.Contains(t, string(c.Objects("bucket")["runs/gemma/metrics.jsonl"]), `"step":18,`, "written before the checkpoint")

	o := c.run(t, again...)
	require.Zero(t, o.code, o.err)
	require.Contains(t, o.out, "waiting up to ")
	require.Contains(t, o.out, "Saved checkpoint: gs://bucket/runs/gemma/checkpoints/epoch-0003-step-00000018\n")
	got := c.download(t, "runs/gemma")
	require.Equal(t, readLines(t, whole), readLines(t, got))
	require.Len(t, checkpoints(t, got), 3)
	for i, dir := range checkpoints(t, got) {
		requireSameCheckpoint(t, want[i], dir)
	}
	for object := range c.Objects("bucket") {
		require.NotRegexp(t, `weft-part|intent|\.lock|tmp`, object, "nothing is left behind")
	}

	t.Run("again", func(t *testing.T) {
		o := c.run(t, again...)
		require.Zero(t, o.code, o.err)
		require.Contains(t, o.out, "All 3 epochs of this run are done already")
		require.Contains(t, o.out, "Saved checkpoint: gs://bucket/runs/gemma/checkpoints/epoch-0003-step-00000018\n")
	})
	t.Run("another run from its checkpoint", func(t *testing.T) {
		from := "gs://bucket/runs/gemma/checkpoints/epoch-0002-step-00000012"
		local := filepath.Join(t.TempDir(), "local")
		for range 2 { // the second time it goes on where it stands
			o := c.run(t, c.local(local, "--resume", from)...)
			require.Zero(t, o.code, o.err)
		}
		requireSameCheckpoint(t, want[2], checkpoints(t, local)[0])
		o := c.run(t, c.remote("gs://bucket/other", "--resume", want[1])...)
		require.Zero(t, o.code, o.err)
		require.Contains(t, o.out, "resuming from "+want[1]+": epoch 3, step 13\n")
		requireSameCheckpoint(t, want[2], checkpoints(t, c.download(t, "other"))[0])

		o = c.run(t, c.remote("gs://bucket/third", "--resume", "gs://bucket/runs/gemma")...)
		require.Equal(t, 2, o.code)
		require.Contains(t, o.err, "--resume gs://bucket/runs/gemma is no checkpoint")
	})
	t.Run("a bucket is a folder", func(t *testing.T) {
		o := c.run(t, c.remote("gs://own", "--num-epochs", "1")...)
		require.Zero(t, o.code, o.err)
		require.Contains(t, o.out, "Saved checkpoint: gs://own/checkpoints/epoch-0001-step-00000006\n")
		require.Contains(t, c.Objects("own"), "run.json")
		require.Contains(t, c.Objects("own"), "metrics.jsonl")
	})
	t.Run("other settings", func(t *testing.T) {
		o := c.run(t, c.remote(storage, "--run-name", name, "--learning-rate", "1e-4", "--num-epochs", "4")...)
		require.Equal(t, 2, o.code, o.err)
		require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
		require.Contains(t, o.err, "gs://bucket/runs/gemma/checkpoints/epoch-0003-step-00000018")
		require.Contains(t, o.err, "--learning-rate was 0.001, it is 0.0001 now")
	})
}

// readLines are the lines of metrics.jsonl, of steps and evaluations, without times.
func readLines(t *testing.T, storage string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(storage, "metrics.jsonl"))
	require.NoError(t, err)
	var out []string
	for line := range strings.Lines(string(raw)) {
		before, _, _ := strings.Cut(line, `,"step_time_s"`)
		before, _, _ = strings.Cut(before, `,"eval_time_s"`)
		out = append(out, before)
	}
	return out
}

// A folder that a living run owns is refused.
func TestRunOnCloudStorageTwice(t *testing.T) {
	c := startCloud(t)
	args := c.remote("gs://bucket/run", "--num-epochs", "400", "--keep", "1", "--grace-period", "1h")
	cmd := c.command(t, args...)
	log := begin(t, cmd)
	trains := func(r gcstest.Request) bool { return strings.Contains(r.Name, "run/checkpoints/epoch-0001") }
	for !slices.ContainsFunc(c.Requests(), trains) {
		require.Zero(t, state(t, cmd, unix.WEXITED|unix.WNOHANG), "the run ended by itself: %s", log)
		time.Sleep(5 * time.Millisecond)
	}
	o := c.run(t, args...)
	require.Equal(t, 2, o.code, o.out+o.err)
	require.Regexp(t, `^weft: --storage-path: .*gs://bucket/run/\.weft\.lock is locked by process \d+ on host .*\n$`, o.err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	require.Equal(t, 75, cmd.ProcessState.ExitCode(), log.String())
	require.Nil(t, c.Objects("bucket")["run/.weft.lock"], "the lease is given back")
}

// What cannot be read is one line and exit code 2; nothing was written.
func TestCloudInputsRefused(t *testing.T) {
	c := startCloud(t)
	c.Put("bucket", "data/bad.jsonl", []byte("{}\n{"))
	for _, tc := range []struct {
		name  string
		fault *gcstest.Fault
		more  []string
		want  string
	}{
		{"no bucket for the model", nil, []string{"--model-id", "gs://nowhere/model"}, "weft: --model-id: reading gs://nowhere/model/config.json: the bucket does not exist; make it with"},
		{"no model", nil, []string{"--model-id", "gs://bucket/none"}, "weft: --model-id gs://bucket/none: the folder has no config.json"},
		{"no data", nil, []string{"--dataset", "gs://bucket/none.jsonl"}, "weft: dataset gs://bucket/none.jsonl: there is no such file"},
		{"no bucket for the data", nil, []string{"--dataset", "gs://nowhere/x.jsonl"}, "reading gs://nowhere/x.jsonl: the bucket does not exist"},
		{"no tokenizer", nil, []string{"--tokenizer", "gs://bucket/none.json"}, "weft: --tokenizer: reading gs://bucket/none.json: file does not exist"},
		{"bad data", nil, []string{"--dataset", "gs://bucket/data/bad.jsonl", "--dataset-split", "train"}, "weft: gs://bucket/data/bad.jsonl:1: "},
		{"no bucket for the run", nil, []string{"--storage-path", "gs://nowhere/run"}, "the bucket does not exist"},
		{"model forbidden", &gcstest.Fault{Op: gcstest.Stat, Name: "models/tiny/config.json", Times: gcstest.Always, Do: gcstest.Forbidden("storage.objects.get")}, nil,
			"weft: --model-id: reading gs://bucket/models/tiny/config.json: no permission storage.objects.get"},
		{"data forbidden", &gcstest.Fault{Op: gcstest.Read, Name: "data/", Times: gcstest.Always, Do: gcstest.Forbidden("storage.objects.get")}, nil,
			"reading gs://bucket/data/rows.jsonl.gz: no permission storage.objects.get"},
		{"writing forbidden", &gcstest.Fault{Op: gcstest.Insert, Times: gcstest.Always, Do: gcstest.Forbidden("storage.objects.create")}, nil,
			"weft: --storage-path: opening storage path"},
		{"S3", nil, []string{"--storage-path", "s3://bucket/run"}, `weft: --storage-path: opening "s3://bucket/run": not a local path and not gs://bucket/prefix: give one of these`},
		{"hub", nil, []string{"--model-id", "hf://google/gemma-3-270m"}, `weft: --model-id: opening "hf://google/gemma-3-270m": not a local path`},
		{"web", nil, []string{"--dataset", "https://example.com/x.jsonl"}, `weft: --dataset: opening "https://example.com/x.jsonl": not a local path`},
		{"one slash", nil, []string{"--tokenizer", "gs:/bucket/tokenizer.json"}, `weft: --tokenizer: opening "gs:/bucket/tokenizer.json": not a local path`},
		{"no bucket named", nil, []string{"--storage-path", "gs://"}, `weft: --storage-path: opening "gs://": not a local path and not gs://bucket/prefix: it has no bucket`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(c.Objects("bucket"))
			if tc.fault != nil {
				c.Inject(*tc.fault)
			}
			o := c.run(t, c.remote("gs://bucket/refused", tc.more...)...)
			c.Heal()
			require.Equal(t, 2, o.code, o.out+o.err)
			require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
			require.Contains(t, o.err, tc.want)
			require.Len(t, c.Objects("bucket"), before, "nothing was written")
		})
	}
}

// Reads that fail are tried again; bytes that changed on their way are never trained on.
func TestCloudReadFaults(t *testing.T) {
	c := startCloud(t)
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, c.local(whole, "--num-epochs", "1")...)
	for _, action := range []gcstest.Action{gcstest.Unavailable, gcstest.TooMany(0), gcstest.Reset, gcstest.HalfRead} {
		t.Run(action.String(), func(t *testing.T) {
			prefix := "again-" + strings.ReplaceAll(action.String(), " ", "-")
			c.Inject(
				gcstest.Fault{Op: gcstest.Read, Name: "models/tiny/model-00002", Skip: 1, Times: 2, Do: action},
				gcstest.Fault{Op: gcstest.Read, Name: "models/tiny/config.json", Do: action},
				gcstest.Fault{Op: gcstest.Read, Name: "data/", Times: 2, Do: action},
				gcstest.Fault{Op: gcstest.Read, Name: "tok/", Do: action})
			o := c.run(t, c.remote("gs://bucket/"+prefix, "--num-epochs", "1")...)
			require.Zero(t, o.code, o.err)
			require.Equal(t, []int{2, 1, 2, 1}, c.Heal(), "every fault happened")
			requireSameCheckpoint(t, checkpoints(t, whole)[0], checkpoints(t, c.download(t, prefix))[0])
		})
	}
	for _, tc := range []struct {
		name, object, want string
		times              int
		ok                 bool
	}{
		{"config once", "models/tiny/config.json", "", 1, true},
		{"tokenizer once", "tok/", "", 1, true},
		{"data once", "data/", "", 1, true},
		{"weights always", "models/tiny/model-00003", "gs://bucket/models/tiny/model-00003-of-00003.safetensors: checksum differs from the store's: crc32c is ", gcstest.Always, false},
	} {
		t.Run("bit flip of "+tc.name, func(t *testing.T) {
			prefix := "flip-" + strings.ReplaceAll(tc.name, " ", "-")
			c.Inject(gcstest.Fault{Op: gcstest.Read, Name: tc.object, Times: tc.times, Do: gcstest.BitFlip})
			o := c.run(t, c.remote("gs://bucket/"+prefix, "--num-epochs", "1")...)
			require.Positive(t, c.Heal()[0], "it happened")
			if tc.ok {
				require.Zero(t, o.code, o.err)
				requireSameCheckpoint(t, checkpoints(t, whole)[0], checkpoints(t, c.download(t, prefix))[0])
				return
			}
			require.Contains(t, []int{1, 2}, o.code)
			require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
			require.Contains(t, o.err, tc.want)
			require.NotContains(t, o.out, "step 1/")
			require.Empty(t, checkpoints(t, c.download(t, prefix)))
		})
	}
}

// Tensors that are exported as they came, of a vision tower and a frozen table, come from Cloud Storage as from a disk.
func TestCloudExportsWhatItDoesNotTrain(t *testing.T) {
	c := startCloud(t)
	model := tinyModel(t, "gemma4-tiny-multimodal", nil)
	files, err := os.ReadDir(model)
	require.NoError(t, err)
	for _, f := range files {
		c.upload(t, filepath.Join(model, f.Name()), "models/multimodal/"+f.Name())
	}
	freeze := []string{"--num-epochs", "1", "--freeze", "*embed_tokens*"}
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, c.local(whole, append(freeze, "--model-id", model)...)...)
	o := c.run(t, c.remote("gs://bucket/multimodal", append(freeze, "--model-id", "gs://bucket/models/multimodal")...)...)
	require.Zero(t, o.code, o.err)
	requireSameCheckpoint(t, checkpoints(t, whole)[0], checkpoints(t, c.download(t, "multimodal"))[0])
}
