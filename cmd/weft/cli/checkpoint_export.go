package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"weft/cmd/weft/job"
)

type checkpointExportCmd struct {
	job.ExportConfig
}

// Help is the long help.
func (checkpointExportCmd) Help() string {
	return `Writes OUT with the tensor names that the model came with, without a head that repeats the embedding, split like a Hugging Face folder, with the tokenizer and the other files of the model beside it. Trained tensors are the float32 master weights of the checkpoint's train state, rounded to --dtype. Frozen ones come from the checkpoint's own Hugging Face folder; one that was written in the middle of an epoch has none: then from another checkpoint of the run that has it, else from the model that the run began with, which must be the same.

Then the folder is read back: every tensor must have the bits of its rounded master, and a batch of random tokens through the folder must give, to the bit, the logits of masters that are rounded on the fly; for --dtype float32 those of the masters themselves. What the rounding changed is printed: max and mean |Δlogit|, top-1 agreement and KL divergence. Only then OUT gets its name. When anything fails there is no OUT.`
}

// Run exports.
func (c *checkpointExportCmd) Run(s streams) error {
	ctx, stop := interruptible()
	defer stop()
	return job.ExportCheckpoint(ctx, c.ExportConfig, job.Console{Out: s.Out, Terminal: isTerminal(s.Out), Log: newLog(s.Err)})
}

type checkpointDiffCmd struct {
	A     string `arg:"" help:"Folder of a checkpoint, of a run (its newest checkpoint) or of a model, on a disk or gs://bucket/prefix."`
	B     string `arg:"" help:"What it is compared with, of the same kinds."`
	State bool   `help:"Compare the optimizer's moments too; both must be checkpoints."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

// Help is the long help.
func (checkpointDiffCmd) Help() string {
	return `Lists tensors that were added, removed, or have another shape, dtype or content; of the latter max |Δ|, the root mean square of Δ, ‖Δ‖/‖A‖ and how many elements changed, the most changed first. Checkpoints are compared by their float32 master weights, whatever number of devices wrote them. Exit codes as of diff(1): 0 equal, 1 different, 2 trouble.`
}

// errDifferent ends a diff that found something; there is nothing more to say.
var errDifferent = errors.New("different")

// Run compares.
func (c *checkpointDiffCmd) Run(s streams) error {
	ctx, stop := interruptible()
	defer stop()
	diff, err := job.DiffCheckpoints(ctx, c.A, c.B, c.State)
	if err != nil {
		return job.Input(err) // exit code 2, whatever the trouble
	}
	if c.JSON {
		err = printJSON(s.Out, diff)
	} else {
		err = diff.Write(s.Out)
	}
	switch {
	case err != nil:
		return job.Input(fmt.Errorf("printing the difference: %w", err))
	case !diff.Equal:
		return errDifferent
	}
	return nil
}

// newLog writes a line for each thing worth knowing.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: dropTime}))
}
