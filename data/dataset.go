package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"weft/data/tokenizer"
)

// What the loss is computed on.
const (
	LossAll        = "all"        // every token
	LossCompletion = "completion" // the tokens of the response
)

// DefaultMaxSeqLen is the window of the published job, in tokens.
const DefaultMaxSeqLen = 512

// Options say which rows of a file to take and what to make of them.
type Options struct {
	Split     string // train, train[:1024], train[10:20], train[:10%], train[-100:]; "" is train
	MaxSeqLen int    // the window in tokens; 0 is DefaultMaxSeqLen
	LossOn    string // LossAll or LossCompletion; "" is LossAll
	Template  string // of text records; "" is DefaultTemplate or DefaultPromptTemplate
	VocabSize int    // of the model, for the check of ids; 0 is the tokenizer's
}

// Dataset is a tokenised data set in memory, four bytes a token. It does not change; all methods may be called at
// once from many goroutines.
type Dataset struct {
	name      string
	maxSeqLen int
	chunks    []*chunk
	stats     Stats
}

// Stats say what became of the records.
type Stats struct {
	Format        string // of the records: "instruction", "prompt/completion", "messages" or "input_ids"
	Rows          int
	Tokens        int // kept, without padding
	LongestTokens int // of a row, before it was cut
	Truncated     int // rows longer than the window
	TokensCut     int // tokens that these rows lost
	PromptTooLong int // of these, rows whose prompt fills the window: nothing of the response is left
	NoTargets     int // rows with nothing to learn; they stay in the batches with no weight
	Targets       int // tokens that are predicted: targets but a row's first token, which nothing predicts
}

// String is one line for people.
func (s Stats) String() string {
	out := fmt.Sprintf("%d rows, %d tokens, %d targets, longest row %d", s.Rows, s.Tokens, s.Targets, s.LongestTokens)
	if s.Truncated > 0 {
		out += fmt.Sprintf(", %d rows cut to the window (%d tokens lost; %d prompts fill it)", s.Truncated, s.TokensCut, s.PromptTooLong)
	}
	if s.NoTargets > 0 {
		out += fmt.Sprintf(", %d rows without targets", s.NoTargets)
	}
	return out
}

func (s *Stats) add(o Stats) {
	s.Rows += o.Rows
	s.Tokens += o.Tokens
	s.LongestTokens = max(s.LongestTokens, o.LongestTokens)
	s.Truncated += o.Truncated
	s.TokensCut += o.TokensCut
	s.PromptTooLong += o.PromptTooLong
	s.NoTargets += o.NoTargets
	s.Targets += o.Targets
}

// Example is one row, not padded, at most MaxSeqLen tokens long.
type Example struct {
	IDs    []int32 // must not be changed
	Labels []int32 // Labels[i] is IDs[i], or Ignore where the token is no target; not shifted
}

// chunkRows is the number of records that a worker takes at a time. The fingerprint depends on it.
const chunkRows = 256

// chunk is the rows of chunkRows records, or fewer at the end.
type chunk struct {
	ids     []int32
	targets []span
	rows    []chunkRow
	stats   Stats
	sum     [sha256.Size]byte
	err     error
}

// chunkRow says where a row lies in its chunk.
type chunkRow struct {
	ids, idsEnd         uint32
	targets, targetsEnd uint32
	predicted           int32 // targets but the first token
}

// Open reads and tokenises a file of JSON lines (plain or gzip), or the file of a split in a folder. tok may be nil
// for input_ids records. Errors are one line, with file and line number where they have one: no such file, no record,
// bad JSON, a record of another format than the first, an id outside the vocabulary, a split out of range, no target
// in the whole set.
func Open(path string, tok *tokenizer.Tokenizer, o Options) (*Dataset, error) {
	s, err := parseSplit(o.Split)
	if err != nil {
		return nil, err
	}
	src, err := findSource(path, s.name)
	if err != nil {
		return nil, err
	}
	return open(src, s, tok, o)
}

// OpenStore is Open for a file, or the folder of a split's file, in a store. It is transferred once: a split that needs
// the number of rows, as all but whole ones do, first copies it to an unnamed file in the folder for temporary files.
func OpenStore(store Store, url string, tok *tokenizer.Tokenizer, o Options) (*Dataset, error) {
	s, err := parseSplit(o.Split)
	if err != nil {
		return nil, err
	}
	src, err := findInStore(store, url, s.name)
	if err != nil {
		return nil, err
	}
	if !s.whole() {
		local, done, err := src.fetched()
		if err != nil {
			return nil, err
		}
		defer done()
		src = local
	}
	return open(src, s, tok, o)
}

