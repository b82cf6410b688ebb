// Command plans plans the training step of released sizes with `weft plan` at the default effort, one after the other, and
// writes the figures as a section of BENCHMARKS.md; with --compare it puts settings of one size side by side, in a section
// of its own for each effort. Every number comes out of `weft plan --json`. It takes an hour or so on two cores.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"weft/bench/internal/sections"
	"weft/internal/build"
)

// step is what is planned: the published job's settings, batch 4 × 512 a device.
type step struct{ model, topology string }

// steps are all that the section lists.
var steps = []step{
	{"gemma-4-E2B", "v6e:4x4"},
	{"gemma-4-E2B", "tpu7x:2x2x2"},
	{"gemma-4-E4B", "v6e:4x4"},
	{"gemma-3-1b", "v6e:4x4"},
	{"gemma-3-270m", "v6e:4x4"},
	{"gemma-4-31B", "v6e:4x4"},
}

type options struct {
	Out     string   `default:"BENCHMARKS.md" help:"File whose section is written; created when it is not there."`
	Effort  string   `default:"default" help:"As in weft plan."`
	Only    []string `placeholder:"MODEL@TOPOLOGY" help:"Plan only these, such as gemma-4-E2B@v6e:4x4."`
	Compare bool     `help:"Write the section that compares settings at this effort instead."`
	Weft    string   `placeholder:"PATH" help:"Run this weft instead of building it."`
	Plugin  string   `placeholder:"PATH" help:"As in weft plan."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("plans"), kong.Description("Plan the training step of released sizes; write the section of BENCHMARKS.md."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "plans:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "weft-plans-")
	if err != nil {
		return fmt.Errorf("make a working folder: %w", err)
	}
	defer os.RemoveAll(work)
	if o.Weft == "" {
		o.Weft = filepath.Join(work, "weft")
		if err := build.Weft(ctx, o.Weft); err != nil {
			return fmt.Errorf("%w; run this in the repository", err)
		}
	}
	if o.Compare {
		return o.compare(ctx)
	}
	var plans []*figures
	for _, s := range steps {
		if !o.wants(s) {
			continue
		}
		p, err := planOf(ctx, o, s)
		if err != nil {
			return err
		}
		plans = append(plans, p)
	}
	if len(plans) == 0 {
		return fmt.Errorf("--only %s: nothing is planned under that name", strings.Join(o.Only, ","))
	}
	return sections.Write(o.Out, released, section(plans, o.Effort, sections.Revision()))
}

func (o options) wants(s step) bool {
	if len(o.Only) == 0 {
		return true
	}
	for _, name := range o.Only {
		if name == s.model+"@"+s.topology {
			return true
		}
	}
	return false
}

// planOf runs weft plan.
func planOf(ctx context.Context, o options, s step) (*figures, error) {
	p := &figures{name: s.model}
	return p, o.plan(ctx, s, o.Effort, nil, p)
}

// plan runs weft plan and reads its JSON into result.
func (o options) plan(ctx context.Context, s step, effort string, more []string, result any) error {
	args := append([]string{"plan", "--model-id", s.model, "--topology", s.topology, "--effort", effort, "--json"}, more...)
	if o.Plugin != "" {
		args = append(args, "--plugin", o.Plugin)
	}
	cmd := exec.CommandContext(ctx, o.Weft, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("weft %s: %w", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		return fmt.Errorf("weft %s: its output: %w", strings.Join(args, " "), err)
	}
	return nil
}
