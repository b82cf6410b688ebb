package job

import (
	"errors"
	"slices"
	"strings"

	"weft/engine/trainer"
	"weft/pjrt"
)

// InputError is something wrong with what the run was given, found before anything was trained.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Input marks an error as one of the input. Nil stays nil, and a request to stop stays one.
func Input(err error) error {
	var already *InputError
	if err == nil || errors.Is(err, trainer.ErrStopped) || errors.As(err, &already) {
		return err
	}
	return &InputError{Err: err}
}

// inputUnlessPassing is Input, but for what may succeed later, such as a server that does not answer, or devices that another
// process still holds: a platform that starts a failed run again must not take it for wrong input.
func inputUnlessPassing(err error) error {
	if passes(err) {
		return err
	}
	return Input(err)
}

// passes tells that an error may not come again: so says a storage, a plugin of its devices, or another host.
func passes(err error) bool {
	var storage interface {
		error
		Temporary() bool
		Advice() string
	}
	var devices *pjrt.Error
	var host *passingError
	switch {
	case errors.As(err, &host):
		return true
	case errors.As(err, &storage):
		return storage.Temporary()
	case errors.As(err, &devices):
		return slices.Contains(passingCodes, devices.Code)
	}
	return false
}

// passingCodes are those of devices that are held, or of hosts that are lost. A plugin has others for what it is given.
var passingCodes = []pjrt.Code{pjrt.Unavailable, pjrt.Aborted, pjrt.DeadlineExceeded, pjrt.Cancelled, pjrt.Internal, pjrt.Unknown, pjrt.DataLoss}

// passingError is the failure of other hosts that may not come again.
type passingError struct{ error }

// OneLine joins the lines of an error, such as those of errors.Join or of XLA, so that a log keeps it together.
func OneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
