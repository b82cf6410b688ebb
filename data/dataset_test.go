package data

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/data/demo"
	"weft/data/tokenizer"
	"weft/internal/fixture"
)

const (
	dollyLine  = `{"instruction":"Add 1 and 2.","context":"Sums.","response":"It is 3."}`
	promptLine = `{"prompt":"Add 1 and 2. ","completion":"It is 3."}`
	chatLine   = `{"messages":[{"role":"user","content":"Add 1 and 2."},{"role":"assistant","content":"It is 3."}]}`
	idsLine    = `{"input_ids":[2,300,301,302],"labels":[-100,-100,301,302]}`
)

// TestDolly loads the real records as the published job does: 512 tokens, every token a target.
func TestDolly(t *testing.T) {
	tok := gemmaTokenizer(t)
	path := fixture.Dir(t, "dolly", "dolly-1024.jsonl")
	all, err := Open(path, tok, Options{Split: "train[:1024]", VocabSize: 262144})
	require.NoError(t, err)
	require.Equal(t, Stats{
		Format: "instruction", Rows: 1024, Tokens: 104644, LongestTokens: 1820, Truncated: 19, TokensCut: 4430,
		Targets: 104644 - 1024,
	}, all.Stats())
	require.Equal(t, 1024, all.Len())
	// The tokenizers library (0.23.3) gives the numbers above, and ids that hash to this as Python prints lists of them.
	hash := sha256.New()
	for i := range all.Len() {
		fmt.Fprint(hash, strings.ReplaceAll(fmt.Sprint(example(t, all, i).IDs), " ", ", "))
	}
	require.Equal(t, "8f4512e7a4aeec8ee08c8abc1e4bace6f7c97ffedd15063187ac1a40f34a1125", hex.EncodeToString(hash.Sum(nil)))
	completion, err := Open(path, tok, Options{LossOn: LossCompletion})
	require.NoError(t, err)
	stats := completion.Stats()
	t.Logf("all: %v\ncompletion: %v", all.Stats(), stats)
	require.Equal(t, 1024, stats.Rows)
	require.Less(t, stats.Targets, all.Stats().Targets)

	// Row 1 by hand: the template, BOS once, no EOS.
	first := example(t, all, 1)
	require.Equal(t, tok.Encode("Instruction: Which is a species of fish? Tope or Rope\nResponse: Tope", true), first.IDs)
	require.Equal(t, first.IDs, first.Labels)
	require.Equal(t, " Tope", targetText(t, tok, example(t, completion, 1)))
	require.NotEqual(t, all.Fingerprint(), completion.Fingerprint())
}

