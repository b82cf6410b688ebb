package data

import (
	"errors"
	"fmt"

	"weft/data/tokenizer"
)

// Ignore is the label of a token that is no target.
const Ignore int32 = -100

// span is a half-open range of tokens.
type span struct{ start, end int32 }

// row is a tokenised record.
type row struct {
	ids     []int32
	targets []span // in order, not touching
	prompt  int    // tokens before the first of the response; -1 if nobody looked
}

// block is a stretch of text that is tokenised on its own: parts, by turns not of the response and of it.
type block []string

// encoder turns records of one format into rows.
type encoder struct {
	tok    *tokenizer.Tokenizer
	opts   Options
	form   format
	tmpl   template
	vocab  int
	before []int32 // BOS, in front of a conversation
}

func newEncoder(tok *tokenizer.Tokenizer, o Options, form format) (*encoder, error) {
	e := &encoder{tok: tok, opts: o, form: form, vocab: o.VocabSize}
	if tok == nil && form != formatIDs {
		return nil, fmt.Errorf("%s records need a tokenizer; give a tokenizer.json", form)
	}
	var err error
	if e.tmpl, err = parseTemplate(o.Template, form); err != nil {
		return nil, err
	}
	if tok == nil {
		return e, nil
	}
	if e.vocab == 0 {
		e.vocab = tok.VocabSize()
	}
	if bos, ok := tok.BOS(); ok {
		e.before = []int32{bos}
	}
	return e, nil
}

// encode turns a record into a row, not yet cut to the window.
func (e *encoder) encode(f fields) (row, error) {
	var r row
	var err error
	switch e.form {
	case formatIDs:
		r, err = e.ready(f)
	case formatMessages:
		r, err = e.conversation(f)
	default:
		var prompt, response string
		if prompt, response, err = e.tmpl.render(e.form, f); err == nil {
			r = e.blocks(nil, []block{{prompt, response}}, e.text)
		}
	}
	if err != nil {
		return row{}, err
	}
	for i, id := range r.ids {
		if id < 0 || e.vocab > 0 && int(id) >= e.vocab {
			return row{}, e.badID(i, id)
		}
	}
	return r, nil
}

func (e *encoder) badID(i int, id int32) error {
	name := ""
	if e.tok != nil {
		if token, ok := e.tok.Token(id); ok {
			name = fmt.Sprintf(" (%q)", token)
		}
	}
	return fmt.Errorf("token %d has id %d%s, outside the vocabulary of %d", i, id, name, e.vocab)
}

// text tokenises a whole text: BOS once in front, if the tokenizer adds one.
func (e *encoder) text(text string) []int32 {
	ids := e.tok.Encode(text, true)
	for len(e.before) > 0 && len(ids) > 1 && ids[0] == e.before[0] && ids[1] == e.before[0] {
		ids = ids[1:]
	}
	return ids
}

func (e *encoder) conversation(f fields) (row, error) {
	messages, err := e.form.messages(f)
	if err != nil {
		return row{}, err
	}
	turns, err := e.tok.ChatTurns(messages)
	if err != nil {
		return row{}, fmt.Errorf(`field "messages": %w`, err)
	}
	blocks := make([]block, len(turns))
	for i, turn := range turns {
		if turn.Model {
			blocks[i] = block{turn.Header, turn.Content + turn.End, "\n"}
		} else {
			blocks[i] = block{turn.Text()}
		}
	}
	return e.blocks(e.before, blocks, func(text string) []int32 { return e.tok.Encode(text, false) }), nil
}

// blocks tokenises blocks one after the other and finds the tokens of the response in them.
func (e *encoder) blocks(before []int32, blocks []block, encode func(string) []int32) row {
	r := row{ids: append([]int32(nil), before...), prompt: -1}
	whole := make([][]int32, len(blocks))
	starts := make([]int, len(blocks))
	for i, b := range blocks {
		text := ""
		for _, part := range b {
			text += part
		}
		whole[i], starts[i] = encode(text), len(r.ids)
		r.ids = append(r.ids, whole[i]...)
	}
	// The boundaries cost a second tokenisation: only where somebody asks for them.
	if e.opts.LossOn == LossCompletion || len(r.ids) > e.opts.MaxSeqLen {
		for i, b := range blocks {
			r.addTargets(starts[i], b, whole[i], encode)
		}
		r.prompt = len(r.ids)
		if len(r.targets) > 0 {
			r.prompt = int(r.targets[0].start)
		}
	}
	if e.opts.LossOn == LossAll {
		r.targets = []span{{0, int32(len(r.ids))}}
	}
	return r
}

// addTargets finds the response of a block: from where the ids of the text before it differ from those of the whole.
func (r *row) addTargets(start int, b block, whole []int32, encode func(string) []int32) {
	text, done := "", 0
	for i, part := range b {
		from := done
		text += part
		done = len(whole)
		if i < len(b)-1 {
			done = commonPrefix(encode(text), whole)
		}
		if i%2 == 1 && done > from {
			r.targets = append(r.targets, span{int32(start + from), int32(start + done)})
		}
	}
}

func commonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// ready takes the ids and labels of a record as they are.
func (e *encoder) ready(f fields) (row, error) {
	ids, err := e.form.ids(f, "input_ids")
	if err != nil {
		return row{}, err
	}
	if len(ids) == 0 {
		return row{}, errors.New(`field "input_ids" is empty`)
	}
	if f["attention_mask"] != nil {
		mask, err := e.form.ids(f, "attention_mask")
		if err != nil {
			return row{}, err
		}
		for i, m := range mask {
			if m != 1 {
				return row{}, fmt.Errorf(`field "attention_mask" has %d at %d: give rows without padding, weft pads them`, m, i)
			}
		}
	}
	if f["labels"] == nil {
		if e.opts.LossOn == LossCompletion {
			return row{}, errors.New(`field "labels" is missing: the loss on the completion needs it beside "input_ids"`)
		}
		return row{ids: ids, targets: []span{{0, int32(len(ids))}}, prompt: -1}, nil
	}
	labels, err := e.form.ids(f, "labels")
	if err != nil {
		return row{}, err
	}
	return labelled(ids, labels)
}

// labelled turns labels into spans.
func labelled(ids, labels []int32) (row, error) {
	if len(labels) != len(ids) {
		return row{}, fmt.Errorf(`field "labels" has %d entries, "input_ids" %d`, len(labels), len(ids))
	}
	r := row{ids: ids, prompt: len(ids)}
	for i, label := range labels {
		if label == Ignore {
			continue
		}
		if label != ids[i] {
			return row{}, fmt.Errorf(`field "labels" has %d at %d, where "input_ids" has %d: a label is the id at its own place, or -100`,
				label, i, ids[i])
		}
		if n := len(r.targets); n > 0 && int(r.targets[n-1].end) == i {
			r.targets[n-1].end++
		} else {
			r.targets = append(r.targets, span{int32(i), int32(i + 1)})
		}
	}
	if len(r.targets) > 0 {
		r.prompt = int(r.targets[0].start)
	}
	return r, nil
}
