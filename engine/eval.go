package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

// Eval is the compiled loss of a model: its forward pass alone, which changes nothing.
type Eval struct {
	*Program
	config StepConfig
	params int
}

// LowerEval writes the loss of a model over one batch as a program: it takes the parameters and a batch and gives the summed
// loss of the targets and their number. Rows that are padding have no targets and add nothing.
func LowerEval(mesh sharding.Mesh, model Model, c StepConfig) (*Lowered, error) {
	params := model.Params()
	var inputs []Input
	for _, p := range params {
		inputs = append(inputs, Input{Name: p.Name, DType: p.DType, Dims: p.Dims, Spec: p.Spec})
	}
	inputs = append(inputs, c.batchInputs()...)
	return Lower(mesh, "eval_step", inputs, func(in []*graph.Node) []Output {
		weights := make(map[string]*graph.Node, len(params))
		for i, p := range params {
			weights[p.Name] = in[i]
		}
		batch := in[len(params):]
		sum, count := model.Loss(weights, BatchNodes{InputIDs: batch[0], Labels: batch[1], Mask: batch[2]})
		return []Output{{Node: sum}, {Node: count}}
	})
}

// NewEval lowers and compiles the loss for the runtime's mesh, or takes it from the compile cache.
func (rt *Runtime) NewEval(model Model, c StepConfig) (*Eval, error) {
	low, err := LowerEval(rt.mesh, model, c)
	if err != nil {
		return nil, err
	}
	program, err := rt.CompileLowered(low)
	if err != nil {
		return nil, err
	}
	return &Eval{Program: program, config: c, params: len(model.Params())}, nil
}

// Losses are the sums of one batch.
type Losses struct {
	// LossSum is the summed cross entropy, in nats, of the Targets targets of the global batch.
	LossSum float64
	Targets int
}

// PendingLosses are those of a batch that may still be running on the devices.
type PendingLosses struct{ arrays []*Array }

// Run enqueues the loss of a batch with the parameters that the state has now, and returns.
func (e *Eval) Run(state *State, batch Batch) (*PendingLosses, error) {
	if len(state.values) != e.params {
		return nil, fmt.Errorf("the state has %d parameters, the evaluation takes %d: it belongs to another model", len(state.values), e.params)
	}
	sent, err := e.rt.sendBatch(e.config, batch)
	defer DestroyAll(sent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotLaunched, err)
	}
	args := make([]*Array, 0, e.params+len(sent))
	results, err := e.Program.Run(append(append(args, state.values...), sent...)...)
	if err != nil {
		return nil, err
	}
	return &PendingLosses{arrays: results}, nil
}

// Wait reads the sums, waiting for the devices, and releases them.
func (p *PendingLosses) Wait() (Losses, error) {
	defer DestroyAll(p.arrays)
	var values [2]float64
	for i := range values {
		raw := make([]byte, 4)
		if err := p.arrays[i].Shards()[0].Read(raw); err != nil {
			return Losses{}, fmt.Errorf("read the losses of an evaluation: %w", err)
		}
		values[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(raw)))
	}
	return Losses{LossSum: values[0], Targets: int(values[1])}, nil
}
