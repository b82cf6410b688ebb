package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
)

// recordName is the file under the storage path that says which run lives there.
const recordName = "run.json"

// recordFormat is the number of its layout.
const recordFormat = 2

// settings are what decides the numbers of a run: to continue it, each must be the same or be named by --allow-changed.
// The tag `flag` is what a user changes, and names the field there, without the dashes; `content` marks a fingerprint.
// `follows` lists flags whose change changes the field too, which then needs no permission of its own.
type settings struct {
	ModelContent     string `json:"model_sha256" flag:"--model-id" content:"model" follows:"--random-init"`
	TokenizerContent string `json:"tokenizer_sha256" flag:"--tokenizer" content:"tokenizer"`
	DatasetContent   string `json:"dataset_sha256" flag:"--dataset" content:"dataset" follows:"--tokenizer,--dataset-split,--template,--loss-on,--max-seq-len"`
	DatasetSplit     string `json:"dataset_split" flag:"--dataset-split"`
	Template         string `json:"template" flag:"--template"`
	LossOn           string `json:"loss_on" flag:"--loss-on"`
	MaxSeqLen        int    `json:"max_seq_len" flag:"--max-seq-len"`
	Shuffle          bool   `json:"shuffle" flag:"--shuffle"`
	DropLast         bool   `json:"drop_last" flag:"--drop-last"`
	GlobalBatch      int    `json:"global_batch" flag:"--batch-size-per-device" text:"the global batch (--batch-size-per-device × devices)"`
	Seed             int64  `json:"seed" flag:"--seed"`
	RandomInit       bool   `json:"random_init" flag:"--random-init"`
	// Scan decides under which names and in which stacks the train state holds the parameters.
	Scan         bool    `json:"scan" flag:"--scan"`
	Freeze       string  `json:"freeze" flag:"--freeze"`
	ParamDType   string  `json:"param_dtype" flag:"--param-dtype"`
	ComputeDType string  `json:"compute_dtype" flag:"--compute-dtype"`
	LearningRate float64 `json:"learning_rate" flag:"--learning-rate"`
	WeightDecay  float64 `json:"weight_decay" flag:"--weight-decay"`
	Beta1        float64 `json:"beta1" flag:"--beta1"`
	Beta2        float64 `json:"beta2" flag:"--beta2"`
	Eps          float64 `json:"eps" flag:"--eps"`
	MaxGradNorm  float64 `json:"max_grad_norm" flag:"--max-grad-norm"`
	// FirstMomentDType is not in the records of versions that knew float32 only.
	FirstMomentDType string `json:"first_moment_dtype" flag:"--first-moment-dtype"`
	Schedule         string `json:"schedule" flag:"--schedule"`
	WarmupSteps      int    `json:"warmup_steps" flag:"--warmup-steps"`
	// ScheduleSteps is the length of a schedule that depends on it, 0 for one that does not.
	ScheduleSteps int `json:"schedule_steps" flag:"--num-epochs" text:"the number of steps of --schedule cosine (--num-epochs)" follows:"--schedule,--batch-size-per-device,--drop-last,--dataset,--tokenizer,--dataset-split,--template,--loss-on,--max-seq-len"`
}

// placement is what may change between the parts of a run: its mathematics stays the same, its last bits may not.
type placement struct {
	Platform string `json:"platform"`
	Devices  int    `json:"devices"`
	Remat    string `json:"remat"`
	// OneGather is --gathers 1.
	OneGather bool `json:"one_gather,omitempty"`
}

// String is the placement by its flags, but for the devices.
func (p placement) String() string {
	gathers := 2
	if p.OneGather {
		gathers = 1
	}
	return fmt.Sprintf("%d × %s, --remat %s, --gathers %d", p.Devices, p.Platform, p.Remat, gathers)
}

// runRecord is what run.json and each checkpoint say of the run.
type runRecord struct {
	Format    int       `json:"format"`
	Weft      string    `json:"weft"`
	ModelID   string    `json:"model_id"`
	Dataset   string    `json:"dataset"`
	Epochs    int       `json:"epochs"`
	Settings  settings  `json:"settings"`
	Placement placement `json:"placement"`
	// Retention are the rules of --keep and its kin, for who looks at the checkpoints from outside.
	Retention *retention `json:"retention,omitempty"`
	// EvalContent is the fingerprint of what is evaluated, which may change: it decides no number of the training.
	EvalContent string `json:"eval_sha256,omitempty"`
	// From is the checkpoint of another folder that the run began from.
	From string `json:"from,omitempty"`
	// Changes are the settings that were others before, in the order in which they changed.
	Changes []settingChange `json:"changes,omitempty"`
}

// firstSeed is the seed that the run's random weights were drawn with, whatever it was changed to since.
func (r runRecord) firstSeed() (int64, error) {
	// What was changed before the first step is of a run that began again.
	changes := slices.DeleteFunc(slices.Clone(r.Changes), func(c settingChange) bool { return c.Step == 0 })
	seed := r.Settings.Seed
	err := inEpoch(changes, "seed", -1, &seed)
	return seed, err
}

func newRecord(c *Config, s settings, p placement) runRecord {
	return runRecord{
		Format: recordFormat, Weft: Version(), ModelID: c.ModelID, Dataset: c.Dataset,
		Epochs: c.NumEpochs, Settings: s, Placement: p,
		Retention: &retention{Keep: c.Keep, KeepBy: c.KeepBy, KeepLast: c.KeepLast, KeepEvery: c.KeepEvery},
	}
}

// Version is weft's: the module's, and the commit that it was built from; "unknown" for a build that does not tell.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var commit, modified string
	for _, kv := range info.Settings {
		switch kv.Key {
		case "vcs.revision":
			commit = " " + kv.Value
		case "vcs.modified":
			if kv.Value == "true" {
				modified = " with changes"
			}
		}
	}
	return info.Main.Version + commit + modified
}

// parseRecord reads a record, strictly: one with fields that this version does not know is of a later one.
func parseRecord(raw []byte, where string) (runRecord, error) {
	r := runRecord{Settings: settings{FirstMomentDType: DTypeFloat32}}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%s is not the record of a run that this version of weft can continue: %w: use the version that wrote it, or another --storage-path", where, err)
	}
	if r.Format != recordFormat {
		return r, fmt.Errorf("%s has format %d, this version of weft writes %d: use the version that wrote it, or another --storage-path", where, r.Format, recordFormat)
	}
	return r, nil
}

// readRecord reads run.json in the run's folder; ok is false when there is none.
func readRecord(folder place) (r runRecord, ok bool, err error) {
	file := folder.in(recordName)
	raw, err := file.read()
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("read the record of the run: %w", err)
	}
	r, err = parseRecord(raw, file.String())
	return r, err == nil, err
}

func (r runRecord) marshal() (json.RawMessage, error) { return json.MarshalIndent(r, "", "  ") }

// write replaces run.json in the run's folder.
func (r runRecord) write(folder place) error {
	raw, err := r.marshal()
	if err != nil {
		return err
	}
	file := folder.in(recordName)
	if err := file.fs.Replace(file.name, append(raw, '\n')); err != nil {
		return fmt.Errorf("write %s: %w: check its permissions and free space", file, err)
	}
	return nil
}
