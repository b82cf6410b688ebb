package job

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"time"

	"weft/checkpoint"
	"weft/checkpoint/storage"
	"weft/optim"
)

// Values of flags that more than one file knows.
const (
	ResumeAuto, ResumeNever   = "auto", "never"
	CacheOff                  = "off"
	PlatformAuto, PlatformCPU = "auto", "cpu"
	PlatformTPU               = "tpu"
	DTypeAuto                 = "auto"
	DTypeFloat32              = "float32"
	FreezeAuto, FreezeNone    = "auto", "none"
)

// Config is everything a finetune run is told. Its field tags are the flags of `weft finetune`: names, defaults and
// help texts, which are the contract; a zero Config is not valid, see DefaultConfig.
type Config struct {
	ModelFlags
	RandomInit bool `group:"model" help:"Begin with random weights, drawn from --seed, and read none."`

	Dataset        string `group:"data" placeholder:"FILE" help:"JSON lines, plain or gzip, a path or gs:// URL: records with instruction, context, response (Dolly); prompt, completion; messages; or ready input_ids with optional labels."`
	DatasetSplit   string `name:"dataset-split" group:"data" default:"train" placeholder:"SPLIT" help:"Rows to train on, such as 'train[:1024]' or 'train[10%:20%]'; 'train' is the whole file. (The published job's default is 'train[:1024]'.)"`
	Tokenizer      string `group:"data" placeholder:"FILE" help:"tokenizer.json, plain or gzip, a path or gs:// URL. Default: the one in the model's folder."`
	Template       string `group:"data" placeholder:"TEXT" help:"How a record becomes text, with {field} for its fields; \\n is a new line. Default: by the kind of record; for Dolly 'Instruction: {instruction}\\nResponse: {response}', as in the published job."`
	LossOn         string `name:"loss-on" group:"data" default:"all" enum:"all,completion" help:"Tokens to learn from: all, as the published job does, or only the completion (response)."`
	EvalDataset    string `name:"eval-dataset" group:"data" placeholder:"FILE" help:"Records to evaluate on, a path or gs:// URL, read as those of --dataset are: their loss, forward only, over all of them, at each epoch's end."`
	EvalSplit      string `name:"eval-split" group:"data" placeholder:"SPLIT" help:"Rows to evaluate on: of --eval-dataset, by default all; without one, of --dataset, such as 'train[-100:]', from which --dataset-split must leave them out by itself."`
	EvalEverySteps int    `name:"eval-every-steps" group:"data" default:"0" placeholder:"N" help:"Evaluate after every N steps as well."`
	BatchFlags
	Shuffle  bool `group:"data" default:"true" negatable:"" help:"A new order of the rows each epoch, from --seed. --no-shuffle: the order of the file."`
	DropLast bool `name:"drop-last" group:"data" default:"true" negatable:"" help:"Leave out the rows of an epoch that do not fill a global batch, as the published job does. --no-drop-last: train on them in a last batch padded with rows of weight 0."`

	NumEpochs    int     `name:"num-epochs" group:"training" default:"3" placeholder:"N" help:"Passes over the data. A finished run continues when it is given more."`
	LearningRate float64 `name:"learning-rate" group:"training" default:"2e-5" placeholder:"LR" help:"Learning rate; the peak with --schedule cosine or a warm-up."`
	WeightDecay  float64 `name:"weight-decay" group:"training" default:"0.01" placeholder:"W" help:"Decoupled weight decay, of every trained parameter."`
	Beta1        float64 `name:"beta1" group:"training" default:"0.9" placeholder:"B" help:"Decay rate of AdamW's first moment."`
	Beta2        float64 `name:"beta2" group:"training" default:"0.999" placeholder:"B" help:"Decay rate of AdamW's second moment."`
	Eps          float64 `group:"training" default:"1e-8" placeholder:"E" help:"AdamW's epsilon, outside of the root."`
	Schedule     string  `group:"training" default:"constant" enum:"constant,cosine" help:"Learning rate over the run: ${enum} (warm-up, then half a cosine to 0 at the last step)."`
	WarmupSteps  int     `name:"warmup-steps" group:"training" default:"0" placeholder:"N" help:"Steps over which --schedule cosine rises to the peak."`
	UpdateFlags
	Seed int64 `group:"training" default:"42" placeholder:"N" help:"Seed of the order of the rows and of random weights."`

	DeviceFlags

	StoragePath  string `name:"storage-path" group:"output" env:"STORAGE_PATH" default:"./weft-out" placeholder:"DIR" help:"Folder of the run: checkpoints, metrics.jsonl, run.json. Created when it does not exist. gs://BUCKET/PREFIX is a folder on Cloud Storage, where metrics.jsonl is written with each checkpoint and at the end."`
	RunName      string `name:"run-name" group:"output" env:"WEFT_RUN_NAME" placeholder:"NAME" help:"Name of the run, whose folder is then NAME in --storage-path. A job that is submitted again under the same name finds its own work and goes on."`
	Keep         int    `group:"output" default:"1" placeholder:"N" help:"Checkpoints to keep, the best by --keep-by; the newest is kept besides, so that the run can continue. 0: none for being the best, and all of them without --keep-last and --keep-every."`
	KeepBy       string `name:"keep-by" group:"output" default:"loss" enum:"loss,eval_loss,step" help:"Which are the best: those of the lowest loss over an epoch, of the lowest eval_loss, or of the latest step. One without that figure ranks last."`
	KeepLast     int    `name:"keep-last" group:"output" default:"0" placeholder:"N" help:"The newest N checkpoints are kept besides."`
	KeepEvery    int    `name:"keep-every" group:"output" default:"0" placeholder:"K" help:"The checkpoints at the end of epochs K, 2K, 3K… are kept besides, for ever."`
	Resume       string `group:"output" default:"auto" placeholder:"auto|PATH|never" help:"auto: continue from the newest checkpoint of the run's folder, from the beginning when there is none. PATH, also a gs:// URL: begin a run of its own from that checkpoint of another folder, or continue from the newest one of this folder; given again, it goes on where that run stands. never: begin, and refuse a folder that holds a run."`
	AllowChanged string `name:"allow-changed" group:"output" placeholder:"FLAG,…" help:"Continue although these flags were others, such as 'learning-rate,seed'; a changed content of the model, the tokenizer or the data is named by its flag too. What changed, and at which step, is recorded in run.json and in the checkpoints. A change under which the state or the order of the rows could not go on is refused all the same."`

	SaveEverySteps int           `name:"save-every-steps" group:"output" default:"0" placeholder:"N" help:"Save a checkpoint after every N steps too, and not at the ends of epochs alone. It has the train state without the model folder, which 'weft checkpoint export' makes of it. 0: none."`
	SaveEvery      time.Duration `name:"save-every" group:"output" default:"0" placeholder:"DURATION" help:"Save such a checkpoint after the step during which this time since the last save has passed, such as 10m. 0: none."`
	DeadlineFlags
	GracePeriod time.Duration `name:"grace-period" group:"output" default:"30s" placeholder:"DURATION" help:"Time from SIGTERM, SIGINT or SIGHUP to the end of the process: the step under way is finished and the state saved in it. Where that takes longer, the steps since the newest checkpoint are lost. Give less than what is between a platform's SIGTERM and its SIGKILL. 0: end without a save."`

	Demo bool `group:"demo" help:"Train a small Gemma 4 with random weights on records inside the binary, on 4 virtual CPU devices: needs no file and no network but the CPU plugin. Other flags change it."`
}

