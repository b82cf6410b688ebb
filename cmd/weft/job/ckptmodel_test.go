package job

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/internal/fixture"
	"weft/models/hf"
	"weft/pjrt/pjrttest"
)

// stateOnly saves the train state of the newest checkpoint of a run's folder again, as one that was written in the middle
// of an epoch, in n slices of the first dimension where that has as many rows. change, when not nil, edits a tensor.
func stateOnly(t *testing.T, from, to string, n int, change func(name string, data []byte)) {
	t.Helper()
	p, err := openCheckpoints(t.Context(), from)
	require.NoError(t, err)
	e, err := p.newest()
	require.NoError(t, err)
	r, err := p.manager.OpenState(e)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	s := &checkpoint.Snapshot{Step: e.Step + 1, Epoch: e.Epoch, Metrics: map[string]float64{metricPartialLoss: 1}, Data: r.Manifest().Data, Config: r.Manifest().Config}
	for _, info := range r.Tensors() {
		whole := make([]byte, 4)
		for _, d := range info.Shape {
			whole = make([]byte, len(whole)*d)
		}
		require.NoError(t, r.ReadRegion(info.Name, make([]int, len(info.Shape)), info.Shape, whole))
		if change != nil {
			change(info.Name, whole)
		}
		tensor := checkpoint.Tensor{Name: info.Name, DType: info.DType, Shape: info.Shape}
		parts := 1
		if len(info.Shape) > 0 && info.Shape[0] >= n {
			parts = n
		}
		for k := range parts {
			start, size := make([]int, len(info.Shape)), append([]int{}, info.Shape...)
			lo, hi := 0, len(whole)
			if parts > 1 {
				row := len(whole) / info.Shape[0]
				first, last := info.Shape[0]*k/n, info.Shape[0]*(k+1)/n
				start[0], size[0], lo, hi = first, last-first, first*row, last*row
			}
			tensor.Shards = append(tensor.Shards, checkpoint.Shard{Start: start, Size: size, Fetch: func(dst []byte) error {
				copy(dst, whole[lo:hi])
				return nil
			}})
		}
		s.State = append(s.State, tensor)
	}
	m, err := checkpoint.Open(checkpoint.OS{}, to, checkpoint.Options{})
	require.NoError(t, err)
	_, err = m.Save(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, m.Close())
}

// tryExport exports without running the model unless check, and returns what was printed.
func tryExport(t *testing.T, storage, out string, change func(*ExportConfig)) (string, error) {
	t.Helper()
	var printed bytes.Buffer
	c := ExportConfig{Checkpoint: storage, Out: out, DType: dtypeSource, MaxShardSize: "5GB", Platform: PlatformCPU, CompileCache: testCache, NoCheck: true}
	if change != nil {
		change(&c)
	}
	err := ExportCheckpoint(t.Context(), c, Console{Out: &printed, Log: slog.New(slog.NewTextHandler(&printed, nil))})
	if err != nil {
		require.NotContains(t, err.Error(), "\n")
		left, globErr := filepath.Glob(filepath.Join(filepath.Dir(out), ".weft-tmp*"))
		require.NoError(t, globErr)
		require.Empty(t, left, "a failed export leaves nothing")
	}
	return printed.String(), err
}

// requireSameWeights wants two model folders to have the same tensors with the same bits.
func requireSameWeights(t *testing.T, a, b string) {
	t.Helper()
	d, err := DiffCheckpoints(t.Context(), a, b, false)
	require.NoError(t, err)
	require.True(t, d.Equal, "%+v", d.Differences)
	require.Positive(t, d.Tensors)
}

// flip changes one bit in the middle of a file, flipAt one of a byte.
func flip(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	flipAt(t, path, int(info.Size()/2))
}

func flipAt(t *testing.T, path string, at int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	raw[at] ^= 0x40
	require.NoError(t, os.WriteFile(path, raw, 0o600))
}

