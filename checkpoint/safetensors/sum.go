package safetensors

import (
	"context"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// sumPiece is what is read at a time for a checksum of a whole file.
const sumPiece = 8 << 20

// Size returns the bytes of the file, its header included.
func (f *File) Size() int64 {
	if f.ranges != nil {
		return f.ranges.Size()
	}
	return int64(len(f.mapping))
}

// CRC32C returns the checksum (Castagnoli) of the whole file. A store that keeps it is asked; else every byte is read, on all
// cores, until ctx ends.
func (f *File) CRC32C(ctx context.Context) (uint32, error) {
	if f.ranges != nil {
		if sum, ok := storedSum(f.ranges.Reader); ok {
			return sum, nil
		}
	}
	size := f.Size()
	sums := make([]uint32, (size+sumPiece-1)/sumPiece)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range sums {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			from := int64(i) * sumPiece
			sums[i], err = f.sum(from, min(sumPiece, size-from))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("checksum of %s: %w", f.path, err)
	}
	sum := uint32(0)
	for i, s := range sums {
		sum = CombineCRC32C(sum, s, min(sumPiece, size-int64(i)*sumPiece))
	}
	return sum, nil
}

// sum is the checksum of n bytes.
func (f *File) sum(from, n int64) (sum uint32, err error) {
	if f.ranges != nil {
		p := make([]byte, n)
		if err := f.ranges.read(p, from); err != nil {
			return 0, err
		}
		return crc32.Checksum(p, Castagnoli), nil
	}
	defer f.mapFault("", &err)()
	return crc32.Checksum(f.mapping[from:from+n], Castagnoli), nil
}

// Identity tells a local file from any other, and from itself after a change, without reading it: its path, device, inode, size
// and the times at which its content and its inode were last changed, as they were when it was opened. changed is the later of
// these. ok is false for a file that is not local, and for one that is not as it was when it was opened.
func (f *File) Identity() (id string, changed time.Time, ok bool) {
	if f.mapping == nil {
		return "", time.Time{}, false
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return "", time.Time{}, false
	}
	var now unix.Stat_t
	if err := unix.Stat(path, &now); err != nil {
		return "", time.Time{}, false
	}
	id = identity(path, &f.stat)
	modified, inode := time.Unix(f.stat.Mtim.Unix()), time.Unix(f.stat.Ctim.Unix())
	if inode.After(modified) {
		modified = inode
	}
	return id, modified, id == identity(path, &now)
}

func identity(path string, st *unix.Stat_t) string {
	return fmt.Sprintf("%q device %d inode %d size %d modified %d changed %d", path, st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}
