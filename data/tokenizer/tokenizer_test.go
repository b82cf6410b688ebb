package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

type object = map[string]any

// smallFile is a Gemma-like tokenizer.json of a few words; changes replace its top-level entries.
func smallFile(changes object) []byte {
	vocab := object{"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = 4 + b
	}
	for i, token := range []string{"▁", "a", "b", "c", "ab", "▁a", "bc", "abc", "aa", "aaaa", "▁▁"} {
		vocab[token] = 260 + i
	}
	file := object{
		"version":       "1.0",
		"added_tokens":  chatTokens("<start_of_turn>", "<end_of_turn>")[:4],
		"normalizer":    object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
		"pre_tokenizer": object{"type": "Split", "pattern": object{"String": " "}, "behavior": "MergedWithPrevious", "invert": false},
		"post_processor": object{"type": "TemplateProcessing",
			"single":         []any{object{"SpecialToken": object{"id": "<bos>", "type_id": 0}}, object{"Sequence": object{"id": "A", "type_id": 0}}},
			"special_tokens": object{"<bos>": object{"id": "<bos>", "ids": []int{2}, "tokens": []string{"<bos>"}}}},
		"decoder": object{"type": "Sequence", "decoders": []any{
			object{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "}, object{"type": "ByteFallback"}, object{"type": "Fuse"}}},
		"model": object{"type": "BPE", "dropout": nil, "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
			"merges": [][2]string{{"b", "c"}, {"a", "b"}, {"▁", "a"}, {"ab", "c"}, {"a", "a"}, {"aa", "aa"}, {"▁", "▁"}}},
	}
	maps.Copy(file, changes)
	out, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return out
}

// chatTokens are the four special tokens and two of a chat, as added tokens.
func chatTokens(start, end string) []object {
	var out []object
	for i, content := range []string{"<pad>", "<eos>", "<bos>", "<unk>", start, end} {
		id := i
		if i >= 4 {
			id = 271 + i - 4
		}
		out = append(out, object{"id": id, "content": content, "special": true})
	}
	return out
}

func mustLoad(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := LoadBytes(data)
	require.NoError(t, err)
	return tok
}

// withModel returns the small file with entries of its model replaced.
func withModel(changes object) []byte {
	var file object
	if err := json.Unmarshal(smallFile(nil), &file); err != nil {
		panic(err)
	}
	maps.Copy(file["model"].(object), changes)
	out, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return out
}

func TestLoadRefusesByName(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty file":              {[]byte(" \n"), "the file is empty"},
		"not JSON":                {[]byte("hello"), `'h' where '{' should stand`},
		"cut off":                 {smallFile(nil)[:400], "at byte 400"},
		"text after":              {append(smallFile(nil), "x"...), "text after the end"},
		"no model":                {[]byte(`{"version":"1.0"}`), `no model with a "vocab"`},
		"damaged gzip":            {[]byte{0x1f, 0x8b, 8, 0, 0}, "fetch the file again"},
		"Unigram":                 {withModel(object{"type": "Unigram"}), `model "Unigram" is not supported: weft reads BPE`},
		"dropout":                 {withModel(object{"dropout": 0.1}), "dropout"},
		"prefix":                  {withModel(object{"continuing_subword_prefix": "##"}), "continuing_subword_prefix"},
		"suffix":                  {withModel(object{"end_of_word_suffix": "</w>"}), "end_of_word_suffix"},
		"unknown unk":             {withModel(object{"unk_token": "<what>"}), `unk_token "<what>"`},
		"merge of nothing":        {withModel(object{"merges": [][2]string{{"a", "z"}}}), `merge 0, "a" + "z"`},
		"merge of three":          {withModel(object{"merges": [][]string{{"a", "b", "c"}}}), "has 3 tokens"},
		"merge text":              {withModel(object{"merges": []string{"ab"}}), `merge "ab"`},
		"two tokens, one id":      {withModel(object{"vocab": object{"a": 0, "b": 0}, "merges": nil}), "both have id 0"},
		"wild id":                 {withModel(object{"vocab": object{"a": 2000000000}}), "an id as high as 2000000000"},
		"negative id":             {withModel(object{"vocab": object{"a": -1}}), `"-1" is not a token id`},
		"fraction":                {withModel(object{"vocab": object{"a": 1.5}}), `"1.5" is not a token id`},
		"normalizer NFKC":         {smallFile(object{"normalizer": object{"type": "NFKC"}}), `normalizer "NFKC" is not supported`},
		"normalizer regex":        {smallFile(object{"normalizer": object{"type": "Replace", "pattern": object{"Regex": " {2,}"}}}), `regular expression " {2,}"`},
		"pre-tokenizer ByteLevel": {smallFile(object{"pre_tokenizer": object{"type": "ByteLevel"}}), `pre_tokenizer "ByteLevel" is not supported`},
		"pre-tokenizer behavior":  {smallFile(object{"pre_tokenizer": object{"type": "Split", "pattern": object{"String": " "}, "behavior": "Odd"}}), `behavior "Odd"`},
		"pre-tokenizer empty":     {smallFile(object{"pre_tokenizer": object{"type": "Split", "pattern": object{"String": ""}}}), "empty pattern"},
		"post-processor":          {smallFile(object{"post_processor": object{"type": "BertProcessing"}}), `post_processor "BertProcessing" is not supported`},
		"post-processor twice":    {smallFile(object{"post_processor": object{"type": "TemplateProcessing"}}), "0 sequences"},
		"decoder WordPiece":       {smallFile(object{"decoder": object{"type": "WordPiece"}}), `decoder "WordPiece" is not supported`},
		"added with other id":     {smallFile(object{"added_tokens": []object{{"id": 9, "content": "abc"}}}), `"abc" has id 9, but 267`},
		"added on another's id":   {smallFile(object{"added_tokens": []object{{"id": 9, "content": "new"}}}), "both have id 9"},
		"added far away":          {smallFile(object{"added_tokens": []object{{"id": 99999, "content": "new"}}}), "beyond the vocabulary"},
		"added empty":             {smallFile(object{"added_tokens": []object{{"id": 9, "content": ""}}}), "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadBytes(c.data)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestLoadPathsAndGzip(t *testing.T) {
	dir := t.TempDir()
	data := smallFile(nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o600))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.json.gz"), packed.Bytes(), 0o600))
	var prints []string
	for _, path := range []string{dir, filepath.Join(dir, "tokenizer.json"), filepath.Join(dir, "t.json.gz")} {
		tok, err := Load(path)
		require.NoError(t, err)
		require.Equal(t, data, tok.Bytes())
		prints = append(prints, tok.Fingerprint())
	}
	require.Len(t, slices.Compact(prints), 1)
	_, err = Load(filepath.Join(dir, "nowhere.json"))
	require.ErrorContains(t, err, "give a Hugging Face tokenizer.json")
}

func TestAddedTokens(t *testing.T) {
	tok := mustLoad(t, smallFile(object{"added_tokens": append(chatTokens("<a>", "<ab>"),
		object{"id": 273, "content": "word", "single_word": true},
		object{"id": 274, "content": "<l>", "lstrip": true},
		object{"id": 275, "content": "<r>", "rstrip": true},
		object{"id": 276, "content": "n n", "normalized": true},
		object{"id": 277, "content": "<ab><a>"},
	)}))
	a, b, space := int32(261), int32(262), int32(260)
	bytesOf := func(text string) (ids []int32) {
		for i := range len(text) {
			ids = append(ids, 4+int32(text[i]))
		}
		return ids
	}
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"<a>", []int32{271}},
		{"<ab><a>", []int32{277}},       // the longest
		{"<ab><ab>", []int32{272, 272}}, // a longer one that fails does not hide the shorter
		{"a<a>b", []int32{a, 271, b}},   //
		{"a word b", []int32{a, space, 273, space, b}},
		{"aword", append([]int32{a}, bytesOf("word")...)},
		{"word", []int32{273}},
		{"a <l> b", []int32{a, 274, space, b}},
		{"a <r> b", []int32{a, space, 275, b}},
		{"a <r>  <l> b", []int32{a, space, 275, 274, space, b}}, // white space is taken once
		{"n n", []int32{276}},
		{"n▁n", []int32{276}}, // looked for after normalisation
		{"", nil},
	} {
		require.Equal(t, c.want, slices.Concat([]int32(nil), tok.Encode(c.text, false)), "%q", c.text)
	}
	require.Equal(t, []int32{2, a}, tok.Encode("a", true))
	require.Equal(t, "a", tok.Decode([]int32{2, a, 1, 99999, -1}, true))
	require.Equal(t, "<bos>a<eos>", tok.Decode([]int32{2, a, 1, 99999, -1}, false))
	require.Equal(t, 278, tok.VocabSize())
}

func TestSplitBehaviors(t *testing.T) {
	for _, c := range []struct {
		behavior string
		invert   bool
		want     []string
	}{
		{"Removed", false, []string{"a", "b"}},
		{"Isolated", false, []string{"-", "a", "-", "-", "b", "-"}},
		{"MergedWithPrevious", false, []string{"-", "a-", "-", "b-"}},
		{"MergedWithNext", false, []string{"-a", "-", "-b", "-"}},
		{"Contiguous", false, []string{"-", "a", "--", "b", "-"}},
		{"Removed", true, []string{"-", "-", "-", "-"}},
		{"MergedWithPrevious", true, []string{"-a", "-", "-b", "-"}},
		{"MergedWithNext", true, []string{"-", "a-", "-", "b-"}},
	} {
		got := splitOn("-a--b-", "-", c.behavior, c.invert)
		got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
		require.Equal(t, c.want, got, "%s, invert %v", c.behavior, c.invert)
	}
}

func TestByteFallbackAndUnknown(t *testing.T) {
	tok := mustLoad(t, smallFile(nil))
	require.Equal(t, []int32{4 + 0xE2, 4 + 0x82, 4 + 0xAC}, tok.Encode("€", false))
	require.Equal(t, "€", tok.Decode([]int32{4 + 0xE2, 4 + 0x82, 4 + 0xAC}, false))
	require.Equal(t, "��a", tok.Decode([]int32{4 + 0xE2, 4 + 0x82, 261}, false), "one replacement a byte")
	require.Equal(t, tok.Encode("a\uFFFDb", false), tok.Encode("a\xffb", false), "invalid bytes are U+FFFD")

	noBytes := mustLoad(t, withModel(object{"byte_fallback": false}))
	require.Equal(t, []int32{261, 3, 262}, noBytes.Encode("a€€b", false), "unknown tokens fuse")
	require.Equal(t, []int32{3}, noBytes.Encode("€", false))
	apart := mustLoad(t, withModel(object{"byte_fallback": false, "fuse_unk": false}))
	require.Equal(t, []int32{261, 3, 3, 262}, apart.Encode("a€€b", false))
	whole := mustLoad(t, withModel(object{"ignore_merges": true, "merges": [][2]string{}}))
	require.Equal(t, []int32{267}, whole.Encode("abc", false), "a word of the vocabulary needs no merges")
}

func TestDecoders(t *testing.T) {
	strip := object{"type": "Strip", "content": " ", "start": 1, "stop": 0}
	replace := object{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "}
	fuse := object{"type": "Fuse"}
	ids := []int32{265, 261, 265} // ▁a a ▁a
	for name, c := range map[string]struct {
		decoder any
		want    string
	}{
		"none":           {nil, "▁a a ▁a"},
		"replace":        {replace, " aa a"},
		"strip each":     {object{"type": "Sequence", "decoders": []any{replace, strip}}, "aaa"},
		"strip at start": {object{"type": "Sequence", "decoders": []any{replace, fuse, strip}}, "aa a"},
	} {
		require.Equal(t, c.want, mustLoad(t, smallFile(object{"decoder": c.decoder})).Decode(ids, false), name)
	}
}

// naive is BPE by its definition: merge the lowest rank, leftmost first, until none is left.
func naive(ids []int32, ranks map[[2]int32][2]int32) []int32 {
	ids = slices.Clone(ids)
	for {
		at, best := -1, [2]int32{1 << 30}
		for i := range len(ids) - 1 {
			if found, ok := ranks[[2]int32{ids[i], ids[i+1]}]; ok && found[0] < best[0] {
				at, best = i, found
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best[1])
	}
}

func TestMergesAgainstDefinition(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		tokens := []string{"a", "b", "c", "▁"}
		ids := map[string]int32{"a": 0, "b": 1, "c": 2, "▁": 3}
		ranks := map[[2]int32][2]int32{}
		var merges [][2]string
		for range rapid.IntRange(0, 40).Draw(t, "merges") {
			left, right := tokens[r.IntN(len(tokens))], tokens[r.IntN(len(tokens))]
			if _, known := ids[left+right]; known || len(left+right) > 12 {
				continue
			}
			ids[left+right] = int32(len(tokens))
			ranks[[2]int32{ids[left], ids[right]}] = [2]int32{int32(len(merges)), int32(len(tokens))}
			tokens = append(tokens, left+right)
			merges = append(merges, [2]string{left, right})
		}
		f, err := parseFile(string(withModel(object{"vocab": ids, "merges": merges, "unk_token": nil, "byte_fallback": false})))
		require.NoError(t, err)
		m, err := newModel(f)
		require.NoError(t, err)
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aabbc▁")), 0, 60, -1).Draw(t, "text")
		var base []int32
		for _, c := range text {
			base = append(base, ids[string(c)])
		}
		s := &scratch{}
		m.encode(text, s)
		require.Equal(t, slices.Concat([]int32{}, naive(base, ranks)), slices.Concat([]int32{}, s.out))
	})
}

// TestCostIsLinearish counts comparisons, not time: twice the text may cost a little more than twice the work.
func TestCostIsLinearish(t *testing.T) {
	tok := loadGemma3(t)
	for name, unit := range map[string]string{"one letter": "a", "prose": "The history of computing is long. ", "hangul": "서울은 "} {
		work := func(n int) float64 {
			s := &scratch{}
			tok.encode(strings.Repeat(unit, n/len(unit)), true, s)
			return float64(s.work)
		}
		small, large := work(1<<14), work(1<<20)
		require.Positive(t, large, name)
		require.Less(t, large/small, 64*20.0/14*1.1, "%s: %v work for 16 KiB, %v for 1 MiB", name, small, large)
		require.Less(t, large, 100.0*(1<<20), "%s: work a byte", name)
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "Hello", " a  b ", "▁", "<bos>a<eos>", "<0x41>", "€\x00", "\xff\xfe", "abcabcaaaa\n\n"} {
		f.Add(seed)
	}
	tok := mustLoad(f, smallFile(nil))
	f.Fuzz(func(t *testing.T, text string) {
		checkRoundTrip(t, tok, text)
	})
}

func checkRoundTrip(t require.TestingT, tok *Tokenizer, text string) {
	ids := tok.Encode(text, false)
	want := strings.ReplaceAll(text, "▁", " ")
	if !utf8.ValidString(text) {
		want = strings.ReplaceAll(string([]rune(text)), "▁", " ") // one U+FFFD for each bad byte
	}
	require.Equal(t, want, tok.Decode(ids, false))
	if bos, ok := tok.BOS(); ok {
		require.Equal(t, append([]int32{bos}, ids...), tok.Encode(text, true))
	}
}

func TestRoundTripGemma3(t *testing.T) {
	tok := loadGemma3(t)
	property.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<bos>", "▁", "\n\n", "<0x41>", "the ", "<unused3>"})))
		checkRoundTrip(t, tok, strings.Join(parts.Draw(t, "parts"), ""))
	})
}

// FuzzLoad feeds damaged files: an error, never a panic.
func FuzzLoad(f *testing.F) {
	data := smallFile(nil)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"model":{"vocab":{"a":0},"merges":["a a"]}}`))
	f.Add([]byte(`{"added_tokens":[{"id":0,"content":"\ud800"}],"model":{"vocab":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := LoadBytes(data)
		if err != nil {
			return
		}
		tok.Decode(tok.Encode("a b <bos>\xff€", true), true)
	})
}
