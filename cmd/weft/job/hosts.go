package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/trainer"
	"weft/models/hf"
)

// A run on several hosts is one process on each, with the same flags. Host 0 prints, and owns the storage path: the lock, run.json,
// metrics.jsonl, the choice of the checkpoint to go on from, each commit. The parts of the preparation end on all hosts together,
// with the error of the one that failed, if one did.

// opener opens the devices of a run.
type opener func(context.Context, *DeviceFlags, *report) (*engine.Runtime, error)

// faults are where tests make a host fail or wait; none in a run of a user.
type faults struct {
	step     func(trainer.Stepper) trainer.Stepper
	source   func(trainer.Source) trainer.Source
	snapshot func(*checkpoint.Snapshot)
	// meet is how long a host waits to see the storage of host 0, 0: meetWait.
	meet time.Duration
}

func (f faults) into(loop *trainer.Run) {
	if f.step != nil {
		loop.Step = f.step(loop.Step)
	}
	if f.source != nil {
		loop.Source = f.source(loop.Source)
	}
}

// process is this host's rank; 0 also before the devices are open.
func (r *run) process() int {
	if r.rt == nil {
		return 0
	}
	return r.rt.Process()
}

// several tells that other hosts run this, too.
func (r *run) several() bool { return r.rt != nil && r.rt.Processes() > 1 }

// together does a part of the preparation on every host and fails on all of them when it fails on one.
func (r *run) together(name string, part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		r.dog.GoesOn("the preparation (" + name + ")")
		return r.outcome(name, part(ctx))
	}
}

// maxReason bounds the bytes of a failure that other hosts are told.
const maxReason = 2000

// outcome exchanges how each host fared: the error is this one's own or names the hosts that failed.
func (r *run) outcome(name string, own error) error {
	if !r.several() {
		return own
	}
	all, err := r.rt.Exchange(name, reasonOf(own))
	if err != nil {
		return errors.Join(own, err)
	}
	if own != nil {
		return fmt.Errorf("%s: %w", r.rt.HostName(r.rt.Process()), own)
	}
	return failureOf(all, r.rt.HostName)
}

// The first byte of a reason says whether the failure may come again: all hosts must end with the same exit code, by which a
// platform tells whether to start them again.
const staysByte, passesByte = '!', '~'

// reasonOf is what other hosts are told of a failure; nothing where there is none.
func reasonOf(err error) []byte {
	if err == nil {
		return nil
	}
	kind := byte(staysByte)
	if passes(err) {
		kind = passesByte
	}
	text := OneLine(err)
	return append([]byte{kind}, text[:min(len(text), maxReason)]...)
}

// failureOf is the error of the hosts that told a reason, nil where none did.
func failureOf(all [][]byte, hostName func(int) string) error {
	var failed []string
	stays := false
	for process, reason := range all {
		if len(reason) > 0 {
			failed = append(failed, fmt.Sprintf("%s: %s", hostName(process), reason[1:]))
			stays = stays || reason[0] == staysByte
		}
	}
	if len(failed) == 0 {
		return nil
	}
	err := errors.New(strings.Join(failed, "; "))
	if !stays {
		return &passingError{err}
	}
	return err
}

// tellFailure ends a training on all hosts: see trainer.Hooks.Tell.
func (r *run) tellFailure(own error) error {
	if err := r.outcome("failure", own); err != nil {
		return err
	}
	return errors.New("a host said that it failed, and then not why")
}

// quietHost leaves the report to host 0; warnings of the others bear their names.
func (r *run) quietHost() {
	if r.process() == 0 {
		return
	}
	r.report.mu.Lock()
	defer r.report.mu.Unlock()
	r.report.Out, r.report.Terminal = io.Discard, false
	r.report.Log = r.report.Log.With("host", r.rt.HostName(r.process()))
}

// shared are the options of the storage that this host uses together with the others. Host 0 draws the session.
func (r *run) shared() checkpoint.Options {
	if !r.several() {
		return checkpoint.Options{}
	}
	return checkpoint.Options{Process: r.process(), Processes: r.rt.Processes(), Session: r.session, HostWait: r.hostWait(), HostName: r.rt.HostName}
}

// openFirst opens the storage on host 0, and draws the session.
func (r *run) openFirst(context.Context) (err error) {
	if r.process() > 0 {
		return nil
	}
	if r.several() {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return fmt.Errorf("draw the number of the session: %w", err)
		}
		r.session = int64(binary.LittleEndian.Uint64(b[:]) >> 1)
	}
	r.folder, r.manager, err = openStorage(r.Config, r.report, r.shared())
	return err
}

// openOthers opens the storage on the other hosts, for the session of host 0, and reads what is there.
func (r *run) openOthers(ctx context.Context) error {
	if r.several() {
		b, err := r.ofFirst("session", binary.LittleEndian.AppendUint64(nil, uint64(r.session)))
		if err != nil {
			return err
		}
		r.session = int64(binary.LittleEndian.Uint64(b))
	}
	return r.together("storage", func(ctx context.Context) (err error) {
		if r.process() > 0 {
			if r.folder, r.manager, err = openStorage(r.Config, r.report, r.shared()); err != nil {
				return err
			}
		}
		if err := r.manager.Meet(ctx, cmp.Or(r.faults.meet, meetWait)); err != nil {
			return err
		}
		r.history, err = readHistory(r.Config, r.folder, r.manager)
		return err
	})(ctx)
}

// meetWait is longer than a network disk hides a new file from another host: NFS looks again after a minute at most.
const meetWait = 2 * time.Minute

