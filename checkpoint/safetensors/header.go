package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"weft/checkpoint/internal/region"
)

// MaxHeaderSize is the largest header accepted, in bytes, as in the reference
// implementation.
const MaxHeaderSize = 100_000_000

const (
	prefixSize  = 8 // the header's length
	metadataKey = "__metadata__"
)

// Info describes one tensor of a file.
type Info struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar
	// Start and End are byte offsets from the start of the data section.
	Start, End int64
}

// Size returns the bytes of the tensor.
func (i Info) Size() int64 { return i.End - i.Start }

// Header is the checked header of a file.
type Header struct {
	Tensors   []Info            // in the order of their bytes
	Metadata  map[string]string // nil when the file has none
	DataStart int64             // offset of the data section in the file
}

// ReadHeader reads and checks the header of the size bytes behind r; name
// stands for the file in errors. Faults are [*FormatError], failing reads are
// wrapped.
func ReadHeader(r io.ReaderAt, size int64, name string) (*Header, error) {
	if size < prefixSize {
		return nil, fault(name, "", ErrTruncated, "%d bytes, a header length needs %d", size, prefixSize)
	}
	var prefix [prefixSize]byte
	if err := readFullAt(r, prefix[:], 0, name); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	switch {
	case n > MaxHeaderSize:
		return nil, fault(name, "", ErrHeader, "its length says %d bytes, the limit is %d; is this a safetensors file?", n, MaxHeaderSize)
	case n < 2:
		return nil, fault(name, "", ErrHeader, "its length says %d bytes", n)
	case int64(n) > size-prefixSize:
		return nil, fault(name, "", ErrTruncated, "the header needs %d bytes, %d are left", n, size-prefixSize)
	}
	js := make([]byte, n)
	if err := readFullAt(r, js, prefixSize, name); err != nil {
		return nil, err
	}
	return parseHeader(name, js, size-prefixSize-int64(n))
}

// parseHeader checks the JSON of a header before dataLen bytes of data.
func parseHeader(name string, js []byte, dataLen int64) (*Header, error) {
	trimmed := bytes.TrimRight(js, " ")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, fault(name, "", ErrHeader, "it does not start with {")
	}
	if !utf8.Valid(trimmed) {
		return nil, fault(name, "", ErrHeader, "it is not UTF-8")
	}
	if !json.Valid(trimmed) {
		return nil, fault(name, "", ErrHeader, "it is not JSON")
	}
	p := &headerParser{file: name, dec: json.NewDecoder(bytes.NewReader(trimmed))}
	p.dec.UseNumber()
	h := &Header{DataStart: prefixSize + int64(len(js))}
	if err := p.parse(h); err != nil {
		var fe *FormatError
		if errors.As(err, &fe) {
			return nil, err
		}
		return nil, fault(name, p.tensor, ErrHeader, "%v", err)
	}
	if rest := trimmed[p.dec.InputOffset():]; len(rest) > 0 {
		return nil, fault(name, "", ErrHeader, "%d bytes follow the JSON object", len(rest))
	}
	return h, checkLayout(name, h.Tensors, dataLen)
}

// headerParser reads the header token by token: encoding/json alone would
// accept duplicate keys, keys of another case and numbers like 1e3.
type headerParser struct {
	file   string
	tensor string // the one being read, for errors
	dec    *json.Decoder
}

func (p *headerParser) parse(h *Header) error {
	seen := map[string]bool{}
	return p.object(func(key string) error {
		if seen[key] {
			return fault(p.file, key, ErrDuplicate, "the header has it twice")
		}
		seen[key] = true
		if key == metadataKey {
			h.Metadata = map[string]string{}
			return p.metadata(h.Metadata)
		}
		p.tensor = key
		info, err := p.info(key)
		h.Tensors = append(h.Tensors, info)
		p.tensor = ""
		return err
	})
}

func (p *headerParser) metadata(m map[string]string) error {
	return p.object(func(key string) error {
		if _, twice := m[key]; twice {
			return fault(p.file, "", ErrDuplicate, "metadata %q", key)
		}
		v, err := p.string()
		m[key] = v
		return err
	})
}

