package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"weft/cmd/weft/job"
)

// sameRequest is how long after the first signal another one is taken for the same: timeout(1), for one, signals both a
// process and its group.
const sameRequest = time.Second

// stopSignals ask a run to stop: of a platform, of the keyboard, and of a terminal that goes away.
var stopSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

// onSignals requests a stop at the first of the stopSignals and aborts the run at the second. One that the process was started
// to ignore, by nohup or in the background of a shell, stays ignored. It returns what undoes it.
func onSignals() (stop *job.Stop, undo func()) {
	request, abort := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 4)
	for _, s := range stopSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		first := time.Now()
		close(request)
		for range signals {
			if time.Since(first) > sameRequest {
				close(abort)
				return
			}
		}
	}()
	return &job.Stop{Request: request, Abort: abort}, func() {
		signal.Stop(signals)
		close(signals)
	}
}

// keepOnWithoutReader lets a write to a closed pipe fail where it would end the process: a run goes on when the reader of its
// report goes away, as head(1) does. It holds up to the end of the process, whose last line may have no reader either.
func keepOnWithoutReader() {
	// Not ignored, which the commands that it starts would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
