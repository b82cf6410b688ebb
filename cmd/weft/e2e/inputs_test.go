package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
	"weft/pjrt/plugin"
)

// tinyModel copies a fixture's folder, without what only its tests read, and lets change it.
func tinyModel(t *testing.T, name string, change func(dir string)) string {
	t.Helper()
	from, dir := fixture.Dir(t, name), filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	files, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "model") || f.Name() == "config.json" {
			raw, err := os.ReadFile(filepath.Join(from, f.Name()))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name()), raw, 0o644))
		}
	}
	if change != nil {
		change(dir)
	}
	return dir
}

// editConfig changes fields of a folder's config.json.
func editConfig(t *testing.T, dir string, edit func(map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var c map[string]any
	require.NoError(t, json.Unmarshal(raw, &c))
	edit(c)
	raw, err = json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw, 0o644))
}

// write makes a file and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// rows is n records of ready ids.
func rows(n int) string {
	return strings.Repeat(`{"input_ids":[2,5,6,7,8,9,10,11]}`+"\n", n)
}

const dollyRow = `{"instruction":"Say hello.","context":"","response":"Hello."}` + "\n"

// wrongInput is a command line and what its one-line error must say: what is wrong and what to do.
type wrongInput struct {
	name string
	args []string
	want []string
}

// Everything wrong with the input is found before anything is trained, and said in one line.
func TestWrongInput(t *testing.T) {
	model := tinyModel(t, "gemma4-tiny", nil)
	data := write(t, "rows.jsonl", rows(8))
	tokenizer := filepath.Join(fixture.Dir(t, "tokenizer"), "tokenizer.json.gz")
	base := func(args ...string) []string {
		given := strings.Join(args, " ")
		out := append([]string{"finetune", "--platform", "cpu", "--max-seq-len", "16"}, args...)
		for flag, value := range map[string]string{"--model-id": model, "--dataset": data, "--storage-path": filepath.Join(t.TempDir(), "out")} {
			if !strings.Contains(given, flag+" ") {
				out = append(out, flag, value)
			}
		}
		return out
	}
	cases := append(wrongModels(t, base), wrongData(t, base, tokenizer)...)
	cases = append(cases, wrongFlags(t, base)...)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			message := refused(t, c.args...)
			t.Log(message)
			for _, want := range c.want {
				require.Contains(t, message, want)
			}
		})
	}
}

func wrongModels(t *testing.T, base func(...string) []string) []wrongInput {
	with := func(change func(dir string)) []string {
		return base("--model-id", tinyModel(t, "gemma4-tiny", change))
	}
	return []wrongInput{
		{"no such folder", base("--model-id", "./nowhere/at/all"), []string{"--model-id ./nowhere/at/all", "no such folder", "give the folder"}},
		{"a name of the hub", base("--model-id", "google/gemma-4-E2B-it"), []string{"hf download google/gemma-4-E2B-it --local-dir gemma-4-E2B-it"}},
		{"no config", with(func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "config.json"))) }), []string{"--model-id", "no config.json"}},
		{"config that is no JSON", with(func(dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"), 0o644))
		}), []string{"config.json", "not a JSON object"}},
		{"unknown architecture", with(func(dir string) {
			editConfig(t, dir, func(c map[string]any) { c["model_type"], c["architectures"] = "llama", []string{"LlamaForCausalLM"} })
		}), []string{`model_type "llama"`, "gemma4_text"}},
		{"no weights", with(func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "model.safetensors"))) }), []string{"--model-id", "safetensors"}},
		{"truncated safetensors", with(func(dir string) {
			path := filepath.Join(dir, "model.safetensors")
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, info.Size()/2))
		}), []string{"model.safetensors", "truncated"}},
		{"a shape that disagrees", with(func(dir string) {
			editConfig(t, dir, func(c map[string]any) { c["intermediate_size"] = 96 })
		}), []string{"tensor model.layers.0.mlp.", "has shape", "config.json makes it"}},
		{"a missing tensor", with(func(dir string) {
			path := filepath.Join(dir, "model.safetensors")
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			raw = bytes.Replace(raw, []byte(`"model.norm.weight"`), []byte(`"model.gone.weight"`), 1)
			require.NoError(t, os.WriteFile(path, raw, 0o644))
		}), []string{"tensor model.norm.weight is missing"}},
		{"a file without random weights", base("--model-id", write(t, "config.json", "{}")), []string{"is a file", "--random-init"}},
		{"sequence beyond the model's", base("--max-seq-len", "1000"), []string{"--max-seq-len is 1000", "at most 256"}},
		{"nothing left to train", base("--freeze", "*"), []string{"--freeze *", "every tensor"}},
		{"freeze pattern without a match", base("--freeze", "layers.99.*"), []string{"layers.99.*", "matches no tensor"}},
	}
}

