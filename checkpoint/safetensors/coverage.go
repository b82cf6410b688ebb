package safetensors

import (
	"hash/crc32"
	"sync"
)

// coverage remembers the checksum of each part of a file that was read. When
// parts cover the file from end to end, the checksum of the whole follows.
type coverage struct {
	mu    sync.Mutex
	parts map[int64]part // by offset; of two the longer one
}

type part struct {
	n   int64
	crc uint32
}

// add notes what was read at off. The same range read twice must give the same.
func (c *coverage) add(file string, off int64, p []byte) error {
	now := part{int64(len(p)), crc32.Checksum(p, Castagnoli)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts = map[int64]part{}
	}
	was := c.parts[off]
	if was.n == now.n && was.crc != now.crc {
		return fault(file, "", ErrChecksum, "bytes %d..%d were not the same when they were read again; %s", off, off+now.n, changedOnTheWay)
	}
	if now.n > was.n {
		c.parts[off] = now
	}
	return nil
}

// whole returns the checksum of the first size bytes; ok is false when some of
// them were never read, or in parts that overlap.
func (c *coverage) whole(size int64) (crc uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for off := int64(0); off < size; {
		p := c.parts[off]
		if p.n == 0 || off+p.n > size {
			return 0, false
		}
		crc = CombineCRC32C(crc, p.crc, p.n)
		off += p.n
	}
	return crc, true
}
