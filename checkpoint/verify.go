package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"

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
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	for _, f := range man.Files {
		if err := verifyFile(m.fs, e.Dir, f, *buf); err != nil {
			return err
		}
	}
	return nil
}

func verifyFile(fsys FS, dir string, f FileEntry, buf []byte) error {
	r, err := openFile(fsys, dir, f)
	if err != nil {
		return err
	}
	defer r.Close()
	crc := uint32(0)
	for off := int64(0); off < f.Size; {
		p := buf[:min(int64(len(buf)), f.Size-off)]
		if err := readFull(r, p, off, dir, f.Path); err != nil {
			return err
		}
		crc = crc32.Update(crc, safetensors.Castagnoli, p)
		off += int64(len(p))
	}
	if CRC32C(crc) != f.CRC32C {
		return damaged(dir, f.Path, "its crc32c is %08x, the manifest says %08x", crc, uint32(f.CRC32C))
	}
	return nil
}

// openFile opens a file of a checkpoint and checks its size.
func openFile(fsys FS, dir string, f FileEntry) (Reader, error) {
	r, err := fsys.Open(path.Join(dir, f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(dir, f.Path, "the file is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("reading checkpoint %s: %w", dir, err)
	}
	if r.Size() != f.Size {
		_ = r.Close()
		return nil, wrongSize(dir, f, r.Size())
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

// checkSizes compares the folders' listings with the manifest.
func checkSizes(fsys FS, dir string, files []FileEntry) error {
	listed := map[string]map[string]int64{}
	for _, f := range files {
		sub := path.Dir(f.Path)
		if listed[sub] == nil {
			list, err := fsys.List(path.Join(dir, sub))
			if errors.Is(err, fs.ErrNotExist) {
				return damaged(dir, f.Path, "its folder is missing")
			}
			if err != nil {
				return fmt.Errorf("reading checkpoint %s: %w", dir, err)
			}
			listed[sub] = map[string]int64{}
			for _, d := range list {
				if !d.Dir {
					listed[sub][d.Name] = d.Size
				}
			}
		}
		size, ok := listed[sub][path.Base(f.Path)]
		if !ok {
			return damaged(dir, f.Path, "the file is missing")
		}
		if size != f.Size {
			return wrongSize(dir, f, size)
		}
	}
	return nil
}
