package job

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"weft/data/tokenizer"
	"weft/models"
	"weft/models/arch"
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
	// dir is the folder, "" when there is none (--demo, or a lone config.json).
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

// readModelFiles reads the model's configuration, from a folder or, with --random-init, from a config.json.
func readModelFiles(c *Config) (*modelFiles, error) {
	m := &modelFiles{dir: c.ModelID, name: c.ModelID, files: map[string][]byte{}}
	info, err := os.Stat(c.ModelID)
	switch {
	case errors.Is(err, fs.ErrNotExist) && hubName.MatchString(c.ModelID):
		local := c.ModelID[strings.LastIndexByte(c.ModelID, '/')+1:]
		return nil, fmt.Errorf("--model-id %s: there is no such folder here, and weft reads local folders only: download it with `hf download %[1]s --local-dir %s` and give --model-id %[2]s", c.ModelID, local)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--model-id %s: there is no such folder: give the folder of a model", c.ModelID)
	case err != nil:
		return nil, fmt.Errorf("--model-id: %w", err)
	case !info.IsDir() && !c.RandomInit:
		return nil, fmt.Errorf("--model-id %s is a file: give the model's folder, or add --random-init to train from a config.json alone", c.ModelID)
	}
	path := c.ModelID
	if info.IsDir() {
		path = filepath.Join(c.ModelID, configName)
	} else {
		m.dir = ""
	}
	if m.config, err = os.ReadFile(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--model-id %s: the folder has no config.json: give the folder of a model as Hugging Face saves it", c.ModelID)
		}
		return nil, fmt.Errorf("--model-id: %w", err)
	}
	if m.arch, err = models.Open(m.config); err != nil {
		return nil, fmt.Errorf("--model-id %s: %w", c.ModelID, err)
	}
	return m, m.readCompanions()
}

func (m *modelFiles) readCompanions() error {
	m.files[configName] = m.config
	if m.dir == "" {
		return nil
	}
	for _, name := range companions[1:] {
		raw, err := os.ReadFile(filepath.Join(m.dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("--model-id: %w", err)
		default:
			m.files[name] = raw
		}
	}
	return nil
}

// loadTokenizer reads --tokenizer, or the model's own, and makes it part of what is exported. Nil: there is none.
func (m *modelFiles) loadTokenizer(c *Config) (*tokenizer.Tokenizer, error) {
	path := c.Tokenizer
	if path == "" {
		if m.files[tokenizerName] == nil {
			return nil, nil
		}
		path = filepath.Join(m.dir, tokenizerName)
	}
	tok, err := tokenizer.Load(path)
	if err != nil {
		return nil, err
	}
	m.files[tokenizerName] = tok.Bytes()
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
