package job

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weft/checkpoint"
	"weft/data"
	"weft/data/tokenizer"
	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/trainer"
	"weft/internal/watchdog"
	"weft/optim"
)

// Result is how a run ended.
type Result struct {
	// Epoch is the number of epochs done, Step that of updates.
	Epoch, Step int
	// Loss, Seconds and TokensPerSec are those of the last epoch.
	Loss, Seconds, TokensPerSec float64
	// EvalLoss is that of the last evaluation, where Evaluated tells that there was one.
	EvalLoss  float64
	Evaluated bool
	// Checkpoint is the folder of the newest checkpoint; its model/ is a Hugging Face folder.
	Checkpoint string
}

// Run trains as c says, from the newest checkpoint on when there is one, and returns when all epochs are done. Asked to stop,
// it finishes the step that runs, saves and returns an error that wraps trainer.ErrStopped, as every end by stop does. What is
// wrong with the input is an InputError.
func Run(ctx context.Context, c Config, stop *Stop, console Console) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, Input(err)
	}
	c.enterRunFolder()
	if stop == nil {
		stop = &Stop{}
	}
	r := &run{Config: &c, open: openRuntime, stop: stop.Request, report: newReport(console, false)}
	return r.supervise(ctx, stop.Abort)
}

// run is a run being assembled, from the inputs to the loop.
type run struct {
	*Config
	open     opener
	hosts    bool // open gives a part of the devices, whatever the platform
	faults   faults
	stop     <-chan struct{}
	report   *report
	progress progress

	inputs
	folder  place // of the run
	manager *checkpoint.Manager
	history *history
	rt      *engine.Runtime
	model   *model
	loader  *data.Loader
	// began is the loader of the epoch that the run goes on within, where its order is not that of the epochs after it.
	began   *data.Loader
	rows    []engine.RowRange
	opt     *optim.AdamW
	want    *request
	record  runRecord
	from    *resumePoint
	reader  *checkpoint.StateReader
	step    *engine.Step
	eval    *engine.Eval
	state   *engine.State
	metrics *metricsLog

	globalBatch int
	// dog ends the process when the run stands still in the phase that leave ends; nil before the devices are open.
	dog   *watchdog.Watchdog
	leave func()
	// session is the number of what the hosts of this run write together.
	session int64
}

// inputs are what a run reads before it needs a device.
type inputs struct {
	files   *modelFiles
	tok     *tokenizer.Tokenizer
	dataset *data.Dataset
	// evalSet is nil when nothing is evaluated.
	evalSet *data.Dataset
}

func (r *run) do(ctx context.Context) (*Result, error) {
	// The inputs before the storage: what is wrong with them leaves no folder behind.
	prepare := []func(context.Context) error{r.readInputs, r.openFirst, r.openDevices}
	if r.slice() {
		// Which host has the storage is known by the devices.
		prepare = []func(context.Context) error{r.readInputs, r.openDevices, r.together("open the storage", r.openFirst)}
	}
	defer r.leavePhase()
	for _, prepare := range append(prepare,
		r.openOthers, r.together("model", r.openModel), r.together("batches", r.openBatches),
		r.together("start", r.makeRequest), r.agree, r.chooseTogether,
	) {
		if err := unlessDone(ctx, prepare); err != nil {
			return nil, inputUnlessPassing(err)
		}
	}
	if r.from != nil && r.from.at.Epoch >= r.NumEpochs {
		return r.alreadyDone()
	}
	for _, prepare := range []func(context.Context) error{r.together("compile", r.compile), r.together("weights", r.fillState), r.restoreState} {
		if err := unlessDone(ctx, prepare); err != nil {
			return nil, err
		}
	}
	if !r.progress.phase.CompareAndSwap(phasePreparing, phaseTraining) {
		return nil, errAborted
	}
	return r.train(ctx)
}

// unlessDone runs one part of the preparation unless the context is cancelled. No part of it is interrupted: see supervise.
func unlessDone(ctx context.Context, part func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return part(ctx)
}

// slice tells that the devices may be those of several hosts.
func (r *run) slice() bool {
	platform, err := r.platform()
	return err == nil && platform == PlatformTPU || r.hosts
}

// readInputs reads everything that needs no device.
func (r *run) readInputs(context.Context) (err error) {
	r.inputs, err = readInputs(r.Config)
	return err
}

func readInputs(c *Config) (in inputs, err error) {
	if c.Demo {
		if in.files, err = demoModelFiles(); err == nil {
			in.tok, err = tokenizer.LoadBytes(in.files.files[tokenizerName])
		}
	} else if in.files, err = readModelFiles(c.ModelID, c.RandomInit); err == nil {
		in.tok, err = in.files.loadTokenizer(c)
	}
	if err != nil {
		return in, err
	}
	if in.dataset, err = openDataset(c, in.tok, in.files.arch.Info()); err != nil {
		return in, err
	}
	in.evalSet, err = openEvalSet(c, in.tok, in.files.arch.Info())
	return in, err
}

