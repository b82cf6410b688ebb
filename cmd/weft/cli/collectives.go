package cli

import (
	"context"
	"errors"
	"io"

	"weft/cmd/weft/job"
	"weft/engine/collectives"
)

type collectiveCmd struct {
	job.CollectivesConfig
	JSON bool `name:"json" group:"check" help:"Print one JSON object instead of lines."`
}

// Help is the long help.
func (collectiveCmd) Help() string {
	return `Checks that all devices of a slice compute and communicate together, as ray_core_collectives.py of the published guide does; run it on every host of the slice, as 'weft finetune' is. A feed-forward block (hidden 128, batch 64), split over all devices column-wise, then row-wise, must give what this host computes in float64, within 1e-3 relative and 1e-2 absolute, and within 1e-4 in float32 arithmetic; the sum of rank + 1 over n ranks must be n(n+1)/2.

Each host prints a line for each of its ranks; rank 0's host prints the closing line, once the ranks of all hosts have confirmed theirs, and then the time and bandwidth of all-gather, reduce-scatter and all-reduce by size: algorithm bandwidth is bytes over time, bus bandwidth what each device receives over time. A wrong result is exit code 1, with the rank, what was expected and what came.

--ahead v6e:4x4 runs nothing and needs no TPU: it compiles the same programs for that slice and prints the collectives in what the compiler made. docs/collectives.md has more.`
}

// Run checks and measures.
func (c *collectiveCmd) Run(s streams) error {
	if c.Ahead != "" {
		return c.ahead(s)
	}
	var failed []error
	note := func(err error) { failed = append(failed, err) }
	table := io.Discard
	report, err := job.Collectives(context.Background(), c.CollectivesConfig, job.Console{Out: s.Err, Log: newLog(s.Err)},
		func(r *job.CollectivesReport) {
			if c.JSON {
				return
			}
			note(job.WriteCollectives(s.Out, r))
			if c.Bandwidth && r.First() && r.Err() == nil {
				table = s.Out
				note(job.WriteMeasurementHead(table, r))
			}
		},
		func(m *collectives.Measurement) { note(job.WriteMeasurement(table, m)) })
	if c.JSON && report != nil {
		note(printJSON(s.Out, report))
	}
	return errors.Join(append([]error{err}, failed...)...)
}

func (c *collectiveCmd) ahead(s streams) error {
	ctx, stop := interruptible()
	defer stop()
	report, err := job.CompileCollectives(ctx, c.CollectivesConfig, s.Err)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.Out, report)
	}
	return job.WriteCollectivesAhead(s.Out, report)
}
