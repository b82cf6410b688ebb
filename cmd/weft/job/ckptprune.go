package job

import (
	"context"
	"errors"
	"fmt"
	"io"

	"weft/checkpoint"
)

// PruneRules are the flags that say which checkpoints stay; a checkpoint goes when none of the rules keeps it.
type PruneRules struct {
	Keep      int    `default:"0" placeholder:"N" help:"Keep the best N by --keep-by."`
	KeepBy    string `name:"keep-by" default:"loss" enum:"loss,eval_loss,step" help:"Which are the best: those of the lowest loss over an epoch, of the lowest eval_loss, or of the latest step. One without that figure ranks last."`
	KeepLast  int    `name:"keep-last" default:"0" placeholder:"N" help:"Keep the newest N."`
	KeepEvery int    `name:"keep-every" default:"0" placeholder:"K" help:"Keep the checkpoints at the end of epochs K, 2K, 3K…."`
}

func (r PruneRules) options() (checkpoint.Options, error) {
	for _, n := range []numberFlag{{"--keep", r.Keep, 0, 1 << 30}, {"--keep-last", r.KeepLast, 0, 1 << 30}, {"--keep-every", r.KeepEvery, 0, 1 << 30}} {
		if err := n.check(); err != nil {
			return checkpoint.Options{}, err
		}
	}
	if r.Keep == 0 && r.KeepLast == 0 && r.KeepEvery == 0 {
		return checkpoint.Options{}, errors.New("say what stays: give --keep N, --keep-last N or --keep-every K; the newest checkpoint stays in any case")
	}
	return checkpoint.Options{Keep: r.Keep, KeepBy: r.KeepBy, KeepLast: r.KeepLast, KeepEvery: r.KeepEvery}, nil
}

// PruneCheckpoints deletes the checkpoints of a run's folder that no rule keeps, and prints each with what becomes of it
// and why. With dryRun it only prints. A folder that a live run owns is refused, but for a dry run.
func PruneCheckpoints(ctx context.Context, url string, rules PruneRules, dryRun bool, w io.Writer) error {
	opts, err := rules.options()
	if err != nil {
		return Input(err)
	}
	p, err := openCheckpoints(ctx, url)
	if err != nil {
		return err
	}
	if p.one != nil {
		return Input(fmt.Errorf("%s is one checkpoint: give the folder of its run", url))
	}
	opts.ReadOnly = dryRun
	m, err := checkpoint.Open(p.fsys, p.root, opts)
	if errors.Is(err, checkpoint.ErrLocked) {
		return Input(fmt.Errorf("%w; --dry-run works meanwhile", err))
	}
	if err != nil {
		return err
	}
	if dryRun {
		plan, err := m.PlanPrune()
		if err != nil {
			return errors.Join(err, m.Close())
		}
		printPlan(w, plan, "would delete")
		return m.Close()
	}
	removed, err := m.PruneAs(func(plan []checkpoint.Decision) error {
		printPlan(w, plan, "deletes")
		return ctx.Err()
	})
	if err == nil || len(removed) > 0 {
		var freed int64
		for _, e := range removed {
			freed += e.Bytes
		}
		fmt.Fprintf(w, "deleted %s, %s\n", plural(len(removed), "checkpoint", "checkpoints"), decimalSize(freed))
	}
	return errors.Join(err, m.Close())
}

func printPlan(w io.Writer, plan []checkpoint.Decision, deletes string) {
	gone := 0
	for _, d := range plan {
		if len(d.Keep) == 0 {
			gone++
			fmt.Fprintf(w, "%s %s (%s)\n", deletes, d.Entry.Name, decimalSize(d.Entry.Bytes))
			continue
		}
		fmt.Fprintf(w, "keeps %s: %s\n", d.Entry.Name, reasonsText(d.Keep))
	}
	if gone == 0 {
		fmt.Fprintln(w, "nothing to delete")
	}
}
