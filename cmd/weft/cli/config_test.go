package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parse reads a command line as Main does, without running it.
func parse(t *testing.T, args ...string) (finetuneCmd, error) {
	t.Helper()
	var root commands
	parser, err := newParser(&root, streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"finetune"}, args...))
	return root.Finetune, err
}

func yamlFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// The order of precedence: command line, file, environment, default.
func TestConfigFileAndFlags(t *testing.T) {
	file := yamlFile(t, `
# a run
model-id: models/gemma
dataset-split: 'train[:128]'
num-epochs: 7
learning-rate: 1e-4
shuffle: false
no-drop-last: true
template: |-
  Q: {instruction}
  A: {response}
storage-path: from-file
`)
	t.Setenv("STORAGE_PATH", "from-env")
	c, err := parse(t, "--config", file, "--num-epochs", "2", "--dataset", "d.jsonl")
	require.NoError(t, err)
	require.Equal(t, "models/gemma", c.ModelID)
	require.Equal(t, "train[:128]", c.DatasetSplit)
	require.Equal(t, 2, c.NumEpochs, "the command line wins")
	require.Equal(t, 1e-4, c.LearningRate)
	require.False(t, c.Shuffle)
	require.False(t, c.DropLast)
	require.Equal(t, "Q: {instruction}\nA: {response}", c.Template)
	require.Equal(t, "from-file", c.StoragePath)
	require.Equal(t, 4, c.BatchSizePerDevice, "a default")

	c, err = parse(t, "--dataset", "d.jsonl")
	require.NoError(t, err)
	require.Equal(t, "from-env", c.StoragePath)
	require.True(t, c.Shuffle && c.DropLast && c.Scan)
}

func TestConfigFileFaults(t *testing.T) {
	for content, want := range map[string]string{
		"seed: 1\nseed: 2\n":                "run.yaml:2",
		"model_id: x\n":                     `run.yaml:1: unknown key "model_id"`,
		"seed: [1, 2]\n":                    `run.yaml:1: key "seed": one value is expected`,
		"run-name: ''\n":                    `run.yaml:1: key "run-name" is empty: give a value, or leave the line out`,
		"seed:\n":                           `run.yaml:1: key "seed": one value is expected`,
		"shuffle: maybe\n":                  `run.yaml:1: key "shuffle" is maybe: give true or false`,
		"\nremat: some\n":                   `run.yaml:2: key "remat" is some: give one of none, full`,
		"learning-rate: fast\n":             `run.yaml:1: key "learning-rate"`,
		"- seed\n":                          "run.yaml:1",
		"config: other.yaml\n":              `run.yaml:1: unknown key "config"`,
		"demo: true\n":                      `run.yaml:1: unknown key "demo"`,
		"seed: 1\n---\nseed: 2\n":           "2 YAML documents",
		"shuffle: true\nno-shuffle: true\n": `run.yaml:2: key "no-shuffle" is given twice`,
	} {
		_, err := parse(t, "--config", yamlFile(t, content))
		require.ErrorContains(t, err, want, content)
	}
	c, err := parse(t, "--config", yamlFile(t, "# nothing\n"))
	require.NoError(t, err)
	require.EqualValues(t, 42, c.Seed)
}

// The demo sets flags below those of the command line.
func TestDemoPreset(t *testing.T) {
	c, err := parse(t, "--demo", "--learning-rate", "1e-3")
	require.NoError(t, err)
	require.Equal(t, 4, c.Devices)
	require.Equal(t, "float32", c.ComputeDType)
	require.Equal(t, 1e-3, c.LearningRate)
	require.True(t, c.RandomInit)
	require.NoError(t, c.Check())

	c, err = parse(t, "--demo", "--config", yamlFile(t, "devices: 2\n"))
	require.NoError(t, err)
	require.Equal(t, 2, c.Devices, "a file wins over the demo")
}

func TestMainPrintsOneLineAndACode(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"version"}, 0, ""},
		{[]string{"--help"}, 0, ""},
		{nil, 0, ""},
		{[]string{"finetune", "--help"}, 0, ""},
		{[]string{"fintune"}, 2, "weft: unexpected argument fintune, did you mean \"finetune\"?\n"},
		{[]string{"plugin"}, 2, "weft: expected one of"},
		{[]string{"finetune", "--seed", "x"}, 2, "weft: --seed: expected a valid 64 bit int but got \"x\" (see weft --help)\n"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, c.code, Main(c.args, strings.NewReader(""), &out, &errs), "%v: %s", c.args, errs.String())
		require.True(t, strings.HasPrefix(errs.String(), c.err), errs.String())
		require.LessOrEqual(t, strings.Count(errs.String(), "\n"), 1)
		require.Equal(t, c.code == 0, out.Len() > 0)
	}
}

// The help shows the default of every flag that has one.
func TestHelpShowsDefaults(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, Main([]string{"finetune", "--help"}, strings.NewReader(""), &out, &errs))
	help := strings.Join(strings.Fields(out.String()), " ")
	for flag, value := range map[string]string{
		"--num-epochs": "3", "--batch-size-per-device": "4", "--learning-rate": "2e-5", "--weight-decay": "0.01", "--max-seq-len": "512",
		"--seed": "42", "--storage-path": "./weft-out", "--dataset-split": "train", "--resume": "auto", "--eps": "1e-8",
	} {
		_, text, found := strings.Cut(help, " "+flag+"=")
		require.True(t, found, flag)
		_, text, _ = strings.Cut(text, "Default: ")
		require.True(t, strings.HasPrefix(text, value+". "), "%s: %.20s", flag, text)
	}
}

// A fault of the program is not taken for a good end.
func TestMainDoesNotHidePanics(t *testing.T) {
	require.Panics(t, func() { Main([]string{"version"}, nil, panicking{}, io.Discard) })
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("a fault") }

func TestTokenize(t *testing.T) {
	tokenizer := filepath.Join("..", "..", "..", "data", "demo", "tokenizer.json")
	run := func(input string, args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		code := Main(append([]string{"tokenize", "--tokenizer", tokenizer}, args...), strings.NewReader(input), &out, &errs)
		return out.String(), errs.String(), code
	}
	ids, _, code := run("\"Say hello.\"\n\"東京 🙂\"\n")
	require.Zero(t, code)
	require.Equal(t, 2, strings.Count(ids, "\n"))
	require.True(t, strings.HasPrefix(ids, "[2,"), "BOS comes first: %s", ids)
	text, _, code := run(ids, "--decode", "--no-special")
	require.Zero(t, code)
	require.Equal(t, "\"Say hello.\"\n\"東京 🙂\"\n", text)

	out, errs, code := run("\"a\"\nnope\n")
	require.Equal(t, 2, code)
	require.Equal(t, 1, strings.Count(out, "\n"), "the answer to the line before the bad one")
	require.Contains(t, errs, "weft: standard input: line 2: it is not a JSON string")
}
