package tokenizer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"
)

// Tokenizer is a loaded tokenizer.json. It does not change after loading; all methods may be called at once from
// many goroutines.
type Tokenizer struct {
	data   []byte // the file's JSON text
	model  *bpe
	tokens []string // by id, added tokens included; "" where an id is unused

	added   []addedToken
	special map[int32]bool
	inRaw   trie // added tokens looked for in the text as it is
	inNorm  trie // those looked for in the normalised text

	normalize     func(string) string
	preTokenize   []func(string) []string
	before, after []int32
	decode        []decodeStep

	pool        sync.Pool // *scratch
	fingerprint func() string
}

// Load reads a tokenizer.json, plain or gzip, or the one in a folder.
func Load(path string) (*Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w; give a Hugging Face tokenizer.json (or .json.gz)", err)
	}
	t, err := LoadBytes(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	return t, nil
}

// LoadBytes reads the content of a tokenizer.json, plain or gzip. It keeps data, which must not change afterwards.
func LoadBytes(data []byte) (*Tokenizer, error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		plain, err := gunzip(data)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w; fetch the file again", err)
		}
		data = plain
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty")
	}
	// Tokens are slices of the file's text, not copies: data is ours and never written to.
	f, err := parseFile(unsafe.String(unsafe.SliceData(data), len(data)))
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{data: data, fingerprint: sync.OnceValue(func() string {
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:])
	})}
	t.pool.New = func() any { return new(scratch) }
	if err := t.build(f); err != nil {
		return nil, err
	}
	return t, nil
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if n := len(data); n > 4 { // the last four bytes are the length, modulo 2^32: a hint
		size := int64(data[n-4]) | int64(data[n-3])<<8 | int64(data[n-2])<<16 | int64(data[n-1])<<24
		out.Grow(int(min(size, 20*int64(n))) + bytes.MinRead)
	}
	_, err = io.Copy(&out, r)
	return out.Bytes(), err
}

func (t *Tokenizer) build(f *file) error {
	var err error
	if t.model, err = newModel(f); err != nil {
		return err
	}
	if t.normalize, err = normalizer(f.parts["normalizer"]); err != nil {
		return err
	}
	if t.preTokenize, err = preTokenizer(f.parts["pre_tokenizer"]); err != nil {
		return err
	}
	if t.before, t.after, err = postProcessor(f.parts["post_processor"]); err != nil {
		return err
	}
	if t.decode, err = decoder(f.parts["decoder"]); err != nil {
		return err
	}
	if err := t.addTokens(f.parts["added_tokens"]); err != nil {
		return err
	}
	for _, id := range append(append([]int32{}, t.before...), t.after...) {
		if _, ok := t.Token(id); !ok {
			return fmt.Errorf("post_processor: id %d is not in the vocabulary", id)
		}
	}
	return nil
}

// newModel reads the settings of the BPE model and builds it.
func newModel(f *file) (*bpe, error) {
	var c struct {
		Type         string   `json:"type"`
		Dropout      *float64 `json:"dropout"`
		Unk          *string  `json:"unk_token"`
		Prefix       *string  `json:"continuing_subword_prefix"`
		Suffix       *string  `json:"end_of_word_suffix"`
		FuseUnk      bool     `json:"fuse_unk"`
		ByteFallback bool     `json:"byte_fallback"`
		IgnoreMerges bool     `json:"ignore_merges"`
	}
	raw, err := json.Marshal(f.model)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	switch {
	case c.Type != "" && c.Type != "BPE":
		return nil, notSupported("model", c.Type, "BPE")
	case c.Dropout != nil && *c.Dropout != 0:
		return nil, notSupported("model dropout", fmt.Sprint(*c.Dropout), "BPE without dropout")
	case c.Prefix != nil && *c.Prefix != "":
		return nil, notSupported("model continuing_subword_prefix", *c.Prefix, "BPE without a prefix")
	case c.Suffix != nil && *c.Suffix != "":
		return nil, notSupported("model end_of_word_suffix", *c.Suffix, "BPE without a suffix")
	}
	m, err := newBPE(f)
	if err != nil {
		return nil, err
	}
	m.fuseUnk, m.byteFallback, m.ignoreMerges = c.FuseUnk, c.ByteFallback, c.IgnoreMerges
	if c.Unk != nil {
		id, ok := m.ids[*c.Unk]
		if !ok {
			return nil, fmt.Errorf("model: unk_token %q is not in the vocabulary", *c.Unk)
		}
		m.unk = id
	}
	return m, nil
}

