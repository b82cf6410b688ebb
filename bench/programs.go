package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pluginName is the name under which JAX registers weft's plugin; JAX_PLATFORMS selects it.
const pluginName = "weft_cpu"

// bench is what all programs need.
type bench struct {
	options
	work, inputs         string // folders
	weft, python, script string // files
	plugin               string // the PJRT plugin of weft and jax-plugin
}

// figures are one run of one program, as weft bench step --json and jax_gemma3.py print them.
type figures struct {
	Contender string `json:"contender"` // weft, jax-plugin or jax-cpu: set here
	Repeat    int    `json:"repeat"`    // set here

	Version       string    `json:"version"`
	Devices       int       `json:"devices"`
	DType         string    `json:"dtype"`
	Layers        string    `json:"layers"`
	Batch         int       `json:"batch"`
	Seq           int       `json:"seq"`
	NumParameters int       `json:"num_parameters"`
	CompileS      float64   `json:"compile_s"`
	Warmup        int       `json:"warmup"`
	StepS         []float64 `json:"step_s"`
	Loss          []float64 `json:"loss"` // of every step, those of the warm-up first
	TempBytes     *int64    `json:"temp_bytes"`
	PeakRSSBytes  int64     `json:"peak_rss_bytes"`
}

// runAll runs every program for every dtype, as often as asked, each repetition starting with another program.
func (b *bench) runAll(ctx context.Context) ([]figures, error) {
	var runs []figures
	for repeat := range b.Repeat {
		for _, dtype := range b.DTypes {
			for i := range b.Programs {
				program := b.Programs[(i+repeat)%len(b.Programs)]
				f, err := b.runOne(ctx, program, dtype)
				if err != nil {
					return nil, err
				}
				f.Contender, f.Repeat = program, repeat
				fmt.Fprintf(os.Stderr, "bench: %d/%d %s %s: compiled in %.1f s, step %.3f s, loss %.6f\n",
					repeat+1, b.Repeat, program, dtype, f.CompileS, median(f.StepS), f.Loss[0])
				runs = append(runs, f)
			}
		}
	}
	return runs, nil
}

func (b *bench) runOne(ctx context.Context, program, dtype string) (figures, error) {
	common := []string{"--dtype", dtype, "--steps", fmt.Sprint(b.Steps), "--warmup", fmt.Sprint(b.Warmup)}
	var cmd *exec.Cmd
	if program == "weft" {
		cmd = b.weftCommand(ctx, common)
	} else {
		cmd = b.jaxCommand(ctx, program, append([]string{"--inputs", b.inputs, "--layers", b.Layers}, common...)...)
	}
	out, err := b.output(ctx, cmd)
	if err != nil {
		return figures{}, fmt.Errorf("%s %s: %w", program, dtype, err)
	}
	var f figures
	if err := json.Unmarshal(out, &f); err != nil {
		return figures{}, fmt.Errorf("%s %s: its figures %q: %w", program, dtype, out, err)
	}
	if err := b.checkFigures(f, dtype); err != nil {
		return figures{}, fmt.Errorf("%s %s: %w", program, dtype, err)
	}
	return f, nil
}

// checkFigures makes sure that a program ran what it was asked for.
func (b *bench) checkFigures(f figures, dtype string) error {
	switch {
	case f.DType != dtype || f.Layers != b.Layers:
		return fmt.Errorf("it ran %s with %s layers, not %s with %s layers", f.DType, f.Layers, dtype, b.Layers)
	case f.Batch != b.Batch || f.Seq != b.Seq:
		return fmt.Errorf("it ran a batch of %d × %d, not %d × %d", f.Batch, f.Seq, b.Batch, b.Seq)
	case f.Devices != 1:
		return fmt.Errorf("it ran on %d devices, not on one", f.Devices)
	case len(f.StepS) != b.Steps || len(f.Loss) != b.Steps+b.Warmup:
		return fmt.Errorf("it gave %d times and %d losses for %d steps after %d", len(f.StepS), len(f.Loss), b.Steps, b.Warmup)
	}
	return nil
}

func (b *bench) weftCommand(ctx context.Context, common []string) *exec.Cmd {
	args := append([]string{"bench", "step", "--json", "--config", filepath.Join(b.inputs, "config.json"), "--weights", b.inputs,
		"--batch-file", filepath.Join(b.inputs, "batch.json"), "--platform", "cpu", "--devices", "1", "--plugin", b.plugin}, common...)
	if b.Layers == "unrolled" {
		args = append(args, "--no-scan")
	}
	return exec.CommandContext(ctx, b.weft, args...)
}

// jaxCommand runs the JAX program on jaxlib's own CPU, or on weft's plugin with one device.
func (b *bench) jaxCommand(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.python, append([]string{"-E", "-s", b.script}, args...)...)
	cmd.Env = append(os.Environ(), "JAX_PLATFORMS=cpu", "JAX_ENABLE_COMPILATION_CACHE=false", "XLA_FLAGS=")
	if program == "jax-plugin" {
		cmd.Env = append(cmd.Env, "JAX_PLATFORMS="+pluginName, "PJRT_NAMES_AND_LIBRARY_PATHS="+pluginName+":"+b.pluginConfig())
	}
	return cmd
}

// pluginConfig is the path of the file that tells JAX the plugin's path and its create options.
func (b *bench) pluginConfig() string { return filepath.Join(b.work, "plugin.json") }

func (b *bench) writePluginConfig() error {
	raw, err := json.Marshal(map[string]any{"library_path": b.plugin, "create_options": map[string]int{"cpu_device_count": 1}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.pluginConfig(), raw, 0o644); err != nil {
		return fmt.Errorf("write JAX's plugin configuration: %w", err)
	}
	return nil
}

func (b *bench) output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("%w: %s", err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	return stdout.Bytes(), nil
}
