package job

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/checkpoint/storage"
	"weft/engine"
	"weft/engine/sharding"
	"weft/models/hf"
)

// ExportConfig is what `weft checkpoint export` is told; its tags are the flags.
type ExportConfig struct {
	Checkpoint   string `arg:"" name:"ckpt" help:"Folder of a checkpoint, or of a run, whose newest checkpoint is taken; on a disk or gs://bucket/prefix."`
	Out          string `arg:"" help:"Folder to write, on a disk or gs://bucket/prefix. It must not exist or be empty."`
	DType        string `name:"dtype" default:"bfloat16" enum:"bfloat16,float32,float16,source" help:"Dtype of the tensors: ${enum}. source: that which each had in the model that the run began with (or the run's --param-dtype)."`
	MaxShardSize string `name:"max-shard-size" default:"5GB" placeholder:"SIZE" help:"Largest file of weights, such as 5GB, 500MB or 2GiB; a larger tensor gets a file of its own."`
	ModelID      string `name:"model-id" placeholder:"DIR" help:"Folder of the model that the run began with, when it has moved: for names, frozen tensors and tokenizer of a checkpoint that holds the train state only."`
	NoCheck      bool   `name:"no-check" help:"Do not run the model: the tensors are still read back and compared, no logits are."`
	Platform     string `group:"devices" default:"cpu" enum:"cpu,tpu,auto" help:"Where the check runs the model: ${enum}. auto: TPU when this machine has one, else CPU."`
	Devices      int    `group:"devices" default:"0" placeholder:"N" help:"Devices over which the check splits the model. Default: all TPU devices, or one on a CPU."`
	Plugin       string `group:"devices" placeholder:"PATH" help:"PJRT plugin to load instead of the installed one. Also WEFT_PJRT_PLUGIN."`
	CompileCache string `name:"compile-cache" group:"devices" placeholder:"DIR" help:"Folder that keeps compiled programs between runs, or off. Default: weft/compile in the user's cache folder."`
}

// dtypeSource is the value of --dtype that changes none.
const dtypeSource = "source"

