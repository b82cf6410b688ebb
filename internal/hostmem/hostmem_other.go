//go:build !linux

package hostmem

func adviseHuge([]byte) {}

func populatePages(b []byte) bool { return len(b) == 0 }
