package safetensors

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Reader is a file open for reading by ranges, such as an object of a store.
// ReadAt may be called concurrently. A Reader may also have the method
//
//	CRC32C() (sum uint32, ok bool)
//
// with the checksum (Castagnoli) that the store has of the whole file.
type Reader interface {
	io.ReaderAt
	Size() int64
	Close() error
}

// Folder is a folder elsewhere than on a local disk.
type Folder interface {
	// Names lists the files of the folder.
	Names() ([]string, error)
	// Open opens one of them; fs.ErrNotExist when it is not there.
	Open(name string) (Reader, error)
}

// storedSum is the checksum that the store has of a whole file.
func storedSum(r Reader) (sum uint32, ok bool) {
	if s, has := r.(interface{ CRC32C() (uint32, bool) }); has {
		return s.CRC32C()
	}
	return 0, false
}

// readAll reads a whole small file and compares its checksum where the store has one.
func readAll(r Reader, name string) ([]byte, error) {
	b := make([]byte, r.Size())
	if err := readFullAt(r, b, 0, name); err != nil {
		return nil, err
	}
	if want, ok := storedSum(r); ok && crc32.Checksum(b, Castagnoli) != want {
		return nil, fault(name, "", ErrChecksum, "%s", changedOnTheWay)
	}
	return b, nil
}

const changedOnTheWay = "bytes changed on their way or in a cache between; run it again"

// readFullAt reads len(p) bytes; fewer are an error, whatever the reader says of them.
func readFullAt(r io.ReaderAt, p []byte, off int64, name string) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fault(name, "", ErrTruncated, "%d bytes at offset %d could not be read", len(p), off)
	}
	return fmt.Errorf("reading %s: %w", name, err)
}
