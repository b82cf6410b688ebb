package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
)

// saved is a run of three epochs whose checkpoints are all there.
func saved(t *testing.T) (storage string, ckpts []string) {
	t.Helper()
	storage = filepath.Join(t.TempDir(), "out")
	must(t, tinyArgs(t, tinyModel(t, "gemma4-tiny", nil), storage, differentRows(12), "--num-epochs", "3", "--keep", "0", "--learning-rate", "1e-3")...)
	ckpts = checkpoints(t, storage)
	require.Len(t, ckpts, 3)
	return storage, ckpts
}

// damage changes one bit in the middle of a file, and returns what mends it.
func damage(t *testing.T, path string) (mend func()) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := append([]byte{}, raw...)
	bad[len(bad)/2] ^= 1
	require.NoError(t, os.WriteFile(path, bad, 0o644))
	return func() { require.NoError(t, os.WriteFile(path, raw, 0o644)) }
}

// failed wants exit code 1 and one line on standard error.
func failed(t *testing.T, o outcome) string {
	t.Helper()
	require.Equal(t, 1, o.code, o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
	return o.err
}

// What a user does with the checkpoints of a run, and what each command says when something is wrong.
func TestCheckpointCommands(t *testing.T) {
	storage, ckpts := saved(t)
	t.Run("ls", func(t *testing.T) {
		out := must(t, "checkpoint", "ls", storage)
		require.Equal(t, 6, strings.Count(out, "\n"), out)
		require.Regexp(t, `epoch-0003-step-00000018 +\d\.\d{4}\*? +\d.* MB +full +20\d\d-\d\d-\d\d \d\d:\d\d +ok +newest\n`, out)
		require.Contains(t, out, "The run keeps all.")
		var list struct {
			Checkpoints []struct {
				Step  int
				State string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(must(t, "checkpoint", "ls", "--json", ckpts[1])), &list))
		require.Len(t, list.Checkpoints, 1)
		require.Equal(t, 12, list.Checkpoints[0].Step)
		require.Contains(t, refused(t, "checkpoint", "ls", filepath.Join(storage, "nothing")), "there is no such folder")
		require.Contains(t, refused(t, "checkpoint", "ls", t.TempDir()), "holds no checkpoint")
		require.Contains(t, refused(t, "checkpoint", "ls", filepath.Join(storage, "run.json")), "run.json")
	})
	t.Run("verify", func(t *testing.T) {
		require.Regexp(t, `(?s)^epoch-0001-step-00000006 is whole: \d+ files, .*epoch-0003-step-00000018 is whole`, must(t, "checkpoint", "verify", storage))
		state, err := filepath.Glob(filepath.Join(ckpts[2], "state", "*"))
		require.NoError(t, err)
		mend := damage(t, state[0])
		o := weft(t, "checkpoint", "verify", storage)
		said := failed(t, o)
		require.Contains(t, said, ckpts[2]+" is damaged in state/"+filepath.Base(state[0])+": its crc32c is ")
		require.Regexp(t, `the bytes of tensor "\S+" differ`, said)
		require.Contains(t, said, "or resume from epoch-0002-step-00000012, the newest that is whole")
		require.Contains(t, o.out, "epoch-0002-step-00000012 is whole")
		o = weft(t, "checkpoint", "verify", "--json", ckpts[2])
		failed(t, o)
		var found struct{ OK bool }
		require.NoError(t, json.Unmarshal([]byte(o.out), &found))
		require.False(t, found.OK)
		mend()

		mend = damage(t, filepath.Join(ckpts[2], "model", safetensors.SingleFile))
		require.Contains(t, failed(t, weft(t, "checkpoint", "verify", ckpts[2])), "the train state is whole, so a run can resume from it")
		require.Contains(t, must(t, "checkpoint", "ls", storage), " ok ", "ls reads no content")
		mend()
		require.NoError(t, os.Truncate(state[0], 100))
		require.Contains(t, must(t, "checkpoint", "ls", ckpts[2]), "damaged")
		require.Contains(t, failed(t, weft(t, "checkpoint", "verify", ckpts[2])), "it has 100 bytes, the manifest says")
	})
	t.Run("a manifest that cannot be used", func(t *testing.T) {
		file := filepath.Join(ckpts[2], checkpoint.ManifestFile)
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, raw[:len(raw)/2], 0o644))
		require.Regexp(t, `epoch-0003-step-00000018 .* damaged +unreadable`, must(t, "checkpoint", "ls", storage))
		require.Contains(t, failed(t, weft(t, "checkpoint", "verify", ckpts[2])), "manifest.json: not JSON")
		require.Contains(t, failed(t, weft(t, "checkpoint", "export", storage, filepath.Join(t.TempDir(), "x"))), "the newest checkpoint cannot be used")
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(raw), `"format_version":1`, `"format_version":9`, 1)), 0o644))
		require.Regexp(t, `epoch-0003-step-00000018 .* newer +unreadable`, must(t, "checkpoint", "ls", storage))
		require.Contains(t, failed(t, weft(t, "checkpoint", "verify", ckpts[2])), "use the weft that wrote it or a newer one")
		require.NoError(t, os.Remove(file))
		require.Regexp(t, `epoch-0003-step-00000018 .* damaged +unreadable`, must(t, "checkpoint", "ls", storage))
		for _, path := range []string{storage, ckpts[2]} {
			require.Contains(t, failed(t, weft(t, "checkpoint", "verify", path)), "damaged in manifest.json: it is missing, though there is train state")
			require.Contains(t, failed(t, weft(t, "checkpoint", "export", path, filepath.Join(t.TempDir(), "x"))), "it is missing, though there is train state")
		}
		require.NoError(t, os.WriteFile(file, raw, 0o644))
	})
	t.Run("diff", func(t *testing.T) {
		require.Contains(t, must(t, "checkpoint", "diff", ckpts[0], ckpts[0], "--state"), "equal: ")
		o := weft(t, "checkpoint", "diff", ckpts[0], ckpts[1])
		require.Equal(t, []any{1, ""}, []any{o.code, o.err}, "as diff(1)")
		require.Contains(t, o.out, "model.layers.0.mlp.up_proj.weight")
		require.NotContains(t, o.out, "embed_tokens_per_layer", "frozen")
		require.Contains(t, o.out, "different: 0 of ")
		o = weft(t, "checkpoint", "diff", ckpts[0], filepath.Join(ckpts[0], "model"))
		require.Equal(t, 0, o.code, o.out+o.err)
		refused(t, "checkpoint", "diff", ckpts[0], filepath.Join(storage, "nothing"))
		require.Contains(t, refused(t, "checkpoint", "diff", ckpts[0], filepath.Join(ckpts[0], "model"), "--state"), "--state compares the optimizer's moments")
	})
	t.Run("prune", func(t *testing.T) {
		require.Contains(t, refused(t, "checkpoint", "prune", storage), "say what stays")
		require.Contains(t, refused(t, "checkpoint", "prune", ckpts[0], "--keep-last", "1"), "is one checkpoint")
		require.NoError(t, os.RemoveAll(ckpts[2])) // which has a file cut by the test above
		require.NoError(t, os.WriteFile(filepath.Join(ckpts[0], "mine.txt"), []byte("mine"), 0o644))
		require.Equal(t, 1, strings.Count(must(t, "checkpoint", "prune", storage, "--keep-last", "1", "--dry-run"), "would delete epoch-0001-step-00000006 ("))
		m, err := checkpoint.Open(checkpoint.OS{}, storage, checkpoint.Options{})
		require.NoError(t, err)
		said := refused(t, "checkpoint", "prune", storage, "--keep-last", "1")
		require.Contains(t, said, "is locked by process")
		require.Contains(t, said, "--dry-run works meanwhile")
		must(t, "checkpoint", "prune", storage, "--keep-last", "1", "--dry-run")
		must(t, "checkpoint", "verify", storage)
		require.NoError(t, m.Close())
		require.DirExists(t, ckpts[0])

		out := must(t, "checkpoint", "prune", storage, "--keep-last", "1")
		require.Contains(t, out, "deletes epoch-0001-step-00000006 (")
		require.Contains(t, out, "keeps epoch-0002-step-00000012: newest, last\n")
		require.Contains(t, out, "deleted 1 checkpoint, ")
		left, err := os.ReadDir(ckpts[0])
		require.NoError(t, err)
		require.Len(t, left, 1, "what is not weft's stays")
		require.Contains(t, must(t, "checkpoint", "prune", storage, "--keep-last", "1"), "nothing to delete")
	})
}

