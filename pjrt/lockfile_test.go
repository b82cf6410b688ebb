package pjrt

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockHolder(t *testing.T) {
	dir := t.TempDir()
	lock, table := filepath.Join(dir, "libtpu_lockfile"), filepath.Join(dir, "locks")
	require.NoError(t, os.WriteFile(lock, nil, 0o666))
	st, err := os.Stat(lock)
	require.NoError(t, err)
	inode := st.Sys().(*syscall.Stat_t).Ino
	require.NoError(t, os.WriteFile(table, fmt.Appendf(nil, "1: FLOCK  ADVISORY  WRITE 11 fe:00:%d 0 EOF\n2: POSIX  ADVISORY  WRITE 12 fe:00:1%d 0 EOF\n"+
		"3: POSIX  ADVISORY  WRITE 28920 fe:00:%d 0 EOF\n", inode, inode, inode), 0o666))
	require.Equal(t, 28920, lockHolder(lock, table))
	require.Zero(t, lockHolder(filepath.Join(dir, "absent"), table))
	require.Zero(t, lockHolder(lock, filepath.Join(dir, "absent")))
}

func TestLockAdvice(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "libtpu_lockfile")
	for _, c := range []struct{ message, want string }{
		{`Internal error when accessing libtpu multi-process lockfile. Run "$ sudo rm ` + lock + `".`,
			"libtpu's lock file " + lock + " is held by another process, or belongs to another user"},
		{"The TPU is already in use by process with pid 5.", "another process on this machine uses the TPU: wait for it or end it"},
	} {
		e := &Error{Code: Aborted, Message: c.message}
		require.Contains(t, adviceFor(e), c.want)
	}
	require.Empty(t, adviceFor(&Error{Code: Internal, Message: "x"}))
	require.Contains(t, adviceFor(&Error{Code: ResourceExhausted, Message: "x"}), "smaller batch")
}
