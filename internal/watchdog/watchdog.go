// Package watchdog ends a process whose work stands still: on a slice, a host that waits in a collective for one that is
// lost waits for ever, and holds chips that cost money.
//
// Work goes through phases, each with a limit. When a phase is longer than that, the watchdog writes what every goroutine
// is doing to a file, says on the log which host stood still in which phase, and ends the process with an exit code that
// asks for another start.
package watchdog

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"sync"
	"time"
)

// ExitCode is that of a process that the watchdog ended (EX_TEMPFAIL of sysexits.h): the same command continues the run.
const ExitCode = 75

// Options of New.
type Options struct {
	// Host is the name of this host in what is written.
	Host string
	// Dir is a local folder for the stacks; "" is the one for temporary files.
	Dir string
	Log *slog.Logger
	// Advice ends the line on the log: what is saved, and what to do.
	Advice func() string

	// exit ends the process, clock and after are of time; tests replace them.
	exit  func(code int)
	now   func() time.Time
	after func(time.Duration, func()) stopper
	// patience bounds the writing of stacks, and of the line on the log.
	patience time.Duration
}

type stopper interface{ Stop() bool }

// Watchdog watches one piece of work. Its methods may be called from any goroutine; a nil Watchdog watches nothing.
type Watchdog struct {
	o  Options
	mu sync.Mutex
	// stack are the phases that were entered and not left: the innermost is watched, since it explains the others.
	stack []*phase
	timer stopper
	due   time.Time // of the timer
	ended bool
}

type phase struct {
	name  string
	limit time.Duration
	since time.Time // entered, or last seen to go on
}

// New makes a watchdog.
func New(o Options) *Watchdog {
	if o.patience == 0 {
		o.patience = patience
	}
	if o.exit == nil {
		o.exit, o.now = os.Exit, time.Now
		o.after = func(d time.Duration, f func()) stopper { return time.AfterFunc(d, f) }
	}
	return &Watchdog{o: o}
}

// Enter begins a phase that must end, or be seen to go on, within limit; a limit of 0 is none. The phases around it are
// not watched until it is left.
func (w *Watchdog) Enter(name string, limit time.Duration) (leave func()) {
	if w == nil {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &phase{name: name, limit: limit, since: w.o.now()}
	w.stack = append(w.stack, p)
	w.watch()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, q := range w.stack {
			if q == p {
				w.stack = append(w.stack[:i], w.stack[i+1:]...)
				break
			}
		}
		if n := len(w.stack); n > 0 {
			w.stack[n-1].since = w.o.now() // its time begins again: it could not go on
		}
		w.watch()
	}
}

// GoesOn tells that the innermost phase makes progress, such as a step that has ended; name says what comes now.
func (w *Watchdog) GoesOn(name string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.stack); n > 0 {
		w.stack[n-1].name, w.stack[n-1].since = name, w.o.now()
		w.watch()
	}
}

// Phase is the innermost phase and how long it has stood still; "" when there is none.
func (w *Watchdog) Phase() (name string, still time.Duration) {
	if w == nil {
		return "", 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.stack)
	if n == 0 {
		return "", 0
	}
	return w.stack[n-1].name, w.o.now().Sub(w.stack[n-1].since)
}

// watch sets the timer for the innermost phase. The caller holds the lock.
func (w *Watchdog) watch() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	n := len(w.stack)
	if w.ended || n == 0 || w.stack[n-1].limit <= 0 {
		return
	}
	p := w.stack[n-1]
	left := min(p.limit-w.o.now().Sub(p.since), lookEvery)
	w.due = w.o.now().Add(left)
	w.timer = w.o.after(left, func() { w.expired(p) })
}

// The clock runs on while a process is stopped (SIGSTOP, Ctrl-Z, a machine that is moved), though its work cannot. So a
// timer is set for lookEvery at most, and one that is later than asleep tells that the process did not run.
const lookEvery, asleep = 10 * time.Second, 30 * time.Second

// forgive takes the time in which the process was stopped off the innermost phase. The caller holds the lock.
func (w *Watchdog) forgive(p *phase) {
	if late := w.o.now().Sub(w.due); late > asleep {
		p.since = p.since.Add(late)
	}
}

const patience = 10 * time.Second

// expired ends the process, unless the phase has gone on since the timer was set.
func (w *Watchdog) expired(p *phase) {
	w.mu.Lock()
	n := len(w.stack)
	watched := !w.ended && n > 0 && w.stack[n-1] == p
	if watched {
		w.forgive(p)
	}
	late := watched && w.o.now().Sub(p.since) >= p.limit
	name, still := p.name, w.o.now().Sub(p.since)
	if !late {
		w.watch()
		w.mu.Unlock()
		return
	}
	w.ended = true
	w.mu.Unlock()
	where := "stacks could not be written" // the disk stands still too
	dumped := make(chan string, 1)
	if w.waitFor(func() {
		if file, err := w.dump(name, still); err == nil {
			dumped <- "stacks are in " + file
		}
	}) && len(dumped) > 0 {
		where = <-dumped
	}
	// Where nobody reads what is printed, that may be why the work stands still.
	w.waitFor(func() {
		advice := "run the same command again"
		if w.o.Advice != nil {
			advice = w.o.Advice()
		}
		w.o.Log.Error(fmt.Sprintf("host %s stood still in %s for %s, longer than its limit of %s: %s; %s",
			w.o.Host, name, still.Round(time.Second), p.limit, where, advice))
	})
	w.o.exit(ExitCode)
}

// waitFor runs f and tells whether it has ended within patience.
func (w *Watchdog) waitFor(f func()) bool {
	late, done := make(chan struct{}), make(chan struct{})
	timer := w.o.after(w.o.patience, func() { close(late) })
	defer timer.Stop()
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// notPlain is what a file's name does without.
var notPlain = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// dump writes the stacks of all goroutines to a file and returns its name.
func (w *Watchdog) dump(name string, still time.Duration) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "weft, process %d on host %s, stood still in %s for %s\n\n", os.Getpid(), w.o.Host, name, still.Round(time.Second))
	if err := pprof.Lookup("goroutine").WriteTo(&b, 2); err != nil {
		return "", err
	}
	base := fmt.Sprintf("weft-stacks-%s-%d.txt", notPlain.ReplaceAllString(w.o.Host, "-"), os.Getpid())
	file := filepath.Join(w.o.Dir, base)
	if w.o.Dir == "" || os.WriteFile(file, b.Bytes(), 0o644) != nil {
		file = filepath.Join(os.TempDir(), base) // a disk may be what stands still
		return file, os.WriteFile(file, b.Bytes(), 0o644)
	}
	return file, nil
}
