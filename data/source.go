package data

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Store is where files lie that are not on a local disk.
type Store interface {
	// Open opens a file to be read once from its start; fs.ErrNotExist when there
	// is none. A read of it fails when the bytes are not those that the store has.
	Open(url string) (io.ReadCloser, error)
}

// source is a file of JSON lines that can be read more than once.
type source struct {
	name string // for messages
	open func() (io.ReadCloser, error)
	// distant tells that each reading costs a transfer.
	distant bool
}

// findInStore returns the file of a split: url itself, or NAME.jsonl in the folder url.
func findInStore(store Store, url, splitName string) (source, error) {
	folder := strings.TrimSuffix(url, "/")
	for _, file := range []string{url, folder + "/" + splitName + ".jsonl", folder + "/" + splitName + ".jsonl.gz"} {
		probe, err := store.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = probe.Close()
		}
		if err != nil {
			return source{}, fmt.Errorf("dataset: %w", err)
		}
		if file == url && splitName != "train" {
			return source{}, singleFileError(url, splitName)
		}
		return source{name: file, distant: true, open: func() (io.ReadCloser, error) { return store.Open(file) }}, nil
	}
	return source{}, fmt.Errorf("dataset %s: there is no such file, and no %s.jsonl or %[2]s.jsonl.gz in a folder of that name", url, splitName)
}

func singleFileError(path, splitName string) error {
	return fmt.Errorf("dataset %s: a single file has the split train only, not %q; for more splits give a folder with %s.jsonl", path, splitName, splitName)
}

// fetched copies the file to a temporary one without a name, so that it can be read again without another transfer. Close the
// copy when done.
func (s source) fetched() (local source, done func() error, err error) {
	in, err := s.open()
	if err != nil {
		return s, nil, fmt.Errorf("dataset: %w", err)
	}
	defer in.Close()
	out, err := os.CreateTemp("", "weft-dataset-*")
	if err != nil {
		return s, nil, fmt.Errorf("dataset %s: a part of it was asked for, which needs a temporary copy: %w; set TMPDIR to a folder with room", s.name, err)
	}
	size, err := io.Copy(out, in)
	if err = errors.Join(os.Remove(out.Name()), err); err != nil {
		_ = out.Close()
		return s, nil, fmt.Errorf("dataset %s: copy it to %s, since a part of it was asked for: %w", s.name, filepath.Dir(out.Name()), err)
	}
	local = source{name: s.name, open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(out, 0, size)), nil }}
	return local, out.Close, nil
}

// findSource returns the file of a split: path itself, which holds "train", or NAME.jsonl in the folder path.
func findSource(path, splitName string) (source, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return source{}, fmt.Errorf("dataset %s: no such file or folder; give a .jsonl or .jsonl.gz file", path)
	}
	if err != nil {
		return source{}, fmt.Errorf("dataset: %w", err)
	}
	if !info.IsDir() {
		if splitName != "train" {
			return source{}, singleFileError(path, splitName)
		}
		return fileSource(path), nil
	}
	for _, ext := range []string{".jsonl", ".jsonl.gz"} {
		file := filepath.Join(path, splitName+ext)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return fileSource(file), nil
		}
	}
	return source{}, fmt.Errorf("dataset %s: the folder has no %s.jsonl or %[2]s.jsonl.gz", path, splitName)
}

func fileSource(path string) source {
	return source{name: path, open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

func bytesSource(name string, data []byte) source {
	return source{name: name, open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// errStop ends a walk over lines early, without an error.
var errStop = errors.New("stop")

// lines calls visit for every line that is not blank, with its number from 1. Gzip is recognised by its first bytes.
// The line is visit's to keep.
func (s source) lines(visit func(number int, line []byte) error) error {
	file, err := s.open()
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<18)
	if magic, _ := r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("dataset %s: gzip: %w", s.name, err)
		}
		r = bufio.NewReaderSize(plain, 1<<18)
	}
	for number := 1; ; number++ {
		line, err := readLine(r, maxLine)
		if errors.Is(err, errLongLine) {
			return s.lineError(number, err)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			if terr := s.transferFault(number, file, err); terr != nil {
				return terr
			}
			return fmt.Errorf("%s:%d: %w; the file is cut off or damaged: fetch it again", s.name, number, err)
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if line := bytes.TrimSpace(line); len(line) > 0 {
			if err := visit(number, line); err != nil {
				if terr := s.transferFault(number, file, nil); terr != nil {
					return terr
				}
				if errors.Is(err, errStop) {
					return nil
				}
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// transferError is an error of reading a distant file, not of its content.
type transferError struct{ error }

func (e *transferError) Unwrap() error { return e.error }

// transferFault tells whether reading of a distant file that ends early, by err or by its content, is the transfer's fault: what is
// left is read, at whose end the store compares its checksum.
func (s source) transferFault(number int, rest io.Reader, err error) error {
	if !s.distant {
		return nil
	}
	if err == nil || damagedFile(err) {
		if _, err = io.Copy(io.Discard, rest); err == nil {
			return nil
		}
	}
	return &transferError{fmt.Errorf("%s:%d: %w", s.name, number, err)}
}

// damagedFile tells an error of the file's content, or its end, from one of reading it.
func damagedFile(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

// maxLine bounds a record, in bytes: a file without line breaks must not take all of the memory.
const maxLine = 256 << 20

var errLongLine = fmt.Errorf("the line is longer than %d MiB; each record must be one line", maxLine>>20)

// readLine reads up to a line break, with it, or to the end of the file (io.EOF). A line of more than limit bytes is
// errLongLine.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errLongLine
		}
		if line = append(line, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// count returns the number of records.
func (s source) count() (int, error) {
	n := 0
	err := s.lines(func(int, []byte) error {
		n++
		return nil
	})
	return n, err
}

// lineError is an error at a line of a file.
func (s source) lineError(number int, err error) error {
	return fmt.Errorf("%s:%d: %s", s.name, number, strings.ReplaceAll(err.Error(), "\n", " "))
}
