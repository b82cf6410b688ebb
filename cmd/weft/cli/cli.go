// Package cli is weft's command line: one file a command, whose help text is its contract.
//
// A command returns an error; Main prints it as one line that begins with "weft:" and turns it into the exit code.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"weft/cmd/weft/job"
	"weft/engine/trainer"
)

// The exit codes, which are part of the contract.
const (
	exitOK = 0
	// exitFailed is a run that began and failed.
	exitFailed = 1
	// exitInput is wrong usage or input, found before anything was trained.
	exitInput = 2
	// exitRetry (EX_TEMPFAIL of sysexits.h) is a run that was asked to stop: the same command continues it.
	exitRetry = 75
)

// commands is the root of the command line.
type commands struct {
	Finetune   finetuneCmd   `cmd:"" help:"Fine-tune a model: full parameters, FSDP over the devices, AdamW, a checkpoint an epoch."`
	Checkpoint checkpointCmd `cmd:"" help:"List, verify, export, compare and delete checkpoints."`
	Plan       planCmd       `cmd:"" help:"Compile the training step for a TPU slice without one: memory, communication, speed, and what fits."`
	Collective collectiveCmd `cmd:"" name:"collectives" help:"Check that the devices of a slice compute and communicate together, and measure how fast."`
	Tokenize   tokenizeCmd   `cmd:"" help:"Turn lines of JSON strings into token ids, or ids into text."`
	Plugin     pluginCmd     `cmd:"" help:"Install, list or verify PJRT plugins (the device backends)."`
	Bench      benchCmd      `cmd:"" help:"Measure parts of weft."`
	Ray        rayCmd        `cmd:"" help:"Run weft on TPU slices of a Ray cluster, and look after it there."`
	K8s        k8sCmd        `cmd:"" name:"k8s" help:"Write the manifests that run weft on TPU slices of GKE."`
	TPUVM      tpuvmCmd      `cmd:"" name:"tpuvm" help:"Make a slice of Cloud TPU VMs, run weft on all its hosts, and delete it: prints the gcloud lines, or runs them."`
	Doctor     doctorCmd     `cmd:"" help:"Look whether this host is fit for a run: plugin, TPU, slice, memory, disks, storage, the other hosts."`
	Version    versionCmd    `cmd:"" help:"Print weft's version and what it was built with."`
}

// streams are what a command reads and writes.
type streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// exited carries kong's request to exit (after --help) to Main.
type exited struct{ code int }

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) (code int) {
	defer func() {
		fault := recover()
		if e, ok := fault.(exited); ok {
			code = e.code
		} else if fault != nil {
			panic(fault)
		}
	}()
	err := run(args, streams{In: in, Out: out, Err: errs})
	if errors.Is(err, errDifferent) {
		return exitFailed // as diff(1), without a word
	}
	if err != nil {
		fmt.Fprintln(errs, "weft: "+job.OneLine(err))
		return exitCode(err)
	}
	return exitOK
}

func run(args []string, s streams) error {
	var root commands
	parser, err := newParser(&root, s)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return usageError{err}
	}
	if err := refuseEmpty(ctx); err != nil {
		return err
	}
	return ctx.Run(s)
}

func newParser(root *commands, s streams) (*kong.Kong, error) {
	return kong.New(root,
		kong.Name("weft"),
		kong.Description("weft fine-tunes language models on TPU slices and on CPUs. Exit codes: 0 done, 1 the run failed, 2 wrong usage or input, 75 stopped on request and resumable."),
		kong.Writers(s.Out, s.Err),
		kong.Exit(func(code int) { panic(exited{code}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120, NoExpandSubcommands: true}),
		kong.ValueFormatter(withDefault),
		kong.ExplicitGroups(groups),
	)
}

// withDefault adds a flag's default to its help, where kong does not show it.
func withDefault(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	if v.HasDefault && v.Default != "" && v.Default != "0" && v.Tag.PlaceHolder != "" && !strings.Contains(help, "Default:") {
		help += " Default: " + v.Default + "."
	}
	return help
}

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string {
	text := e.err.Error()
	var input *job.InputError
	if errors.As(e.err, &input) || strings.Contains(text, "did you mean") {
		return text
	}
	return text + " (see weft --help)"
}

func (e usageError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var input *job.InputError
	var usage usageError
	var remote *jobError
	var coded *codedError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &remote):
		return remote.code
	case errors.Is(err, trainer.ErrStopped):
		return exitRetry
	case errors.As(err, &usage), errors.As(err, &input):
		return exitInput
	default:
		return exitFailed
	}
}

// isTerminal tells whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
