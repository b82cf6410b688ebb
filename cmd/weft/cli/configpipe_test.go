package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pipe of a shell's <(…) is read to its end.
func TestConfigFromProcessSubstitution(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString("seed: 7\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	c, err := parse(t, "--config", fmt.Sprintf("/dev/fd/%d", r.Fd()))
	require.NoError(t, err)
	require.EqualValues(t, 7, c.Seed)
}

// A named pipe that nobody writes to is waited for, and a line says so.
func TestConfigWaitsForAWriter(t *testing.T) {
	before := pipeNotice
	pipeNotice = 0
	defer func() { pipeNotice = before }()
	path := filepath.Join(t.TempDir(), "run.yaml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	said, log := io.Pipe()
	type outcome struct {
		text []byte
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		text, err := readConfig(path, log)
		ended <- outcome{text, err}
	}()
	line := make([]byte, 200)
	n, err := said.Read(line)
	require.NoError(t, err)
	require.Equal(t, "weft: --config "+path+" is a pipe: waiting for what is written to it\n", string(line[:n]))
	require.NoError(t, os.WriteFile(path, []byte("seed: 7\n"), 0))
	out := <-ended
	require.NoError(t, out.err)
	require.Equal(t, "seed: 7\n", string(out.text))
}

// What is no text of flags is refused, also where it has no end.
func TestConfigThatIsNoFile(t *testing.T) {
	var log bytes.Buffer
	_, err := readConfig("/dev/zero", &log)
	require.ErrorContains(t, err, "/dev/zero has more than 1048576 bytes")
	_, err = readConfig(t.TempDir(), &log)
	require.ErrorContains(t, err, "is a directory")
	text, err := readConfig(os.DevNull, &log)
	require.NoError(t, err)
	require.Empty(t, text)
	_, err = readConfig("missing.yaml", &log)
	require.ErrorContains(t, err, "missing.yaml: no such file")
	require.Empty(t, log.String())
}
