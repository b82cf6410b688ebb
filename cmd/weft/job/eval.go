package job

import (
	"context"
	"fmt"
	"time"

	"weft/checkpoint/storage"
	"weft/data"
	"weft/data/tokenizer"
	"weft/engine/trainer"
	"weft/models/arch"
)

// evaluates tells whether the run has rows to evaluate on.
func (c *Config) evaluates() bool { return c.EvalDataset != "" || c.EvalSplit != "" }

// openEvalSet tokenises the records of the evaluation as those of the training; nil when there are none.
func openEvalSet(c *Config, tok *tokenizer.Tokenizer, info arch.Info) (*data.Dataset, error) {
	if !c.evaluates() {
		return nil, nil
	}
	flag, o := "--eval-split", *c
	o.DatasetSplit = c.EvalSplit
	if c.EvalDataset != "" {
		flag, o.Dataset = "--eval-dataset", c.EvalDataset
	}
	set, err := openDataset(&o, tok, info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return set, nil
}

// evaluation gives the loss over all rows of the evaluation, in batches of the training's size, of which the last is padded. Nil
// when nothing is evaluated.
func (r *run) evaluation() func(context.Context, trainer.Position) (float64, error) {
	if r.evalSet == nil {
		return nil
	}
	return func(ctx context.Context, at trainer.Position) (float64, error) {
		record, err := r.evaluate(ctx, at)
		if err = r.outcome("evaluation", err); err != nil {
			return 0, err
		}
		return record.Loss, nil
	}
}

// evaluate evaluates once and reports it.
func (r *run) evaluate(ctx context.Context, at trainer.Position) (trainer.EvalRecord, error) {
	o := *r.Config
	o.Shuffle, o.DropLast = false, false
	loader, err := openLoader(&o, r.evalSet, padID(r.tok, r.files.arch.Info()), r.globalBatch, r.rows)
	if err != nil {
		return trainer.EvalRecord{}, fmt.Errorf("evaluate: %w", err)
	}
	phase := fmt.Sprintf("the evaluation after step %d", at.Step)
	defer r.dog.Enter(phase, r.StepDeadline)()
	source := batches{Loader: loader, rows: r.rows, took: func(time.Duration) {
		r.dog.GoesOn(phase)
		storage.Reach("evaluate", phase)
	}}
	e := trainer.Evaluation{Evaluator: r.eval, State: r.state, Source: source, Agree: r.several(), Empty: r.step.EmptyBatch()}
	stop := r.stop
	if r.several() {
		stop = nil // the others would wait for this one: all stop together, after a step
	}
	record, err := e.Do(ctx, stop, at)
	if err != nil {
		return trainer.EvalRecord{}, err
	}
	r.report.eval(record, at.StepInEpoch == r.loader.StepsPerEpoch())
	return record, r.metrics.addEval(record)
}
