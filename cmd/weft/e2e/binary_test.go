package e2e

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxBinary is the size that the binary must stay under, in bytes.
const maxBinary = 40_000_000

// The binary is one file that needs only glibc, as every PJRT plugin does.
func TestBinaryIsSelfContained(t *testing.T) {
	info, err := os.Stat(binary)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(maxBinary))
	t.Logf("%d bytes", info.Size())

	f, err := elf.Open(binary)
	require.NoError(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Subset(t, []string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "ld-linux-x86-64.so.2"}, libraries)
}

func TestVersion(t *testing.T) {
	out := must(t, "version")
	require.Regexp(t, `^weft .*go1\.`, out)
	require.Contains(t, out, "github.com/gomlx/gomlx v0.28.2")
}
