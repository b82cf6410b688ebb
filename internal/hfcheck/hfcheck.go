// Package hfcheck runs a Hugging Face folder through the real transformers library, for tests that prove weft's
// checkpoints load there and give the same loss. The first use on a machine installs torch and transformers with
// package pyenv (2.4 GB to download, 4.3 GB on disk, about a minute and a half on two cores and a fast network).
package hfcheck

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/pyenv"
)

//go:embed check.py
var script []byte

//go:embed requirements.txt
var requirements string

// Batch is one forward pass: every array has shape [rows, tokens]. Labels stand at their own positions, -100 where
// there is no target; the shift by one is done by the check. AttentionMask is 1 for a real token and 0 for padding.
type Batch struct {
	InputIDs      [][]int `json:"input_ids"`
	Labels        [][]int `json:"labels"`
	AttentionMask [][]int `json:"attention_mask"`
}

// Result is what transformers made of the folder.
type Result struct {
	ModelClass    string `json:"model_class"`
	NumParameters int    `json:"num_parameters"`
	// Loss is the mean cross entropy in nats over all targets of all batches: float32 logits, the rest in float64.
	// It is 0 if there is no target.
	Loss       float64 `json:"loss"`
	NumTargets int     `json:"num_targets"`
	// MissingKeys are parameters that the folder lacks (transformers fills them at random); UnexpectedKeys are tensors
	// that the model has no use for; MismatchedKeys have another shape than the config says.
	MissingKeys    []string `json:"missing_keys"`
	UnexpectedKeys []string `json:"unexpected_keys"`
	MismatchedKeys []string `json:"mismatched_keys"`
	// Tokenizer is nil if the folder has no tokenizer.json.
	Tokenizer *Tokenizer        `json:"tokenizer"`
	Versions  map[string]string `json:"versions"`
}

// Tokenizer is what transformers made of the folder's tokenizer.json.
type Tokenizer struct {
	// AutoClass is the class that AutoTokenizer picks by the folder's config.
	AutoClass string     `json:"auto_class"`
	VocabSize int        `json:"vocab_size"`
	Rows      []Encoding `json:"rows"`
}

// Encoding is one text through the tokenizer.
type Encoding struct {
	// IDs are the token ids by the tokenizer.json as it is, special tokens included; AutoIDs those by AutoTokenizer's class.
	IDs     []int `json:"ids"`
	AutoIDs []int `json:"auto_ids"`
	// Decoded is the text of IDs without special tokens.
	Decoded string `json:"decoded"`
}

// roundTripText has what breaks a tokenizer: runs of spaces, a newline, a tab, accents, other scripts, an emoji, digits.
const roundTripText = "Instruction: Fix  the   naïve\n\tparser of 東京 — 12,345 times 🙂\nResponse:"

// Loss loads the folder dir with AutoModelForCausalLM in float32 with eager attention and returns the loss over the
// batches. If the folder has a tokenizer.json, it must load too and give a sample text back unchanged. The test fails
// if transformers refuses the folder; it is skipped (see pyenv.Ensure) where Python or the package index is absent.
func Loss(t testing.TB, dir string, batches []Batch) Result {
	t.Helper()
	result := Check(t, dir, batches, []string{roundTripText})
	if result.Tokenizer != nil {
		row := result.Tokenizer.Rows[0]
		require.Equal(t, roundTripText, row.Decoded, "the tokenizer.json in %s does not give its text back", dir)
		require.Equal(t, row.IDs, row.AutoIDs, "AutoTokenizer (%s) reads the tokenizer.json in %s differently", result.Tokenizer.AutoClass, dir)
	}
	return result
}

// Logits is Loss that also returns the float32 logits of the batches, [rows, tokens, vocabulary] each, one after the other.
func Logits(t testing.TB, dir string, batches []Batch) (Result, []float32) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "logits")
	result, err := run(t, dir, request{Batches: batches, Logits: file})
	require.NoError(t, err)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Zero(t, len(raw)%4)
	logits := make([]float32, len(raw)/4)
	for i := range logits {
		logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return result, logits
}

// Check is Loss for texts of the caller's choice, which the folder's tokenizer encodes and decodes; it asserts nothing
// about them.
func Check(t testing.TB, dir string, batches []Batch, texts []string) Result {
	t.Helper()
	result, err := check(t, dir, batches, texts)
	require.NoError(t, err)
	return result
}

func check(t testing.TB, dir string, batches []Batch, texts []string) (Result, error) {
	t.Helper()
	return run(t, dir, request{Batches: batches, Texts: texts})
}

// request is what check.py is asked.
type request struct {
	Dir     string   `json:"dir"`
	Batches []Batch  `json:"batches"`
	Texts   []string `json:"texts"`
	Logits  string   `json:"logits"`
}

func run(t testing.TB, dir string, r request) (Result, error) {
	t.Helper()
	python := pyenv.Ensure(t, "transformers", pyenv.ParseRequirements(requirements))
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	work := t.TempDir()
	r.Dir, r.Batches, r.Texts = dir, nonNil(r.Batches), nonNil(r.Texts)
	request, err := json.Marshal(r)
	require.NoError(t, err)
	scriptPath, requestPath := filepath.Join(work, "check.py"), filepath.Join(work, "request.json")
	require.NoError(t, os.WriteFile(scriptPath, script, 0o644))
	require.NoError(t, os.WriteFile(requestPath, request, 0o644))

	cmd := exec.CommandContext(t.Context(), python, "-I", scriptPath, requestPath)
	cmd.Env = append(os.Environ(), "HF_HOME="+work, "TRANSFORMERS_VERBOSITY=error")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return Result{}, fmt.Errorf("transformers on %s: %w: %s", dir, err, lastLine(stderr.String()))
	}
	var result Result
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		return Result{}, fmt.Errorf("transformers on %s: answer %q: %w", dir, stdout.String(), err)
	}
	return result, nil
}

// nonNil keeps an empty list from becoming JSON's null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// lastLine of a Python traceback is its reason.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
