package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"weft/cmd/weft/job"
	"weft/engine/tpu"
	"weft/launch/tpuvm"
)

type tpuvmCmd struct {
	Create tpuvmCreateCmd `cmd:"" help:"Make a slice of TPU VMs."`
	Copy   tpuvmCopyCmd   `cmd:"" help:"Put weft and libtpu on every host of a slice."`
	Run    tpuvmRunCmd    `cmd:"" help:"Start weft on every host of a slice and follow it."`
	Stop   tpuvmStopCmd   `cmd:"" help:"Ask weft on every host of a slice to save and end, and wait for it."`
	Delete tpuvmDeleteCmd `cmd:"" help:"Delete a slice, which ends what it costs."`
}

// Help is the long help.
func (tpuvmCmd) Help() string {
	return `Each command prints the gcloud lines that do it; with --run it runs them, one after the other, and stops at the first that fails. A slice is paid for from the moment that it exists until it is deleted, busy or not. docs/tpu-vm.md walks from create to delete. TPU7x is to be had through GKE alone: weft k8s render.`
}

// sliceFlags say which slice.
type sliceFlags struct {
	Name      string `arg:"" help:"Name of the slice."`
	Zone      string `required:"" placeholder:"ZONE" help:"Its zone, such as europe-west4-a."`
	Project   string `placeholder:"ID" help:"Its project. Default: gcloud's."`
	NumSlices int    `name:"num-slices" default:"1" placeholder:"N" help:"Number of slices, made together as one queued resource, to train on together."`
	Queued    bool   `help:"A queued resource: make it when there is capacity, instead of failing when there is none. Always so with --num-slices."`
	Execute   bool   `name:"run" help:"Run the lines instead of printing them."`
}

func (f *sliceFlags) slice() *tpuvm.Slice {
	return &tpuvm.Slice{Name: f.Name, Zone: f.Zone, Project: f.Project, Number: f.NumSlices, Queued: f.Queued}
}

// pollEvery is how often a queued resource is looked at.
const pollEvery = 30 * time.Second

// do prints or runs the steps. An error of a run says that the slice is paid for, unless that is known to have ended.
func (f *sliceFlags) do(s streams, note string, steps []tpuvm.Step) error {
	if !f.Execute {
		return printSteps(s.Out, note, steps)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	runner := &tpuvm.Runner{In: s.In, Out: s.Out, Err: s.Err, Every: pollEvery}
	err := runner.Run(ctx, steps)
	switch {
	case errors.Is(err, tpuvm.ErrNoGcloud):
		return job.Input(err)
	case err != nil:
		return fmt.Errorf("%w; %s", err, f.slice().Left())
	}
	return nil
}

func printSteps(out io.Writer, note string, steps []tpuvm.Step) error {
	if note != "" {
		fmt.Fprintf(out, "# %s\n", note)
	}
	for _, step := range steps {
		if _, err := fmt.Fprintln(out, step); err != nil {
			return err
		}
	}
	return nil
}

type tpuvmCreateCmd struct {
	sliceFlags
	Topology        string `required:"" placeholder:"AxB" help:"Shape of each slice, such as 4x4 or 2x2x2."`
	AcceleratorType string `name:"accelerator-type" required:"" placeholder:"TYPE" help:"Type of TPU, such as TPU-V6E, TPU-V5P or TPU-V5E."`
	RuntimeVersion  string `name:"runtime-version" placeholder:"NAME" help:"Software of the VMs. Default: the usual one of the type, such as v2-alpha-tpuv6e."`
	Spot            bool   `help:"Ask for spot VMs: cheaper, and taken away when others need them."`
	Reserved        bool   `help:"Use the project's reservation."`
	ServiceAccount  string `name:"service-account" placeholder:"EMAIL" help:"Service account of the VMs, which may use the bucket. Default: the project's default."`
}

// Run makes a slice.
func (c *tpuvmCreateCmd) Run(s streams) error {
	top, err := tpu.ParseJob(c.Topology, c.AcceleratorType)
	if err != nil {
		return job.Input(err)
	}
	steps, err := c.slice().Create(tpuvm.Create{
		Topology: top, Runtime: c.RuntimeVersion, Spot: c.Spot, Reserved: c.Reserved, ServiceAccount: c.ServiceAccount,
	})
	if err != nil {
		return job.Input(err)
	}
	note := fmt.Sprintf("%d chips of %s, paid for from the moment that they are there until they are deleted, busy or not.", c.NumSlices*top.ChipsPerSlice(), top.Chip.Title)
	if c.Execute {
		fmt.Fprintln(s.Err, note)
	}
	return c.do(s, note, steps)
}

type tpuvmCopyCmd struct {
	sliceFlags
	Binary string `placeholder:"PATH" help:"The weft to copy, built for linux/amd64. Default: this program."`
}

// Run copies weft.
func (c *tpuvmCopyCmd) Run(s streams) error {
	binary := c.Binary
	if binary == "" {
		if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
			return job.Input(fmt.Errorf("--binary: this program is for %s/%s, TPU VMs are linux/amd64: give one that is built for them", runtime.GOOS, runtime.GOARCH))
		}
		var err error
		if binary, err = os.Executable(); err != nil {
			return job.Input(fmt.Errorf("find this program: %w: give --binary", err))
		}
	}
	if info, err := os.Stat(binary); err != nil || !info.Mode().IsRegular() {
		return job.Input(fmt.Errorf("--binary %s is not a file: give the weft to copy", binary))
	}
	steps, err := c.slice().Copy(binary)
	if err != nil {
		return job.Input(err)
	}
	return c.do(s, "", steps)
}

type tpuvmRunCmd struct {
	sliceFlags
	Env  []string `sep:"none" placeholder:"NAME=VALUE" help:"An environment variable for every host; can be given several times."`
	Args []string `arg:"" optional:"" passthrough:"" help:"-- and what weft is to do, such as -- finetune --model-id … --storage-path gs://…"`
}

// Help is the long help.
func (tpuvmRunCmd) Help() string {
	return `weft goes on when the connection is lost or this command is ended: weft tpuvm stop asks it to save and end. The exit code is weft's, 2 and 75 included, where all hosts end alike.`
}

// Run starts weft.
func (c *tpuvmRunCmd) Run(s streams) error {
	steps, err := c.slice().Run(afterDashes(c.Args), c.Env)
	if err != nil {
		return job.Input(err)
	}
	err = c.do(s, "", steps)
	var failed *tpuvm.StepError
	switch {
	case !errors.As(err, &failed):
		return err
	case failed.Code == exitInput || failed.Code == exitRetry:
		return &codedError{err, failed.Code}
	}
	return fmt.Errorf("%w; %s", err, c.slice().Goes())
}

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

func (e *codedError) Unwrap() error { return e.error }

type tpuvmStopCmd struct{ sliceFlags }

// Run stops weft.
func (c *tpuvmStopCmd) Run(s streams) error {
	steps, err := c.slice().Stop()
	if err != nil {
		return job.Input(err)
	}
	return c.do(s, "", steps)
}

type tpuvmDeleteCmd struct{ sliceFlags }

// Run deletes the slice.
func (c *tpuvmDeleteCmd) Run(s streams) error {
	steps, err := c.slice().Delete()
	if err != nil {
		return job.Input(err)
	}
	return c.do(s, "", steps)
}