func TestFormats(t *testing.T) {
	tok := smallTokenizer(t)
	for name, c := range map[string]struct {
		line string
		o    Options
		text string // of all tokens
		want string // of the targets
	}{
		"dolly":                 {dollyLine, Options{}, "<bos>Instruction: Add 1 and 2.\nResponse: It is 3.", "<bos>Instruction: Add 1 and 2.\nResponse: It is 3."},
		"dolly, completion":     {dollyLine, Options{LossOn: LossCompletion}, "<bos>Instruction: Add 1 and 2.\nResponse: It is 3.", " It is 3."},
		"dolly without context": {`{"instruction":"Add.","response":"No."}`, Options{}, "<bos>Instruction: Add.\nResponse: No.", "<bos>Instruction: Add.\nResponse: No."},
		"template": {dollyLine, Options{LossOn: LossCompletion, Template: "{context}\n{instruction} => {response}<eos>"},
			"<bos>Sums.\nAdd 1 and 2. => It is 3.<eos>", " It is 3.<eos>"},
		"template, context absent": {`{"instruction":"a","context":null,"response":"b"}`, Options{Template: "[{context}]{instruction}{response}"}, "<bos>[]ab", "<bos>[]ab"},
		"BOS in the template":      {dollyLine, Options{Template: "<bos>{response}"}, "<bos>It is 3.", "<bos>It is 3."},
		"BOS in the text":          {`{"prompt":"<bos><bos>a","completion":" b"}`, Options{LossOn: LossCompletion}, "<bos>a b", " b"},
		"prompt":                   {promptLine, Options{LossOn: LossCompletion}, "<bos>Add 1 and 2. It is 3.", " It is 3."},
		"chat": {chatLine, Options{LossOn: LossCompletion},
			"<bos><start_of_turn>user\nAdd 1 and 2.<end_of_turn>\n<start_of_turn>model\nIt is 3.<end_of_turn>\n", "It is 3.<end_of_turn>"},
		"chat of two": {`{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"},{"role":"assistant","content":"one"},{"role":"user","content":"b"},{"role":"assistant","content":[{"type":"text","text":"two"}]}]}`,
			Options{LossOn: LossCompletion},
			"<bos><start_of_turn>user\nBe brief.\n\na<end_of_turn>\n<start_of_turn>model\none<end_of_turn>\n<start_of_turn>user\nb<end_of_turn>\n<start_of_turn>model\ntwo<end_of_turn>\n",
			"one<end_of_turn>two<end_of_turn>"},
		"chat, all": {chatLine, Options{},
			"<bos><start_of_turn>user\nAdd 1 and 2.<end_of_turn>\n<start_of_turn>model\nIt is 3.<end_of_turn>\n",
			"<bos><start_of_turn>user\nAdd 1 and 2.<end_of_turn>\n<start_of_turn>model\nIt is 3.<end_of_turn>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := example(t, mustOpen(t, c.o, c.line), 0)
			require.Equal(t, c.text, tok.Decode(e.IDs, false))
			require.Equal(t, c.want, targetText(t, tok, e))
		})
	}
	t.Run("input_ids", func(t *testing.T) {
		ds := mustOpen(t, Options{LossOn: LossCompletion}, idsLine, `{"input_ids":[5,6,7],"labels":[5,-100,7],"attention_mask":[1,1,1]}`)
		require.Equal(t, Example{[]int32{2, 300, 301, 302}, []int32{-100, -100, 301, 302}}, example(t, ds, 0))
		require.Equal(t, Example{[]int32{5, 6, 7}, []int32{5, -100, 7}}, example(t, ds, 1))
		require.Equal(t, 3, ds.Stats().Targets, "the first token is predicted by nothing")
		bare, err := OpenBytes("x", []byte(`{"input_ids":[7,7]}`), nil, Options{})
		require.NoError(t, err, "no tokenizer is needed")
		require.Equal(t, Example{[]int32{7, 7}, []int32{7, 7}}, example(t, bare, 0))
	})
}

// TestBoundaryInsideToken has a prompt and a completion that meet inside a token: it is a target, and the ids are
// those of the whole text.
func TestBoundaryInsideToken(t *testing.T) {
	tok := smallTokenizer(t)
	whole := tok.Encode("What is the capital of France?", true)
	ds := mustOpen(t, Options{LossOn: LossCompletion}, `{"prompt":"What is the cap","completion":"ital of France?"}`)
	e := example(t, ds, 0)
	require.Equal(t, whole, e.IDs)
	require.Equal(t, " capital of France?", targetText(t, tok, e))
}

func TestTruncationIsCounted(t *testing.T) {
	long := fmt.Sprintf(`{"prompt":%q,"completion":" is 3."}`, strings.Repeat("Add 1 and 2. ", 10))
	short := `{"prompt":"Add","completion":" 1 and 2 and 3 and 4 and 5."}`
	for _, c := range []struct {
		loss string
		want Stats
	}{
		{LossAll, Stats{Format: "prompt/completion", Rows: 2, Tokens: 16, LongestTokens: 77, Truncated: 2, TokensCut: 79, PromptTooLong: 1, Targets: 14}},
		{LossCompletion, Stats{Format: "prompt/completion", Rows: 2, Tokens: 16, LongestTokens: 77, Truncated: 2, TokensCut: 79, PromptTooLong: 1, NoTargets: 1, Targets: 5}},
	} {
		ds := mustOpen(t, Options{MaxSeqLen: 8, LossOn: c.loss}, long, short)
		require.Equal(t, c.want, ds.Stats(), c.loss)
		require.Len(t, example(t, ds, 0).IDs, 8)
		require.Contains(t, ds.Stats().String(), "2 rows cut to the window (79 tokens lost; 1 prompts fill it)")
	}
}