func wrongData(t *testing.T, base func(...string) []string, tokenizer string) []wrongInput {
	file := func(content string, more ...string) []string {
		return base(append([]string{"--dataset", write(t, "data.jsonl", content)}, more...)...)
	}
	return []wrongInput{
		{"no such data", base("--dataset", "missing.jsonl"), []string{"missing.jsonl", "no such file"}},
		{"bad JSON", file(rows(2) + "{nope\n"), []string{"data.jsonl", "3", "bad JSON"}},
		{"another format", file(rows(1) + dollyRow), []string{"data.jsonl", "2", "input_ids"}},
		{"empty data", file(""), []string{"data.jsonl", "empty"}},
		{"a split out of range", base("--dataset-split", "train[:99]"), []string{"train[:99]", "8 rows"}},
		{"a split that is none", base("--dataset-split", "train[1:"), []string{"train[1:"}},
		{"a split that the file lacks", base("--dataset-split", "test"), []string{"test"}},
		{"a batch that no device can hold", base("--devices", "4"), []string{"8 rows", "global batch of 16", "4 a device × 4 devices", "--no-drop-last"}},
		{"zero targets", file(`{"input_ids":[2,5,6],"labels":[-100,-100,-100]}`+"\n", "--batch-size-per-device", "1"), []string{"no target"}},
		{"no tokenizer", file(dollyRow, "--batch-size-per-device", "1"), []string{"no tokenizer.json", "--tokenizer"}},
		{"no such tokenizer", base("--tokenizer", "missing.json"), []string{"missing.json"}},
		{"a tokenizer larger than the model", file(dollyRow, "--batch-size-per-device", "1", "--tokenizer", tokenizer),
			[]string{"data.jsonl", "outside the vocabulary of 512", "262145 tokens", "belongs to the model"}},
		{"an id beyond the vocabulary", file(`{"input_ids":[2,512]}`+"\n", "--batch-size-per-device", "1"), []string{"id 512", "vocabulary of 512"}},
	}
}

