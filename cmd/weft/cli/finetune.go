package cli

import (
	"context"
	_ "embed"
	"log/slog"
	"reflect"

	"github.com/alecthomas/kong"

	"weft/cmd/weft/job"
)

// groups are the headings of the flags.
var groups = []kong.Group{
	{Key: "model", Title: "Model"},
	{Key: "data", Title: "Data"},
	{Key: "training", Title: "Training"},
	{Key: "devices", Title: "Devices"},
	{Key: "output", Title: "Checkpoints and metrics"},
	{Key: "plan", Title: "Plan"},
	{Key: "check", Title: "Check and measurements"},
	{Key: "ahead", Title: "Without the slice"},
	{Key: "demo", Title: "Without any file"},
}

type finetuneCmd struct {
	job.Config
	ConfigFile configFile `name:"config" group:"demo" placeholder:"FILE.yaml" help:"Take flags from a YAML file, one 'flag: value' a line; flags of the command line win. An unknown key is an error. A pipe will do, such as /dev/stdin or the <(…) of a shell."`
}

// Help is the long help.
func (finetuneCmd) Help() string {
	return `Trains all parameters of a model on the records of a file and writes, at each epoch's end, a checkpoint under --storage-path: the model as a Hugging Face folder, with the tensor names and dtypes it came with, and the train state. Each step is a line of metrics.jsonl there.

Killed at any moment, the same command continues from the last checkpoint, with the same numbers to the bit as a run that was never stopped. SIGTERM, SIGINT and SIGHUP finish the step, save and exit with code 75 within --grace-period; a second one, more than a second later, skips the save. The last line says what was saved and what was lost. A run goes on when the reader of its output goes away. A folder that holds a run with other settings is refused, and every difference named; --allow-changed goes on in spite of those that it names (docs/checkpoint.md says what that means for each).

The flags --model-id, --topology, --accelerator-type, --num-workers, --dataset-split, --num-epochs, --batch-size-per-device and --storage-path are those of the published Ray Train job for Gemma 4, as are the learning rate, weight decay, sequence length, seed and the dropped last batch.`
}

//go:embed demo.yaml
var demoPreset []byte

// BeforeResolve gives --demo its values, below those of the command line.
func (*finetuneCmd) BeforeResolve(ctx *kong.Context) error {
	for _, p := range ctx.Path {
		if p.Flag != nil && p.Flag.Name == "demo" {
			preset, err := parsePreset("demo.yaml", demoPreset, ctx.Selected())
			if err != nil {
				return err
			}
			ctx.AddResolver(preset)
		}
	}
	return nil
}

// Run trains.
func (c *finetuneCmd) Run(s streams) error {
	stop, undo := onSignals()
	defer undo()
	keepOnWithoutReader()
	console := job.Console{
		Out:      s.Out,
		Terminal: isTerminal(s.Out),
		Log:      slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{ReplaceAttr: dropTime})),
	}
	_, err := job.Run(context.Background(), c.Config, stop, console)
	return err
}

// dropTime leaves the time out of log lines: what collects them adds its own.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// kongTarget is a throw-away variable of a flag's type.
func kongTarget(flag *kong.Flag) reflect.Value { return reflect.New(flag.Target.Type()).Elem() }