func TestOpenErrors(t *testing.T) {
	for name, c := range map[string]struct {
		o     Options
		lines []string
		want  string
	}{
		"empty":                 {Options{}, []string{"", "  "}, "dataset x.jsonl is empty: it has no record"},
		"empty with a split":    {Options{Split: "train[:3]"}, nil, "dataset x.jsonl is empty: it has no record"},
		"bad JSON":              {Options{}, []string{dollyLine, "", `{"instruction": `}, `x.jsonl:3: bad JSON: unexpected end of JSON input; each line must be one JSON object`},
		"a list":                {Options{}, []string{`[1]`}, "x.jsonl:1: the line is a list; each line must be one JSON object"},
		"null":                  {Options{}, []string{`null`}, "x.jsonl:1: the line is null; each line must be one JSON object"},
		"not UTF-8":             {Options{}, []string{dollyLine, "{\"instruction\":\"\xff\"}"}, "x.jsonl:2: the line is not UTF-8 text; convert the file"},
		"half a character":      {Options{}, []string{`{"instruction":"\\ud800 \ud83d\ude00","response":"\ude00"}`}, `x.jsonl:1: bad JSON: \ude00 is half of a character`},
		"unknown format":        {Options{}, []string{`{"text":"a","b":1}`}, `x.jsonl:1: the record has the fields ["b" "text"], expected a list "input_ids" (and maybe "labels"), or a list "messages", or texts "prompt" and "completion", or texts "instruction", "response" (and maybe "context")`},
		"another format":        {Options{}, []string{dollyLine, promptLine}, `x.jsonl:2: field "instruction" is missing; expected texts "instruction", "response" (and maybe "context"), as the first record has`},
		"wrong type":            {Options{}, []string{dollyLine, `{"instruction":"a","response":3}`}, `x.jsonl:2: field "response" is a number, not a text; expected texts "instruction", "response" (and maybe "context"), as the first record has`},
		"null text":             {Options{}, []string{`{"prompt":"a","completion":null}`}, `x.jsonl:1: field "completion" is null, not a text; expected texts "prompt" and "completion", as the first record has`},
		"messages":              {Options{}, []string{`{"messages":"a"}`}, `x.jsonl:1: field "messages" is a text, not a list; expected a list "messages", as the first record has`},
		"message":               {Options{}, []string{`{"messages":[{"role":"user"}]}`}, `x.jsonl:1: field "messages": a message needs "role" and "content"`},
		"image":                 {Options{}, []string{`{"messages":[{"role":"user","content":[{"type":"image"}]}]}`}, `x.jsonl:1: field "messages": message 0 has a part of type "image"; weft trains on text only`},
		"turns":                 {Options{}, []string{`{"messages":[{"role":"assistant","content":"a"}]}`}, `x.jsonl:1: field "messages": Conversation roles must alternate user/assistant/user/assistant/...`},
		"id too high":           {Options{}, []string{idsLine, `{"input_ids":[2,2048]}`}, `x.jsonl:2: token 1 has id 2048, outside the vocabulary of 2048`},
		"id of the model":       {Options{VocabSize: 5}, []string{`{"prompt":"<end_of_turn>","completion":"b"}`}, `x.jsonl:1: token 1 has id 5 ("<end_of_turn>"), outside the vocabulary of 5`},
		"negative id":           {Options{}, []string{`{"input_ids":[-1]}`}, `x.jsonl:1: token 0 has id -1, outside the vocabulary of 2048`},
		"ids of text":           {Options{}, []string{`{"input_ids":["a"]}`}, `x.jsonl:1: field "input_ids" is not a list of integers; expected a list "input_ids" (and maybe "labels"), as the first record has`},
		"no ids":                {Options{}, []string{`{"input_ids":[]}`}, `x.jsonl:1: field "input_ids" is empty`},
		"labels too short":      {Options{}, []string{`{"input_ids":[1,2],"labels":[1]}`}, `x.jsonl:1: field "labels" has 1 entries, "input_ids" 2`},
		"labels shifted":        {Options{}, []string{`{"input_ids":[1,2,3],"labels":[2,3,-100]}`}, `x.jsonl:1: field "labels" has 2 at 0, where "input_ids" has 1: a label is the id at its own place, or -100`},
		"padded":                {Options{}, []string{`{"input_ids":[1,0],"attention_mask":[1,0]}`}, `x.jsonl:1: field "attention_mask" has 0 at 1: give rows without padding, weft pads them`},
		"completion, no labels": {Options{LossOn: LossCompletion}, []string{`{"input_ids":[1,2]}`}, `x.jsonl:1: field "labels" is missing: the loss on the completion needs it beside "input_ids"`},
		"no target":             {Options{LossOn: LossCompletion}, []string{`{"prompt":"a","completion":""}`}, `dataset x.jsonl has no target to learn in its 1 rows (loss on completion, window 512): raise the window, or compute the loss on all tokens`},
		"template field":        {Options{Template: "{answer}"}, []string{dollyLine}, `dataset x.jsonl: template: no field {answer} in instruction records; they have {instruction}, {context}, {response}`},
		"template without":      {Options{Template: "{instruction}"}, []string{dollyLine}, `dataset x.jsonl: template: it lacks {response}`},
		"template after":        {Options{Template: "{response}{instruction}"}, []string{dollyLine}, `dataset x.jsonl: template: {response} must be its last field, and stand there once`},
		"template of chat":      {Options{Template: "a"}, []string{chatLine}, `dataset x.jsonl: template: messages records take no template; leave it out`},
		"split out of range":    {Options{Split: "train[:3]"}, []string{dollyLine, dollyLine}, `dataset x.jsonl: split "train[:3]" is out of range: the dataset has 2 rows`},
		"split name":            {Options{Split: "test"}, []string{dollyLine}, `dataset x.jsonl: it has the split train only, not "test"`},
		"window":                {Options{MaxSeqLen: 1}, []string{dollyLine}, `a window of 1 tokens holds nothing to predict; give at least 2`},
		"loss":                  {Options{LossOn: "some"}, []string{dollyLine}, `loss on "some": give all or completion`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openLines(t, c.o, c.lines...)
			require.EqualError(t, err, c.want)
		})
	}
}

