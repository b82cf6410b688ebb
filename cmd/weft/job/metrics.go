package job

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/checkpoint"
	"weft/checkpoint/storage"
	"weft/engine/trainer"
)

// metricsName is the file of one JSON object a step, under the storage path.
const metricsName = "metrics.jsonl"

// metricsLog appends to metrics.jsonl.
type metricsLog struct {
	f checkpoint.File
	// kept are the steps before the start that have a line.
	kept []int
	// remote is where the lines go in the end, nil when f is metrics.jsonl itself.
	remote *remoteMetrics
}

// openMetrics opens the file to continue from a position: it keeps the lines of the steps and evaluations up to it and drops
// those after (of what will be done again), a torn last line and damaged ones, by writing a new file and renaming it.
func openMetrics(dir string, from trainer.Position) (*metricsLog, error) {
	path := filepath.Join(dir, metricsName)
	kept, err := cutMetrics(path, from)
	if err != nil {
		return nil, fmt.Errorf("continue %s after step %d: %w: check the folder's permissions and free space", path, from.Step, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the metrics: %w", err)
	}
	return &metricsLog{f: storage.File(path, f), kept: kept}, nil
}

func cutMetrics(path string, from trainer.Position) (kept []int, err error) {
	old, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, checkpoint.OS{}.ReplaceBy(path, func(io.Writer) error { return nil })
	}
	if err != nil {
		return nil, err
	}
	defer old.Close()
	err = checkpoint.OS{}.ReplaceBy(path, func(w io.Writer) (err error) {
		kept, err = copyLines(w, old, from)
		return err
	})
	return kept, err
}

// copyLines copies the lines up to a position and returns their steps. The file was written in order, so the first line
// beyond ends it; one that is none was damaged, and those behind it are good.
func copyLines(dst io.Writer, src io.Reader, from trainer.Position) (kept []int, err error) {
	in, out := bufio.NewReader(src), bufio.NewWriter(dst)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return kept, out.Flush()
		}
		if err != nil {
			return nil, err
		}
		var record struct {
			Step int      `json:"step"`
			Eval *float64 `json:"eval_loss"`
		}
		if json.Unmarshal(line, &record) != nil || record.Step < 1 {
			continue
		}
		if record.Step > from.Step || record.Eval != nil && record.Step > from.Evaluated {
			return kept, out.Flush() // an evaluation comes after its step, and will be done again
		}
		if record.Eval == nil {
			kept = append(kept, record.Step)
		}
		if _, err := out.Write(line); err != nil {
			return nil, err
		}
	}
}

// lost are the steps up to the start, from first on, that have no line any more: "4, 6-8". The lines of a checkpoint's steps
// are durable before it is, so they were damaged or deleted.
func (m *metricsLog) lost(first, start int) string {
	var out []string
	next := first
	for _, step := range append(slices.Clone(m.kept), start+1) {
		switch {
		case step == next+1:
			out = append(out, strconv.Itoa(next))
		case step > next:
			out = append(out, fmt.Sprintf("%d-%d", next, step-1))
		}
		next = max(next, step+1)
	}
	return strings.Join(out, ", ")
}

// stepLine is the line of a step. What is of a save stands on the first line that is written when it is known: how long
// training waited for the save between the step before and this one, and how much host memory of how much it took; how long
// a write went on that has ended, that of the oldest save first. A run that goes on has no line of the saves before.
type stepLine struct {
	trainer.StepRecord
	SaveStall     float64 `json:"save_stall_s,omitempty"`
	SaveHost      int64   `json:"save_host_bytes,omitempty"`
	SaveHostLimit int64   `json:"save_host_limit_bytes,omitempty"`
	SaveWrite     float64 `json:"save_write_s,omitempty"`
}

// saveFigures are those of saves that no line has yet.
type saveFigures struct {
	// staged is nil when there was no save since the line before.
	staged *checkpoint.AsyncStats
	// writes are in seconds.
	writes []float64
}

// line takes what goes on the next step's line.
func (f *saveFigures) line(r trainer.StepRecord) stepLine {
	out := stepLine{StepRecord: r}
	if s := f.staged; s != nil {
		out.SaveStall, out.SaveHost, out.SaveHostLimit = s.Stall.Seconds(), s.PeakBytes, s.LimitBytes
		f.staged = nil
	}
	if len(f.writes) > 0 {
		out.SaveWrite, f.writes = f.writes[0], f.writes[1:]
	}
	return out
}

// add writes the line of one step at once, so that a reader sees it and a killed run keeps it.
func (m *metricsLog) add(l stepLine) error { return m.write(l.Step, l) }

// addEval writes the line of one evaluation.
func (m *metricsLog) addEval(r trainer.EvalRecord) error { return m.write(r.Step, r) }

// write does nothing on a nil log, which hosts have that do not keep the metrics.
func (m *metricsLog) write(step int, record any) error {
	if m == nil {
		return nil
	}
	line, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write the metrics of step %d: %w", step, err)
	}
	if _, err := m.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the metrics of step %d: %w: make room on the disk; the run continues from its last checkpoint", step, err)
	}
	return nil
}

// beforeSave makes the lines durable, before a checkpoint that stands on them. On an object store that is left to later, which
// may run while lines are added.
func (m *metricsLog) beforeSave() (later func() error, err error) {
	if m == nil {
		return nil, nil
	}
	if m.remote == nil {
		return nil, m.f.Sync()
	}
	size, err := m.remote.size()
	return func() error { return m.remote.publish(size) }, err
}

func (m *metricsLog) close() error {
	if m.remote == nil {
		return m.f.Close()
	}
	later, err := m.beforeSave()
	if err == nil {
		err = later()
	}
	return errors.Join(err, m.f.Close())
}
