package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"weft/checkpoint/internal/region"
)

// FormatVersion is the version of the layout that this package writes, and the
// newest that it reads.
const FormatVersion = 1

// ManifestFile is the file whose presence makes a folder a checkpoint.
const ManifestFile = "manifest.json"

const (
	manifestTmp    = ".weft-manifest.tmp"
	manifestFormat = "weft-checkpoint"
	// maxManifest bounds what is read into memory for a manifest.
	maxManifest = 1 << 30
)

// CRC32C is a Castagnoli checksum, written as eight hex digits.
type CRC32C uint32

// MarshalText implements encoding.TextMarshaler.
func (c CRC32C) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%08x", uint32(c)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *CRC32C) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 16, 32)
	if err != nil || len(b) != 8 {
		return fmt.Errorf("crc32c %q is not eight hex digits", b)
	}
	*c = CRC32C(v)
	return nil
}

// Metrics are named values. JSON has no NaN and no infinity: those are written
// as the strings "NaN", "+Inf" and "-Inf".
type Metrics map[string]float64

// MarshalJSON implements json.Marshaler.
func (m Metrics) MarshalJSON() ([]byte, error) {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out[k] = strconv.FormatFloat(v, 'g', -1, 64)
		} else {
			out[k] = v
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Metrics) UnmarshalJSON(b []byte) error {
	var in map[string]any
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*m = make(Metrics, len(in))
	for k, v := range in {
		switch v := v.(type) {
		case float64:
			(*m)[k] = v
		case string:
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return fmt.Errorf("metric %q is %q", k, v)
			}
			(*m)[k] = f
		default:
			return fmt.Errorf("metric %q is no number", k)
		}
	}
	return nil
}

// Manifest describes a committed checkpoint completely.
type Manifest struct {
	// Sequence counts the checkpoints of a storage path in the order of their
	// commits, from 1: the newest has the largest.
	Sequence int               `json:"sequence"`
	Step     int               `json:"step"`
	Epoch    int               `json:"epoch"`
	Metrics  Metrics           `json:"metrics"`
	Data     json.RawMessage   `json:"data,omitempty"`
	Config   json.RawMessage   `json:"config,omitempty"`
	Versions map[string]string `json:"versions,omitempty"`
	State    []StateTensor     `json:"state"`
	Files    []FileEntry       `json:"files"`
}

// StateTensor is a global tensor of the train state and where its slices lie.
type StateTensor struct {
	Name   string  `json:"name"`
	DType  DType   `json:"dtype"`
	Shape  []int   `json:"shape"`
	Slices []Slice `json:"slices"`
}

// Slice is a hyper-rectangle of a tensor: row-major bytes in one file.
type Slice struct {
	File   string `json:"file"`   // path inside of the checkpoint
	Start  []int  `json:"start"`  // in elements
	Size   []int  `json:"size"`   // in elements
	Offset int64  `json:"offset"` // of its first byte in the file
	CRC32C CRC32C `json:"crc32c"` // of its bytes
}

// FileEntry is one file of the checkpoint, the manifest excepted.
type FileEntry struct {
	Path   string `json:"path"` // at most one folder deep
	Size   int64  `json:"size"`
	CRC32C CRC32C `json:"crc32c"`
	// HeaderSize and HeaderCRC32C cover the safetensors header (length prefix
	// included) of a state file, so that it can be read in parts.
	HeaderSize   int64  `json:"header_size,omitempty"`
	HeaderCRC32C CRC32C `json:"header_crc32c,omitzero"`
}

// Bytes returns the sum of the files' sizes.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// HasModel tells whether the checkpoint has a Hugging Face folder.
func (m *Manifest) HasModel() bool {
	return slices.ContainsFunc(m.Files, func(f FileEntry) bool { return path.Dir(f.Path) == ModelDir })
}