func TestOpenFilesAndFolders(t *testing.T) {
	tok := smallTokenizer(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "train.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("\uFEFF"+dollyLine+"\r\n\r\n"+dollyLine), 0o600))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(dollyLine + "\n" + dollyLine + "\n" + dollyLine + "\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test.jsonl.gz"), packed.Bytes(), 0o600))
	cut := filepath.Join(dir, "cut.jsonl.gz")
	require.NoError(t, os.WriteFile(cut, packed.Bytes()[:packed.Len()-9], 0o600))

	for _, c := range []struct {
		path, split string
		rows        int
	}{{file, "", 2}, {dir, "train", 2}, {dir, "test", 3}, {dir, "test[1:]", 2}} {
		ds, err := Open(c.path, tok, Options{Split: c.split})
		require.NoError(t, err)
		require.Equal(t, c.rows, ds.Len(), "%s %s", c.path, c.split)
	}
	for _, c := range []struct{ path, split, want string }{
		{filepath.Join(dir, "none.jsonl"), "", "none.jsonl: no such file or folder; give a .jsonl or .jsonl.gz file"},
		{file, "test", `a single file has the split train only, not "test"`},
		{dir, "dev", "the folder has no dev.jsonl or dev.jsonl.gz"},
		{cut, "", "cut.jsonl.gz:"},
		{cut, "", "the file is cut off or damaged"},
		{file, "train[", "write NAME, NAME[:100]"},
	} {
		_, err := Open(c.path, tok, Options{Split: c.split})
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestFirstErrorWins has errors in many chunks: the earliest line is reported, whichever worker was first.
func TestFirstErrorWins(t *testing.T) {
	lines := make([]string, 5*chunkRows)
	for i := range lines {
		lines[i] = dollyLine
		if i >= 2*chunkRows+7 {
			lines[i] = "{"
		}
	}
	for range 5 {
		_, err := openLines(t, Options{}, lines...)
		require.ErrorContains(t, err, fmt.Sprintf("x.jsonl:%d: bad JSON", 2*chunkRows+8))
	}
}

func TestSameRowsOnAnyNumberOfCores(t *testing.T) {
	var prints []string
	for _, procs := range []int{1, 2, 7} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			ds, err := OpenBytes("demo", demo.Records(), smallTokenizer(t), Options{MaxSeqLen: 32})
			require.NoError(t, err)
			prints = append(prints, ds.Fingerprint())
		}()
	}
	require.Equal(t, []string{prints[0], prints[0], prints[0]}, prints)

	part, err := OpenBytes("demo", demo.Records(), smallTokenizer(t), Options{MaxSeqLen: 32, Split: "train[100:400]"})
	require.NoError(t, err)
	whole, err := OpenBytes("demo", demo.Records(), smallTokenizer(t), Options{MaxSeqLen: 32})
	require.NoError(t, err)
	require.NotEqual(t, prints[0], part.Fingerprint())
	for i := range part.Len() { // chunks lie otherwise, rows are the same
		require.Equal(t, example(t, whole, 100+i), example(t, part, i))
	}
	_, err = part.Example(300)
	require.EqualError(t, err, "dataset demo: no row 300, it has 300")
}

func TestSplits(t *testing.T) {
	for _, c := range []struct {
		expr     string
		total    int
		from, to int
		want     string
	}{
		{expr: "train", total: 10, to: 10},
		{expr: "", total: 10, to: 10},
		{expr: "train[:4]", total: 10, to: 4},
		{expr: "train[4:]", total: 10, from: 4, to: 10},
		{expr: "train[2:4]", total: 10, from: 2, to: 4},
		{expr: "train[:]", total: 10, to: 10},
		{expr: "train[-3:]", total: 10, from: 7, to: 10},
		{expr: "train[:-3]", total: 10, to: 7},
		{expr: "train[:10%]", total: 1024, to: 102},
		{expr: "train[10%:20%]", total: 1024, from: 102, to: 205},
		{expr: "train[-10%:]", total: 1024, from: 922, to: 1024},
		{expr: "train[:50%]", total: 5, to: 2},
		{expr: "train[:50%]", total: 7, to: 4},
		{expr: " train[:1] ", total: 1, to: 1},
		{expr: "train[:11]", total: 10, want: "out of range: the dataset has 10 rows"},
		{expr: "train[-11:]", total: 10, want: "out of range: the dataset has 10 rows"},
		{expr: "train[5:5]", total: 10, want: "selects no rows of the dataset's 10"},
		{expr: "train[:10%]", total: 3, want: "selects no rows"},
		{expr: "train[:101%]", total: 10, want: "beyond 100%"},
		{expr: "train[1:20%]", total: 10, want: "both in percent"},
		{expr: "train[5]", total: 10, want: "write NAME"},
		{expr: "train[:5]+test", total: 10, want: "write NAME"},
		{expr: "train[:99999999999999999999]", total: 10, want: "no number of rows"},
	} {
		s, err := parseSplit(c.expr)
		var from, to int
		if err == nil {
			from, to, err = s.rows(c.total)
		}
		if c.want != "" {
			require.ErrorContains(t, err, c.want, c.expr)
			continue
		}
		require.NoError(t, err, c.expr)
		require.Equal(t, []int{c.from, c.to}, []int{from, to}, c.expr)
	}
}

// TestConversationIsTheTemplatesText compares the ids of turns with those of the template's whole text.
func TestConversationIsTheTemplatesText(t *testing.T) {
	for name, tok := range map[string]*tokenizer.Tokenizer{"demo": smallTokenizer(t), "gemma": gemmaTokenizer(t)} {
		line := `{"messages":[{"role":"system","content":"\n s \n"},{"role":"user","content":"\n\nHi there <end_of_turn>\n"},` +
			`{"role":"assistant","content":"안녕 <start_of_turn>"},{"role":"user","content":""},{"role":"assistant","content":" ▁ "}]}`
		ds, err := OpenBytes("x", []byte(line), tok, Options{})
		require.NoError(t, err)
		var record struct{ Messages []tokenizer.Message }
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		text, err := tok.ChatText(record.Messages, false)
		require.NoError(t, err)
		require.Equal(t, tok.Encode(text, false), example(t, ds, 0).IDs, name)
	}
}