// OpenBytes is Open for the content of a file; name stands in messages.
func OpenBytes(name string, content []byte, tok *tokenizer.Tokenizer, o Options) (*Dataset, error) {
	s, err := parseSplit(o.Split)
	if err != nil {
		return nil, err
	}
	if s.name != "train" {
		return nil, fmt.Errorf("dataset %s: it has the split train only, not %q", name, s.name)
	}
	return open(bytesSource(name, content), s, tok, o)
}

func open(src source, s split, tok *tokenizer.Tokenizer, o Options) (*Dataset, error) {
	if o.MaxSeqLen == 0 {
		o.MaxSeqLen = DefaultMaxSeqLen
	}
	if o.LossOn == "" {
		o.LossOn = LossAll
	}
	switch {
	case o.MaxSeqLen < 2:
		return nil, fmt.Errorf("a window of %d tokens holds nothing to predict; give at least 2", o.MaxSeqLen)
	case o.LossOn != LossAll && o.LossOn != LossCompletion:
		return nil, fmt.Errorf("loss on %q: give %s or %s", o.LossOn, LossAll, LossCompletion)
	case o.VocabSize < 0:
		return nil, fmt.Errorf("a vocabulary of %d tokens", o.VocabSize)
	}
	from, to := 0, int(^uint(0)>>1)
	if !s.whole() {
		total, err := src.count()
		if err != nil {
			return nil, err
		}
		if total == 0 {
			return nil, emptyError(src)
		}
		if from, to, err = s.rows(total); err != nil {
			return nil, fmt.Errorf("dataset %s: %w", src.name, err)
		}
	}
	d := &Dataset{name: src.name, maxSeqLen: o.MaxSeqLen}
	return d, d.read(src, from, to, tok, o)
}

func emptyError(src source) error {
	return fmt.Errorf("dataset %s is empty: it has no record", src.name)
}

// job is a chunk's lines on their way to a worker.
type job struct {
	into    *chunk
	numbers []int
	lines   [][]byte
}

// read tokenises the records [from, to) on all cores. Chunks are made in the order of the file, whoever fills them.
func (d *Dataset) read(src source, from, to int, tok *tokenizer.Tokenizer, o Options) error {
	var enc *encoder
	var failed atomic.Bool
	var workers sync.WaitGroup
	jobs := make(chan *job, 2)
	start := func() {
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				for j := range jobs {
					if j.into.err = enc.fill(src, j); j.into.err != nil {
						failed.Store(true)
					}
				}
			})
		}
	}
	next := &job{into: &chunk{}}
	send := func() {
		if len(next.lines) > 0 {
			d.chunks = append(d.chunks, next.into)
			jobs <- next
			next = &job{into: &chunk{}}
		}
	}
	record := -1
	err := src.lines(func(number int, line []byte) error {
		record++
		if record < from {
			return nil
		}
		if record >= to || failed.Load() {
			return errStop
		}
		if enc == nil {
			var err error
			if enc, err = detectEncoder(src, number, line, tok, o); err != nil {
				return err
			}
			start()
		}
		next.numbers, next.lines = append(next.numbers, number), append(next.lines, line)
		if len(next.lines) == chunkRows {
			send()
		}
		return nil
	})
	if err == nil {
		send()
	}
	close(jobs)
	workers.Wait()
	return d.finish(src, o, enc, err)
}

// detectEncoder reads the first record for its format.
func detectEncoder(src source, number int, line []byte, tok *tokenizer.Tokenizer, o Options) (*encoder, error) {
	f, err := parseFields(line)
	if err != nil {
		return nil, src.lineError(number, err)
	}
	form, err := detect(f)
	if err != nil {
		return nil, src.lineError(number, err)
	}
	enc, err := newEncoder(tok, o, form)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", src.name, err)
	}
	return enc, nil
}

// finish adds up the chunks; the error of the earliest line wins.
func (d *Dataset) finish(src source, o Options, enc *encoder, readErr error) error {
	if transfer := (*transferError)(nil); errors.As(readErr, &transfer) {
		return readErr // what the lines seemed to say is not in the file
	}
	for _, c := range d.chunks {
		if c.err != nil {
			return c.err
		}
		d.stats.add(c.stats)
	}
	switch {
	case readErr != nil:
		return readErr
	case enc == nil:
		return emptyError(src)
	case d.stats.Targets == 0:
		return fmt.Errorf("dataset %s has no target to learn in its %d rows (loss on %s, window %d): "+
			"raise the window, or compute the loss on all tokens", src.name, d.stats.Rows, o.LossOn, o.MaxSeqLen)
	}
	d.stats.Format = enc.form.String()
	return nil
}

