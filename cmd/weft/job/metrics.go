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

	"weft/engine/trainer"
)

// metricsName is the file of one JSON object a step, under the storage path.
const metricsName = "metrics.jsonl"

// metricsLog appends to metrics.jsonl.
type metricsLog struct{ f *os.File }

// openMetrics opens the file to continue from a position: it keeps the lines of the steps and evaluations up to it and drops
// those after (of what will be done again) and a torn last line, by writing a new file and renaming it.
func openMetrics(dir string, from trainer.Position) (*metricsLog, error) {
	path := filepath.Join(dir, metricsName)
	if err := cutMetrics(path, from); err != nil {
		return nil, fmt.Errorf("continue %s after step %d: %w: check the folder's permissions and free space", path, from.Step, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the metrics: %w", err)
	}
	return &metricsLog{f: f}, nil
}

func cutMetrics(path string, from trainer.Position) error {
	old, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return replaceFile(path, func(io.Writer) error { return nil })
	}
	if err != nil {
		return err
	}
	defer old.Close()
	return replaceFile(path, func(w io.Writer) error { return copyLines(w, old, from) })
}

// copyLines copies the lines up to a position. The file was written in order, so the first line beyond, or the first that is
// none, ends it.
func copyLines(dst io.Writer, src io.Reader, from trainer.Position) error {
	in, out := bufio.NewReader(src), bufio.NewWriter(dst)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		var record struct {
			Step int      `json:"step"`
			Eval *float64 `json:"eval_loss"`
		}
		if json.Unmarshal(line, &record) != nil || record.Step < 1 || record.Step > from.Step {
			return out.Flush()
		}
		if record.Eval != nil && record.Step > from.Evaluated {
			return out.Flush() // it comes after its step, and will be done again
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
}

// add writes the line of one step at once, so that a reader sees it and a killed run keeps it.
func (m *metricsLog) add(r trainer.StepRecord) error { return m.write(r.Step, r) }

// addEval writes the line of one evaluation.
func (m *metricsLog) addEval(r trainer.EvalRecord) error { return m.write(r.Step, r) }

func (m *metricsLog) write(step int, record any) error {
	line, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write the metrics of step %d: %w", step, err)
	}
	if _, err := m.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the metrics of step %d: %w: make room on the disk; the run continues from its last checkpoint", step, err)
	}
	return nil
}

// sync makes the lines durable, before a checkpoint that stands on them.
func (m *metricsLog) sync() error { return m.f.Sync() }

func (m *metricsLog) close() error { return m.f.Close() }