func (t *Tokenizer) addTokens(raw json.RawMessage) error {
	t.tokens, t.special = t.model.tokens, map[int32]bool{}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, &t.added); err != nil {
		return fmt.Errorf("added_tokens: %w", err)
	}
	t.tokens = append([]string(nil), t.tokens...)
	for i, token := range t.added {
		known, inModel := t.model.ids[token.Content]
		switch {
		case token.Content == "":
			return fmt.Errorf("added_tokens: token %d is empty", token.ID)
		case inModel && known != token.ID:
			return fmt.Errorf("added_tokens: %q has id %d, but %d in the vocabulary", token.Content, token.ID, known)
		case token.ID < 0 || int(token.ID) > len(t.tokens)+len(t.added):
			return fmt.Errorf("added_tokens: %q has id %d, beyond the vocabulary's %d", token.Content, token.ID, len(t.tokens))
		}
		for int(token.ID) >= len(t.tokens) {
			t.tokens = append(t.tokens, "")
		}
		if old := t.tokens[token.ID]; old != "" && old != token.Content {
			return fmt.Errorf("added_tokens: %q and %q both have id %d", old, token.Content, token.ID)
		}
		if token.Special {
			t.special[token.ID] = true
		}
		if token.Normalized { // decoded in its normalised form too, as the tokenizers library does
			t.tokens[token.ID] = t.normalize(token.Content)
			t.inNorm.insert(t.tokens[token.ID], int32(i))
		} else {
			t.tokens[token.ID] = token.Content
			t.inRaw.insert(token.Content, int32(i))
		}
	}
	return nil
}

// Encode returns the token ids of text. With addSpecial the ids of the file's post-processor (for Gemma: BOS in
// front) are added. Special tokens that are written out in text, such as "<bos>", become their ids in either case.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	s := t.pool.Get().(*scratch)
	defer t.pool.Put(s)
	s.out, s.work = s.out[:0], 0
	t.encode(text, addSpecial, s)
	return append(make([]int32, 0, len(s.out)), s.out...)
}

func (t *Tokenizer) encode(text string, addSpecial bool, s *scratch) {
	text = replaceInvalid(text)
	if addSpecial {
		s.out = append(s.out, t.before...)
	}
	t.inRaw.split(text, t.added, func(p piece) {
		if p.token != nil {
			s.out = append(s.out, p.token.ID)
			return
		}
		t.inNorm.split(t.normalize(p.text), t.added, func(p piece) {
			if p.token != nil {
				s.out = append(s.out, p.token.ID)
				return
			}
			t.encodeWords(p.text, t.preTokenize, s)
		})
	})
	if addSpecial {
		s.out = append(s.out, t.after...)
	}
}

func (t *Tokenizer) encodeWords(text string, cuts []func(string) []string, s *scratch) {
	if len(cuts) == 0 {
		t.model.encode(text, s)
		return
	}
	for _, word := range cuts[0](text) {
		t.encodeWords(word, cuts[1:], s)
	}
}

// replaceInvalid turns every byte that is not part of valid UTF-8 into U+FFFD.
func replaceInvalid(text string) string {
	for _, r := range text {
		if r == '\uFFFD' {
			return string([]rune(text))
		}
	}
	return text
}

// Decode returns the text of ids. With skipSpecial the special tokens are left out. Ids that the vocabulary lacks are
// left out too, as in the tokenizers library; check them first where they matter.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		token, ok := t.Token(id)
		if !ok || skipSpecial && t.special[id] {
			continue
		}
		tokens = append(tokens, token)
	}
	if t.decode == nil {
		return strings.Join(tokens, " ")
	}
	for _, step := range t.decode {
		tokens = step(tokens)
	}
	return strings.Join(tokens, "")
}

// Token returns the token with an id, as it stands in the vocabulary ("▁the", "<0x0A>").
func (t *Tokenizer) Token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(t.tokens) || t.tokens[id] == "" {
		return "", false
	}
	return t.tokens[id], true
}

// ID returns the id of a token, written as it stands in the vocabulary.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.model.ids[token]; ok {
		return id, true
	}
	for _, a := range t.added {
		if a.Content == token {
			return a.ID, true
		}
	}
	return 0, false
}

// VocabSize is the highest id plus one, added tokens included. A model's embedding may be smaller by an added token
// (Gemma 3's <image_soft_token>) or larger (padded).
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// BOS returns the id of the token that starts a text: the first one that the post-processor adds, or "<bos>".
func (t *Tokenizer) BOS() (int32, bool) {
	if len(t.before) > 0 {
		return t.before[0], true
	}
	return t.ID("<bos>")
}

// EOS returns the id of "<eos>". The file does not say which token ends a text; this is its name in every Gemma.
func (t *Tokenizer) EOS() (int32, bool) { return t.ID("<eos>") }

// PAD returns the id of "<pad>".
func (t *Tokenizer) PAD() (int32, bool) { return t.ID("<pad>") }

// UNK returns the id of the model's unk_token.
func (t *Tokenizer) UNK() (int32, bool) { return max(t.model.unk, 0), t.model.unk >= 0 }

// Bytes returns the JSON text of the file (decompressed), to be written beside a checkpoint. It must not be changed.
func (t *Tokenizer) Bytes() []byte { return t.data }

// Fingerprint is the SHA-256 of Bytes in hexadecimal.
func (t *Tokenizer) Fingerprint() string { return t.fingerprint() }