var shardSize = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?$`)

// parseShardSize reads 5GB, 500MB, 2GiB or a number of bytes.
func parseShardSize(text string) (int64, error) {
	match := shardSize.FindStringSubmatch(text)
	if match == nil || match[2] == "" && match[3] != "" {
		return 0, fmt.Errorf("--max-shard-size %q: give a size such as 5GB, 500MB or 2GiB", text)
	}
	base := 1000.0
	if match[3] != "" {
		base = 1024
	}
	value, err := strconv.ParseFloat(match[1], 64)
	value *= math.Pow(base, float64(1+strings.Index("kMGT", strings.ReplaceAll(match[2], "K", "k"))))
	if match[2] == "" {
		value /= base
	}
	if err != nil || value < 1 || value > math.MaxInt64/2 {
		return 0, fmt.Errorf("--max-shard-size %s: give a size from 1 byte to some TB", text)
	}
	return int64(value), nil
}

// ExportCheckpoint writes a checkpoint as a Hugging Face folder and proves it before the folder gets its name: see the
// help of `weft checkpoint export`, which is the contract.
func ExportCheckpoint(ctx context.Context, c ExportConfig, console Console) (err error) {
	limit, err := parseShardSize(c.MaxShardSize)
	if err != nil {
		return Input(err)
	}
	out, name, err := storage.Open(ctx, c.Out)
	if err != nil {
		return Input(err)
	}
	if err := checkOut(out, name, c.Out); err != nil {
		return Input(err)
	}
	p, err := openCheckpoints(ctx, c.Checkpoint)
	if err != nil {
		return err
	}
	e, err := p.newest()
	if err != nil {
		return err
	}
	m, err := openCkptModel(ctx, p, e, c.ModelID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	x := &export{ExportConfig: c, ckptModel: m, report: newReport(console, false), tensors: m.tensors()}
	x.setDTypes()
	x.header()
	folder := x.folder()
	folder.MaxShardSize = limit
	err = checkpoint.WriteCheckedFolder(ctx, out, name, folder, func(tmp string) error {
		return x.prove(ctx, storage.URL(out, tmp))
	})
	if errors.Is(err, checkpoint.ErrNotEmpty) {
		return Input(err)
	}
	return err
}

// checkOut refuses a folder that holds something, before any work. On an object store that is left to the writer, which
// knows what an export that died has left.
func checkOut(fsys checkpoint.FS, name, url string) error {
	if storage.IsRemote(url) {
		return nil
	}
	there, err := fsys.List(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w: give a new folder", url, err)
	case len(there) > 0:
		return fmt.Errorf("%s: %w: it holds %s; give a new folder or empty it", url, checkpoint.ErrNotEmpty, there[0].Name)
	}
	return nil
}

// export is a folder being written.
type export struct {
	ExportConfig
	*ckptModel
	report *report
	// tensors are those of the folder, with their dtypes in it.
	tensors []hf.Tensor
	// had are the dtypes before.
	had []safetensors.DType
}

// setDTypes gives every float tensor the dtype of --dtype.
func (x *export) setDTypes() {
	for i := range x.tensors {
		t := &x.tensors[i]
		x.had = append(x.had, t.DType)
		if to := fileDTypes[deviceDTypes[x.DType]]; x.DType != dtypeSource && safetensors.CanConvert(to, t.DType) {
			t.DType = to
		}
	}
	switch {
	case x.DType == dtypeSource && x.source != nil:
		x.files.declareDType(x.record.Settings.ParamDType)
	case x.DType != dtypeSource:
		x.files.config = dtypeField.ReplaceAll(x.files.files[configName], []byte(`$1"`+x.DType+`"`))
		x.files.files[configName] = x.files.config
	}
}

// line prints one line of the report: what it is about, "" for the same as the line before, and a text that is not too long for a
// terminal but where it names a path.
func (x *export) line(about, format string, args ...any) {
	x.report.printf("%-10s "+format, append([]any{about}, args...)...)
}

func (x *export) header() {
	trained, frozen := countParameters(x.math.Params())
	manifest := x.reader.Manifest()
	x.line("checkpoint", "%s: epoch %d, step %d", x.place.shown(x.entry), manifest.Epoch, manifest.Step)
	x.line("model", "%s: %s trained parameters of the train state (float32),", x.files.arch.Info().Name, count(trained))
	x.line("", "%s frozen ones and companion files of %s", count(frozen), x.origin)
	x.line("writing", "%d tensors to %s, then reading them back", len(x.tensors), x.Out)
	for _, n := range x.notes {
		x.report.Log.Warn(n)
	}
}

// exportRows is how many bytes of a tensor, as float32, are held at a time.
const exportRows = 64 << 20

// folder describes the Hugging Face folder.
func (x *export) folder() *checkpoint.ModelFolder {
	folder := &checkpoint.ModelFolder{Files: x.files.files}
	for i, t := range x.tensors {
		tensor := checkpoint.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape}
		for _, r := range rowRegions(t.Shape, exportRows/4) {
			tensor.Shards = append(tensor.Shards, checkpoint.Shard{Start: r.Start, Size: r.Size, Fetch: func(dst []byte) error {
				return x.readTensor(i, r, dst)
			}})
		}
		folder.Tensors = append(folder.Tensors, tensor)
	}
	return folder
}

// rowRegions cuts a tensor along dimension 0 into regions of at most limit elements or one row.
func rowRegions(shape []int, limit int) []sharding.Region {
	whole := sharding.Region{Start: make([]int, len(shape)), Size: slices.Clone(shape)}
	if len(shape) == 0 || whole.Elements() <= limit {
		return []sharding.Region{whole}
	}
	rows := max(1, limit/(whole.Elements()/shape[0]))
	var out []sharding.Region
	for at := 0; at < shape[0]; at += rows {
		r := sharding.Region{Start: slices.Clone(whole.Start), Size: slices.Clone(shape)}
		r.Start[0], r.Size[0] = at, min(rows, shape[0]-at)
		out = append(out, r)
	}
	return out
}

// readTensor writes a region of a tensor of the folder in its dtype there.
func (x *export) readTensor(i int, r sharding.Region, dst []byte) error {
	t := x.tensors[i]
	if t.Param == nil {
		raw := make([]byte, r.Elements()*x.had[i].Size())
		if err := x.source.Set().ReadRegion(t.Name, r.Start, r.Size, raw); err != nil {
			return err
		}
		return safetensors.Convert(dst, t.DType, raw, x.had[i])
	}
	wide := make([]byte, r.Elements()*4)
	if err := x.read(*t.Param, t.Region(r), wide); err != nil {
		return err
	}
	if err := safetensors.Convert(dst, t.DType, wide, safetensors.F32); err != nil {
		return err
	}
	return fits(t, wide)
}

// overflow is the smallest magnitude that a dtype rounds to infinity: half a unit beyond its largest number.
var overflow = map[safetensors.DType]float64{safetensors.F16: 65520, safetensors.BF16: 0x1.ffp127}

// fits refuses values that the dtype of the folder would make infinite.
func fits(t hf.Tensor, wide []byte) error {
	limit, narrow := overflow[t.DType]
	for ; narrow && len(wide) > 0; wide = wide[4:] {
		v := math.Abs(float64(math.Float32frombits(binary.LittleEndian.Uint32(wide))))
		if v >= limit && !math.IsInf(v, 0) {
			return fmt.Errorf("tensor %s holds ±%g, which %s cannot: give --dtype bfloat16 or float32", t.Name, v, t.DType)
		}
	}
	return nil
}

// prove reads the folder at url back: every tensor must be there with the bits that were written, and nothing else; then
// a batch must give the logits that it must.
func (x *export) prove(ctx context.Context, url string) error {
	back, err := hf.Load(url, x.math)
	if err != nil {
		return fmt.Errorf("reading it back: %w", err)
	}
	defer back.Close()
	if err := x.compareTensors(ctx, back.Set()); err != nil {
		return fmt.Errorf("reading it back: %w", err)
	}
	total := int64(0)
	for _, info := range back.Set().Tensors() {
		total += info.End - info.Start
	}
	x.line("written", "%s: %d tensors, %s, %s, in %s;",
		x.Out, len(x.tensors), decimalSize(total), x.dtypeText(), plural(len(back.Set().Files()), "file of weights", "files of weights"))
	x.line("", "every tensor was read back and has the bits of its %s", x.masterText())
	if x.NoCheck {
		x.line("logits", "left out (--no-check)")
		return nil
	}
	return x.proveLogits(ctx, back)
}

func (x *export) dtypeText() string {
	if x.DType == dtypeSource {
		return "each dtype as in the source"
	}
	return x.DType
}

func (x *export) masterText() string {
	if x.DType == "float32" {
		return "float32 master"
	}
	return "rounded master"
}

func (x *export) compareTensors(ctx context.Context, set *safetensors.Set) error {
	if have := len(set.Tensors()); have != len(x.tensors) {
		return fmt.Errorf("it has %d tensors, %d were written", have, len(x.tensors))
	}
	var want, got []byte
	for i, t := range x.tensors {
		info, ok := set.Lookup(t.Name)
		if !ok || info.DType != t.DType || !slices.Equal(info.Shape, t.Shape) {
			return fmt.Errorf("tensor %s is %s %v, written was %s %v", t.Name, info.DType, info.Shape, t.DType, t.Shape)
		}
		for r := range regionsOf(t.Shape, diffElements) {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := r.Elements() * t.DType.Size()
			want, got = slices.Grow(want[:0], n)[:n], slices.Grow(got[:0], n)[:n]
			if err := errors.Join(x.readTensor(i, r, want), set.ReadRegion(t.Name, r.Start, r.Size, got)); err != nil {
				return err
			}
			if !bytes.Equal(want, got) {
				return fmt.Errorf("tensor %s has other bits than were written: the disk or the memory of this machine fails", t.Name)
			}
		}
	}
	return nil
}

// readRounded is read with every value rounded as in the folder.
func (x *export) readRounded(p engine.Param, r sharding.Region, dst []byte) error {
	if err := x.read(p, r, dst); err != nil {
		return err
	}
	each := len(dst)
	first := 0
	if len(p.Sources) > 1 {
		first = r.Start[0]
		each = len(dst) / max(1, r.Size[0])
	}
	for k := 0; len(dst) > 0; k++ {
		if err := roundTrip(dst[:each], x.dtypeOf(p.Name, first+k)); err != nil {
			return err
		}
		dst = dst[each:]
	}
	return nil
}

// dtypeOf is the folder's dtype of the tensor at an index of a parameter's stack.
func (x *export) dtypeOf(param string, index int) safetensors.DType {
	for _, t := range x.tensors {
		if t.Param != nil && t.Param.Name == param && t.Index == index {
			return t.DType
		}
	}
	return safetensors.F32
}

// rounds tells whether any parameter loses bits in the folder.
func (x *export) rounds() bool {
	return slices.ContainsFunc(x.tensors, func(t hf.Tensor) bool { return t.Param != nil && t.DType != safetensors.F32 })
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}
