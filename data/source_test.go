package data

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines come whole, whatever the reader's buffer holds, and one beyond the limit is an error, not all of the memory.
func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 100)
	r := bufio.NewReaderSize(strings.NewReader("a\n\n"+long+"\nlast"), 16)
	for _, want := range []string{"a\n", "\n", long + "\n"} {
		line, err := readLine(r, 101)
		require.NoError(t, err)
		require.Equal(t, want, string(line))
	}
	line, err := readLine(r, 101)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "last", string(line))

	_, err = readLine(bufio.NewReaderSize(strings.NewReader(long+"\n"), 16), 100)
	require.ErrorIs(t, err, errLongLine)
	require.ErrorContains(t, err, "longer than 256 MiB; each record must be one line")
}
