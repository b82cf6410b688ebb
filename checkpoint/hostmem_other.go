//go:build !linux

package checkpoint

func adviseHuge([]byte) {}

func populatePages(b []byte) bool { return len(b) == 0 }
