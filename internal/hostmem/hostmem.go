// Package hostmem takes large pieces of host memory from the system itself: outside of Go's heap, so that no collector looks at it and
// it may be given to C; page-aligned; and back with the system as soon as it is freed.
package hostmem

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Memory is one piece. It belongs to whoever made it until Free.
type Memory struct {
	mapping []byte // whole pages
	size    int
}

// held are the bytes of all pieces that are not freed.
var held atomic.Int64

// Held is how many bytes the pieces of this process that were not freed have, rounded up to whole pages.
func Held() int64 { return held.Load() }

// New takes n bytes, all zero, aligned to a page. Their pages, huge ones where the system gives them, come at the first touch or by
// Populate.
func New(n int64) (*Memory, error) {
	if n == 0 {
		return &Memory{}, nil
	}
	page := int64(os.Getpagesize())
	size := int(n)
	if n < 0 || int64(size) != n || n > 1<<62 {
		return nil, fmt.Errorf("take %d bytes of host memory: no such size", n)
	}
	b, err := unix.Mmap(-1, 0, int((n+page-1)/page*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("take %d bytes of host memory: %w; free memory on this machine", n, err)
	}
	adviseHuge(b)
	held.Add(int64(len(b)))
	return &Memory{mapping: b, size: size}, nil
}

// Bytes are all of the piece; they must not be used after Free.
func (m *Memory) Bytes() []byte { return m.mapping[:m.size:m.size] }

// Populate touches the pages, so that whoever writes into them does not have to wait for them.
func (m *Memory) Populate() {
	if !populatePages(m.mapping) {
		for i := 0; i < len(m.mapping); i += os.Getpagesize() {
			m.mapping[i] = 0
		}
	}
}

// Free gives the piece back to the system. A second call does nothing.
func (m *Memory) Free() error {
	if m == nil || len(m.mapping) == 0 {
		return nil
	}
	b := m.mapping
	m.mapping, m.size = nil, 0
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("give %d bytes of host memory back: %w", len(b), err)
	}
	held.Add(-int64(len(b)))
	return nil
}