func wrongFlags(t *testing.T, base func(...string) []string) []wrongInput {
	yaml := func(content string) []string { return base("--config", write(t, "run.yaml", content)) }
	return []wrongInput{
		{"storage under a file", base("--storage-path", filepath.Join(write(t, "file", ""), "out")), []string{"--storage-path", "not a directory"}},
		{"storage of another kind", base("--storage-path", "s3://bucket/run"), []string{"s3://bucket/run", "not gs://bucket/prefix"}},
		{"no batch", base("--batch-size-per-device", "0"), []string{"--batch-size-per-device is 0"}},
		{"devices that the plugin refuses", base("--devices", "100000"), []string{"--devices", "100000"}},
		{"devices that disagree", base("--devices", "2", "--num-workers", "4"), []string{"--devices asks for 2", "--num-workers for 4"}},
		{"a topology that is none", base("--topology", "4y4"), []string{"--topology 4y4"}},
		{"an accelerator on a CPU", base("--accelerator-type", "TPU-V6E"), []string{"--accelerator-type TPU-V6E contradicts --platform cpu"}},
		{"a value that a flag lacks", base("--compute-dtype", "int8"), []string{"--compute-dtype", "int8", "bfloat16"}},
		{"a time that is none", base("--save-every", "10"), []string{"--save-every", "10"}},
		{"a time that is past", base("--save-every=-1m"), []string{"--save-every is -1m0s", "10m"}},
		{"no grace", base("--grace-period=-1s"), []string{"--grace-period is -1s", "30s"}},
		{"steps that are none", base("--save-every-steps=-1"), []string{"--save-every-steps is -1"}},
		{"a number that is none", base("--num-epochs", "three"), []string{"--num-epochs", "three"}},
		{"a flag that is none", base("--learning-rat", "1"), []string{"--learning-rat", "--learning-rate"}},
		{"a learning rate below 0", base("--learning-rate=-1"), []string{"--learning-rate"}},
		{"warm-up without a schedule", base("--warmup-steps", "5"), []string{"--warmup-steps", "cosine"}},
		{"demo with a dataset", []string{"finetune", "--demo", "--dataset", "x.jsonl"}, []string{"--demo", "--dataset"}},
		{"no model", []string{"finetune"}, []string{"--model-id is missing", "--demo"}},
		{"no plugin at the path", base("--plugin", "missing.so"), []string{"--plugin", "missing.so"}},
		{"a plugin that is none", base("--plugin", write(t, "plugin.so", "hello")), []string{"plugin.so", "does not load"}},
		{"YAML with an unknown key", yaml("seed: 1\nsede: 2\n"), []string{"run.yaml:2", `unknown key "sede"`}},
		{"YAML with a nested value", yaml("seed:\n  a: 1\n"), []string{"run.yaml:1", `"seed"`}},
		{"YAML with a wrong value", yaml("\nnum-epochs: many\n"), []string{"run.yaml:2", "num-epochs", "many"}},
		{"YAML that is none", yaml("a: [\n"), []string{"run.yaml:1"}},
		{"no YAML", base("--config", "missing.yaml"), []string{"--config", "missing.yaml"}},
		{"bench of no steps", []string{"bench", "step", "--config", "config.json", "--steps", "0"}, []string{"--steps 0"}},
		{"plugin that is not known", []string{"plugin", "install", "gpu"}, []string{`"gpu"`, "cpu"}},
		{"tokenize without a tokenizer", []string{"tokenize"}, []string{"--tokenizer"}},
	}
}

// A folder without the right to write is refused. Root may write everywhere, so the test becomes somebody else.
func TestStorageThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	cmd := command(t, "finetune", "--demo", "--storage-path", filepath.Join(dir, "out"))
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Dir = "/"
	}
	o := finish(t, cmd)
	require.Equal(t, 2, o.code, o.err)
	require.Contains(t, o.err, "--storage-path")
	require.Contains(t, o.err, "permission denied")
}

// A TPU that this machine has not is said to be missing at once: libtpu alone asks a metadata server for it, for minutes.
func TestTPUThatIsNotThere(t *testing.T) {
	if plugin.MayHaveTPU() {
		t.Skip("SKIPPED: this machine may have a TPU; the test is about one without")
	}
	model := tinyModel(t, "gemma4-tiny", nil)
	for _, args := range [][]string{
		{"finetune", "--demo", "--platform", "tpu", "--storage-path", filepath.Join(t.TempDir(), "out")},
		{"finetune", "--model-id", model, "--dataset", write(t, "rows.jsonl", rows(64)), "--max-seq-len", "16", "--topology", "4x4", "--accelerator-type", "TPU-V6E", "--storage-path", filepath.Join(t.TempDir(), "out")},
		{"collectives", "--platform", "tpu"},
	} {
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, "WEFT_CACHE="+t.TempDir()) // where libtpu is not, and is not downloaded for this
		o := finish(t, cmd)
		require.Equal(t, 2, o.code, o.err)
		require.Regexp(t, `^weft: no TPU chip is seen on this machine: run on a TPU VM.*weft plan compiles for a slice\n$`, o.err)
	}
}
