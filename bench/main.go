// Command bench times weft's training step beside the same step written in plain JAX, on one device, and prints a
// Markdown table for BENCHMARKS.md. The programs run one after another, in an order that turns with every repetition, so
// that a machine that grows slower or faster meanwhile is no program's gain. Nothing is printed unless all programs
// compute the same losses from the same weights and batch.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"weft/internal/build"
	"weft/internal/pyenv"
	"weft/pjrt/plugin"
)

//go:embed jax_gemma3.py
var jaxScript []byte

//go:embed requirements.txt
var jaxRequirements string

// options are the flags of the benchmark.
type options struct {
	Config   string   `placeholder:"FILE" help:"config.json of a Gemma 3 text model. Default: configs/gemma-3-270m of the shared folder (../shared or WEFT_SHARED)."`
	Batch    int      `default:"4" help:"Rows of the batch."`
	Seq      int      `default:"128" help:"Tokens of a row."`
	DTypes   []string `name:"dtypes" default:"float32,bfloat16" enum:"float32,bfloat16" help:"Compute dtypes: ${enum}."`
	Layers   string   `default:"scan" enum:"scan,unrolled" help:"Form of the layers in all programs: ${enum}."`
	Steps    int      `default:"5" help:"Steps to time in each run."`
	Warmup   int      `default:"2" help:"Steps before those."`
	Repeat   int      `default:"3" help:"Runs of each program."`
	Programs []string `default:"weft,jax-plugin,jax-cpu" enum:"weft,jax-plugin,jax-cpu" help:"Programs to run; ratios are to the first: ${enum}."`
	Seed     int      `default:"42" help:"Of the weights and the batch."`
	Plugin   string   `placeholder:"PATH" help:"PJRT plugin for weft and jax-plugin. Default: weft's own CPU plugin."`
	JSON     string   `name:"json" placeholder:"FILE" help:"Write every run's figures to this file too."`
}

// note is printed when the Python at hand cannot run the jaxlib that the plugin was built beside.
const note = "bench: this Python is older than 3.12, so JAX is 0.10.2 and older than the plugin's XLA; set WEFT_PYTHON to a newer Python for 0.11.2"

func main() {
	var o options
	kong.Parse(&o, kong.Name("bench"), kong.Description("Time weft's training step beside the same step in plain JAX; print a Markdown table."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.Repeat < 1 || o.Steps < 1 || o.Warmup < 0 {
		return fmt.Errorf("--repeat %d, --steps %d, --warmup %d: give at least 1, 1 and 0", o.Repeat, o.Steps, o.Warmup)
	}
	work, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return fmt.Errorf("make a working folder: %w", err)
	}
	defer os.RemoveAll(work)
	b, err := prepare(ctx, o, work)
	if err != nil {
		return err
	}
	runs, err := b.runAll(ctx)
	if err != nil {
		return err
	}
	if o.JSON != "" {
		if err := writeJSON(o.JSON, runs); err != nil {
			return err
		}
	}
	if err := checkLosses(runs); err != nil {
		return err
	}
	for _, f := range runs {
		if strings.HasPrefix(f.Contender, "jax") && f.Version == "0.10.2" {
			fmt.Fprintln(os.Stderr, note)
			break
		}
	}
	return printTable(w, o, describeMachine(), runs)
}

// prepare builds weft, makes the Python environment and writes the weights and the batch that all programs read.
func prepare(ctx context.Context, o options, work string) (*bench, error) {
	b := &bench{options: o, work: work, inputs: filepath.Join(work, "inputs"), weft: filepath.Join(work, "weft"), script: filepath.Join(work, "jax_gemma3.py")}
	config := o.Config
	if config == "" {
		shared := os.Getenv("WEFT_SHARED")
		if shared == "" {
			shared = filepath.Join("..", "shared")
		}
		config = filepath.Join(shared, "configs", "gemma-3-270m", "config.json")
	}
	if _, err := os.Stat(config); err != nil {
		return nil, fmt.Errorf("the model's shape: %w; give --config or set WEFT_SHARED", err)
	}
	info, err := plugin.Resolve(ctx, "cpu", o.Plugin, os.Stderr)
	if err != nil {
		return nil, err
	}
	b.plugin = info.Path
	if err := b.writePluginConfig(); err != nil {
		return nil, err
	}
	if b.python, err = pyenv.Install(ctx, os.Stderr, "jax", pyenv.ParseRequirements(jaxRequirements)); err != nil {
		return nil, err
	}
	if err := os.WriteFile(b.script, jaxScript, 0o644); err != nil {
		return nil, fmt.Errorf("write the JAX program: %w", err)
	}
	if err := build.Weft(ctx, b.weft); err != nil {
		return nil, fmt.Errorf("%w; run this in the repository", err)
	}
	fmt.Fprintf(os.Stderr, "bench: writing the weights of %s\n", config)
	_, err = b.output(ctx, b.jaxCommand(ctx, "jax-cpu", "--write-inputs", b.inputs, "--config", config,
		"--batch", fmt.Sprint(o.Batch), "--seq", fmt.Sprint(o.Seq), "--seed", fmt.Sprint(o.Seed)))
	return b, err
}

func writeJSON(path string, runs []figures) error {
	raw, err := json.MarshalIndent(runs, "", " ")
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}
