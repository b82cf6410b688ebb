package optim

import (
	"fmt"
	"math"
)

// Schedule gives the learning rate of each update. It is evaluated on the host in float64.
type Schedule interface {
	// LR is the learning rate of update number step, counted from 1.
	LR(step int) float64
}

// Constant is one learning rate for every update.
type Constant float64

// LR returns the constant.
func (c Constant) LR(int) float64 { return float64(c) }

// WarmupCosine rises linearly to Peak over the first Warmup updates (update Warmup runs at Peak, so that no update
// runs at zero), then falls along half a cosine to Final at update Total and stays there.
type WarmupCosine struct {
	Peak, Final   float64
	Warmup, Total int
}

// LR returns the learning rate of update number step (1-based).
func (s WarmupCosine) LR(step int) float64 {
	switch {
	case step <= s.Warmup:
		return s.Peak * float64(step) / float64(s.Warmup)
	case step >= s.Total:
		return s.Final
	}
	progress := float64(step-s.Warmup) / float64(s.Total-s.Warmup)
	return s.Final + (s.Peak-s.Final)*0.5*(1+math.Cos(math.Pi*progress))
}

// ScheduleNames are the values that NewSchedule knows.
var ScheduleNames = []string{"constant", "cosine"}

// NewSchedule returns the named schedule: "constant" (lr throughout) or "cosine" (warmup updates up to lr, then a
// cosine down to final at update total).
func NewSchedule(name string, lr, final float64, warmup, total int) (Schedule, error) {
	if !(lr > 0) || math.IsInf(lr, 0) {
		return nil, fmt.Errorf("learning rate %v: give a positive number", lr)
	}
	switch name {
	case "constant":
		return Constant(lr), nil
	case "cosine":
		if warmup < 0 || total < 1 || warmup > total {
			return nil, fmt.Errorf("cosine schedule with %d warm-up updates of %d in all: the warm-up must be between 0 and the total", warmup, total)
		}
		if !(final >= 0) || final > lr {
			return nil, fmt.Errorf("cosine schedule ending at learning rate %v: give a number between 0 and the peak %v", final, lr)
		}
		return WarmupCosine{Peak: lr, Final: final, Warmup: warmup, Total: total}, nil
	}
	return nil, fmt.Errorf("unknown learning-rate schedule %q: choose one of %v", name, ScheduleNames)
}