// info reads one {"dtype":…,"shape":…,"data_offsets":…}.
func (p *headerParser) info(name string) (Info, error) {
	info := Info{Name: name}
	var offsets []int64
	seen := map[string]bool{}
	err := p.object(func(key string) error {
		if seen[key] {
			return fault(p.file, name, ErrDuplicate, "field %q", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			s, err := p.string()
			info.DType = DType(s)
			return err
		case "shape":
			dims, err := p.integers()
			info.Shape = make([]int, len(dims))
			for i, d := range dims {
				info.Shape[i] = int(d)
			}
			return err
		case "data_offsets":
			var err error
			offsets, err = p.integers()
			return err
		}
		return fault(p.file, name, ErrHeader, "unknown field %q", key)
	})
	if err != nil {
		return info, p.at(name, err)
	}
	if len(seen) != 3 {
		return info, fault(p.file, name, ErrHeader, "dtype, shape and data_offsets are needed, it has %d of them", len(seen))
	}
	if len(offsets) != 2 {
		return info, fault(p.file, name, ErrHeader, "data_offsets has %d numbers, not 2", len(offsets))
	}
	info.Start, info.End = offsets[0], offsets[1]
	return info, p.checkInfo(info)
}

func (p *headerParser) at(name string, err error) error {
	var fe *FormatError
	if errors.As(err, &fe) {
		return err
	}
	return fault(p.file, name, ErrHeader, "%v", err)
}

func (p *headerParser) checkInfo(i Info) error {
	elem := i.DType.Size()
	if elem == 0 {
		return fault(p.file, i.Name, ErrDType, "%q; weft reads F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL", string(i.DType))
	}
	if i.Start > i.End {
		return fault(p.file, i.Name, ErrShape, "data_offsets %d..%d go backwards", i.Start, i.End)
	}
	n, err := region.Bytes(i.Shape, elem)
	if err != nil {
		return fault(p.file, i.Name, ErrShape, "%v", err)
	}
	if n != i.End-i.Start {
		return fault(p.file, i.Name, ErrShape, "%s %v is %d bytes, data_offsets %d..%d are %d", i.DType, i.Shape, n, i.Start, i.End, i.End-i.Start)
	}
	return nil
}

// object reads a JSON object, calling value for each key; value must read
// exactly the key's value.
func (p *headerParser) object(value func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.string()
		if err != nil {
			return err
		}
		if err := value(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p *headerParser) delim(want json.Delim) error {
	tok, err := p.dec.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("%v where %v should be", tok, want)
	}
	return nil
}

func (p *headerParser) string() (string, error) {
	tok, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%v where a string should be", tok)
	}
	return s, nil
}

func (p *headerParser) integers() ([]int64, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	list := []int64{}
	for p.dec.More() {
		tok, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		num, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v where a number should be", tok)
		}
		v, err := strconv.ParseUint(num.String(), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%v is not an integer from 0 to 2^63-1", num)
		}
		list = append(list, int64(v))
	}
	return list, p.delim(']')
}

// checkLayout sorts the tensors by their bytes and checks that they tile the
// data section: no overlap, no hole, no byte missing or left over.
func checkLayout(file string, tensors []Info, dataLen int64) error {
	// Stable, so that empty tensors keep the header's order.
	slices.SortStableFunc(tensors, func(a, b Info) int {
		if a.Start != b.Start {
			if a.Start < b.Start {
				return -1
			}
			return 1
		}
		switch {
		case a.End < b.End:
			return -1
		case a.End > b.End:
			return 1
		}
		return 0
	})
	var end int64
	for i, t := range tensors {
		if t.Start < end {
			return fault(file, t.Name, ErrOverlap, "it starts at byte %d, tensor %q ends at %d", t.Start, tensors[i-1].Name, end)
		}
		if t.Start > end {
			return fault(file, t.Name, ErrHole, "no tensor holds bytes %d..%d before it", end, t.Start)
		}
		if t.End > dataLen {
			return fault(file, t.Name, ErrTruncated, "it ends at byte %d of the data, the file has %d", t.End, dataLen)
		}
		end = t.End
	}
	if end != dataLen {
		return fault(file, "", ErrTrailing, "the tensors end at byte %d of the data, the file has %d", end, dataLen)
	}
	return nil
}