// ofFirst gives every host what host 0 has.
func (r *run) ofFirst(name string, own []byte) ([]byte, error) {
	all, err := r.rt.Exchange(name, own)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// agreed are the figures that all hosts must have alike, by the flag or the word that people know them by.
func (r *run) agreed() map[string]string {
	record := r.want.record
	out := map[string]string{
		"the version of weft": record.Weft, "--num-epochs": fmt.Sprint(record.Epochs), "the rows of the evaluation": short(record.EvalContent),
		"the placement": record.Placement.String(), "--eval-every-steps": fmt.Sprint(r.EvalEverySteps),
		"--save-every-steps": fmt.Sprint(r.SaveEverySteps), "--save-every": r.SaveEvery.String(), "--resume": r.Resume, "--allow-changed": r.AllowChanged,
		"the steps of an epoch": fmt.Sprint(r.loader.StepsPerEpoch()), "--storage-path": r.folder.String(),
	}
	s := reflect.ValueOf(record.Settings)
	for i := range s.NumField() {
		field := s.Type().Field(i)
		name := field.Tag.Get("text")
		if name == "" {
			name = field.Tag.Get("flag")
		}
		if c := field.Tag.Get("content"); c != "" {
			name = "the content of " + field.Tag.Get("flag")
		}
		value := fmt.Sprint(s.Field(i).Interface())
		if field.Tag.Get("content") != "" {
			value = short(value)
		}
		out[name] = value
	}
	return out
}

// short is the beginning of a fingerprint.
func short(sum string) string { return sum[:min(16, len(sum))] }

// agree compares what this host is about to run with what the others are.
func (r *run) agree(context.Context) error {
	if !r.several() {
		return nil
	}
	raw, err := json.Marshal(r.agreed())
	if err != nil {
		return err
	}
	all, err := r.rt.Exchange("settings", raw)
	if err != nil {
		return err
	}
	first := map[string]string{}
	if err := json.Unmarshal(all[0], &first); err != nil {
		return fmt.Errorf("read what host 0 runs: %w: use the same weft on all hosts", err)
	}
	for process, raw := range all {
		theirs := map[string]string{}
		if err := json.Unmarshal(raw, &theirs); err != nil {
			return fmt.Errorf("read what %s runs: %w: use the same weft on all hosts", r.rt.HostName(process), err)
		}
		for _, name := range slices.Sorted(maps.Keys(first)) {
			if theirs[name] != first[name] {
				return fmt.Errorf("the hosts do not run the same thing: %s is %q on %s and %q on %s: give all hosts the same flags, files and version",
					name, first[name], r.rt.HostName(0), theirs[name], r.rt.HostName(process))
			}
		}
	}
	return nil
}

// chooseTogether has host 0 choose where the run begins, and the others take the same.
func (r *run) chooseTogether(ctx context.Context) error {
	first := func(context.Context) (err error) {
		if r.process() == 0 {
			r.from, r.reader, err = r.history.choose(r.manager, r.want, r.report)
		}
		return err
	}
	if err := r.together("choice", first)(ctx); err != nil {
		return err
	}
	if r.several() {
		name := ""
		if r.from != nil {
			name = r.from.entry.Name
		}
		chosen, err := r.ofFirst("checkpoint", []byte(name))
		if err != nil {
			return err
		}
		follow := func(context.Context) (err error) {
			if r.process() > 0 {
				r.from, r.reader, err = r.history.take(r.manager, r.want, string(chosen))
			}
			return err
		}
		if err := r.together("same checkpoint", follow)(ctx); err != nil {
			return err
		}
	}
	return r.together("record", func(context.Context) error {
		if r.from != nil {
			return r.begin(r.from.now)
		}
		record, err := r.history.begin(r.want)
		if err != nil {
			return err
		}
		return r.begin(record)
	})(ctx)
}

// sharedFolder describes the Hugging Face folder of a state of which other hosts hold parts: trained tensors are read back from
// what all have written, frozen ones come from where they came from at the start.
func (s *saver) sharedFolder() *checkpoint.ModelFolder {
	folder := &checkpoint.ModelFolder{Files: s.model.files.files}
	for _, t := range byParam(s.model.exported) {
		switch {
		case s.asItCame(t):
			folder.Tensors = append(folder.Tensors, s.untouched(t))
		case t.Param.Trainable:
			of := t.Region(sharding.Region{Start: make([]int, len(t.Shape)), Size: t.Shape})
			folder.Tensors = append(folder.Tensors, checkpoint.Tensor{
				Name: t.Name, DType: t.DType, Shape: t.Shape, From: &checkpoint.Region{Tensor: t.Param.Name, Start: of.Start, Size: of.Size},
			})
		default:
			folder.Tensors = append(folder.Tensors, s.refilled(t))
		}
	}
	return folder
}

// refilled is a frozen tensor with the values that the parameters had first, some rows at a time.
func (s *saver) refilled(t hf.Tensor) checkpoint.Tensor {
	out := checkpoint.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape}
	for _, r := range rowBlocks(t.Shape, t.Param.DType.Size(), untouchedBlock) {
		out.Shards = append(out.Shards, checkpoint.Shard{Start: r.Start, Size: r.Size, Fetch: func(dst []byte) error {
			from := fileDTypes[t.Param.DType]
			if from == t.DType {
				return s.model.fill(*t.Param, t.Region(r), dst)
			}
			raw := make([]byte, r.Elements()*t.Param.DType.Size())
			if err := s.model.fill(*t.Param, t.Region(r), raw); err != nil {
				return err
			}
			return safetensors.Convert(dst, t.DType, raw, from)
		}})
	}
	return out
}
