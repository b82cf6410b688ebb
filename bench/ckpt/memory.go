package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory returns a field of the process's status, in bytes: VmRSS is what it holds, VmHWM the most since resetPeak.
func memory(field string) (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("measure memory: %w; this runs on Linux", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("measure memory: no %s in the process's status", field)
}

// resetPeak lets VmHWM begin at what the process holds now.
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
