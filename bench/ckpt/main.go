// Command ckpt measures saving and loading of a train state on one device of the CPU plugin against dd and a plain sequential
// read of the same bytes on the same disk, and writes the figures as a section of BENCHMARKS.md. All rounds run in one
// process, one after the other, every kind of work in each of them; only their ratios say something. It takes a minute or
// two for 2 GB.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"weft/bench/internal/sections"
)

type options struct {
	Out    string `default:"BENCHMARKS.md" help:"File whose section is written; empty: none."`
	Dir    string `placeholder:"PATH" help:"Folder on the disk to measure. Default: one for temporary files."`
	Bytes  int64  `default:"2000000000" help:"Size of the train state."`
	Rounds int    `default:"5" help:"Rounds of every kind of work; the medians count."`
	JSON   bool   `help:"Print one JSON object instead of the table."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("ckpt"), kong.Description("Measure saving and loading of checkpoints; write the section of BENCHMARKS.md."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "ckpt:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp(o.Dir, "weft-ckpt-")
	if err != nil {
		return fmt.Errorf("make a working folder: %w; give another --dir", err)
	}
	defer os.RemoveAll(dir)
	b, err := openBench(ctx, dir, o.Bytes)
	if err != nil {
		return err
	}
	defer b.close()
	report := &report{Bytes: b.bytes}
	for i := range o.Rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", i+1, o.Rounds)
		r, err := b.round(ctx, i)
		if err != nil {
			return err
		}
		report.Rounds = append(report.Rounds, *r)
	}
	report.ratios()
	text := report.markdown()
	if o.JSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(report); err != nil {
			return err
		}
	} else {
		fmt.Print(text)
	}
	if o.Out == "" {
		return nil
	}
	return sections.Write(o.Out, marks, text)
}
