package job

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
)

// terminal is what the tables and lines for people may take of a terminal.
const terminal = 100

func requireFits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), terminal, line)
	}
}

func TestCheckpointTable(t *testing.T) {
	at := time.Date(2026, 11, 30, 6, 39, 16, 0, time.UTC)
	entry := func(name string, epoch, step int, metrics checkpoint.Metrics, kept ...checkpoint.Reason) CheckpointInfo {
		return CheckpointInfo{
			Name: name, Epoch: epoch, Step: step, Metrics: metrics, Bytes: 372_000_000_000, Devices: 256, Platform: "tpu", Kind: "full",
			Committed: &at, State: StateOK, Kept: kept,
		}
	}
	const newest, best, last, every, faulty = checkpoint.KeptNewest, checkpoint.KeptBest, checkpoint.KeptLast, checkpoint.KeptEvery, checkpoint.KeptFaulty
	evaluated := []CheckpointInfo{
		entry("epoch-0001-step-00000192", 1, 192, checkpoint.Metrics{"loss": 3.14159, "eval_loss": 12.5}),
		entry("epoch-0002-step-00000384", 2, 384, checkpoint.Metrics{"loss": 2.5, "eval_loss": 2.25}, best, last),
		entry("epoch-0003-step-00000576", 3, 576, checkpoint.Metrics{"loss": 2.25, "eval_loss": 2.5}, newest, best, last, every),
	}
	evaluated[1].Best = true
	within := entry("epoch-0002-step-00000400", 2, 400, checkpoint.Metrics{"partial_loss": 2.5}, newest)
	within.Kind, within.Committed = "state", nil
	damaged := entry("epoch-0002-step-00000384", 0, 0, nil, faulty)
	damaged.Kind, damaged.State, damaged.Bytes, damaged.Error = "?", StateDamaged, 0, "manifest.json: not JSON"
	const foot = "STATE looks at the manifest and the files' sizes; weft checkpoint verify reads every byte.\n"
	for _, c := range []struct {
		name string
		list CheckpointList
		want string
	}{
		{"no checkpoint", CheckpointList{Path: "out"}, "out: no checkpoint yet\n"},
		{"with evaluations", CheckpointList{Checkpoints: evaluated, by: "eval_loss", Retention: "the best 2 by eval_loss, the last 2, those at the end of every 3rd epoch, the newest"}, `
NAME                      LOSS    EVAL     SIZE      KIND  COMMITTED (UTC)   STATE  KEPT AS
epoch-0001-step-00000192  3.1416  12.5000  372.0 GB  full  2026-11-30 06:39  ok     (goes)
epoch-0002-step-00000384  2.5000  2.2500*  372.0 GB  full  2026-11-30 06:39  ok     best, last
epoch-0003-step-00000576  2.2500  2.5000   372.0 GB  full  2026-11-30 06:39  ok     newest, best,
                                                                                    last, every
The run keeps the best 2 by eval_loss, the last 2, those at the end of every 3rd epoch, the newest.
` + foot},
		{"without", CheckpointList{Checkpoints: []CheckpointInfo{damaged, within}, by: "loss", Retention: "all"}, `
NAME                      LOSS     SIZE      KIND   COMMITTED (UTC)   STATE    KEPT AS
epoch-0002-step-00000384  -        0 B       ?      2026-11-30 06:39  damaged  unreadable
epoch-0002-step-00000400  ~2.5000  372.0 GB  state  -                 ok       newest
epoch-0002-step-00000384: manifest.json: not JSON
The run keeps all.
` + foot},
		{"under another name", CheckpointList{Checkpoints: []CheckpointInfo{entry("copied", 2, 384, checkpoint.Metrics{"loss": 2.5}, newest)}, by: "loss", Retention: "all"}, `
NAME                        LOSS    SIZE      KIND  COMMITTED (UTC)   STATE  KEPT AS
copied (epoch 2, step 384)  2.5000  372.0 GB  full  2026-11-30 06:39  ok     newest
The run keeps all.
` + foot},
	} {
		var out strings.Builder
		require.NoError(t, c.list.Write(&out), c.name)
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			got.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		require.Equal(t, strings.TrimPrefix(c.want, "\n"), got.String(), c.name)
		requireFits(t, out.String())
		require.Error(t, c.list.Write(broken{}), c.name)
	}
}

// broken is a terminal that went away.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
