package job

import (
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/optim"
)

// ModelFlags say which model is trained and how its program is written.
type ModelFlags struct {
	ModelID      string `name:"model-id" group:"model" placeholder:"DIR" help:"Folder of the model, a path or gs:// URL, as Hugging Face saves it: config.json, *.safetensors, tokenizer.json. To plan, and with --random-init, a config.json is enough: its folder, the file, or one inside weft: gemma-3-270m, gemma-3-1b, gemma-3-4b, gemma-3-12b, gemma-3-27b, gemma-4-E2B, gemma-4-E4B, gemma-4-31B."`
	Freeze       string `group:"model" default:"auto" placeholder:"GLOB,…" help:"Tensors that stay as they are. auto: the model's default, for Gemma 4 its per-layer embedding table. none: nothing. Else comma-separated patterns over the tensor names with or without 'model.' and '.weight', where * is any text, such as 'embed_tokens*,layers.*.mlp.*'; they replace the default. Buffers are never trained."`
	ParamDType   string `name:"param-dtype" group:"model" default:"auto" enum:"auto,float32,bfloat16,float16" help:"Dtype of frozen tensors on the devices and of every tensor in the exported model: ${enum}. auto: the dtype that each tensor has in the source (bfloat16 for released Gemma); with --random-init the one that config.json declares. Trained parameters are always float32 on the devices and in the train state."`
	ComputeDType string `name:"compute-dtype" group:"model" default:"bfloat16" enum:"bfloat16,float32" help:"Dtype of matrix products and activations: ${enum}. Softmax, norms, loss, gradient reduction and the update are float32 in either."`
	Remat        string `group:"model" default:"full" enum:"none,full" help:"full: keep only each layer's input for the backward pass and compute the rest again; none: keep everything."`
	Scan         bool   `group:"model" default:"true" negatable:"" help:"Compile one layer of each kind and loop over it. --no-scan unrolls the layers: a longer compilation of a larger program."`
	Gathers      int    `group:"model" default:"2" enum:"1,2" help:"How often a step gathers each split weight of the layers. 2: for the forward pass and again for the backward pass, nothing is kept whole (ZeRO-3). 1: once; the whole weights of all layers stay on every device, in the compute dtype, until the backward pass has used them: half of the gathers on the wire, more memory. Gradients and optimizer state are split in either."`
}

// BatchFlags are the size of a batch.
type BatchFlags struct {
	MaxSeqLen          int `name:"max-seq-len" group:"data" default:"512" placeholder:"N" help:"Tokens of a row. Longer records are cut, and counted; shorter ones are padded."`
	BatchSizePerDevice int `name:"batch-size-per-device" group:"training" default:"4" placeholder:"N" help:"Rows of a device in one step. The global batch is this times the number of devices."`
}

// UpdateFlags are those of the update that are part of the program; the other numbers of AdamW are its arguments.
type UpdateFlags struct {
	MaxGradNorm      float64 `name:"max-grad-norm" group:"training" default:"0" placeholder:"NORM" help:"Clip the global norm of the gradients. 0: no clipping, as in the published job."`
	FirstMomentDType string  `name:"first-moment-dtype" group:"training" default:"float32" enum:"float32,bfloat16" help:"What AdamW's first moment is kept as between steps: ${enum}. bfloat16 takes 2 bytes less for each trained parameter, on the devices and in checkpoints, for a rounded moment (optax's mu_dtype); the second moment and the master weights stay float32."`
}

// DeviceFlags say which devices are opened, and what they are expected to be.
type DeviceFlags struct {
	Platform        string `group:"devices" default:"auto" enum:"auto,cpu,tpu" help:"${enum}. auto: TPU when this machine has one, else CPU."`
	Devices         int    `group:"devices" default:"0" placeholder:"N" help:"Devices to use. Default: all TPU devices of the slice; on a CPU --num-workers, the product of --topology, or 1 (virtual devices)."`
	Topology        string `group:"devices" placeholder:"AxB" help:"TPU topology that is expected, such as 4x4; another one is an error. On a CPU: as many virtual devices."`
	AcceleratorType string `name:"accelerator-type" group:"devices" placeholder:"TYPE" help:"Accelerator that is expected, such as TPU-V6E or TPU-V7X; another one is an error."`
	NumWorkers      int    `name:"num-workers" group:"devices" default:"0" placeholder:"N" help:"Devices that are expected over all hosts (the published job runs one worker for each); another number is an error. On a CPU: as many virtual devices."`
	Plugin          string `group:"devices" placeholder:"PATH" help:"PJRT plugin to load instead of the installed one. Also WEFT_PJRT_PLUGIN."`
	CompileCache    string `name:"compile-cache" group:"devices" placeholder:"DIR" help:"Folder that keeps compiled programs between runs, or off. Default: weft/compile in the user's cache folder."`
}

