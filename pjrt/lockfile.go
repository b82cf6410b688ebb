package pjrt

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// lockPath finds the name of libtpu's lock file in its message.
var lockPath = regexp.MustCompile(`/\S*libtpu_lockfile`)

// lockAdvice says what to do when libtpu refuses to start beside another process. The lock is a POSIX one, which ends with its process,
// whether or not the file stays.
func lockAdvice(message string) string {
	path := lockPath.FindString(message)
	if path == "" {
		return "another process on this machine uses the TPU: wait for it or end it"
	}
	if pid := LockHolder(path); pid > 0 {
		return fmt.Sprintf("process %d uses libtpu and holds its lock file %s: wait for that process or end it; weft leaves the file alone", pid, path)
	}
	return fmt.Sprintf("libtpu's lock file %s is held by another process, or belongs to another user: wait for that process or end it; "+
		"weft leaves the file alone", path)
}

// LockHolder is the process that holds libtpu's lock file at path, by the kernel's table of locks; 0 if nobody does or that is not known.
// A file that nobody holds is harmless.
func LockHolder(path string) int { return lockHolder(path, "/proc/locks") }

// lockHolder is the process that holds a POSIX lock on a file, according to the kernel's table of locks; 0 if that is not known.
func lockHolder(path, table string) int {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	f, err := os.Open(table)
	if err != nil {
		return 0
	}
	defer f.Close()
	inode := ":" + strconv.FormatUint(sys.Ino, 10)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: POSIX  ADVISORY  WRITE 28920 fe:00:9978102 0 EOF
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "POSIX" && strings.HasSuffix(fields[5], inode) {
			pid, _ := strconv.Atoi(fields[4])
			return pid
		}
	}
	return 0
}