// openDevices may download a plugin. On a slice it waits for the other hosts.
func (r *run) openDevices(ctx context.Context) (err error) {
	if r.slice() {
		r.watch("the opening of the devices")
	}
	if r.rt, err = r.open(ctx, &r.DeviceFlags, r.report); err == nil {
		r.quietHost()
		r.watch("the preparation")
	}
	return err
}

func (r *run) openModel(context.Context) (err error) {
	r.model, err = openModel(r.Config, r.files, r.rt.Mesh())
	return err
}

// stepConfig is the shape of a step.
func (r *run) stepConfig() engine.StepConfig {
	return stepConfig(r.rt.Mesh(), r.globalBatch, r.MaxSeqLen, r.MaxGradNorm)
}

func (r *run) openBatches(context.Context) (err error) {
	r.globalBatch = r.BatchSizePerDevice * r.rt.Mesh().NumDevices()
	r.rows = r.rt.BatchRows(r.stepConfig())
	r.loader, err = openLoader(r.Config, r.dataset, padID(r.tok, r.files.arch.Info()), r.globalBatch, r.rows)
	if err != nil {
		return err
	}
	// The schedule comes with the beginning, which may decide its length.
	r.opt, err = r.adamW(optim.Constant(r.LearningRate), r.Beta1, r.Beta2, r.Eps, r.WeightDecay)
	return err
}

// compile makes the training step, and the evaluation where there is one. It may take minutes.
func (r *run) compile(context.Context) (err error) {
	r.header()
	r.report.printf("%-9s compiling; the next run of this shape takes it from the compile cache", "program")
	if r.step, err = r.rt.NewStep(r.model, r.opt, r.stepConfig()); err == nil && r.evalSet != nil {
		r.eval, err = r.rt.NewEval(r.model, r.stepConfig())
	}
	return err
}

// fillState sends the parameters to the devices: the first values, then those of the checkpoint to continue from.
func (r *run) fillState(context.Context) (err error) {
	if r.state, err = r.rt.NewState(r.model, r.opt, r.firstValues()); err != nil {
		return err
	}
	if err := r.model.loaded(); err != nil {
		return err
	}
	return nil
}

// restoreState fills the state from the checkpoint to continue from, or from an older one where that is damaged. All hosts take
// the same.
func (r *run) restoreState(ctx context.Context) error {
	for r.from != nil {
		r.dog.GoesOn("loading " + r.from.where)
		fault := restore(r.state, r.reader, r.from.at)
		damaged := errors.Is(fault, checkpoint.ErrDamaged) && !r.history.named
		if r.several() {
			broken := fault
			if damaged {
				broken = nil
			}
			if err := r.outcome("restore", broken); err != nil {
				return err
			}
			if fault = r.outcome("damage", fault); fault == nil {
				return nil
			}
		} else if fault == nil || !damaged {
			return fault
		}
		if err := r.reader.Close(); err != nil {
			return err
		}
		r.history.pass(r.from.entry, fault, r.report)
		if err := r.chooseTogether(ctx); err != nil {
			return err
		}
		if r.from == nil {
			return fmt.Errorf("no other checkpoint is left: %w", fault)
		}
	}
	return nil
}

// firstValues are the model's. What a checkpoint to continue from holds is left zero: restore replaces all of it or fails.
func (r *run) firstValues() engine.ParamFill {
	if r.from == nil {
		return r.model.fill
	}
	return func(p engine.Param, region sharding.Region, dst []byte) error {
		if p.Trainable {
			return nil
		}
		return r.model.fill(p, region, dst)
	}
}

