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

// openMetrics opens the file to continue after step: it keeps the lines of the steps up to it and drops those after
// (of steps that will be done again) and a torn last line, by writing a new file and renaming it.
func openMetrics(dir string, step int) (*metricsLog, error) {
	path := filepath.Join(dir, metricsName)
	if err := cutMetrics(path, step); err != nil {
		return nil, fmt.Errorf("continue %s after step %d: %w: check the folder's permissions and free space", path, step, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the metrics: %w", err)
	}
	return &metricsLog{f: f}, nil
}

func cutMetrics(path string, step int) error {
	old, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return replaceFile(path, func(io.Writer) error { return nil })
	}
	if err != nil {
		return err
	}
	defer old.Close()
	return replaceFile(path, func(w io.Writer) error { return copySteps(w, old, step) })
}

// copySteps copies the lines of steps up to step. The file was written in order, so the first line beyond, or the
// first that is none, ends it.
func copySteps(dst io.Writer, src io.Reader, step int) error {
	in, out := bufio.NewReader(src), bufio.NewWriter(dst)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		var record trainer.StepRecord
		if json.Unmarshal(line, &record) != nil || record.Step < 1 || record.Step > step {
			return out.Flush()
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
}

// add writes the line of one step at once, so that a reader sees it and a killed run keeps it.
func (m *metricsLog) add(r trainer.StepRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the metrics of step %d: %w", r.Step, err)
	}
	if _, err := m.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the metrics of step %d: %w: make room on the disk; the run continues from its last checkpoint", r.Step, err)
	}
	return nil
}

// sync makes the lines durable, before a checkpoint that stands on them.
func (m *metricsLog) sync() error { return m.f.Sync() }

func (m *metricsLog) close() error { return m.f.Close() }
