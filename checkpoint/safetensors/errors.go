package safetensors

import (
	"errors"
	"fmt"
	"strconv"
)

// The kinds of fault that a file can have; a [*FormatError] wraps one of them.
var (
	// ErrTruncated: the file ends before the bytes that its header promises.
	ErrTruncated = errors.New("file is truncated")
	// ErrTrailing: the file goes on after the last tensor.
	ErrTrailing = errors.New("file has bytes after its last tensor")
	// ErrHeader: the header's length or JSON is not what the format allows.
	ErrHeader = errors.New("header is not valid")
	// ErrDType: a dtype that this package does not know.
	ErrDType = errors.New("unknown dtype")
	// ErrShape: shape, dtype and offsets of a tensor disagree.
	ErrShape = errors.New("shape, dtype and offsets disagree")
	// ErrOverlap: two tensors claim the same bytes.
	ErrOverlap = errors.New("tensors overlap")
	// ErrHole: bytes that no tensor claims.
	ErrHole = errors.New("hole between tensors")
	// ErrDuplicate: a tensor (or key) is there twice.
	ErrDuplicate = errors.New("duplicate")
	// ErrIndex: model.safetensors.index.json is not valid.
	ErrIndex = errors.New("index is not valid")
	// ErrMissingFile: the index names a shard that is not there.
	ErrMissingFile = errors.New("file of the index is missing")
	// ErrMissingTensor: a tensor is not in the file that should hold it.
	ErrMissingTensor = errors.New("no such tensor")
	// ErrNoWeights: a folder without safetensors files, or with several and no index.
	ErrNoWeights = errors.New("no usable safetensors files")
	// ErrRegion: a region outside of the tensor, or a buffer of another size.
	ErrRegion = errors.New("region is not valid")
	// ErrChecksum: the bytes that were read are not those that the store has.
	ErrChecksum = errors.New("checksum differs from the store's")
)

// FormatError is a fault of one file.
type FormatError struct {
	File   string // path as it was opened
	Tensor string // empty when the fault is not one tensor's
	Kind   error  // one of the Err values
	Detail string // what exactly, in words; may be empty
}

func (e *FormatError) Error() string {
	s := e.File + ": "
	if e.Tensor != "" {
		s += "tensor " + strconv.Quote(e.Tensor) + ": "
	}
	s += e.Kind.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the kind, so that errors.Is(err, ErrTruncated) works.
func (e *FormatError) Unwrap() error { return e.Kind }

func fault(file, tensor string, kind error, format string, args ...any) error {
	return &FormatError{File: file, Tensor: tensor, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}