// StepFlags are what shapes a training step: the flags that `weft finetune` and `weft plan` share.
type StepFlags struct {
	ModelFlags
	BatchFlags
	UpdateFlags
}

// numberFlag is a flag whose value must lie in a range.
type numberFlag struct {
	flag     string
	value    int
	min, max int
}

func (n numberFlag) check() error {
	if n.value < n.min || n.value > n.max {
		return fmt.Errorf("%s is %d: give a number from %d to %d", n.flag, n.value, n.min, n.max)
	}
	return nil
}

func (b *BatchFlags) check() error {
	if err := (numberFlag{"--max-seq-len", b.MaxSeqLen, 2, 1 << 24}).check(); err != nil {
		return err
	}
	return numberFlag{"--batch-size-per-device", b.BatchSizePerDevice, 1, 1 << 24}.check()
}

// checkLength refuses rows that are longer than the model was made for.
func (b *BatchFlags) checkLength(info arch.Info) error {
	if b.MaxSeqLen > info.MaxPositions {
		return fmt.Errorf("--max-seq-len is %d, the model was made for at most %d: lower it", b.MaxSeqLen, info.MaxPositions)
	}
	return nil
}

func (u *UpdateFlags) check() error {
	if !(u.MaxGradNorm >= 0) || math.IsInf(u.MaxGradNorm, 0) {
		return fmt.Errorf("--max-grad-norm is %v: give a number that is not negative, 0 for no clipping", u.MaxGradNorm)
	}
	return nil
}

// adamW is the optimizer of a run with the learning rates of a schedule.
func (u *UpdateFlags) adamW(s optim.Schedule, beta1, beta2, eps, weightDecay float64) (*optim.AdamW, error) {
	opt, err := optim.NewAdamW(s, beta1, beta2, eps, weightDecay)
	if err != nil {
		return nil, err
	}
	opt.FirstMomentDType = deviceDTypes[u.FirstMomentDType]
	return opt, nil
}

// freezePatterns are the patterns of --freeze: nil for the model's default, empty for none.
func (m *ModelFlags) freezePatterns() []string {
	switch m.Freeze {
	case FreezeAuto:
		return nil
	case FreezeNone:
		return []string{}
	}
	out := []string{}
	for p := range strings.SplitSeq(m.Freeze, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// frozenDType is the dtype of frozen tensors on the devices, InvalidDType for the one that config.json declares.
func (m *ModelFlags) frozenDType() dtypes.DType {
	if m.ParamDType == DTypeAuto {
		return dtypes.InvalidDType
	}
	return deviceDTypes[m.ParamDType]
}

// declare declares the model's mathematics for a mesh whose axes all split the batch. Those in shardAxes split the
// parameters; none are all.
func (m *ModelFlags) declare(files *modelFiles, mesh sharding.Mesh, shardAxes ...string) (arch.Model, error) {
	model, err := files.arch.New(arch.Options{
		Policy: nn.Policy{Mesh: mesh, DataAxes: mesh.AxisNames(), Compute: deviceDTypes[m.ComputeDType]},
		Scan:   m.Scan, Remat: m.Remat, Gathers: m.Gathers, Freeze: m.freezePatterns(), FrozenDType: m.frozenDType(), ShardAxes: shardAxes,
	})
	if err != nil {
		return nil, fmt.Errorf("--model-id %s: %w", files.name, err)
	}
	return model, nil
}

// stepConfig is the shape of a step whose batch all axes of the mesh split.
func stepConfig(mesh sharding.Mesh, globalBatch, seqLen int, maxGradNorm float64) engine.StepConfig {
	policy := nn.Policy{Mesh: mesh, DataAxes: mesh.AxisNames()}
	return engine.StepConfig{Batch: globalBatch, SeqLen: seqLen, BatchSpec: policy.BatchSpec(2, 0), MaxGradNorm: maxGradNorm}
}
