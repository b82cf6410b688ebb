package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

// StepConfig is the shape of one training step.
type StepConfig struct {
	// Batch is the number of rows of the global batch, SeqLen the positions of a row.
	Batch, SeqLen int
	// BatchSpec splits the batch, int32 [Batch, SeqLen], over the mesh.
	BatchSpec sharding.Spec
	// MaxGradNorm clips the global norm of the gradients as torch.nn.utils.clip_grad_norm_ does. 0: no clipping.
	MaxGradNorm float64
}

// Step is a compiled training step.
type Step struct {
	*Program
	config StepConfig
	opt    Optimizer
	// state, in and out: the parameters, and the slots of the trained ones, in the order of Params.
	stateInputs int
}

// The metrics that a step gives after the state, float32 scalars but for the last.
const (
	metricLossSum = iota
	metricTargets
	metricGradNorm
	metricRequest // float32 [3]: how many devices ask to save, to stop, and to fail
	metricOutputs
)

// LowerStep writes the training step of a model as a program: forward, backward, and the optimizer's update of every
// trained parameter, in place.
func LowerStep(mesh sharding.Mesh, model Model, opt Optimizer, c StepConfig) (*Lowered, error) {
	params := model.Params()
	inputs := stateInputs(params, opt)
	numState := len(inputs)
	inputs = append(inputs, c.batchInputs()...)
	inputs = append(inputs, Input{Name: "hyper", DType: dtypes.Float32, Dims: []int{len(opt.Hyper(1))}}, requestInput(mesh))
	return Lower(mesh, "train_step", inputs, func(in []*graph.Node) []Output {
		b := stepBuilder{params: params, opt: opt, config: c, state: in[:numState], inputs: inputs}
		outputs := b.build(model, BatchNodes{InputIDs: in[numState], Labels: in[numState+1], Mask: in[numState+2]}, in[numState+3])
		// Last, so that the compiler sums it in the all-reduce of the gradient norm.
		return append(outputs, Output{Node: graph.ReduceSum(in[numState+4], 0)})
	})
}

func stateInputs(params []Param, opt Optimizer) []Input {
	var inputs []Input
	for _, p := range params {
		inputs = append(inputs, Input{Name: p.Name, DType: p.DType, Dims: p.Dims, Spec: p.Spec})
		if p.Trainable {
			for _, slot := range opt.Slots() {
				inputs = append(inputs, Input{Name: p.Name + "/" + slot.Name, DType: slot.DType, Dims: p.Dims, Spec: p.Spec})
			}
		}
	}
	return inputs
}

type stepBuilder struct {
	params []Param
	opt    Optimizer
	config StepConfig
	state  []*graph.Node
	inputs []Input
}

// trained is a trained parameter with the position of its tensors among the state's.
type trained struct {
	param Param
	at    int
	grad  *graph.Node
}

func (b *stepBuilder) build(model Model, batch BatchNodes, hyper *graph.Node) []Output {
	weights := make(map[string]*graph.Node, len(b.params))
	var trains []trained
	var leaves []*graph.Node
	at := 0
	for _, p := range b.params {
		weights[p.Name] = b.state[at]
		if p.Trainable {
			trains = append(trains, trained{param: p, at: at})
			leaves = append(leaves, b.state[at])
			at += len(b.opt.Slots())
		}
		at++
	}
	sum, count := model.Loss(weights, batch)
	// A batch without a target has loss 0, not 0/0.
	loss := graph.Div(sum, graph.Max(count, graph.ScalarOne(count.Graph(), count.DType())))
	if len(trains) > 0 {
		for i, grad := range graph.Gradient(loss, leaves...) {
			trains[i].grad = grad
		}
	}
	norm := globalNorm(sum.Graph(), trains)
	b.clip(trains, norm)
	outputs := b.update(trains, hyper)
	for _, metric := range []*graph.Node{sum, count, norm} {
		outputs = append(outputs, Output{Node: metric})
	}
	return outputs
}

// globalNorm is the Euclidean norm of all gradients taken as one vector, in float32.
func globalNorm(g *graph.Graph, trains []trained) *graph.Node {
	total := graph.ScalarZero(g, dtypes.Float32)
	for _, t := range trains {
		total = graph.Add(total, graph.ReduceAllSum(graph.Square(t.grad)))
	}
	return graph.Sqrt(total)
}

// clip scales every gradient by min(1, max/(norm+1e-6)), as torch.nn.utils.clip_grad_norm_.
func (b *stepBuilder) clip(trains []trained, norm *graph.Node) {
	if b.config.MaxGradNorm <= 0 {
		return
	}
	scale := graph.MinScalar(graph.Div(graph.Scalar(norm.Graph(), dtypes.Float32, b.config.MaxGradNorm), graph.AddScalar(norm, 1e-6)), 1)
	for i := range trains {
		trains[i].grad = graph.Mul(trains[i].grad, scale)
	}
}

