package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weft/engine"
	"weft/engine/trainer"
	"weft/optim"
)

// BenchConfig says which training step to time.
type BenchConfig struct {
	ConfigPath   string  `name:"config" required:"" placeholder:"FILE" help:"config.json of the model, or its folder."`
	Weights      string  `placeholder:"DIR" help:"Folder of the weights. Default: random ones."`
	BatchFile    string  `name:"batch-file" placeholder:"FILE" help:"JSON object with input_ids, labels and attention_mask, each rows of integers. Default: --batch × --seq random ids, all of them targets."`
	Batch        int     `default:"4" help:"Rows of the global batch."`
	Seq          int     `default:"128" help:"Tokens of a row."`
	DType        string  `name:"dtype" default:"float32" enum:"float32,bfloat16" help:"Compute dtype: ${enum}."`
	Steps        int     `default:"5" help:"Steps to time."`
	Warmup       int     `default:"2" help:"Steps before those."`
	Remat        string  `default:"none" enum:"none,full" help:"As in finetune: ${enum}."`
	Scan         bool    `default:"true" negatable:"" help:"As in finetune."`
	Platform     string  `default:"auto" enum:"auto,cpu,tpu" help:"As in finetune: ${enum}."`
	Devices      int     `default:"1" help:"Devices (virtual ones on a CPU)."`
	Plugin       string  `placeholder:"PATH" help:"As in finetune."`
	CompileCache string  `name:"compile-cache" default:"off" placeholder:"DIR" help:"As in finetune, but off by default, so that compile_s is a compilation."`
	Seed         int64   `default:"42" help:"Of random weights and ids."`
	LearningRate float64 `name:"learning-rate" default:"2e-5" help:"As in finetune."`
	WeightDecay  float64 `name:"weight-decay" default:"0.01" help:"As in finetune."`
}

// BenchResult has the fields of bench/jax_gemma3.py.
type BenchResult struct {
	Program       string    `json:"program"`
	Version       string    `json:"version"`
	Platform      string    `json:"platform"`
	Plugin        string    `json:"plugin"`
	Devices       int       `json:"devices"`
	DType         string    `json:"dtype"`
	Layers        string    `json:"layers"`
	Remat         string    `json:"remat"`
	Batch         int       `json:"batch"`
	Seq           int       `json:"seq"`
	NumParameters int       `json:"num_parameters"`
	CompileS      float64   `json:"compile_s"`
	Warmup        int       `json:"warmup"`
	StepS         []float64 `json:"step_s"`
	MedianStepS   float64   `json:"median_step_s"`
	Loss          []float64 `json:"loss"`
	TempBytes     *int64    `json:"temp_bytes"`
	PeakRSSBytes  int64     `json:"peak_rss_bytes"`
}

// BenchStep compiles one training step and times it, each step waited for before the next begins.
func BenchStep(ctx context.Context, b BenchConfig, console Console) (*BenchResult, error) {
	if b.Batch < 1 || b.Seq < 2 || b.Steps < 1 || b.Warmup < 0 {
		return nil, Input(fmt.Errorf("--batch %d, --seq %d, --steps %d, --warmup %d: give at least 1, 2, 1 and 0", b.Batch, b.Seq, b.Steps, b.Warmup))
	}
	c := b.job()
	batch, err := b.readBatch(&c)
	if err != nil {
		return nil, Input(err)
	}
	r := &run{Config: &c, open: openRuntime, report: newReport(console, true), globalBatch: len(batch.InputIDs) / c.MaxSeqLen}
	result, err := r.bench(ctx, &b, batch)
	return result, errors.Join(err, r.close())
}

// job is the finetune configuration of the same step.
func (b *BenchConfig) job() Config {
	c := Config{
		ModelFlags: ModelFlags{
			ModelID: b.ConfigPath, Freeze: FreezeAuto, ParamDType: DTypeAuto, ComputeDType: b.DType, Remat: b.Remat, Scan: b.Scan,
		},
		BatchFlags: BatchFlags{MaxSeqLen: b.Seq}, UpdateFlags: UpdateFlags{FirstMomentDType: DTypeFloat32},
		RandomInit: b.Weights == "", DeviceFlags: DeviceFlags{Platform: b.Platform, Devices: b.Devices, Plugin: b.Plugin, CompileCache: b.CompileCache},
		Seed: b.Seed, LearningRate: b.LearningRate, WeightDecay: b.WeightDecay,
		Beta1: optim.DefaultBeta1, Beta2: optim.DefaultBeta2, Eps: optim.DefaultEps, Schedule: "constant",
	}
	if b.Weights != "" {
		c.ModelID = b.Weights
	}
	return c
}

