package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf8"

	"weft/checkpoint/internal/region"
)

// headerAlign is the multiple that the header is padded to with spaces, as the
// reference implementation does.
const headerAlign = 8

// pieceSize bounds one write.
const pieceSize = 1 << 20

// Castagnoli is the CRC32C polynomial's table.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MetadataPT is the metadata that transformers asks for in model weights.
func MetadataPT() map[string]string { return map[string]string{"format": "pt"} }

// Writer streams one safetensors file: the header at once, then each tensor's
// bytes in the order of the list. It keeps checksums and buffers nothing. The
// file's checksum is put together from those of its parts.
type Writer struct {
	w           io.Writer
	name        string
	header      Header
	headerCRC   uint32
	current     int   // index of the tensor being written
	written     int64 // bytes of it
	size        int64
	crc, tensor uint32 // of the file up to the current tensor; of that
	crcs        []uint32
	err         error
}

// SortForFile orders tensors as the reference implementation does: larger
// elements first, so that every tensor is aligned to its element, then by name.
func SortForFile(infos []Info) {
	slices.SortStableFunc(infos, func(a, b Info) int {
		if d := b.DType.Size() - a.DType.Size(); d != 0 {
			return d
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
}

// EncodeHeader lays the tensors out one after the other in the order given
// (Start and End of infos are not read) and returns the checked layout with
// the bytes of length prefix and header. name stands for the file in errors.
func EncodeHeader(name string, infos []Info, metadata map[string]string) (*Header, []byte, error) {
	h := &Header{Tensors: make([]Info, len(infos)), Metadata: metadata}
	var js bytes.Buffer
	js.Write(make([]byte, prefixSize))
	js.WriteByte('{')
	if len(metadata) > 0 {
		fmt.Fprintf(&js, "%s:%s", quote(metadataKey), marshal(metadata))
	}
	seen := make(map[string]bool, len(infos))
	var off int64
	for i, t := range infos {
		if t.Name == metadataKey || seen[t.Name] {
			return nil, nil, fault(name, t.Name, ErrDuplicate, "the name is taken")
		}
		seen[t.Name] = true
		if !utf8.ValidString(t.Name) {
			return nil, nil, fault(name, t.Name, ErrHeader, "the name is not UTF-8")
		}
		elem := t.DType.Size()
		if elem == 0 {
			return nil, nil, fault(name, t.Name, ErrDType, "%q", string(t.DType))
		}
		n, err := region.Bytes(t.Shape, elem)
		if err != nil {
			return nil, nil, fault(name, t.Name, ErrShape, "%v", err)
		}
		shape := slices.Clone(t.Shape)
		if shape == nil {
			shape = []int{}
		}
		h.Tensors[i] = Info{Name: t.Name, DType: t.DType, Shape: shape, Start: off, End: off + n}
		if js.Len() > prefixSize+1 {
			js.WriteByte(',')
		}
		fmt.Fprintf(&js, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, quote(t.Name), t.DType, marshal(shape), off, off+n)
		off += n
	}
	js.WriteByte('}')
	for js.Len()%headerAlign != 0 {
		js.WriteByte(' ')
	}
	b := js.Bytes()
	if len(b)-prefixSize > MaxHeaderSize {
		return nil, nil, fault(name, "", ErrHeader, "%d tensors need a header of %d bytes, the limit is %d", len(infos), len(b), MaxHeaderSize)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-prefixSize))
	h.DataStart = int64(len(b))
	return h, b, nil
}

func quote(s string) []byte { return marshal(s) }

// marshal is json.Marshal without HTML escapes; it is only used on strings,
// string maps and integers, which cannot fail.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// NewWriter writes the header of a file with these tensors to w (see
// [EncodeHeader]; name stands for the file in errors).
func NewWriter(w io.Writer, name string, infos []Info, metadata map[string]string) (*Writer, error) {
	h, b, err := EncodeHeader(name, infos, metadata)
	if err != nil {
		return nil, err
	}
	wr := &Writer{w: w, name: name, header: *h, crcs: make([]uint32, 0, len(infos))}
	if _, err := w.Write(b); err != nil {
		return nil, fmt.Errorf("writing the header of %s: %w", name, err)
	}
	wr.headerCRC = crc32.Update(0, Castagnoli, b)
	wr.crc, wr.size = wr.headerCRC, int64(len(b))
	wr.skipFull()
	return wr, nil
}

// Header returns the layout of the file.
func (w *Writer) Header() Header { return w.header }

// Write appends p to the tensor, which must be the next one of the list that
// is not complete; it may be given in any number of pieces. After an error
// every later call returns it.
func (w *Writer) Write(tensor string, p []byte) error {
	if w.err != nil || len(p) == 0 {
		return w.err
	}
	if w.current >= len(w.header.Tensors) {
		w.err = fault(w.name, tensor, ErrShape, "every tensor is already complete")
		return w.err
	}
	t := w.header.Tensors[w.current]
	if t.Name != tensor {
		w.err = fault(w.name, tensor, ErrShape, "the next bytes must be those of tensor %q", t.Name)
		return w.err
	}
	if left := t.Size() - w.written; int64(len(p)) > left {
		w.err = fault(w.name, tensor, ErrShape, "%d bytes given, %d are left of %s %v", len(p), left, t.DType, t.Shape)
		return w.err
	}
	// While the system takes the bytes, the checksum is taken beside it.
	sum := make(chan uint32, 1)
	if from := w.tensor; len(p) > pieceSize {
		go func() { sum <- crc32.Update(from, Castagnoli, p) }()
	} else {
		sum <- crc32.Update(from, Castagnoli, p)
	}
	n, err := w.writeAll(p)
	w.tensor = <-sum
	w.size += int64(n)
	w.written += int64(n)
	if err != nil {
		w.err = fmt.Errorf("writing tensor %q to %s: %w", tensor, w.name, err)
		return w.err
	}
	w.skipFull()
	return nil
}

// writeAll writes p piece by piece.
func (w *Writer) writeAll(p []byte) (written int, err error) {
	for len(p) > 0 {
		n := min(len(p), pieceSize)
		if _, err := w.w.Write(p[:n]); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

// skipFull goes on to the next tensor that still needs bytes.
func (w *Writer) skipFull() {
	for w.current < len(w.header.Tensors) && w.written == w.header.Tensors[w.current].Size() {
		w.crcs = append(w.crcs, w.tensor)
		w.crc = CombineCRC32C(w.crc, w.tensor, w.written)
		w.tensor, w.written = 0, 0
		w.current++
	}
}

// Finish checks that every tensor is complete. It does not close or sync the
// underlying writer.
func (w *Writer) Finish() error {
	if w.err != nil {
		return w.err
	}
	if w.current < len(w.header.Tensors) {
		t := w.header.Tensors[w.current]
		w.err = fault(w.name, t.Name, ErrTruncated, "%d of %d bytes were written", w.written, t.Size())
	}
	return w.err
}

// Size returns the bytes of the file so far.
func (w *Writer) Size() int64 { return w.size }

// CRC32C returns the checksum of the file so far.
func (w *Writer) CRC32C() uint32 { return CombineCRC32C(w.crc, w.tensor, w.written) }

// HeaderCRC32C returns the checksum of length prefix and header.
func (w *Writer) HeaderCRC32C() uint32 { return w.headerCRC }

// TensorCRC32C returns the checksum of the i-th tensor's bytes, which must be
// complete.
func (w *Writer) TensorCRC32C(i int) uint32 { return w.crcs[i] }
