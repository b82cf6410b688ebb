package tpuvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// active is the state of a queued resource whose slices are there; hopeless are those from which it does not get there.
const active = "ACTIVE"

var hopeless = []string{"FAILED", "SUSPENDING", "SUSPENDED", "DELETING"}

// Runner runs steps, one after the other, and stops at the first that fails.
type Runner struct {
	In       io.Reader
	Out, Err io.Writer
	// Every is how long it waits between looks at a queued resource.
	Every time.Duration
}

// StepError is a step that failed. Code is gcloud's exit code, -1 where it has none.
type StepError struct {
	Step Step
	Code int
	// Cause is set where gcloud itself did not fail.
	Cause error
}

func (e *StepError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %v", e.Step.What, e.Cause)
	}
	return fmt.Sprintf("%s: gcloud ended with exit code %d", e.Step.What, e.Code)
}

func (e *StepError) Unwrap() error { return e.Cause }

// ErrNoGcloud says that there is no gcloud.
var ErrNoGcloud = errors.New("gcloud is not on the PATH: install the Google Cloud CLI, or leave out --run to print the lines for a machine that has it")

// Run runs the steps. It returns a *StepError for one that failed, and what the context says once it is done.
func (r *Runner) Run(ctx context.Context, steps []Step) error {
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		return ErrNoGcloud
	}
	for _, s := range steps {
		fmt.Fprintf(r.Err, "+ %s\n", s.shown())
		if s.Wait {
			err = r.wait(ctx, gcloud, s)
		} else {
			err = r.step(ctx, gcloud, s, r.Out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// killDelay is how long gcloud has to end once it was asked to.
const killDelay = 10 * time.Second

func (r *Runner) step(ctx context.Context, gcloud string, s Step, out io.Writer) error {
	cmd := exec.CommandContext(ctx, gcloud, s.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.In, out, r.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &StepError{Step: s, Code: -1, Cause: fmt.Errorf("interrupted: %w", ctx.Err())}
	case errors.As(err, &exit):
		return &StepError{Step: s, Code: exit.ExitCode()}
	}
	return &StepError{Step: s, Code: -1, Cause: err}
}

// wait looks at a queued resource until it is there.
func (r *Runner) wait(ctx context.Context, gcloud string, s Step) error {
	last := ""
	for {
		var out bytes.Buffer
		if err := r.step(ctx, gcloud, s, &out); err != nil {
			return err
		}
		state := strings.TrimSpace(out.String())
		if state != last {
			fmt.Fprintf(r.Err, "the queued resource is %s\n", state)
			last = state
		}
		switch {
		case state == active:
			return nil
		case slices.Contains(hopeless, state):
			return &StepError{Step: s, Code: -1, Cause: fmt.Errorf("it is %s, and will not be there by waiting", state)}
		}
		select {
		case <-time.After(r.Every):
		case <-ctx.Done():
			return &StepError{Step: s, Code: -1, Cause: fmt.Errorf("interrupted: %w", ctx.Err())}
		}
	}
}
