package hostmem

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages, with which 2 GB take a thousand page faults instead of half a million. A kernel without
// them says no, which is no error.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// populatePages takes the pages of b in one call; kernels before 5.14 cannot.
func populatePages(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	return unix.Madvise(b, unix.MADV_POPULATE_WRITE) == nil
}
