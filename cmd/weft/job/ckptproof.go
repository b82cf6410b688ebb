package job

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/models/hf"
)

// The batch of the proof: token ids drawn from the whole vocabulary, by a fixed seed.
const (
	proofRows   = 2
	proofTokens = 64
	proofSeed   = 0x7765667470726f6f
)

// proofBatch is a batch of token ids and mask, row-major [rows, tokens].
type proofBatch struct {
	rows, tokens int
	ids, mask    []int32
}

// randomBatch is rows of token ids, each behind the BOS token where the model has one, by splitmix64 (Steele, Lea, Flood:
// Fast splittable pseudorandom number generators, 2014).
func randomBatch(info arch.Info, rows, tokens int) proofBatch {
	b := proofBatch{rows: rows, tokens: tokens, ids: make([]int32, rows*tokens), mask: make([]int32, rows*tokens)}
	state := uint64(proofSeed)
	for i := range b.ids {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		b.ids[i], b.mask[i] = int32((z^z>>31)%uint64(info.VocabSize)), 1
		if i%tokens == 0 && len(info.BOS) > 0 {
			b.ids[i] = int32(info.BOS[0])
		}
	}
	return b
}

// proof runs one model with several sets of weights on the same batch, in float32.
type proof struct {
	rt     *engine.Runtime
	model  arch.Model
	inputs []engine.Input
	step   *engine.Program
	batch  proofBatch
	vocab  int
}

