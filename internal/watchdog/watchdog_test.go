package watchdog

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a clock that a test sets, with one timer.
type fake struct {
	t     time.Time
	at    time.Time
	f     func()
	codes []int
}

func (c *fake) Stop() bool { was := c.f != nil; c.f = nil; return was }

// pass lets time go by, with the timers that are due in it.
func (c *fake) pass(d time.Duration) {
	end := c.t.Add(d)
	for c.f != nil && !c.at.After(end) {
		c.t = c.at
		c.fire()
	}
	c.t = end
}

// stopped is time that goes by while the process does not run: a timer is late by that.
func (c *fake) stopped(d time.Duration) {
	c.t = c.t.Add(d)
	c.fire()
}

func (c *fake) fire() {
	f := c.f
	c.f = nil
	f()
}

func newFake(t *testing.T, log io.Writer) (*Watchdog, *fake) {
	c := &fake{t: time.Unix(0, 0)}
	return New(Options{
		Host: "v6e-16-0-2", Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(log, nil)),
		Advice: func() string { return "the newest checkpoint is X" },
		exit:   func(code int) { c.codes = append(c.codes, code) }, now: func() time.Time { return c.t },
		after: func(d time.Duration, f func()) stopper { c.at, c.f = c.t.Add(d), f; return c },
	}), c
}

func TestAPhaseThatEndsInTimeIsLeftAlone(t *testing.T) {
	w, c := newFake(t, &bytes.Buffer{})
	leave := w.Enter("compile", time.Minute)
	c.pass(59 * time.Second)
	leave()
	c.pass(time.Hour)
	require.Empty(t, c.codes)
}

func TestAPhaseThatStandsStillEndsTheProcess(t *testing.T) {
	var log bytes.Buffer
	w, c := newFake(t, &log)
	w.Enter("step 12", time.Minute)
	c.pass(time.Minute)
	require.Equal(t, []int{75}, c.codes)
	require.Contains(t, log.String(), "host v6e-16-0-2 stood still in step 12 for 1m0s, longer than its limit of 1m0s")
	require.Contains(t, log.String(), "the newest checkpoint is X")
	found, err := filepath.Glob(filepath.Join(w.o.Dir, "weft-stacks-v6e-16-0-2-*.txt"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	raw, err := os.ReadFile(found[0])
	require.NoError(t, err)
	require.Contains(t, string(raw), "TestAPhaseThatStandsStillEndsTheProcess", "the stacks of all goroutines")
	c.pass(time.Hour)
	require.Len(t, c.codes, 1, "once")
}

func TestProgressBeginsTheTimeAgain(t *testing.T) {
	var log bytes.Buffer
	w, c := newFake(t, &log)
	w.Enter("step 1", time.Minute)
	for range 10 {
		c.pass(50 * time.Second)
		w.GoesOn("step 2")
	}
	require.Empty(t, c.codes)
	name, still := w.Phase()
	require.Equal(t, "step 2", name)
	require.Zero(t, still)
	c.pass(time.Minute)
	require.Equal(t, []int{75}, c.codes)
	require.Contains(t, log.String(), "step 2")
}

func TestTheInnermostPhaseIsWatched(t *testing.T) {
	var log bytes.Buffer
	w, c := newFake(t, &log)
	w.Enter("step 3", time.Minute)
	leave := w.Enter("save", time.Hour)
	c.pass(30 * time.Minute)
	require.Empty(t, c.codes, "a step does not go on during a save")
	leave()
	c.pass(59 * time.Second)
	require.Empty(t, c.codes, "its time begins again")
	c.pass(time.Second)
	require.Equal(t, []int{75}, c.codes)
	require.Contains(t, log.String(), "step 3")
}

func TestAStoppedProcessDoesNotStandStill(t *testing.T) {
	w, c := newFake(t, &bytes.Buffer{})
	w.Enter("step 3", time.Minute)
	c.pass(30 * time.Second)
	c.stopped(2 * time.Hour)
	require.Empty(t, c.codes, "Ctrl-Z and fg")
	c.pass(10 * time.Second)
	require.Empty(t, c.codes)
	c.pass(time.Minute)
	require.Equal(t, []int{75}, c.codes, "then it does")
}

// stuck is a log that nobody reads: the timer runs out while it is written.
type stuck struct{ clock *fake }

func (s *stuck) Write([]byte) (int, error) {
	s.clock.f()
	select {}
}

// A log that nobody reads does not keep the process: it may be what the work waits for.
func TestAStuckLogDoesNotKeepTheProcess(t *testing.T) {
	log := &stuck{}
	w, c := newFake(t, log)
	log.clock = c
	w.Enter("step 3", time.Minute)
	c.pass(time.Minute)
	require.Equal(t, []int{75}, c.codes)
}

func TestNoLimitAndNoWatchdog(t *testing.T) {
	w, c := newFake(t, &bytes.Buffer{})
	w.Enter("reading", 0)
	c.pass(24 * time.Hour)
	require.Empty(t, c.codes)
	var none *Watchdog
	none.Enter("step", time.Second)()
	none.GoesOn("step")
	name, _ := none.Phase()
	require.Empty(t, name)
}

// TestRealProcess has a process of its own stand still.
func TestRealProcess(t *testing.T) {
	if dir := os.Getenv("WEFT_TEST_STAND_STILL"); dir != "" {
		w := New(Options{Host: "h", Dir: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), patience: time.Hour})
		w.Enter("a collective", 50*time.Millisecond)
		select {}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRealProcess$")
	cmd.Env = append(os.Environ(), "WEFT_TEST_STAND_STILL="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, ExitCode, exit.ExitCode(), string(out))
	require.Contains(t, string(out), "host h stood still in a collective")
	found, err := filepath.Glob(filepath.Join(dir, "weft-stacks-h-*.txt"))
	require.NoError(t, err)
	require.Len(t, found, 1)
}
