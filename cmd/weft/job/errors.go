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