// proveLogits runs the batch through the checkpoint's float32 masters, through masters rounded on the fly and through the
// folder. The folder must give the bits of the rounded ones: so all that differs from the masters is the rounding.
func (x *export) proveLogits(ctx context.Context, back *hf.Source) (err error) {
	p, err := x.openProof(ctx, func(devices int) proofBatch {
		info := x.files.arch.Info()
		return randomBatch(info, (proofRows+devices-1)/devices*devices, min(proofTokens, info.MaxPositions))
	})
	if err != nil {
		return fmt.Errorf("checking its logits: %w; --no-check leaves that out", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	trained, frozen := countParameters(p.model.Params())
	x.line("checking", "running the model in float32 on %d × %s, %s of weights at a time;",
		p.rt.Mesh().NumDevices(), p.rt.DeviceKind(), decimalSize(4*int64(trained+frozen)))
	x.line("", "--no-check leaves it out")
	masters, err := p.logits(ctx, x.read)
	if err != nil {
		return fmt.Errorf("checking its logits: %w", err)
	}
	rounded := masters
	if x.rounds() {
		if rounded, err = p.logits(ctx, x.readRounded); err != nil {
			return fmt.Errorf("checking its logits: %w", err)
		}
	}
	folder, err := p.logits(ctx, back.Read)
	if err != nil {
		return fmt.Errorf("checking its logits: %w", err)
	}
	return x.judge(p, masters, rounded, folder)
}

// judge prints what the folder changed and refuses it when that is more than rounding.
func (x *export) judge(p *proof, masters, rounded, folder []float32) error {
	c := compareLogits(masters, folder, p.vocab)
	x.line("logits", "%d × %d tokens through the float32 masters and through the folder:", p.batch.rows, p.batch.tokens)
	for _, line := range c.lines() {
		x.line("", "%s", line)
	}
	if n := differing(rounded, folder); n > 0 {
		return fmt.Errorf("the folder's logits are not those of the checkpoint's weights rounded to %s: %s of %s differ, by at most %g: export again, and report it when it stays", x.dtypeText(), count(n), count(len(folder)), compareLogits(rounded, folder, p.vocab).MaxAbs)
	}
	if c.NonFinite > 0 {
		return fmt.Errorf("%s logits of the folder are not finite: look at the run's losses, or give --dtype float32", count(c.NonFinite))
	}
	if x.rounds() {
		x.line("", "the folder gives the bits of masters rounded on the fly:")
		x.line("", "all of the difference is rounding to %s", x.dtypeText())
	} else {
		x.line("", "the folder gives the bits of the masters")
	}
	return nil
}

// openProof opens the devices and compiles the model for a batch, whose rows must be a multiple of the devices.
func (x *export) openProof(ctx context.Context, batch func(devices int) proofBatch) (p *proof, err error) {
	p = &proof{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	c := &DeviceFlags{Platform: x.Platform, Devices: x.Devices, Plugin: x.Plugin, CompileCache: x.CompileCache}
	if p.rt, err = openRuntime(ctx, c, x.report); err != nil {
		return p, err
	}
	if p.model, err = x.declare(p.rt.Mesh()); err != nil {
		return p, err
	}
	p.vocab, p.batch = x.files.arch.Info().VocabSize, batch(p.rt.Mesh().NumDevices())
	return p, p.compile()
}

// compile makes the forward program: parameters, ids and mask [B, T] int32 to logits [B, T, V] float32.
func (p *proof) compile() (err error) {
	params := p.model.Params()
	for _, q := range params {
		p.inputs = append(p.inputs, engine.Input{Name: q.Name, DType: q.DType, Dims: q.Dims, Spec: q.Spec})
	}
	policy := nn.Policy{Mesh: p.rt.Mesh(), DataAxes: p.rt.Mesh().AxisNames()}
	for _, name := range []string{"batch/ids", "batch/mask"} {
		p.inputs = append(p.inputs, engine.Input{Name: name, DType: dtypes.Int32, Dims: []int{p.batch.rows, p.batch.tokens}, Spec: policy.BatchSpec(2, 0)})
	}
	p.step, err = p.rt.Compile("export_logits", p.inputs, func(in []*graph.Node) []engine.Output {
		weights := map[string]*graph.Node{}
		for i, q := range params {
			weights[q.Name] = in[i]
		}
		rest := in[len(params):]
		return []engine.Output{{Node: p.model.Logits(weights, rest[0], rest[1]), Spec: policy.BatchSpec(3, 0)}}
	})
	return err
}

// logits runs the batch with weights from fill and returns [rows, tokens, vocab].
func (p *proof) logits(ctx context.Context, fill engine.ParamFill) ([]float32, error) {
	var args []*engine.Array
	defer func() { engine.DestroyAll(args) }()
	send := func(i int, fill engine.Fill) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := p.inputs[i]
		a, err := p.rt.NewArray(in.DType, in.Dims, in.Spec, fill)
		if err != nil {
			return fmt.Errorf("sending %s to the devices: %w", in.Name, err)
		}
		args = append(args, a)
		return nil
	}
	params := p.model.Params()
	for i, q := range params {
		if err := send(i, func(r sharding.Region, dst []byte) error { return fill(q, r, dst) }); err != nil {
			return nil, err
		}
	}
	ids := func(r sharding.Region, dst []byte) error { return p.batch.fill(p.batch.ids, r, dst) }
	mask := func(r sharding.Region, dst []byte) error { return p.batch.fill(p.batch.mask, r, dst) }
	if err := errors.Join(send(len(params), ids), send(len(params)+1, mask)); err != nil {
		return nil, err
	}
	results, err := p.step.Run(args...)
	if err != nil {
		return nil, err
	}
	defer engine.DestroyAll(results)
	raw, err := results[0].Read()
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out, nil
}

// fill writes a region of ids or mask.
func (b *proofBatch) fill(values []int32, r sharding.Region, dst []byte) error {
	for row := range r.Size[0] {
		for t := range r.Size[1] {
			v := values[(r.Start[0]+row)*b.tokens+r.Start[1]+t]
			binary.LittleEndian.PutUint32(dst[4*(row*r.Size[1]+t):], uint32(v))
		}
	}
	return nil
}

func (p *proof) close() error {
	p.step.Destroy()
	if p.rt == nil {
		return nil
	}
	return p.rt.Close()
}

// logitChange is how logits [positions, vocab] changed.
type logitChange struct {
	Positions int
	MaxAbs    float64
	MeanAbs   float64
	// Top1 is the share of positions whose likeliest token is the same.
	Top1 float64
	// KL is the mean over positions of KL(before ‖ after), in nats.
	KL        float64
	NonFinite int
}

// lines say it in two.
func (c logitChange) lines() []string {
	return []string{
		fmt.Sprintf("max |Δ| %.3g, mean |Δ| %.3g, KL %.3g nats,", c.MaxAbs, c.MeanAbs, c.KL),
		fmt.Sprintf("the same top token at %.1f%% of %d positions", 100*c.Top1, c.Positions),
	}
}

// compareLogits compares two sets of logits, float32 [positions, vocab] each, in float64.
func compareLogits(before, after []float32, vocab int) logitChange {
	c := logitChange{Positions: len(before) / vocab}
	same := 0
	for at := 0; at < len(before); at += vocab {
		a, b := before[at:at+vocab], after[at:at+vocab]
		topA, topB := 0, 0
		for i := range a {
			if v := float64(b[i]); math.IsNaN(v) || math.IsInf(v, 0) {
				c.NonFinite++
				continue
			}
			delta := math.Abs(float64(b[i]) - float64(a[i]))
			c.MaxAbs, c.MeanAbs = max(c.MaxAbs, delta), c.MeanAbs+delta
			if a[i] > a[topA] {
				topA = i
			}
			if b[i] > b[topB] {
				topB = i
			}
		}
		if topA == topB {
			same++
		}
		c.KL += klDivergence(a, b)
	}
	c.MeanAbs /= float64(len(before))
	c.Top1, c.KL = float64(same)/float64(c.Positions), c.KL/float64(c.Positions)
	return c
}

// klDivergence is Σ p·(log p − log q) of the softmaxes of two rows of logits, in nats.
func klDivergence(a, b []float32) float64 {
	lseA, lseB := logSumExp(a), logSumExp(b)
	sum := 0.0
	for i := range a {
		logP := float64(a[i]) - lseA
		sum += math.Exp(logP) * (logP - (float64(b[i]) - lseB))
	}
	return max(0, sum)
}

func logSumExp(row []float32) float64 {
	top := math.Inf(-1)
	for _, v := range row {
		top = max(top, float64(v))
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// differing counts the values whose bits differ.
func differing(a, b []float32) (n int) {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			n++
		}
	}
	return n
}
