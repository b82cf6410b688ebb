package job

import (
	"context"
	"fmt"
	"os"
	"time"

	"weft/checkpoint"
	"weft/checkpoint/storage"
	"weft/engine/trainer"
	"weft/internal/watchdog"
)

// DeadlineFlags bound how long parts of a run may stand still.
type DeadlineFlags struct {
	StepDeadline    time.Duration `name:"step-deadline" group:"devices" default:"30m" placeholder:"DURATION" help:"Longest time that a step, a batch of an evaluation or the wait for data may take. Then the stacks of the process are written to a file, and it ends with code 75: on a slice the hosts wait for a lost one for ever. 0: none."`
	CompileDeadline time.Duration `name:"compile-deadline" group:"devices" default:"2h" placeholder:"DURATION" help:"The same for compiling, and for sending the weights to the devices."`
	SaveDeadline    time.Duration `name:"save-deadline" group:"output" default:"1h" placeholder:"DURATION" help:"The same for what training waits for in a save, and for the last one at the end. The hosts of a slice wait for each other's parts of a checkpoint for half of it, but 15m at least, and then name the host that is missing."`
}

func (d *DeadlineFlags) check() error {
	for _, f := range []struct {
		flag  string
		value time.Duration
	}{{"--step-deadline", d.StepDeadline}, {"--compile-deadline", d.CompileDeadline}, {"--save-deadline", d.SaveDeadline}} {
		if f.value < 0 || f.value > 0 && f.value < time.Second {
			return fmt.Errorf("%s is %v: give at least 1s, or 0 for no deadline", f.flag, f.value)
		}
	}
	return nil
}

// hostWait is how long the hosts of a run wait for each other's parts of a checkpoint. Half of the deadline lets the error that
// names a host come before the watchdog, which knows none. A short deadline is for the training, beside which parts are written:
// it makes no wait shorter than the default.
func (d *DeadlineFlags) hostWait() time.Duration {
	if d.SaveDeadline == 0 {
		return forever
	}
	return max(d.SaveDeadline/2, checkpoint.DefaultHostWait)
}

// forever is 36 years: waits are multiplied.
const forever = time.Duration(1 << 60)

// watch begins to watch over the run, which is in a phase of its preparation: again once its devices tell which host this is.
func (r *run) watch(phase string) {
	dir := ""
	if !storage.IsRemote(r.StoragePath) {
		dir = r.StoragePath
	}
	r.dog = watchdog.New(watchdog.Options{Host: r.hostName(), Dir: dir, Log: r.report.Log, Advice: r.lost})
	r.enterPhase(phase, r.CompileDeadline)
}

// enterPhase ends the phase that the run is in, and begins another.
func (r *run) enterPhase(name string, limit time.Duration) {
	r.leavePhase()
	r.leave = r.dog.Enter(name, limit)
}

func (r *run) leavePhase() {
	if r.leave != nil {
		r.leave()
		r.leave = nil
	}
}

// stepPhase is what comes after so many updates.
func stepPhase(done int) string { return fmt.Sprintf("step %d", done+1) }

// watchedSave bounds what the training waits for in a save.
func (r *run) watchedSave(s *saver) func(context.Context, trainer.Position, bool) error {
	return func(ctx context.Context, at trainer.Position, epochEnd bool) error {
		defer r.dog.Enter(fmt.Sprintf("the save of step %d", at.Step), r.SaveDeadline)()
		return s.save(ctx, at, epochEnd)
	}
}

// hostName is this host's name for people: the slice's, else the machine's own.
func (r *run) hostName() string {
	if r.several() {
		return r.rt.HostName(r.process())
	}
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
