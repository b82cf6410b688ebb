package job

import (
	"context"
	"fmt"

	"weft/checkpoint"
	"weft/data"
	"weft/engine/trainer"
	"weft/optim"
)

// makeRequest finds out what is asked for.
func (r *run) makeRequest(ctx context.Context) error {
	content, err := r.fingerprint(ctx)
	if err != nil {
		return err
	}
	r.want, err = r.request(content)
	return err
}

// fingerprint is that of the model.
func (r *run) fingerprint(ctx context.Context) (string, error) {
	return r.model.fingerprint(ctx, func(bytes int64) {
		if bytes >= announcedBytes {
			r.report.printf("%-9s reading %s of weights once, to know them again", "model", size(int(bytes)))
		}
	})
}

// announcedBytes is the size from which reading takes a while.
const announcedBytes = 1 << 30

// begin takes the record of the run that begins, which may decide the length of the schedule, the order of the first epoch and
// the seed of weights, and writes it down.
func (r *run) begin(record runRecord) (err error) {
	r.record = record
	schedule, err := optim.NewSchedule(r.Schedule, r.LearningRate, 0, r.WarmupSteps, max(1, r.totalSteps()))
	if err != nil {
		return fmt.Errorf("--schedule: %w", err)
	}
	r.opt.Schedule = schedule
	first, err := record.firstSeed()
	if err != nil {
		return err
	}
	r.model.seed = uint64(first)
	if r.began, err = r.begunLoader(record.Changes); err != nil {
		return err
	}
	if r.process() > 0 {
		return nil
	}
	return r.record.write(r.folder)
}

// begunLoader is the loader of the epoch that the run goes on within, nil where its order is that of all epochs to come.
func (r *run) begunLoader(changes []settingChange) (*data.Loader, error) {
	old, epoch := *r.Config, r.start().Epoch
	if err := inEpoch(changes, "seed", epoch, &old.Seed); err != nil {
		return nil, err
	}
	if err := inEpoch(changes, "shuffle", epoch, &old.Shuffle); err != nil {
		return nil, err
	}
	if old.Seed == r.Seed && old.Shuffle == r.Shuffle {
		return nil, nil
	}
	return openLoader(&old, r.dataset, padID(r.tok, r.files.arch.Info()), r.globalBatch, r.rows)
}

// start is the position that the run begins from.
func (r *run) start() trainer.Position {
	if r.from == nil {
		return trainer.Position{}
	}
	return r.from.at
}

// totalSteps is the number of updates of the whole run: of those behind it, and of those to come.
func (r *run) totalSteps() int { return r.stepsFrom(r.start()) }

func (r *run) stepsFrom(at trainer.Position) int {
	return at.Step - at.StepInEpoch + (r.NumEpochs-at.Epoch)*r.loader.StepsPerEpoch()
}

// sayStart prints where the run goes on, and what is not as it was.
func (r *run) sayStart() {
	if r.from == nil {
		return
	}
	r.report.printf("resuming from %s: epoch %d, step %d", r.from.where, r.from.at.Epoch+1, r.from.at.Step+1)
	for _, d := range r.from.changed {
		r.report.printf("%-9s %s (--allow-changed)", "changed", d.text)
	}
	if was := r.from.was.EvalContent; was != "" && r.evalSet != nil && was != r.record.EvalContent {
		r.report.Log.Warn("the rows of the evaluation are others than before: its losses cannot be compared, and --keep-by eval_loss does")
	}
	if r.from.was.Placement != r.record.Placement {
		r.report.Log.Warn("the run continues on other devices or with another --remat or --gathers: the mathematics is the same, the last bits may differ",
			"before", r.from.was.Placement.String(), "now", r.record.Placement.String())
	}
}

// sayLost tells of steps before the start whose lines metrics.jsonl should have and has not. A run that began from a
// checkpoint of another folder has those from there on; it is not known from where when all are gone.
func (r *run) sayLost(from trainer.Position) {
	first := 1
	if r.record.From != "" {
		first = from.Step + 1
		if len(r.metrics.kept) > 0 {
			first = r.metrics.kept[0]
		}
	}
	if lost := r.metrics.lost(first, from.Step); lost != "" {
		r.report.Log.Warn("metrics.jsonl has lost lines of steps that were done: they were damaged or deleted; the training does not read them", "steps", lost)
	}
}

// request is the run that the flags ask for.
func (r *run) request(modelContent string) (*request, error) {
	allowed, err := parseAllowed(r.AllowChanged)
	if err != nil {
		return nil, err
	}
	want := &request{
		record: newRecord(r.Config, r.settings(modelContent), placement{
			Platform: r.rt.Platform(), Devices: r.rt.Mesh().NumDevices(), Remat: r.Remat, OneGather: r.Gathers == 1,
		}),
		allowed:       allowed,
		stepsPerEpoch: r.loader.StepsPerEpoch(),
		scheduleSteps: func(at trainer.Position) int {
			if r.Schedule == "constant" {
				return 0
			}
			return r.stepsFrom(at)
		},
		tensors: map[string]checkpoint.TensorInfo{}, moments: map[string]bool{},
	}
	if r.evalSet != nil {
		want.record.EvalContent = r.evalSet.Fingerprint()
	}
	for _, p := range r.model.Params() {
		if !p.Trainable {
			continue
		}
		want.tensors[p.Name] = checkpoint.TensorInfo{Name: p.Name, DType: fileDTypes[p.DType], Shape: p.Dims}
		for _, slot := range r.opt.Slots() {
			name := p.Name + "/" + slot.Name
			want.tensors[name] = checkpoint.TensorInfo{Name: name, DType: fileDTypes[slot.DType], Shape: p.Dims}
			want.moments[name] = true
		}
	}
	return want, nil
}

// settings are what must agree to continue this run, but for the number of steps.
func (r *run) settings(modelContent string) settings {
	s := settings{
		ModelContent: modelContent, DatasetContent: r.dataset.Fingerprint(),
		DatasetSplit: r.DatasetSplit, Template: r.Template, LossOn: r.LossOn, MaxSeqLen: r.MaxSeqLen,
		Shuffle: r.Shuffle, DropLast: r.DropLast, GlobalBatch: r.globalBatch, Seed: r.Seed,
		RandomInit: r.RandomInit, Scan: r.Scan, Freeze: r.Freeze, ParamDType: r.ParamDType, ComputeDType: r.ComputeDType,
		LearningRate: r.LearningRate, WeightDecay: r.WeightDecay, Beta1: r.Beta1, Beta2: r.Beta2, Eps: r.Eps,
		MaxGradNorm: r.MaxGradNorm, FirstMomentDType: r.FirstMomentDType, Schedule: r.Schedule, WarmupSteps: r.WarmupSteps,
	}
	if r.tok != nil {
		s.TokenizerContent = r.tok.Fingerprint()
	}
	return s
}
