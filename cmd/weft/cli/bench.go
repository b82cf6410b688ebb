package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"weft/cmd/weft/job"
)

type benchCmd struct {
	Step benchStepCmd `cmd:"" help:"Compile one training step (AdamW, one batch again and again) and time it."`
}

type benchStepCmd struct {
	job.BenchConfig
	JSON bool `name:"json" help:"Print one JSON object, with the fields of bench/jax_gemma3.py."`
}

// Run prints the figures.
func (c benchStepCmd) Run(s streams) error {
	result, err := job.BenchStep(context.Background(), c.BenchConfig, job.Console{Out: s.Out})
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.Out).Encode(result)
	}
	tokens := float64(result.Batch*result.Seq) / result.MedianStepS
	_, err = fmt.Fprintf(s.Out, "%s on %d × %s: compiled in %.1f s; median of %d steps %.4f s (%.1f tokens/s); loss %.6f\n",
		result.DType, result.Devices, result.Platform, result.CompileS, len(result.StepS), result.MedianStepS, tokens, result.Loss[len(result.Loss)-1])
	return err
}
