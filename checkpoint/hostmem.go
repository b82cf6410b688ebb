package checkpoint

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hostMemory is memory outside of Go's heap: no collector looks at it, its pages are touched once and stay.
type hostMemory struct{ b []byte }

// newHostMemory maps n bytes. Their pages come at the first touch, or by populate.
func newHostMemory(n int64) (*hostMemory, error) {
	if n == 0 {
		return &hostMemory{}, nil
	}
	page := int64(os.Getpagesize())
	b, err := unix.Mmap(-1, 0, int((n+page-1)/page*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("taking %s of host memory to stage a checkpoint in: %w; free memory on this machine", formatBytes(n), err)
	}
	adviseHuge(b)
	return &hostMemory{b}, nil
}

// populate touches the pages, so that copying into them does not have to.
func (m *hostMemory) populate() {
	if !populatePages(m.b) {
		for i := 0; i < len(m.b); i += os.Getpagesize() {
			m.b[i] = 0
		}
	}
}

// free gives the memory back; slices of it must be in use no more.
func (m *hostMemory) free() error {
	if m == nil || len(m.b) == 0 {
		return nil
	}
	b := m.b
	m.b = nil
	return unix.Munmap(b)
}