// update returns the new state tensors: of trained parameters only, since frozen ones stay where they are.
func (b *stepBuilder) update(trains []trained, hyper *graph.Node) []Output {
	n := hyper.Shape().Dimensions[0]
	scalars := make([]*graph.Node, n)
	for i := range scalars {
		scalars[i] = graph.Reshape(graph.Slice(hyper, graph.AxisRange(i, i+1)))
	}
	var outputs []Output
	kept := b.opt.Slots()
	for _, t := range trains {
		slots := make([]*graph.Node, len(kept))
		for i := range kept {
			slots[i] = graph.ConvertDType(b.state[t.at+1+i], dtypes.Float32)
		}
		param, slots := b.opt.Update(scalars, b.state[t.at], t.grad, slots)
		for i, slot := range kept {
			slots[i] = graph.ConvertDType(slots[i], slot.DType)
		}
		for i, node := range append([]*graph.Node{param}, slots...) {
			outputs = append(outputs, Output{Node: node, Spec: t.param.Spec, Donated: b.inputs[t.at+i].Name})
		}
	}
	return outputs
}

// NewStep lowers and compiles the training step for the runtime's mesh.
func (rt *Runtime) NewStep(model Model, opt Optimizer, c StepConfig) (*Step, error) {
	low, err := LowerStep(rt.mesh, model, opt, c)
	if err != nil {
		return nil, err
	}
	program, err := rt.CompileLowered(low)
	if err != nil {
		return nil, err
	}
	return &Step{Program: program, config: c, opt: opt, stateInputs: len(stateInputs(model.Params(), opt))}, nil
}

// Metrics are the figures of one step.
type Metrics struct {
	// LossSum is the summed cross entropy, in nats, of the Targets targets of the global batch, before the update.
	LossSum float64
	Targets int
	// GradNorm is the global norm of the gradients of the mean loss, before clipping.
	GradNorm float64
	// Request is what any host asked for with this step's batch.
	Request Request
}

// Loss is the mean over the targets, 0 when there is none.
func (m Metrics) Loss() float64 { return m.LossSum / math.Max(1, float64(m.Targets)) }

// Pending is the result of a step that may still be running on the devices.
type Pending struct{ arrays []*Array }

// ErrNotLaunched is wrapped by the error of a step, or of an evaluation's, that was not launched: the state is as it was.
var ErrNotLaunched = errors.New("the step was not launched")

// Run does one update of the state: it enqueues the step and returns. The state's tensors are replaced; when it fails,
// the state is lost and must be restored, unless the error is ErrNotLaunched.
func (s *Step) Run(state *State, batch Batch) (*Pending, error) {
	args := make([]*Array, 0, len(s.Inputs))
	for _, e := range state.Entries() {
		args = append(args, e.Array)
	}
	if len(args) != s.stateInputs {
		return nil, fmt.Errorf("the state has %d tensors, the step takes %d: it belongs to another model", len(args), s.stateInputs)
	}
	extra, err := s.sendInputs(batch, s.opt.Hyper(state.Step+1))
	defer DestroyAll(extra)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotLaunched, err)
	}
	results, err := s.Program.Run(append(args, extra...)...)
	if err != nil {
		return nil, err
	}
	state.replace(results[:len(results)-metricOutputs])
	state.Step++
	return &Pending{arrays: results[len(results)-metricOutputs:]}, nil
}

// replace puts the results of a step in the place of the tensors it consumed.
func (s *State) replace(results []*Array) {
	n := 0
	for i, p := range s.params {
		if !p.Trainable {
			continue
		}
		s.values[i] = results[n]
		copy(s.slots[i], results[n+1:n+1+len(s.kept)])
		n += 1 + len(s.kept)
	}
}

func (s *Step) sendInputs(batch Batch, hyper []float32) ([]*Array, error) {
	out, err := s.rt.sendBatch(s.config, batch)
	if err != nil {
		return out, err
	}
	a, err := s.rt.NewArray(dtypes.Float32, []int{len(hyper)}, nil, func(_ sharding.Region, dst []byte) error {
		_, err := binary.Encode(dst, binary.NativeEndian, hyper)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("send the step's hyperparameters: %w", err)
	}
	out = append(out, a)
	request, err := s.rt.sendRequest(batch.Request)
	if err != nil {
		return out, err
	}
	return append(out, request), nil
}

// Ready waits until the step has ended on the devices. Reading its metrics may take longer, where the plugin's threads
// are at work on the next step already.
func (p *Pending) Ready() error {
	event, err := p.arrays[0].shards[0].ReadyEvent()
	if err != nil {
		return fmt.Errorf("wait for the step: %w", err)
	}
	return errors.Join(event.Await(), event.Destroy())
}

// Wait reads the metrics, waiting for the step to end on the devices, and releases them.
func (p *Pending) Wait() (Metrics, error) {
	defer DestroyAll(p.arrays)
	var scalars [metricRequest]float64
	for i := range scalars {
		var value [1]float32
		if err := p.read(i, value[:]); err != nil {
			return Metrics{}, err
		}
		scalars[i] = float64(value[0])
	}
	var request [requestColumns]float32
	if err := p.read(metricRequest, request[:]); err != nil {
		return Metrics{}, err
	}
	return Metrics{
		LossSum: scalars[metricLossSum], Targets: int(scalars[metricTargets]), GradNorm: scalars[metricGradNorm],
		Request: requestOf(request[:]),
	}, nil
}

// read reads one metric.
func (p *Pending) read(metric int, dst []float32) error {
	raw := make([]byte, 4*len(dst))
	if err := p.arrays[metric].Shards()[0].Read(raw); err != nil {
		return fmt.Errorf("read the step's metrics: %w", err)
	}
	_, err := binary.Decode(raw, binary.NativeEndian, dst)
	return err
}
