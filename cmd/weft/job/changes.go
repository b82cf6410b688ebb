package job

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"weft/engine/trainer"
)

// settingChange is a setting with which a run went on in spite of its checkpoint's.
type settingChange struct {
	// Field is the flag without its dashes, Was and Now are the values before and since.
	Field string          `json:"field"`
	Was   json.RawMessage `json:"was"`
	Now   json.RawMessage `json:"now"`
	// Step is the number of updates that were done before, FromEpoch (0-based) the first epoch that has the value from its
	// first row on.
	Step      int `json:"step"`
	FromEpoch int `json:"from_epoch"`
}

// difference is a setting in which a run that is asked for differs from one that exists.
type difference struct {
	// field is its name for --allow-changed; text says in words what differs.
	field, text string
	was, now    json.RawMessage
	// follows names the fields whose difference explains this one.
	follows []string
}

func fieldName(flag string) string { return strings.TrimPrefix(flag, "--") }

// differences lists how settings that are asked for differ from those of a run that exists.
func (s settings) differences(now settings) ([]difference, error) {
	var out []difference
	a, b := reflect.ValueOf(s), reflect.ValueOf(now)
	for i := range a.NumField() {
		if a.Field(i).Equal(b.Field(i)) {
			continue
		}
		tag := a.Type().Field(i).Tag
		d := difference{field: fieldName(tag.Get("flag"))}
		if follows := tag.Get("follows"); follows != "" {
			for flag := range strings.SplitSeq(follows, ",") {
				d.follows = append(d.follows, fieldName(flag))
			}
		}
		name := tag.Get("text")
		if name == "" {
			name = tag.Get("flag")
		}
		d.text = fmt.Sprintf("%s was %v, it is %v now", name, shown(a.Field(i)), shown(b.Field(i)))
		if content := tag.Get("content"); content != "" {
			d.text = fmt.Sprintf("the content of %s is another: its %s fingerprint was %.12s, it is %.12s now", name, content, shown(a.Field(i)), shown(b.Field(i)))
		}
		var err error
		if d.was, err = json.Marshal(a.Field(i).Interface()); err != nil {
			return nil, err
		}
		if d.now, err = json.Marshal(b.Field(i).Interface()); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// shown is a value as a message has it.
func shown(v reflect.Value) any {
	if v.Kind() == reflect.String && v.Len() == 0 {
		return "none"
	}
	return v.Interface()
}

// changeable are the names that --allow-changed takes, in the order of the settings.
func changeable() []string {
	var names []string
	t := reflect.TypeFor[settings]()
	for i := range t.NumField() {
		names = append(names, fieldName(t.Field(i).Tag.Get("flag")))
	}
	return names
}

// shortNames are other names for the same.
var shortNames = map[string]string{"model": "model-id", "data": "dataset", "batch": "batch-size-per-device"}

// parseAllowed reads --allow-changed.
func parseAllowed(text string) (map[string]bool, error) {
	allowed := map[string]bool{}
	if text == "" {
		return allowed, nil
	}
	known := changeable()
	for name := range strings.SplitSeq(text, ",") {
		field := fieldName(strings.TrimSpace(name))
		if long, ok := shortNames[field]; ok {
			field = long
		}
		if !slices.Contains(known, field) {
			return nil, fmt.Errorf("--allow-changed: %q is no setting of a run: give some of %s", strings.TrimSpace(name), strings.Join(known, ","))
		}
		allowed[field] = true
	}
	return allowed, nil
}

// refused are the differences for which there is no permission, neither of their own nor by one that explains them.
func refused(diffs []difference, allowed func(field string) bool) []difference {
	differs := map[string]bool{}
	for _, d := range diffs {
		differs[d.field] = true
	}
	var out []difference
	for _, d := range diffs {
		explained := slices.ContainsFunc(d.follows, func(f string) bool { return differs[f] })
		if !explained && !allowed(d.field) {
			out = append(out, d)
		}
	}
	return out
}

// refusal is the error of a run that differs in more than is allowed, all of which is named. cannot is why permission would
// not help, nil when it would.
func refusal(where string, all, unallowed []difference, batch batchHint, cannot error) error {
	var texts, fields []string
	for _, d := range unallowed {
		text := d.text
		if d.field == "batch-size-per-device" {
			text += batch.String()
		}
		texts = append(texts, text)
	}
	for _, d := range refused(all, func(string) bool { return false }) {
		fields = append(fields, d.field)
	}
	way := "add --allow-changed " + strings.Join(fields, ",") + " to go on with the new ones"
	if cannot != nil {
		way = fmt.Sprintf("--allow-changed does not help here (%v)", cannot)
	}
	return fmt.Errorf("%s belongs to a run with other settings: %s; use the same settings to continue it, %s, or give another --storage-path or --run-name for a new run",
		where, strings.Join(texts, "; "), way)
}

// batchHint says how to keep a global batch on another number of devices.
type batchHint struct{ was, devices int }

func (h batchHint) String() string {
	if h.devices > 0 && h.was%h.devices == 0 {
		return fmt.Sprintf(" (give --batch-size-per-device %d to keep it on %d devices)", h.was/h.devices, h.devices)
	}
	return fmt.Sprintf(" (%d rows do not divide over %d devices: take a number of devices that divides them)", h.was, h.devices)
}

// adapt re-expresses a position that was reached under other settings, so that of the epoch's rows none is left out and none is
// taken twice. Its error says why that cannot be. steps is how many an epoch has now.
func adapt(at trainer.Position, was, now settings, steps int) (trainer.Position, error) {
	if at.StepInEpoch == 0 {
		return at, nil
	}
	if was.DatasetContent != now.DatasetContent {
		return at, fmt.Errorf("it stands within epoch %d, after %d steps, and the rest of that epoch's rows are those of the data as it was: other data can begin at an epoch's end", at.Epoch+1, at.StepInEpoch)
	}
	rows := at.StepInEpoch * was.GlobalBatch
	if rows%now.GlobalBatch != 0 {
		return at, fmt.Errorf("it stands within epoch %d, after %d rows, which are no whole number of global batches of %d: take one that divides them, or change the batch at an epoch's end", at.Epoch+1, rows, now.GlobalBatch)
	}
	// No more than all, which a last batch that was not full and is now left out would be.
	at.StepInEpoch = min(rows/now.GlobalBatch, steps)
	return at, nil
}

// recordChanges adds what changes at a position to the changes of a run.
func recordChanges(old []settingChange, diffs []difference, at trainer.Position) []settingChange {
	epoch := at.Epoch
	if at.StepInEpoch > 0 {
		epoch++
	}
	out := slices.Clone(old)
	for _, d := range diffs {
		out = append(out, settingChange{Field: d.field, Was: d.was, Now: d.now, Step: at.Step, FromEpoch: epoch})
	}
	return out
}

// inEpoch sets value, which is that of a field since its last change, to the one that the field had when an epoch began.
// Epoch -1 is before the run.
func inEpoch(changes []settingChange, field string, epoch int, value any) error {
	for _, c := range slices.Backward(changes) {
		if c.Field != field || c.FromEpoch <= epoch {
			continue
		}
		if err := json.Unmarshal(c.Was, value); err != nil {
			return fmt.Errorf("the record of the run says that %s was %s before step %d: %w", field, c.Was, c.Step+1, err)
		}
	}
	return nil
}
