package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"weft/engine/trainer"
)

// openRunMetrics opens metrics.jsonl in the run's folder. An object store cannot append: there the lines are kept in a
// temporary file without a name, and the object is replaced by it before each checkpoint and at the end, as long as owned says
// that the folder is still this process's.
func openRunMetrics(folder place, owned func() error, from trainer.Position) (*metricsLog, error) {
	if !folder.remote() {
		return openMetrics(folder.name, from)
	}
	r := &remoteMetrics{file: folder.in(metricsName), owned: owned}
	m, err := r.open(from)
	if err != nil {
		return nil, fmt.Errorf("continue %s after step %d: %w", r.file, from.Step, err)
	}
	return m, nil
}

// remoteMetrics is metrics.jsonl on an object store.
type remoteMetrics struct {
	file  place
	owned func() error
	lines *os.File
	// published is the length of lines that the object has, -1 when the object is another.
	published int64
}

func (r *remoteMetrics) open(from trainer.Position) (_ *metricsLog, err error) {
	if r.lines, err = os.CreateTemp("", "weft-metrics-*"); err != nil {
		return nil, fmt.Errorf("%w: set TMPDIR to a folder that can be written", err)
	}
	defer func() {
		if err != nil {
			_ = r.lines.Close()
		}
	}()
	if err := os.Remove(r.lines.Name()); err != nil {
		return nil, err
	}
	old, err := r.file.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := err == nil
	kept, err := copyLines(r.lines, bytes.NewReader(old), from)
	if err != nil {
		return nil, err
	}
	size, err := r.size()
	if err != nil {
		return nil, err
	}
	if r.published = -1; there && size == int64(len(old)) {
		r.published = size
	}
	return &metricsLog{f: r.lines, kept: kept, remote: r}, r.publish(size)
}

func (r *remoteMetrics) size() (int64, error) { return r.lines.Seek(0, io.SeekEnd) }

// publish makes the object what the lines are up to a size. One call at a time; lines may be added meanwhile.
func (r *remoteMetrics) publish(size int64) error {
	if size == r.published {
		return nil
	}
	content := make([]byte, size)
	if _, err := r.lines.ReadAt(content, 0); err != nil {
		return err
	}
	if err := r.owned(); err != nil {
		return err
	}
	if err := r.file.fs.Replace(r.file.name, content); err != nil {
		return err
	}
	r.published = size
	return nil
}