// fill tokenises the lines of a job.
func (e *encoder) fill(src source, j *job) error {
	for i, line := range j.lines {
		f, err := parseFields(line)
		var r row
		if err == nil {
			r, err = e.encode(f)
		}
		if err != nil {
			return src.lineError(j.numbers[i], err)
		}
		j.into.add(r, e.opts.MaxSeqLen)
	}
	j.into.ids = slices.Clone(j.into.ids) // appending left room behind them
	j.into.sum = j.into.hash()
	return nil
}

// add cuts a row to the window and stores it.
func (c *chunk) add(r row, window int) {
	c.stats.Rows++
	c.stats.LongestTokens = max(c.stats.LongestTokens, len(r.ids))
	if cut := len(r.ids) - window; cut > 0 {
		c.stats.Truncated++
		c.stats.TokensCut += cut
		if r.prompt >= window {
			c.stats.PromptTooLong++
		}
		r.ids = r.ids[:window]
	}
	at := chunkRow{ids: uint32(len(c.ids)), targets: uint32(len(c.targets))}
	c.ids = append(c.ids, r.ids...)
	for _, t := range r.targets {
		t.end = min(t.end, int32(len(r.ids)))
		if t.start >= t.end {
			break
		}
		c.targets = append(c.targets, t)
		at.predicted += t.end - max(t.start, 1)
	}
	at.idsEnd, at.targetsEnd = uint32(len(c.ids)), uint32(len(c.targets))
	c.rows = append(c.rows, at)
	c.stats.Tokens += len(r.ids)
	c.stats.Targets += int(at.predicted)
	if at.predicted == 0 {
		c.stats.NoTargets++
	}
}

// hash is a checksum of the chunk's rows.
func (c *chunk) hash() (sum [sha256.Size]byte) {
	h := sha256.New()
	var buf []byte
	for _, r := range c.rows {
		buf = binary.LittleEndian.AppendUint32(buf[:0], r.idsEnd-r.ids)
		for _, id := range c.ids[r.ids:r.idsEnd] {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
		}
		buf = binary.LittleEndian.AppendUint32(buf, r.targetsEnd-r.targets)
		for _, t := range c.targets[r.targets:r.targetsEnd] {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(t.start))
			buf = binary.LittleEndian.AppendUint32(buf, uint32(t.end))
		}
		h.Write(buf)
	}
	h.Sum(sum[:0])
	return sum
}

// Len is the number of rows.
func (d *Dataset) Len() int { return d.stats.Rows }

// MaxSeqLen is the window in tokens; no row is longer.
func (d *Dataset) MaxSeqLen() int { return d.maxSeqLen }

// Stats say what became of the records.
func (d *Dataset) Stats() Stats { return d.stats }

// Fingerprint is a SHA-256, in hexadecimal, over the ids and targets of all rows in order: two data sets with the
// same one give the same batches.
func (d *Dataset) Fingerprint() string {
	h := sha256.New()
	for _, c := range d.chunks {
		h.Write(c.sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// row returns the tokens, the targets and the number of predicted tokens of row i.
func (d *Dataset) row(i int) (ids []int32, targets []span, predicted int) {
	c := d.chunks[i/chunkRows]
	r := c.rows[i%chunkRows]
	return c.ids[r.ids:r.idsEnd:r.idsEnd], c.targets[r.targets:r.targetsEnd], int(r.predicted)
}

// Example returns row i, for 0 ≤ i < Len.
func (d *Dataset) Example(i int) (Example, error) {
	if i < 0 || i >= d.Len() {
		return Example{}, fmt.Errorf("dataset %s: no row %d, it has %d", d.name, i, d.Len())
	}
	ids, targets, _ := d.row(i)
	labels := make([]int32, len(ids))
	fillLabels(labels, ids, targets)
	return Example{IDs: ids, Labels: labels}, nil
}

// fillLabels writes the labels of a row to out, and Ignore after its end.
func fillLabels(out, ids []int32, targets []span) {
	for i := range out {
		out[i] = Ignore
	}
	for _, t := range targets {
		copy(out[t.start:t.end], ids[t.start:t.end])
	}
}