// copyTree copies a folder.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(from))
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// A run's checkpoint is exported as it came, whole or with its train state only: then frozen tensors come from another
// checkpoint of the run, or from the model that it began with, which must be the same.
func TestExportOfEveryKind(t *testing.T) {
	pjrttest.Path(t, "cpu")
	shareCache(t)
	f := families[1]
	require.Equal(t, "gemma4-tiny", f.name)
	model := copyTree(t, fixture.Dir(t, f.name))
	run := trainOnGolden(t, model, goldenRows(t, f), nil)
	p, err := openCheckpoints(t.Context(), run)
	require.NoError(t, err)
	full, err := p.newest()
	require.NoError(t, err)
	work := t.TempDir()
	out := func(name string) string { return filepath.Join(work, name) }

	t.Run("with its own folder", func(t *testing.T) {
		_, err := tryExport(t, run, out("own"), nil)
		require.NoError(t, err)
		requireSameWeights(t, full.ModelPath(), out("own"))
		d, err := DiffCheckpoints(t.Context(), run, out("own"), false)
		require.NoError(t, err)
		require.True(t, d.Equal, "float32 masters are float32 tensors of the folder")
		d, err = DiffCheckpoints(t.Context(), model, run, false)
		require.NoError(t, err)
		require.False(t, d.Equal)
		require.Empty(t, d.Notes)
		for _, x := range d.Differences {
			require.Equal(t, ChangeContent, x.Change, "%s", x.Name)
			require.NotContains(t, x.Name, "embed_tokens_per_layer", "frozen")
		}
	})
	t.Run("the train state of 16 devices, with the run's model", func(t *testing.T) {
		lone := out("lone")
		stateOnly(t, run, lone, 16, nil)
		d, err := DiffCheckpoints(t.Context(), run, lone, true)
		require.NoError(t, err)
		require.True(t, d.Equal)
		require.Empty(t, d.Notes)
		printed, err := tryExport(t, lone, out("from-model"), nil)
		require.NoError(t, err)
		require.Contains(t, printed, "companion files of "+model)
		requireSameWeights(t, full.ModelPath(), out("from-model"))

		moved := model + "-moved"
		require.NoError(t, os.Rename(model, moved))
		defer func() { require.NoError(t, os.Rename(moved, model)) }()
		_, err = tryExport(t, lone, out("gone"), nil)
		require.ErrorContains(t, err, "give that model's folder by --model-id")
		require.NoDirExists(t, out("gone"))
		_, err = tryExport(t, lone, out("moved"), func(c *ExportConfig) { c.ModelID = moved })
		require.NoError(t, err)
		requireSameWeights(t, full.ModelPath(), out("moved"))
		other := copyTree(t, moved)
		flip(t, filepath.Join(other, safetensors.SingleFile))
		_, err = tryExport(t, lone, out("other"), func(c *ExportConfig) { c.ModelID = other })
		require.ErrorContains(t, err, "it is another now: its fingerprint was")
		require.NoDirExists(t, out("other"))
	})
	t.Run("the train state beside another checkpoint of the run", func(t *testing.T) {
		both := copyTree(t, run)
		stateOnly(t, run, both, 2, nil)
		require.NoError(t, os.Rename(model, model+"-away"))
		defer func() { require.NoError(t, os.Rename(model+"-away", model)) }()
		printed, err := tryExport(t, both, out("sibling"), nil)
		require.NoError(t, err)
		require.Contains(t, printed, "companion files of "+filepath.Join(both, checkpoint.Folder, full.Name, checkpoint.ModelDir))
		requireSameWeights(t, full.ModelPath(), out("sibling"))
	})
	t.Run("refused", func(t *testing.T) {
		require.NoError(t, os.MkdirAll(out("taken"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(out("taken"), "mine"), nil, 0o600))
		_, err := tryExport(t, run, out("taken"), nil)
		require.ErrorIs(t, err, checkpoint.ErrNotEmpty)
		var input *InputError
		require.ErrorAs(t, err, &input)

		large := out("large")
		stateOnly(t, run, large, 1, func(name string, data []byte) {
			if name == "norm" {
				copy(data, f32s(1e5))
			}
		})
		_, err = tryExport(t, large, out("half"), func(c *ExportConfig) { c.DType = "float16" })
		require.ErrorContains(t, err, "tensor model.norm.weight holds ±100000, which F16 cannot: give --dtype bfloat16 or float32")
		require.NoDirExists(t, out("half"))

		broken := copyTree(t, run)
		manifest, err := p.manager.Manifest(full)
		require.NoError(t, err)
		at := slices.IndexFunc(manifest.State, func(t checkpoint.StateTensor) bool { return t.Name == "norm" })
		slice := manifest.State[at].Slices[0]
		flipAt(t, filepath.Join(broken, checkpoint.Folder, full.Name, slice.File), int(slice.Offset))
		_, err = tryExport(t, broken, out("broken"), nil)
		require.ErrorIs(t, err, checkpoint.ErrDamaged)
		require.ErrorContains(t, err, slice.File+`: the slice start [0] size [64] of tensor "norm" has crc32c`)
		found, err := VerifyCheckpoints(t.Context(), broken, nil)
		require.NoError(t, err)
		require.False(t, found.OK)
		require.Equal(t, "norm", found.Checkpoints[0].Faults[0].Tensor)
		require.ErrorContains(t, found.Err(), `the bytes of tensor "norm" differ: restore the files from a copy`)
		require.NoDirExists(t, out("broken"))
	})
	t.Run("a folder that is not the checkpoint", func(t *testing.T) {
		for _, dtype := range []string{"float32", "bfloat16"} {
			_, err := tryExport(t, run, out(dtype), func(c *ExportConfig) { c.DType = dtype })
			require.NoError(t, err)
			proveChanged(t, run, out(dtype), dtype)
		}
	})
}

// proveChanged proves a folder, and then a copy with one bit changed: that is found in the tensors, and in the logits.
func proveChanged(t *testing.T, run, folder, dtype string) {
	t.Helper()
	p, err := openCheckpoints(t.Context(), run)
	require.NoError(t, err)
	e, err := p.newest()
	require.NoError(t, err)
	m, err := openCkptModel(t.Context(), p, e, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, m.close()) }()
	var printed bytes.Buffer
	x := &export{ExportConfig: ExportConfig{DType: dtype, Platform: PlatformCPU, CompileCache: testCache}, ckptModel: m, report: newReport(Console{Out: &printed}, false), tensors: m.tensors()}
	x.setDTypes()
	require.NoError(t, x.prove(t.Context(), folder))
	require.Contains(t, printed.String(), "the folder gives the bits of ")
	requireFits(t, printed.String())

	changed := copyTree(t, folder)
	flip(t, filepath.Join(changed, safetensors.SingleFile))
	err = x.prove(t.Context(), changed)
	require.ErrorContains(t, err, "has other bits than were written")
	back, err := hf.Load(changed, m.math)
	require.NoError(t, err)
	defer back.Close()
	err = x.proveLogits(t.Context(), back)
	require.ErrorContains(t, err, "are not those of the checkpoint's weights rounded to "+dtype)
}

// A run that began with random weights has no folder to take frozen tensors from: they are drawn again.
func TestExportOfRandomWeights(t *testing.T) {
	pjrttest.Path(t, "cpu")
	shareCache(t)
	f := families[1]
	config := filepath.Join(copyTree(t, fixture.Dir(t, f.name)), configName)
	run := trainOnGolden(t, config, goldenRows(t, f), func(c *Config) { c.RandomInit, c.Seed = true, 7 })
	lone, folder := filepath.Join(t.TempDir(), "lone"), filepath.Join(t.TempDir(), "folder")
	stateOnly(t, run, lone, 1, nil)
	_, err := tryExport(t, lone, folder, nil)
	require.NoError(t, err)
	p, err := openCheckpoints(t.Context(), run)
	require.NoError(t, err)
	e, err := p.newest()
	require.NoError(t, err)
	requireSameWeights(t, e.ModelPath(), folder)
	_, err = os.Stat(filepath.Join(folder, tokenizerName))
	require.True(t, errors.Is(err, fs.ErrNotExist))
}
