package cli

import (
	"context"
	"encoding/json"
	"io"
	"os/signal"
	"syscall"

	"weft/cmd/weft/job"
)

type checkpointCmd struct {
	Ls     checkpointLsCmd     `cmd:"" help:"List the checkpoints of a run: step, loss, size, kind, state, which is best, which the run keeps and why."`
	Verify checkpointVerifyCmd `cmd:"" help:"Read every byte of checkpoints and compare it with its checksum."`
	Export checkpointExportCmd `cmd:"" help:"Write a checkpoint as a Hugging Face folder, and prove that the folder gives the same logits."`
	Diff   checkpointDiffCmd   `cmd:"" help:"Say which tensors differ between two checkpoints or model folders, and by how much."`
	Prune  checkpointPruneCmd  `cmd:"" help:"Delete the checkpoints of a run that none of the given rules keeps."`
}

// Help is the long help.
func (checkpointCmd) Help() string {
	return `Looks at, checks, exports, compares and deletes what 'weft finetune' saved. PATH is a folder on a disk or gs://bucket/prefix: the folder of a run (--storage-path, or --run-name in it), or of one checkpoint, such as OUT/checkpoints/epoch-0001-step-00000192. All but prune work beside a run that is alive. docs/checkpoint.md has the layout and what each command promises.`
}

type checkpointLsCmd struct {
	Path string `arg:"" help:"Folder of a run or of one checkpoint, on a disk or gs://bucket/prefix."`
	JSON bool   `name:"json" help:"Print one JSON object."`
}

// Help is the long help.
func (checkpointLsCmd) Help() string {
	return `A name tells the epoch and the step. LOSS is the mean over the epoch that the checkpoint ends, ~ marks that of a part of an epoch, which is not ranked, and * the figure by which a checkpoint is the best. KIND is full (train state and Hugging Face folder, at an epoch's end) or state (in the middle of one; weft checkpoint export makes a folder of it). STATE: ok means that the manifest is whole and every file there in its size; verify reads the content too. KEPT AS has the reasons for which the run's rules (--keep and its kin, as it was started last) keep the checkpoint; (goes) is deleted at the next save. --json has more: the devices that wrote a checkpoint, and the second of its commit.`
}

// Run prints the list.
func (c *checkpointLsCmd) Run(s streams) error {
	ctx, stop := interruptible()
	defer stop()
	list, err := job.ListCheckpoints(ctx, c.Path)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.Out, list)
	}
	return list.Write(s.Out)
}

type checkpointVerifyCmd struct {
	Path string `arg:"" help:"Folder of a run, whose checkpoints are all verified, or of one checkpoint; on a disk or gs://bucket/prefix."`
	JSON bool   `name:"json" help:"Print one JSON object."`
}

// Help is the long help.
func (checkpointVerifyCmd) Help() string {
	return `Reads every file that a manifest names, train state and Hugging Face folder, and compares size and CRC32C. Exit code 1 when a checkpoint is damaged; the file, for the train state the tensor, and what to do are named.`
}

// Run verifies.
func (c *checkpointVerifyCmd) Run(s streams) error {
	ctx, stop := interruptible()
	defer stop()
	var bar io.Writer
	if isTerminal(s.Err) {
		bar = s.Err
	}
	found, err := job.VerifyCheckpoints(ctx, c.Path, bar)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(s.Out, found)
	} else {
		err = found.Write(s.Out)
	}
	if err != nil {
		return err
	}
	return found.Err()
}

type checkpointPruneCmd struct {
	Path string `arg:"" help:"Folder of a run, on a disk or gs://bucket/prefix."`
	job.PruneRules
	DryRun bool `name:"dry-run" help:"Only print what would be deleted, and why each other checkpoint stays."`
}

// Help is the long help.
func (checkpointPruneCmd) Help() string {
	return `A checkpoint goes when none of the rules keeps it. In any case stay: the newest, from which a resume goes on; the newest that is seen to be whole, for which checkpoints are read from the newest back; one behind a symbolic link; one whose manifest cannot be read; and every file that weft did not write. Refused while a run owns the folder.`
}

// Run prunes.
func (c *checkpointPruneCmd) Run(s streams) error {
	ctx, stop := interruptible()
	defer stop()
	return job.PruneCheckpoints(ctx, c.Path, c.PruneRules, c.DryRun, s.Out)
}

// interruptible is a context that SIGINT and SIGTERM end. A second one ends the process, whatever it waits for.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