// readBatch reads --batch-file, or draws a batch once the vocabulary is known.
func (b *BenchConfig) readBatch(c *Config) (engine.Batch, error) {
	if b.BatchFile == "" {
		return engine.Batch{InputIDs: make([]int32, b.Batch*b.Seq)}, nil
	}
	raw, err := os.ReadFile(b.BatchFile)
	if err != nil {
		return engine.Batch{}, fmt.Errorf("--batch-file: %w", err)
	}
	var file struct {
		InputIDs [][]int32 `json:"input_ids"`
		Labels   [][]int32 `json:"labels"`
		Mask     [][]int32 `json:"attention_mask"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return engine.Batch{}, fmt.Errorf("--batch-file %s: %w", b.BatchFile, err)
	}
	if len(file.InputIDs) == 0 || len(file.InputIDs) != len(file.Labels) || len(file.InputIDs) != len(file.Mask) {
		return engine.Batch{}, fmt.Errorf("--batch-file %s: input_ids, labels and attention_mask must have as many rows, at least one", b.BatchFile)
	}
	c.MaxSeqLen = len(file.InputIDs[0])
	out := engine.Batch{InputIDs: slices.Concat(file.InputIDs...), Labels: slices.Concat(file.Labels...), Mask: slices.Concat(file.Mask...)}
	for _, v := range [][]int32{out.InputIDs, out.Labels, out.Mask} {
		if len(v) != len(file.InputIDs)*c.MaxSeqLen {
			return engine.Batch{}, fmt.Errorf("--batch-file %s: every row must have the same number of tokens", b.BatchFile)
		}
	}
	return out, nil
}

// draw fills a batch with ids above the special ones, all of them targets.
func draw(batch *engine.Batch, vocab int, seed int64) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	batch.Mask = make([]int32, len(batch.InputIDs))
	for i := range batch.InputIDs {
		batch.InputIDs[i] = 3 + rng.Int32N(int32(max(vocab-3, 1)))
		batch.Mask[i] = 1
	}
	batch.Labels = batch.InputIDs
}

func (r *run) bench(ctx context.Context, b *BenchConfig, batch engine.Batch) (*BenchResult, error) {
	var err error
	if r.files, err = readModelFiles(r.ModelID, r.RandomInit); err != nil {
		return nil, Input(err)
	}
	if batch.Labels == nil {
		draw(&batch, r.files.arch.Info().VocabSize, b.Seed)
	}
	if err := r.openDevices(ctx); err != nil {
		return nil, err
	}
	if err := r.openModel(ctx); err != nil {
		return nil, Input(err)
	}
	if r.globalBatch%r.rt.Mesh().NumDevices() != 0 {
		return nil, Input(fmt.Errorf("--batch: %d rows do not divide over %d devices", r.globalBatch, r.rt.Mesh().NumDevices()))
	}
	if r.opt, err = r.adamW(optim.Constant(r.LearningRate), r.Beta1, r.Beta2, r.Eps, r.WeightDecay); err != nil {
		return nil, Input(err)
	}
	shape := stepConfig(r.rt.Mesh(), r.globalBatch, r.MaxSeqLen, 0)
	if r.step, err = r.rt.NewStep(r.model, r.opt, shape); err != nil {
		return nil, err
	}
	if r.state, err = r.rt.NewState(r.model, r.opt, r.model.fill); err != nil {
		return nil, err
	}
	batch.Rows = r.step.BatchRows()
	trained, frozen := countParameters(r.model.Params())
	out := &BenchResult{
		Program: "weft", Version: Version(), Platform: r.rt.Platform(), Plugin: r.rt.DeviceKind(), Devices: r.rt.Mesh().NumDevices(),
		DType: r.ComputeDType, Layers: map[bool]string{true: "scan", false: "unrolled"}[r.Scan], Remat: r.Remat,
		Batch: r.globalBatch, Seq: r.MaxSeqLen, NumParameters: trained + frozen, CompileS: r.step.CompileTime.Seconds(), Warmup: b.Warmup,
	}
	if err := r.timeSteps(b, batch, out); err != nil {
		return nil, err
	}
	return out, nil
}

func (r *run) timeSteps(b *BenchConfig, batch engine.Batch, out *BenchResult) error {
	step := trainer.Compiled(r.step)
	for i := range b.Warmup + b.Steps {
		start := time.Now()
		pending, err := step.Run(r.state, batch)
		if err != nil {
			return err
		}
		m, err := pending.Wait()
		if err != nil {
			return err
		}
		out.Loss = append(out.Loss, m.Loss())
		if i >= b.Warmup {
			out.StepS = append(out.StepS, time.Since(start).Seconds())
		}
	}
	sorted := slices.Sorted(slices.Values(out.StepS))
	out.MedianStepS = (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	if m, err := r.step.MemoryStats(); err == nil {
		out.TempBytes = &m.Temp
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	out.PeakRSSBytes = usage.Maxrss * 1024
	return nil
}