// envelope frames the body. Its bytes are fixed by version and body, and the
// checksum covers both, so that a changed bit anywhere in the file is found.
func envelope(format string, version int, body []byte) []byte {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d\n", version)
	sum.Write(body)
	b := fmt.Appendf(nil, "{\"format\":%q,\"format_version\":%d,\"sha256\":\"%x\",\"body\":", format, version, sum.Sum(nil))
	return append(append(b, body...), "}\n"...)
}

// encode writes the manifest with its own checksum.
func (m *Manifest) encode() ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", ManifestFile, err)
	}
	return envelope(manifestFormat, FormatVersion, bytes.TrimSuffix(body.Bytes(), []byte("\n"))), nil
}

// decodeManifest reads and checks the manifest of the checkpoint in dir, a name
// for messages.
func decodeManifest(dir string, b []byte) (*Manifest, error) {
	var env struct {
		Format  string          `json:"format"`
		Version int             `json:"format_version"`
		Body    json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(b, &env); err != nil {
		return nil, damaged(dir, ManifestFile, "not JSON, %d bytes (%v)", len(b), err)
	}
	if env.Format != manifestFormat {
		return nil, damaged(dir, ManifestFile, "not a manifest of weft")
	}
	if env.Version > FormatVersion {
		return nil, fmt.Errorf("%w: %s has format %d, this weft reads up to %d; use the weft that wrote it or a newer one", ErrNewerFormat, dir+"/"+ManifestFile, env.Version, FormatVersion)
	}
	if !bytes.Equal(b, envelope(manifestFormat, env.Version, env.Body)) {
		return nil, damaged(dir, ManifestFile, "its checksum does not match its content")
	}
	m := &Manifest{}
	if err := json.Unmarshal(env.Body, m); err != nil {
		return nil, damaged(dir, ManifestFile, "%v", err)
	}
	if err := m.check(); err != nil {
		return nil, damaged(dir, ManifestFile, "%v", err)
	}
	return m, nil
}

// check validates what readers and deleters rely on.
func (m *Manifest) check() error {
	files := make(map[string]FileEntry, len(m.Files))
	for _, f := range m.Files {
		if !fs.ValidPath(f.Path) || f.Path == "." || f.Path == ManifestFile || strings.Count(f.Path, "/") > 1 {
			return fmt.Errorf("file path %q is not allowed", f.Path)
		}
		if _, twice := files[f.Path]; twice || f.Size < 0 || f.HeaderSize < 0 || f.HeaderSize > f.Size {
			return fmt.Errorf("file %q is there twice or has a wrong size", f.Path)
		}
		files[f.Path] = f
	}
	seen := make(map[string]bool, len(m.State))
	for _, t := range m.State {
		if seen[t.Name] || t.DType.Size() == 0 {
			return fmt.Errorf("tensor %q is there twice or has an unknown dtype", t.Name)
		}
		seen[t.Name] = true
		if err := region.Tiles(t.Shape, len(t.Slices), func(i int) ([]int, []int) { return t.Slices[i].Start, t.Slices[i].Size }); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		for _, s := range t.Slices {
			n, err := region.Bytes(s.Size, t.DType.Size())
			f, ok := files[s.File]
			if err != nil || !ok || f.HeaderSize == 0 || s.Offset < f.HeaderSize || s.Offset > f.Size || n > f.Size-s.Offset {
				return fmt.Errorf("tensor %q: its slice is not inside of file %q", t.Name, s.File)
			}
		}
	}
	return nil
}

// readManifest reads the manifest of dir. A folder without one gives
// fs.ErrNotExist.
func readManifest(fsys FS, dir string) (*Manifest, error) {
	b, err := readSmall(fsys, path.Join(dir, ManifestFile), maxManifest)
	if err != nil {
		return nil, fmt.Errorf("reading checkpoint %s: %w", where(fsys, dir), err)
	}
	return decodeManifest(where(fsys, dir), b)
}

// readSmall reads a whole file of at most limit bytes.
func readSmall(fsys FS, name string, limit int64) ([]byte, error) {
	r, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, r.Size(), limit)
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) && !errors.Is(err, io.EOF) {
		return nil, err
	} else if n < len(b) {
		b = b[:n]
	}
	return b, nil
}
