package job

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"weft/engine/trainer"
)

// Console is where a run reports to its user.
type Console struct {
	// Out gets the header, the progress, the epochs and the result.
	Out io.Writer
	// Terminal tells that Out is one: a progress bar is drawn instead of lines.
	Terminal bool
	// Log gets a line for each thing worth knowing. Nil: slog.Default.
	Log *slog.Logger
}

// plainLinesPerEpoch is how many progress lines an epoch has without a terminal, about.
const plainLinesPerEpoch = 10

// report writes the run's output. A quiet one writes nothing.
type report struct {
	Console
	totalSteps, stepsPerEpoch int

	// mu holds back lines of the goroutine that saves while the bar comes or goes.
	mu   sync.Mutex
	bars *mpb.Progress
	bar  *mpb.Bar
	text atomic.Pointer[string] // right of the bar
	// seen counts this process's steps; seconds is the time of those after its first, which is slower.
	seen    int
	seconds float64
	// tokens and took are of the steps since a rate was last shown: one short step's own is mostly noise.
	tokens int
	took   float64
}

// rateSeconds is for how long a bar keeps adding up steps before it begins its rate anew.
const rateSeconds = 2

func newReport(c Console, quiet bool) *report {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if quiet {
		c.Out, c.Terminal = io.Discard, false
	}
	return &report{Console: c}
}

// printf writes one line, above the bar while there is one.
func (r *report) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.Out
	if r.bars != nil {
		out = r.bars
	}
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}

// begin starts the progress of a run of which done steps are done.
func (r *report) begin(done, stepsPerEpoch, totalSteps int) {
	r.stepsPerEpoch, r.totalSteps = stepsPerEpoch, totalSteps
	if !r.Terminal {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Store(new(string))
	r.bars = mpb.New(mpb.WithOutput(r.Out), mpb.WithAutoRefresh())
	// Without a total it does not complete by itself: a completed one takes no more lines, and the last save follows.
	r.bar = r.bars.AddBar(0,
		mpb.PrependDecorators(decor.CountersNoUnit("step %d/%d ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *r.text.Load() })))
	r.bar.SetTotal(int64(totalSteps), false)
	r.bar.SetCurrent(int64(done))
}

// end takes the bar away.
func (r *report) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bars == nil {
		return
	}
	r.bar.Abort(true)
	r.bars.Wait()
	r.bars = nil
}

// mute ends the report: of what goes on nothing is told.
func (r *report) mute() {
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Out = io.Discard
}

// step reports one step.
func (r *report) step(s trainer.StepRecord) {
	left := ""
	if r.seen++; r.seen > 1 {
		r.seconds += s.StepTime
		left = " | left " + shortDuration(r.seconds/float64(r.seen-1)*float64(r.totalSteps-s.Step))
	}
	r.tokens += s.Tokens
	r.took += s.StepTime
	text := fmt.Sprintf("loss=%.4f | tokens/s=%.1f%s", s.Loss, float64(r.tokens)/r.took, left)
	if r.bar != nil {
		if r.took > rateSeconds {
			r.tokens, r.took = 0, 0
		}
		text = " " + text
		r.text.Store(&text)
		r.bar.SetCurrent(int64(s.Step))
		return
	}
	inEpoch := (s.Step-1)%r.stepsPerEpoch + 1
	if every := max(1, r.stepsPerEpoch/plainLinesPerEpoch); inEpoch%every == 0 || r.seen == 1 {
		r.printf("step %d/%d | epoch %d | %s", s.Step, r.totalSteps, s.Epoch, text)
		r.tokens, r.took = 0, 0
	}
}

// eval reports an evaluation within an epoch; the epoch's own line has that of its end.
func (r *report) eval(e trainer.EvalRecord, epochEnd bool) {
	if !epochEnd {
		r.printf("eval at step %d/%d | epoch %d | eval_loss=%.4f", e.Step, r.totalSteps, e.Epoch, e.Loss)
	}
}

// epoch reports one epoch, in the words of the published job.
func (r *report) epoch(e trainer.EpochRecord) {
	eval := ""
	if e.Evaluated {
		eval = fmt.Sprintf(" | eval_loss=%.4f", e.EvalLoss)
	}
	r.printf("Epoch %d/%d | loss=%.4f | epoch_time=%.2fs | tokens/s=%.1f%s", e.Epoch, e.Epochs, e.Loss, e.Seconds, e.TokensPerSec, eval)
}

// shortDuration prints seconds as 2h05m, 3m20s or 12s.
func shortDuration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

// count prints a large number as 268,435,456.
func count(n int) string {
	digits := fmt.Sprint(n)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}

// size prints bytes as 1.5 GiB.
func size(bytes int) string {
	value, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
