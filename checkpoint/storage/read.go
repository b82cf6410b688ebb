package storage

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"regexp"
	"strings"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
)

// ErrChecksum: a file's bytes, as they were read, are not those that the store has.
var ErrChecksum = errors.New("checksum differs from the store's")

// almostURL is what was meant for a URL, and would be a folder of that name.
var almostURL = regexp.MustCompile(`^(?i:gs|gcs|s3|hf|https?|file):`)

// Check tells, without looking for anything, whether url names a local path or a
// place on Cloud Storage; if not, the error is ErrURL.
func Check(url string) error {
	switch {
	case IsRemote(url):
		_, err := split(url)
		return err
	case anyScheme.MatchString(url), almostURL.MatchString(url):
		return fmt.Errorf("opening %q: %w: give one of these", url, ErrURL)
	}
	return nil
}

// ReadFile reads a whole file, which fits into memory, and compares its checksum
// where the store has one: it reads again, and gives ErrChecksum in the end. A file that is not there is fs.ErrNotExist.
func ReadFile(ctx context.Context, url string) ([]byte, error) {
	if !IsRemote(url) {
		if err := Check(url); err != nil {
			return nil, err
		}
		return os.ReadFile(url)
	}
	fsys, name, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return ReadAll(fsys, name)
}

// readAttempts is how often a whole file is read whose checksum differs.
const readAttempts = 3

// ReadAll is ReadFile for a name in fsys.
func ReadAll(fsys checkpoint.FS, name string) (b []byte, err error) {
	for range readAttempts {
		if b, err = readOnce(fsys, name); !errors.Is(err, ErrChecksum) {
			break
		}
	}
	return b, err
}

func readOnce(fsys checkpoint.FS, name string) ([]byte, error) {
	s, err := stream(fsys, name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, s.r.Size())
	if _, err = io.ReadFull(s, b); err == nil {
		_, err = s.Read(nil) // the end, where the checksum is compared
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b, errors.Join(err, s.Close())
}

// Stream opens a file to be read once from its start. At the end its checksum is
// compared where the store has one (ErrChecksum); an end that comes too early is
// io.ErrUnexpectedEOF.
func Stream(ctx context.Context, url string) (io.ReadCloser, error) {
	fsys, name, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return stream(fsys, name)
}

func stream(fsys checkpoint.FS, name string) (*streamed, error) {
	if _, key, _ := strings.Cut(name, "/"); key == "" && IsRemote(URL(fsys, name)) {
		return nil, fmt.Errorf("%s is a bucket, not a file: give the file in it", URL(fsys, name))
	}
	r, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	s := &streamed{url: URL(fsys, name), r: r}
	if c, ok := r.(interface{ CRC32C() (uint32, bool) }); ok {
		s.want, s.compare = c.CRC32C()
	}
	return s, nil
}

// streamed reads a file from its start to its end.
type streamed struct {
	url     string
	r       checkpoint.Reader
	off     int64
	sum     uint32
	want    uint32
	compare bool
}

// Read implements io.Reader.
func (s *streamed) Read(p []byte) (int, error) {
	left := s.r.Size() - s.off
	if left == 0 {
		if s.compare && s.sum != s.want {
			return 0, fmt.Errorf("reading %s: %w: crc32c is %08x, the store has %08x; bytes changed on their way: run it again", s.url, ErrChecksum, s.sum, s.want)
		}
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	n, err := s.r.ReadAt(p, s.off)
	s.sum = crc32.Update(s.sum, safetensors.Castagnoli, p[:n])
	s.off += int64(n)
	switch {
	case n == len(p):
		return n, nil
	case err == nil || errors.Is(err, io.EOF):
		err = fmt.Errorf("reading %s: it ended after %d of %d bytes: %w", s.url, s.off, s.r.Size(), io.ErrUnexpectedEOF)
	}
	return n, err
}

// Close implements io.Closer.
func (s *streamed) Close() error { return s.r.Close() }

// OpenWeights opens the weights in a Hugging Face folder: mapped on a local disk,
// read by ranges elsewhere.
func OpenWeights(ctx context.Context, url string) (*safetensors.Set, error) {
	if !IsRemote(url) {
		if err := Check(url); err != nil {
			return nil, err
		}
		return safetensors.OpenDir(url)
	}
	fsys, name, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return safetensors.OpenFolder(URL(fsys, name), weights{fsys, name})
}

// weights is a folder of an FS.
type weights struct {
	fsys checkpoint.FS
	dir  string
}

// Names implements safetensors.Folder.
func (w weights) Names() ([]string, error) {
	entries, err := w.fsys.List(w.dir)
	var names []string
	for _, e := range entries {
		if !e.Dir {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// Open implements safetensors.Folder.
func (w weights) Open(name string) (safetensors.Reader, error) {
	r, err := w.fsys.Open(w.dir + "/" + name)
	if err != nil {
		return nil, err
	}
	return r, nil
}