// An export that cannot be finished leaves nothing of itself, and nothing is written over.
func TestExportRefused(t *testing.T) {
	storage, ckpts := saved(t)
	taken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(taken, "mine.txt"), nil, 0o644))
	require.Contains(t, refused(t, "checkpoint", "export", storage, taken), "it holds mine.txt")
	require.Contains(t, refused(t, "checkpoint", "export", storage, filepath.Join(taken, "x"), "--max-shard-size", "much"), "--max-shard-size")
	require.Contains(t, refused(t, "checkpoint", "export", filepath.Join(ckpts[0], "state"), filepath.Join(taken, "x")), "holds no checkpoint")

	locked := t.TempDir()
	require.NoError(t, os.Chmod(locked, 0o555))
	cmd := command(t, "checkpoint", "export", ckpts[0], filepath.Join(locked, "out"), "--no-check")
	asNobody(cmd)
	require.NoError(t, exec.Command("chmod", "-R", "a+rX", filepath.Dir(filepath.Dir(storage))).Run())
	require.Contains(t, failed(t, finish(t, cmd)), "permission denied")

	disk, grow := smallDisk(t, "500k")
	out := filepath.Join(disk, "model")
	said := failed(t, weft(t, "checkpoint", "export", ckpts[0], out, "--no-check"))
	require.Contains(t, said, "not enough disk space")
	left, err := os.ReadDir(disk)
	require.NoError(t, err)
	require.Empty(t, left)
	grow("50m")
	printed := must(t, "checkpoint", "export", ckpts[0], out, "--compile-cache", cache)
	require.Contains(t, printed, "all of the difference is rounding to bfloat16")
	set, err := safetensors.OpenDir(out)
	require.NoError(t, err)
	defer set.Close()
	for _, info := range set.Tensors() {
		require.Equal(t, safetensors.BF16, info.DType, info.Name)
	}
	config, err := os.ReadFile(filepath.Join(out, "config.json"))
	require.NoError(t, err)
	require.Contains(t, string(config), `"dtype": "bfloat16"`)
	// The folder is one that a run begins from.
	must(t, tinyArgs(t, out, filepath.Join(t.TempDir(), "next"), differentRows(4))...)
}

