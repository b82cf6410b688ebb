package cli

import (
	"context"
	"encoding/json"
	"io"
	"os/signal"
	"syscall"

	"weft/cmd/weft/job"
)

type planCmd struct {
	job.PlanConfig
	JSON bool `name:"json" group:"plan" help:"Print one JSON object; with --compare an object whose field plans lists them, the settings given first."`
}

// Help is the long help.
func (planCmd) Help() string {
	return `Compiles the training step of 'weft finetune' with libtpu for a TPU slice, on a machine that need not have one, and prints what it needs and how fast it can be: memory of a device by class against its limit, arithmetic, memory traffic, every kind of collective with its bytes on the wire, a roofline with the resource that bounds it, and a range of tokens/s and MFU with the assumptions it rests on. When the step does not fit, it tries smaller ones, and says which fits.

The flags of the model, the batch and the step are those of 'weft finetune'. Weights are not read: a config.json is enough, or the name of one inside weft. A compilation takes minutes at the default effort and seconds to a minute at --effort O0. libtpu is downloaded at first need; docs/plan.md explains the figures.`
}

// Run prints the plan.
func (c *planCmd) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	plans, err := job.Plan(ctx, c.PlanConfig, s.Err)
	if err != nil {
		return err
	}
	if c.JSON {
		return printPlansJSON(s.Out, plans, len(c.Compare) > 0)
	}
	return job.WritePlans(s.Out, plans)
}

func printPlansJSON(w io.Writer, plans []*job.StepPlan, list bool) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if list {
		return e.Encode(map[string]any{"plans": plans})
	}
	return e.Encode(plans[0])
}
