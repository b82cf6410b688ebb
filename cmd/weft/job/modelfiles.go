package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"

	"weft/checkpoint/storage"
	"weft/data/tokenizer"
	"weft/models"
	"weft/models/arch"
	"weft/models/gemma"
)

// Names in a Hugging Face folder.
const (
	configName    = "config.json"
	tokenizerName = "tokenizer.json"
)

// companions are the files that are copied beside the exported weights, where the model's folder has them.
var companions = []string{
	configName, tokenizerName, "generation_config.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
	"added_tokens.json", "chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json",
}

// modelFiles is what a model's folder holds beside its weights.
type modelFiles struct {
	// dir is the folder or its URL, "" when there is none (--demo, or a lone config.json).
	dir string
	// name is what the header calls the model.
	name   string
	config []byte
	arch   arch.Architecture
	// files are the companions, by name.
	files map[string][]byte
}

// hubName looks like a model of the Hugging Face hub.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// readModelFiles reads the model's configuration, from a folder or, where no weights are needed, from a config.json or a
// preset.
func readModelFiles(modelID string, configOnly bool) (*modelFiles, error) {
	m := &modelFiles{dir: modelID, name: modelID, files: map[string][]byte{}}
	if err := m.find(modelID, configOnly); err != nil {
		return nil, err
	}
	var err error
	if m.arch, err = models.Open(m.config); err != nil {
		return nil, fmt.Errorf("--model-id %s: %w", modelID, err)
	}
	return m, m.readCompanions()
}

// find reads config.json from where modelID points to.
func (m *modelFiles) find(modelID string, configOnly bool) error {
	if err := storage.Check(modelID); err != nil {
		return fmt.Errorf("--model-id: %w", err)
	}
	if storage.IsRemote(modelID) {
		return m.readConfig(modelID, !strings.HasSuffix(modelID, ".json"), configOnly)
	}
	info, err := os.Stat(modelID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m.openPreset(modelID, configOnly)
	case err != nil:
		return fmt.Errorf("--model-id: %w", err)
	}
	return m.readConfig(modelID, info.IsDir(), configOnly)
}

// openPreset takes a configuration out of the binary, for a name that is no file.
func (m *modelFiles) openPreset(name string, configOnly bool) error {
	raw, known := gemma.Preset(name)
	switch {
	case configOnly && known:
		m.dir, m.config = "", raw
		return nil
	case configOnly:
		return fmt.Errorf("--model-id %s: there is no such folder or config.json, and no preset of that name: the presets are %s", name, strings.Join(gemma.Presets(), ", "))
	case hubName.MatchString(name):
		local := name[strings.LastIndexByte(name, '/')+1:]
		return fmt.Errorf("--model-id %s: there is no such folder here, and weft takes local folders and gs://: download it with `hf download %[1]s --local-dir %s` and give --model-id %[2]s", name, local)
	case known:
		return fmt.Errorf("--model-id %s: there is no such folder: give the folder of a model, or add --random-init to train one of that size from random weights", name)
	}
	return fmt.Errorf("--model-id %s: there is no such folder: give the folder of a model", name)
}

// readConfig reads config.json.
func (m *modelFiles) readConfig(path string, isDir, configOnly bool) (err error) {
	switch {
	case isDir:
		path = storage.Join(path, configName)
	case !configOnly:
		return fmt.Errorf("--model-id %s is a file: give the model's folder, or add --random-init to train from a config.json alone", path)
	default:
		m.dir = ""
	}
	m.config, err = storage.ReadFile(context.Background(), path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--model-id %s: the folder has no config.json: give the folder of a model as Hugging Face saves it", m.name)
	case err != nil:
		return fmt.Errorf("--model-id: %w", err)
	}
	return nil
}

func (m *modelFiles) readCompanions() error {
	m.files[configName] = m.config
	if m.dir == "" {
		return nil
	}
	found := make([][]byte, len(companions))
	var g errgroup.Group
	for i, name := range companions[1:] {
		g.Go(func() (err error) {
			if found[i+1], err = storage.ReadFile(context.Background(), storage.Join(m.dir, name)); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("--model-id: %w", err)
	}
	for i, raw := range found {
		if raw != nil {
			m.files[companions[i]] = raw
		}
	}
	return nil
}

// loadTokenizer reads --tokenizer, or the model's own, and makes it part of what is exported. Nil: there is none.
func (m *modelFiles) loadTokenizer(c *Config) (*tokenizer.Tokenizer, error) {
	if c.Tokenizer == "" && m.files[tokenizerName] == nil {
		return nil, nil
	}
	tok, err := m.readTokenizer(c.Tokenizer)
	if err != nil {
		return nil, err
	}
	m.files[tokenizerName] = tok.Bytes()
	return tok, nil
}

// readTokenizer reads the file that --tokenizer names, or the model's own, which is read already.
func (m *modelFiles) readTokenizer(url string) (*tokenizer.Tokenizer, error) {
	if url != "" {
		return LoadTokenizer(url)
	}
	tok, err := tokenizer.LoadBytes(m.files[tokenizerName])
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", storage.Join(m.dir, tokenizerName), err)
	}
	return tok, nil
}

// LoadTokenizer reads the tokenizer.json, or that of the folder, which --tokenizer names: a path or a gs:// URL.
func LoadTokenizer(url string) (*tokenizer.Tokenizer, error) {
	if err := storage.Check(url); err != nil {
		return nil, fmt.Errorf("--tokenizer: %w", err)
	}
	if !storage.IsRemote(url) {
		return tokenizer.Load(url)
	}
	ctx, file := context.Background(), url
	raw, err := storage.ReadFile(ctx, file)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(url, ".json") && !strings.HasSuffix(url, ".json.gz") {
		file = storage.Join(url, tokenizerName)
		raw, err = storage.ReadFile(ctx, file)
	}
	if err != nil {
		return nil, fmt.Errorf("--tokenizer: %w; give a Hugging Face tokenizer.json (or .json.gz)", err)
	}
	tok, err := tokenizer.LoadBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", file, err)
	}
	return tok, nil
}

var dtypeField = regexp.MustCompile(`("(?:torch_)?dtype"\s*:\s*)"(?:torch\.)?\w+"`)

// declareDType makes the exported config.json declare the dtype that --param-dtype gave the tensors.
func (m *modelFiles) declareDType(dtype string) {
	if dtype != DTypeAuto {
		m.files[configName] = dtypeField.ReplaceAll(m.config, []byte(`$1"`+dtype+`"`))
	}
}

// sha256Hex is a fingerprint of several pieces of content, in order.
func sha256Hex(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