// train runs the loop and waits for what it saved.
func (r *run) train(ctx context.Context) (*Result, error) {
	from := r.start()
	s, err := r.openSaver(ctx, from)
	if err = r.outcome("saver", err); err != nil {
		return nil, err
	}
	r.progress.step.Store(int64(from.Step))
	r.progress.saver.Store(s)
	r.enterPhase(stepPhase(from.Step), r.StepDeadline)
	beat := startHeartbeat(r.folder, r.hostName(), r.process(), r.rt.Processes(), r.dog.Phase, r.report.Log)
	defer beat.close()
	var waited atomic.Int64 // for data, since the last step
	var last trainer.EpochRecord
	loop := trainer.Run{
		Step: trainer.Compiled(r.step), State: r.state, Epochs: r.NumEpochs,
		Source:        batches{Loader: r.loader, rows: r.rows, began: r.began, epoch: from.Epoch, took: func(d time.Duration) { waited.Add(int64(d)) }},
		TokensPerStep: s.tokensPerStep, LR: r.opt.Schedule.LR, From: from,
		EvalEverySteps: r.EvalEverySteps, SaveEverySteps: r.SaveEverySteps, SaveEvery: r.SaveEvery, Agree: r.several(), Empty: r.step.EmptyBatch(),
		Hooks: trainer.Hooks{
			Step: func(rec trainer.StepRecord) error {
				r.progress.step.Store(int64(rec.Step))
				r.dog.GoesOn(stepPhase(rec.Step))
				beat.step(rec.Step, rec.StepTime, time.Duration(waited.Swap(0)))
				r.report.step(rec)
				return r.metrics.add(s.stepLine(rec))
			},
			Epoch:  func(rec trainer.EpochRecord) { last = rec; r.report.epoch(rec) },
			Eval:   r.evaluation(),
			Save:   r.watchedSave(s),
			Failed: s.failed,
			Tell:   r.tellFailure,
		},
	}
	r.faults.into(&loop)
	r.memory()
	r.report.begin(from.Step, r.loader.StepsPerEpoch(), r.totalSteps())
	at, err := loop.Do(ctx, r.stop)
	r.enterPhase("the last save", r.SaveDeadline)
	if late := s.finish(ctx); err == nil || late != nil && errors.Is(err, trainer.ErrStopped) {
		err = late
	} else if late != nil {
		err = fmt.Errorf("%w; moreover %w", err, late)
	}
	r.report.end()
	switch {
	case errors.Is(err, trainer.ErrStopped):
		return nil, r.stopped(err, at)
	case err != nil:
		return nil, r.failed(r.blame(ctx, err))
	}
	return r.completed(&Result{
		Epoch: last.Epoch, Step: at.Step, Loss: last.Loss, Seconds: last.Seconds, TokensPerSec: last.TokensPerSec, Checkpoint: r.folder.of(s.newest()),
		EvalLoss: at.EvalLoss, Evaluated: r.evalSet != nil,
	}), nil
}

// openSaver opens the metrics and what saves, and makes sure that there is room for a checkpoint.
func (r *run) openSaver(ctx context.Context, from trainer.Position) (*saver, error) {
	r.sayStart()
	record, err := r.record.marshal()
	if err != nil {
		return nil, err
	}
	if r.process() == 0 {
		if r.metrics, err = openRunMetrics(r.folder, r.manager.Owned, from); err != nil {
			return nil, err
		}
		r.sayLost(from)
	}
	s := &saver{
		folder: r.folder, manager: r.manager, model: r.model, state: r.state, record: record, metrics: r.metrics, report: r.report,
		tokensPerStep: r.globalBatch * r.MaxSeqLen, several: r.several(), first: r.process() == 0, fault: r.faults.snapshot,
	}
	if err := s.fits(from); err != nil {
		return nil, errors.Join(err, s.finish(ctx))
	}
	return s, nil
}

// alreadyDone answers a run whose epochs are all in its checkpoint.
func (r *run) alreadyDone() (*Result, error) {
	manifest := r.reader.Manifest()
	m := manifest.Metrics
	evalLoss, evaluated := m[metricEvalLoss]
	r.report.printf("All %d epochs of this run are done already; give more --num-epochs to continue it, or another --storage-path.", manifest.Epoch)
	return r.completed(&Result{
		Epoch: manifest.Epoch, Step: manifest.Step, Loss: m[metricLoss], Seconds: m[metricSeconds],
		TokensPerSec: m[metricTokensPerS], Checkpoint: r.from.where, EvalLoss: evalLoss, Evaluated: evaluated,
	}), nil
}

func (r *run) completed(res *Result) *Result {
	eval := ""
	if res.Evaluated {
		eval = fmt.Sprintf(`, "eval_loss": %.4f`, res.EvalLoss)
	}
	r.report.printf(`Training completed! Final metrics: {"epoch": %d, "loss": %.4f, "epoch_time_s": %.2f, "tokens_per_s": %.1f%s}`,
		res.Epoch, res.Loss, res.Seconds, res.TokensPerSec, eval)
	r.report.printf("Saved checkpoint: %s", res.Checkpoint)
	if r.Demo {
		r.report.printf("%s", demoNext)
	}
	return res
}

// close releases what the run holds, in the order that the devices need.
func (r *run) close() error {
	r.report.end()
	if r.several() { // a host that releases its devices may wait for the others
		r.enterPhase("the end", r.SaveDeadline)
		defer r.leavePhase()
	}
	var errs []error
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	if r.metrics != nil {
		errs = append(errs, r.metrics.close())
	}
	if r.manager != nil {
		errs = append(errs, r.manager.Close())
	}
	if r.state != nil {
		r.state.Destroy()
	}
	if r.step != nil {
		r.step.Destroy()
	}
	if r.eval != nil {
		r.eval.Destroy()
	}
	if r.model != nil {
		errs = append(errs, r.model.close())
	}
	if r.rt != nil {
		errs = append(errs, r.rt.Close())
	}
	return errors.Join(errs...)
}