// asNobody runs a command without root's rights.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Dir = "/"
	}
}

// A checkpoint that a run wrote in the middle of an epoch becomes a model folder too, beside the run's others and alone.
func TestExportWithinAnEpoch(t *testing.T) {
	storage, model := filepath.Join(t.TempDir(), "out"), tinyModel(t, "gemma4-tiny", nil)
	must(t, tinyArgs(t, model, storage, differentRows(12), "--num-epochs", "2", "--keep", "0", "--save-every-steps", "4", "--learning-rate", "1e-3")...)
	list := must(t, "checkpoint", "ls", storage)
	require.Regexp(t, `epoch-0001-step-00000008 +~\d+\.\d{4} .* state .* ok `, list)
	require.Regexp(t, `epoch-0002-step-00000012 +\d+\.\d{4}\*? .* full .* ok `, list)
	within := filepath.Join(storage, "checkpoints", "epoch-0001-step-00000008")
	require.NoDirExists(t, filepath.Join(within, "model"))
	beside, alone := filepath.Join(t.TempDir(), "beside"), filepath.Join(t.TempDir(), "alone")
	printed := must(t, "checkpoint", "export", within, beside, "--dtype", "float32", "--compile-cache", cache)
	require.Contains(t, printed, "companion files of "+filepath.Join(storage, "checkpoints", "epoch-0002-step-00000012", "model"))
	require.Contains(t, printed, "the folder gives the bits of the masters")

	copied := filepath.Join(t.TempDir(), "copied")
	require.NoError(t, os.CopyFS(copied, os.DirFS(within)))
	printed = must(t, "checkpoint", "export", copied, alone, "--dtype", "float32", "--compile-cache", cache)
	require.Contains(t, printed, "companion files of "+model)
	requireSameFiles(t, beside, alone)
	require.Contains(t, must(t, "checkpoint", "diff", copied, alone), "equal: ")
	o := weft(t, "checkpoint", "diff", within, storage)
	require.Equal(t, 1, o.code, o.err)
}
