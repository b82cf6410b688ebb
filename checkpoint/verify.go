package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// readPiece is the size of one read when streaming through a file.
const readPiece = 4 << 20

// Verify reads every byte of a checkpoint and compares sizes and checksums with
// its manifest. A file that differs gives a [*DamagedError] that names it.
func (m *Manager) Verify(e Entry) error {
	man, err := readManifest(m.fs, e.Dir)
	if err != nil {
		return err
	}
	if err := checkSizes(m.fs, e.Dir, man.Files); err != nil {
		return err
	}
	v := verifier{fs: m.fs, dir: e.Dir, manifest: man}
	for _, f := range man.Files {
		if err := v.file(context.Background(), f); err != nil {
			return err
		}
	}
	return nil
}

// Check looks at a checkpoint without reading its content: the manifest, and that
// every file is there in its size.
func (m *Manager) Check(e Entry) error {
	if e.Err != nil {
		return e.Err
	}
	man, err := readManifest(m.fs, e.Dir)
	if err != nil {
		return err
	}
	return checkSizes(m.fs, e.Dir, man.Files)
}

// Faults is Verify that goes on to the end: it returns what is wrong with each
// file that is not as it was written, none for a whole checkpoint. Of a damaged
// state file it names the tensors. progress, when not nil, is told the bytes
// that were read since it was called last. An error that is no damage, such as a
// lack of permission, ends it.
func (m *Manager) Faults(ctx context.Context, e Entry, progress func(file string, bytes int64)) ([]*DamagedError, error) {
	var faults []*DamagedError
	note := func(err error) error {
		var d *DamagedError
		if errors.As(err, &d) {
			faults = append(faults, d)
			return nil
		}
		return err
	}
	man, err := readManifest(m.fs, e.Dir)
	if e.Err != nil && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		err = e.Err // the manifest is whole and that of another folder, or lost
	}
	if err != nil {
		return faults, note(err)
	}
	v := verifier{fs: m.fs, dir: e.Dir, manifest: man, progress: progress}
	for _, f := range man.Files {
		if err := note(v.file(ctx, f)); err != nil {
			return faults, err
		}
	}
	return faults, nil
}

// VerifyModel is Verify for the files of the Hugging Face folder only.
func (m *Manager) VerifyModel(ctx context.Context, e Entry) error {
	man, err := readManifest(m.fs, e.Dir)
	if err != nil {
		return err
	}
	v := verifier{fs: m.fs, dir: e.Dir, manifest: man}
	for _, f := range man.Files {
		if path.Dir(f.Path) != ModelDir {
			continue
		}
		if err := v.file(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// verifier compares files with a manifest.
type verifier struct {
	fs       FS
	dir      string
	manifest *Manifest
	progress func(file string, bytes int64)
}

func (v *verifier) file(ctx context.Context, f FileEntry) error {
	r, err := openFile(v.fs, v.dir, f)
	if err != nil {
		return err
	}
	defer r.Close()
	crc, err := v.sum(ctx, r, f.Path, 0, f.Size, v.progress)
	if err == nil && CRC32C(crc) != f.CRC32C && isRemote(v.fs) {
		crc, err = v.sum(ctx, r, f.Path, 0, f.Size, nil) // was it the way here?
	}
	if err != nil {
		return err
	}
	if CRC32C(crc) == f.CRC32C {
		return nil
	}
	reason := fmt.Sprintf("its crc32c is %08x, the manifest says %08x", crc, uint32(f.CRC32C))
	tensors, err := v.culprits(ctx, r, f)
	if err != nil {
		return err
	}
	d := &DamagedError{Dir: where(v.fs, v.dir), File: f.Path, Reason: reason}
	if len(tensors) > 0 {
		d.Tensor = tensors[0]
		d.Reason += fmt.Sprintf(": the bytes of tensor %q differ", tensors[0])
	}
	if n := len(tensors) - 1; n > 0 {
		d.Reason += fmt.Sprintf(", and those of %d more", n)
	}
	return d
}

// sum is the checksum of n bytes at off.
func (v *verifier) sum(ctx context.Context, r Reader, file string, off, n int64, progress func(string, int64)) (crc uint32, err error) {
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	for end := off + n; off < end; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p := (*buf)[:min(int64(len(*buf)), end-off)]
		if err := readFull(r, p, off, where(v.fs, v.dir), file); err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, safetensors.Castagnoli, p)
		off += int64(len(p))
		if progress != nil {
			progress(file, int64(len(p)))
		}
	}
	return crc, nil
}

// culprits names the tensors whose slices in a damaged state file are not as
// they were written, in the order of the state.
func (v *verifier) culprits(ctx context.Context, r Reader, f FileEntry) ([]string, error) {
	var names []string
	for i := range v.manifest.State {
		t := &v.manifest.State[i]
		for _, s := range t.Slices {
			if s.File != f.Path {
				continue
			}
			n, _ := region.Bytes(s.Size, t.DType.Size())
			crc, err := v.sum(ctx, r, f.Path, s.Offset, n, nil)
			if err != nil {
				return nil, err
			}
			if CRC32C(crc) != s.CRC32C {
				names = append(names, t.Name)
				break
			}
		}
	}
	return names, nil
}

// openFile opens a file of a checkpoint and checks its size.
func openFile(fsys FS, dir string, f FileEntry) (Reader, error) {
	r, err := fsys.Open(path.Join(dir, f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(where(fsys, dir), f.Path, "the file is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("reading checkpoint %s: %w", where(fsys, dir), err)
	}
	if r.Size() != f.Size {
		_ = r.Close()
		return nil, wrongSize(where(fsys, dir), f, r.Size())
	}
	return r, nil
}

func wrongSize(dir string, f FileEntry, size int64) error {
	return damaged(dir, f.Path, "it has %d bytes, the manifest says %d", size, f.Size)
}

// readFull reads exactly len(p) bytes at off.
func readFull(r Reader, p []byte, off int64, dir, file string) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return damaged(dir, file, "it ends after %d bytes", off+int64(n))
	}
	return fmt.Errorf("reading %s of checkpoint %s: %w", file, dir, err)
}

// isRemote tells that bytes come over a network, which may change them, and
// listings from an index, which may be late.
func isRemote(fsys FS) bool { _, ok := fsys.(ObjectStore); return ok }

// checkSizes compares the folders' listings with the manifest.
func checkSizes(fsys FS, dir string, files []FileEntry) error {
	listed := map[string]map[string]int64{}
	for _, f := range files {
		sub := path.Dir(f.Path)
		if listed[sub] == nil {
			list, err := fsys.List(path.Join(dir, sub))
			if errors.Is(err, fs.ErrNotExist) && !isRemote(fsys) {
				return damaged(where(fsys, dir), f.Path, "its folder is missing")
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("reading checkpoint %s: %w", where(fsys, dir), err)
			}
			listed[sub] = map[string]int64{}
			for _, d := range list {
				if !d.Dir {
					listed[sub][d.Name] = d.Size
				}
			}
		}
		size, ok := listed[sub][path.Base(f.Path)]
		if !ok && isRemote(fsys) {
			r, err := openFile(fsys, dir, f) // the listing may be out of date
			if err != nil {
				return err
			}
			size, ok = r.Size(), true
			_ = r.Close()
		}
		if !ok {
			return damaged(where(fsys, dir), f.Path, "the file is missing")
		}
		if size != f.Size {
			return wrongSize(where(fsys, dir), f, size)
		}
	}
	return nil
}