// Check checks every value that can be checked without a file or a device. Its errors name the flag.
func (c *Config) Check() error {
	for _, check := range []func() error{c.DeadlineFlags.check, c.checkInputs, c.checkNumbers, c.checkOptimizer, c.checkOutput} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkInputs() error {
	if !c.evaluates() && (c.EvalEverySteps > 0 || c.KeepBy == metricEvalLoss) {
		flag := "--eval-every-steps"
		if c.KeepBy == metricEvalLoss {
			flag = "--keep-by eval_loss"
		}
		return fmt.Errorf("%s needs rows to evaluate on: give --eval-dataset or --eval-split", flag)
	}
	if c.Demo {
		for _, f := range []struct{ flag, value string }{{"--model-id", c.ModelID}, {"--dataset", c.Dataset}, {"--eval-dataset", c.EvalDataset}, {"--tokenizer", c.Tokenizer}} {
			if f.value != "" {
				return fmt.Errorf("--demo brings its own model, data and tokenizer: leave out %s, or leave out --demo", f.flag)
			}
		}
		return nil
	}
	for _, f := range []struct{ flag, value string }{{"--model-id", c.ModelID}, {"--dataset", c.Dataset}, {"--eval-dataset", c.EvalDataset}, {"--tokenizer", c.Tokenizer}} {
		if err := storage.Check(f.value); err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	switch {
	case c.ModelID == "":
		return fmt.Errorf("--model-id is missing: give the folder of a model, or try --demo")
	case c.Dataset == "":
		return fmt.Errorf("--dataset is missing: give a file of JSON lines, or try --demo")
	}
	return nil
}

func (c *Config) checkNumbers() error {
	if err := c.BatchFlags.check(); err != nil {
		return err
	}
	for _, n := range []numberFlag{
		{"--eval-every-steps", c.EvalEverySteps, 0, math.MaxInt32},
		{"--num-epochs", c.NumEpochs, 1, 1 << 24},
		{"--warmup-steps", c.WarmupSteps, 0, math.MaxInt32},
		{"--devices", c.Devices, 0, maxDevices},
		{"--num-workers", c.NumWorkers, 0, maxDevices},
		{"--keep", c.Keep, 0, math.MaxInt32},
		{"--save-every-steps", c.SaveEverySteps, 0, math.MaxInt32},
		{"--keep-last", c.KeepLast, 0, math.MaxInt32},
		{"--keep-every", c.KeepEvery, 0, math.MaxInt32},
	} {
		if err := n.check(); err != nil {
			return err
		}
	}
	switch {
	case c.SaveEvery < 0:
		return fmt.Errorf("--save-every is %v: give a time such as 10m, 0 for none", c.SaveEvery)
	case c.GracePeriod < 0:
		return fmt.Errorf("--grace-period is %v: give a time such as 30s, 0 to end without a save", c.GracePeriod)
	}
	if _, err := parseTopology(c.Topology); err != nil {
		return err
	}
	return nil
}

func (c *Config) checkOptimizer() error {
	if err := c.UpdateFlags.check(); err != nil {
		return err
	}
	if c.WarmupSteps > 0 && c.Schedule == "constant" {
		return fmt.Errorf("--warmup-steps %d has no effect on --schedule constant: add --schedule cosine", c.WarmupSteps)
	}
	schedule, err := optim.NewSchedule("constant", c.LearningRate, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("--learning-rate: %w", err)
	}
	_, err = optim.NewAdamW(schedule, c.Beta1, c.Beta2, c.Eps, c.WeightDecay)
	return err
}

func (c *Config) checkOutput() error {
	switch {
	case c.RunName != "" && !runName.MatchString(c.RunName):
		return fmt.Errorf("--run-name %q: give 1 to 128 letters, digits, '.', '_' or '-', the first a letter or a digit", c.RunName)
	case slices.Contains([]string{checkpoint.Folder, recordName, metricsName}, c.RunName):
		return fmt.Errorf("--run-name %s: a run without a name keeps its own files under that name: give another", c.RunName)
	case c.StoragePath == "":
		return fmt.Errorf("--storage-path is empty: give a folder")
	case storage.Check(c.StoragePath) != nil:
		return fmt.Errorf("--storage-path: %w", storage.Check(c.StoragePath))
	case c.Resume == "":
		return fmt.Errorf("--resume is empty: give auto, never or the path of a checkpoint")
	case storage.Check(c.Resume) != nil:
		return fmt.Errorf("--resume: %w", storage.Check(c.Resume))
	case !slices.Contains([]string{ResumeAuto, ResumeNever}, c.Resume) && !storage.IsRemote(c.Resume):
		if _, err := os.Stat(c.Resume); err != nil {
			return fmt.Errorf("--resume %s: %w: give auto, never or the path of a checkpoint", c.Resume, err)
		}
	}
	_, err := parseAllowed(c.AllowChanged)
	return err
}

// enterRunFolder makes the storage path that of the run's own folder.
func (c *Config) enterRunFolder() {
	if c.RunName != "" {
		c.StoragePath, c.RunName = storage.Join(c.StoragePath, c.RunName), ""
	}
}

// runName is a name that is one folder on every file system and in every object store.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
