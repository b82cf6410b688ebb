package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"weft/checkpoint"
)

// Verification is what `weft checkpoint verify` found, as JSON with --json.
type Verification struct {
	Path        string             `json:"path"`
	OK          bool               `json:"ok"`
	Checkpoints []VerifyCheckpoint `json:"checkpoints"`
}

// VerifyCheckpoint is what was found of one checkpoint.
type VerifyCheckpoint struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// State is ok, damaged, newer (format) or unreadable.
	State string `json:"state"`
	// Files and Bytes were read and compared.
	Files  int           `json:"files"`
	Bytes  int64         `json:"bytes"`
	Faults []VerifyFault `json:"faults,omitempty"`
	// Error is what kept the checkpoint from being read, when that is no damage.
	Error string `json:"error,omitempty"`
}

// VerifyFault is one file that is not as it was written.
type VerifyFault struct {
	File string `json:"file"`
	// Tensor is the first of the train state whose bytes differ, where that is known.
	Tensor string `json:"tensor,omitempty"`
	Reason string `json:"reason"`
}

// VerifyCheckpoints reads every byte of the checkpoints of a path and compares them with their manifests. Its error is
// only of what kept it from doing so; damage is in the result. progress draws a bar, nil draws none.
func VerifyCheckpoints(ctx context.Context, url string, progress io.Writer) (*Verification, error) {
	p, err := openCheckpoints(ctx, url)
	if err != nil {
		return nil, err
	}
	list := p.selected()
	if len(list) == 0 {
		return nil, Input(fmt.Errorf("%s holds no checkpoint yet", url))
	}
	bar := newByteBar(progress, "verify", list)
	defer bar.end()
	out := &Verification{Path: url, OK: true}
	for _, e := range list {
		v, err := p.verify(ctx, e, bar)
		if err != nil {
			return nil, err
		}
		out.OK = out.OK && v.State == StateOK
		out.Checkpoints = append(out.Checkpoints, v)
	}
	return out, nil
}

func (p *ckptPlace) verify(ctx context.Context, e checkpoint.Entry, bar *byteBar) (VerifyCheckpoint, error) {
	v := VerifyCheckpoint{Name: e.Name, Path: p.shown(e), State: StateOK}
	files := map[string]bool{}
	faults, err := p.manager.Faults(ctx, e, func(file string, n int64) {
		files[file] = true
		v.Bytes += n
		bar.add(n)
	})
	v.Files = len(files)
	if ctx.Err() != nil {
		return v, fmt.Errorf("verifying %s: stopped: %w", p.shown(e), ctx.Err())
	}
	for _, f := range faults {
		v.State = StateDamaged
		v.Faults = append(v.Faults, VerifyFault{File: f.File, Tensor: f.Tensor, Reason: f.Reason})
	}
	if err != nil {
		v.State, v.Error = stateOf(err), OneLine(err)
	}
	return v, nil
}

// Write prints a line a checkpoint, and one a fault.
func (v *Verification) Write(w io.Writer) error {
	for _, c := range v.Checkpoints {
		if c.State == StateOK {
			fmt.Fprintf(w, "%s is whole: %s, %s\n", c.Name, plural(c.Files, "file", "files"), decimalSize(c.Bytes))
			continue
		}
		fmt.Fprintf(w, "%s is %s\n", c.Name, c.State)
		for _, f := range c.Faults {
			fmt.Fprintf(w, "  %s: %s\n", f.File, f.Reason)
		}
		if c.Error != "" {
			fmt.Fprintf(w, "  %s\n", c.Error)
		}
	}
	return nil
}

// Err is nil when all checkpoints are whole; else it names those that are not and says what to do.
func (v *Verification) Err() error {
	var bad []string
	whole, inModel := "", true
	for _, c := range v.Checkpoints {
		if c.State == StateOK {
			whole = c.Name
			continue
		}
		bad = append(bad, fmt.Sprintf("%s is %s", c.Path, c.State)+firstFault(c))
		for _, f := range c.Faults {
			inModel = inModel && strings.HasPrefix(f.File, checkpoint.ModelDir+"/")
		}
		inModel = inModel && len(c.Faults) > 0
	}
	if len(bad) == 0 {
		return nil
	}
	advice := "restore the files from a copy"
	switch {
	case inModel:
		advice += "; the train state is whole, so a run can resume from it"
	case whole != "":
		advice += ", or resume from " + whole + ", the newest that is whole (--resume auto does so)"
	case len(v.Checkpoints) > 1:
		advice += "; none of the checkpoints is whole"
	}
	return errors.New(strings.Join(bad, "; ") + ": " + advice)
}

func firstFault(c VerifyCheckpoint) string {
	switch {
	case len(c.Faults) > 1:
		return fmt.Sprintf(" in %d files, the first %s: %s", len(c.Faults), c.Faults[0].File, c.Faults[0].Reason)
	case len(c.Faults) == 1:
		return fmt.Sprintf(" in %s: %s", c.Faults[0].File, c.Faults[0].Reason)
	}
	return " (" + c.Error + ")"
}

// byteBar shows how much was read.
type byteBar struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

func newByteBar(w io.Writer, what string, list []checkpoint.Entry) *byteBar {
	if w == nil {
		return &byteBar{}
	}
	var total int64
	for _, e := range list {
		total += e.Bytes
	}
	b := &byteBar{bars: mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh())}
	b.bar = b.bars.AddBar(0, mpb.PrependDecorators(decor.Name(what+" "), decor.Counters(decor.SizeB1000(0), "% .1f / % .1f ")),
		mpb.AppendDecorators(decor.Percentage()))
	b.bar.SetTotal(total, false)
	return b
}

func (b *byteBar) add(n int64) {
	if b.bar != nil {
		b.bar.IncrInt64(n)
	}
}

func (b *byteBar) end() {
	if b.bars != nil {
		b.bar.Abort(true)
		b.bars.Wait()
		b.bars = nil
	}
}
