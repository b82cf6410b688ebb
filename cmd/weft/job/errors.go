package job

import (
	"errors"

	"weft/engine/trainer"
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

// inputUnlessPassing is Input, but for what a storage says may succeed later, such as a server that does not answer: a platform
// that starts a failed run again must not take it for wrong input.
func inputUnlessPassing(err error) error {
	var storage interface {
		error
		Temporary() bool
		Advice() string
	}
	if errors.As(err, &storage) && storage.Temporary() {
		return err
	}
	return Input(err)
}
