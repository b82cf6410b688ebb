package job

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/data"
	"weft/engine/trainer"
	"weft/internal/property"
)

func none(string) bool { return false }

func TestAllowChangedNames(t *testing.T) {
	allowed, err := parseAllowed("learning-rate, --seed,batch,data,model")
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"learning-rate": true, "seed": true, "batch-size-per-device": true, "dataset": true, "model-id": true}, allowed)
	_, err = parseAllowed("seed,epochs")
	require.ErrorContains(t, err, `--allow-changed: "epochs" is no setting of a run: give some of model-id,tokenizer,dataset,`)
	_, err = parseAllowed("seed,")
	require.ErrorContains(t, err, "give some of")
}

// base is a run of a cosine schedule over data of 64 rows, 8 a step.
func base() settings {
	return settings{
		ModelContent: "m", TokenizerContent: "t", DatasetContent: "d", DatasetSplit: "train", GlobalBatch: 8, Seed: 42,
		LearningRate: 1e-3, Schedule: "cosine", ScheduleSteps: 24, Shuffle: true, DropLast: true,
	}
}

// wants is a request for a run with settings, 64 rows and 3 epochs on 2 devices.
func wants(s settings, allowed ...string) *request {
	w := &request{allowed: map[string]bool{}, stepsPerEpoch: 64 / s.GlobalBatch, record: runRecord{Format: recordFormat, Settings: s, Placement: placement{Devices: 2}}}
	for _, a := range allowed {
		w.allowed[a] = true
	}
	w.scheduleSteps = func(at trainer.Position) int {
		if s.Schedule == "constant" {
			return 0
		}
		return at.Step - at.StepInEpoch + (3-at.Epoch)*(64/s.GlobalBatch)
	}
	return w
}

// All differences are in one message, with the flag that continues in spite of them.
func TestDifferencesAreNamedTogether(t *testing.T) {
	now := base()
	now.LearningRate, now.Seed, now.GlobalBatch, now.TokenizerContent, now.DatasetContent = 2e-3, 7, 4, "u", "e"
	h := &history{}
	p := &resumePoint{where: "out", was: runRecord{Settings: base()}, at: trainer.Position{Epoch: 1, Step: 8}}
	require.EqualError(t, h.continues(p, wants(now, "seed")), "out belongs to a run with other settings: "+
		"the content of --tokenizer is another: its tokenizer fingerprint was t, it is u now; "+
		"the global batch (--batch-size-per-device × devices) was 8, it is 4 now (give --batch-size-per-device 4 to keep it on 2 devices); "+
		"--learning-rate was 0.001, it is 0.002 now; "+
		"use the same settings to continue it, add --allow-changed tokenizer,batch-size-per-device,seed,learning-rate to go on with the new ones, "+
		"or give another --storage-path or --run-name for a new run")
	require.NoError(t, h.continues(p, wants(now, "tokenizer", "batch-size-per-device", "seed", "learning-rate")))
	require.Equal(t, 8+2*16, p.now.Settings.ScheduleSteps, "the schedule ends with the run as it is now")

	odd := wants(now)
	odd.record.Placement.Devices = 3
	require.ErrorContains(t, h.continues(p, odd), "(8 rows do not divide over 3 devices: take a number of devices that divides them)")
}

func TestOtherDataWithinAnEpoch(t *testing.T) {
	now := base()
	now.DatasetSplit, now.DatasetContent = "train[:64]", "e"
	h := &history{}
	p := &resumePoint{where: "out", was: runRecord{Settings: base()}, at: trainer.Position{Epoch: 1, Step: 11, StepInEpoch: 3}}
	require.ErrorContains(t, h.continues(p, wants(now, "dataset-split")), "other data can begin at an epoch's end")
	require.ErrorContains(t, h.continues(p, wants(now)), "--allow-changed does not help here (it stands within epoch 2, after 3 steps,")
	p.at = trainer.Position{Epoch: 2, Step: 16}
	require.NoError(t, h.continues(p, wants(now, "dataset-split")))
	require.Len(t, p.now.Changes, 2)
	require.Equal(t, settingChange{Field: "dataset", Was: json.RawMessage(`"d"`), Now: json.RawMessage(`"e"`), Step: 16, FromEpoch: 2}, p.now.Changes[0])
}

// A permission once given holds: for a start that was killed before it could save, and for checkpoints written since. Without
// a checkpoint of the new settings the old ones are as good.
func TestPermissionIsGivenOnce(t *testing.T) {
	now := base()
	now.LearningRate = 2e-3
	old := runRecord{Format: recordFormat, Settings: base()}
	at := trainer.Position{Epoch: 1, Step: 8}
	h := &history{record: old}
	point := func(was runRecord) *resumePoint { return &resumePoint{was: was, at: at} }
	p := point(old)
	require.NoError(t, h.continues(p, wants(now, "learning-rate")))

	h.record = p.now // as run.json has it, the checkpoint not yet
	again := point(old)
	require.NoError(t, h.continues(again, wants(now)))
	require.Equal(t, p.now, again.now)
	require.NoError(t, h.continues(point(old), wants(base())))
	other := now
	other.LearningRate = 3e-3
	require.Error(t, h.continues(point(old), wants(other)))

	later := point(p.now)
	require.NoError(t, h.continues(later, wants(now)))
	require.Equal(t, p.now.Changes, later.now.Changes)
	require.Empty(t, later.changed)

	h.from = "elsewhere/checkpoint" // the record here is of a run that did not begin there
	require.Error(t, h.continues(point(old), wants(now)))
}

// An epoch that began with another seed, or in the order of the file, ends so.
func TestSettingsByEpoch(t *testing.T) {
	var changes []settingChange
	change := func(was, now int64, at trainer.Position) {
		a, b := base(), base()
		a.Seed, b.Seed = was, now
		diffs, err := a.differences(b)
		require.NoError(t, err)
		changes = recordChanges(changes, diffs, at)
	}
	change(1, 2, trainer.Position{Epoch: 1, Step: 10, StepInEpoch: 2})
	change(2, 3, trainer.Position{Epoch: 1, Step: 12, StepInEpoch: 4})
	change(3, 4, trainer.Position{Epoch: 3, Step: 24})
	for epoch, want := range map[int]int64{-1: 1, 0: 1, 1: 1, 2: 3, 3: 4, 4: 4} {
		seed := int64(4)
		require.NoError(t, inEpoch(changes, "seed", epoch, &seed))
		require.Equal(t, want, seed, "epoch %d", epoch)
	}
}

// Whatever batch a run goes on with within an epoch, each row of that epoch is taken once, or the change is refused.
func TestBatchChangedWithinAnEpoch(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(20, 80).Draw(t, "rows")
		was, now := rapid.IntRange(1, 12).Draw(t, "was"), rapid.IntRange(1, 12).Draw(t, "now")
		done := rapid.IntRange(1, rows/was).Draw(t, "done")
		ds := rowsOf(t, rows)
		seen := map[int32]int{}
		take(t, ds, was, 0, done, seen)
		at, err := adapt(trainer.Position{Epoch: 0, Step: done, StepInEpoch: done}, settings{GlobalBatch: was}, settings{GlobalBatch: now}, (rows+now-1)/now)
		if err != nil {
			if done*was%now == 0 {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		take(t, ds, now, at.StepInEpoch, -1, seen)
		if len(seen) != rows {
			t.Fatalf("%d of %d rows", len(seen), rows)
		}
		for id, n := range seen {
			if n != 1 {
				t.Fatalf("row %d was taken %d times", id, n)
			}
		}
	})
}

// An epoch whose last batch, of the rows left over, was done has no step left when those rows are left out now.
func TestLastBatchLeftOutAfterwards(t *testing.T) {
	s := settings{GlobalBatch: 4}
	at, err := adapt(trainer.Position{Step: 4, StepInEpoch: 4}, s, s, 3)
	require.NoError(t, err)
	require.Equal(t, trainer.Position{Step: 4, StepInEpoch: 3}, at)
}

// rowsOf is a data set whose row i holds the id i alone, but for what a target needs.
func rowsOf(t *rapid.T, n int) *data.Dataset {
	var lines string
	for i := range n {
		lines += fmt.Sprintf(`{"input_ids":[%d,1]}`+"\n", i+2)
	}
	ds, err := data.OpenBytes("rows.jsonl", []byte(lines), nil, data.Options{MaxSeqLen: 2, VocabSize: 200})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// take counts the rows of the batches of epoch 0 from a step to another, -1 for all that are left.
func take(t *rapid.T, ds *data.Dataset, batch, from, to int, seen map[int32]int) {
	l, err := data.NewLoader(ds, data.LoaderConfig{GlobalBatch: batch, Seed: 3, Shuffle: true})
	if err != nil {
		t.Fatal(err)
	}
	if to < 0 {
		to = l.StepsPerEpoch()
	}
	for b, err := range l.Batches(t.Context(), 0, from) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Step >= to {
			return
		}
		for i := range b.RealRows {
			seen[b.InputIDs[i*b.SeqLen]]++
		}
	}
}
