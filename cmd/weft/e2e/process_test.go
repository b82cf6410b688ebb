package e2e

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"weft/internal/build"
)

// faultBinary is weft built with faults under its storage; see checkpoint/storage/hook.go.
var faultBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "weft-fault")
	return path, build.Weft(context.Background(), path, "-tags", "weftfault")
})

// withFaults makes a command one of the binary that knows WEFT_FAULT.
func withFaults(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	path, err := faultBinary()
	require.NoError(t, err)
	cmd.Path, cmd.Args[0] = path, path
	return cmd
}

// killable is a command that may be killed from its start on, by those that see what it does before Start has returned.
type killable struct {
	*exec.Cmd
	started chan struct{}
}

func newKillable(cmd *exec.Cmd) *killable { return &killable{cmd, make(chan struct{})} }

func (k *killable) start(t testing.TB) {
	t.Helper()
	require.NoError(t, k.Start())
	close(k.started)
}

func (k *killable) kill() {
	<-k.started
	_ = k.Process.Kill()
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin starts a command. When the test ends it is killed, and over.
func begin(t testing.TB, cmd *exec.Cmd) *output {
	t.Helper()
	log := &output{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return log
}

// start begins a run and returns when metrics.jsonl has a step.
func start(t testing.TB, storage string, step int, args ...string) (*exec.Cmd, *output) {
	t.Helper()
	cmd := command(t, args...)
	log := begin(t, cmd)
	for lines(storage) < step {
		if state(t, cmd, unix.WEXITED|unix.WNOHANG) != 0 {
			_ = cmd.Wait()
			t.Fatalf("the run ended early, %v: %s", cmd.ProcessState, log)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return cmd, log
}

// What waitid says of a child: see siginfo(5).
const childStopped = 5

// state is how a child has changed, 0 when it has not; it leaves the child to be waited for.
func state(t testing.TB, cmd *exec.Cmd, options int) int32 {
	t.Helper()
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, options|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		require.NoError(t, err)
		return info.Code
	}
}

// standsStill returns when a process has been stopped and all of its threads stand still, not only when they have been told to.
func standsStill(t testing.TB, cmd *exec.Cmd, log *output) {
	t.Helper()
	if state(t, cmd, unix.WSTOPPED|unix.WEXITED) != childStopped {
		_ = cmd.Wait()
		t.Fatalf("the run ended instead, %v: %s", cmd.ProcessState, log)
	}
}

// pause stops a run.
func pause(t testing.TB, cmd *exec.Cmd, log *output) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	standsStill(t, cmd, log)
}

// goOn sends signals to a process that stands still, which meets them as it goes on.
func goOn(t testing.TB, cmd *exec.Cmd, signals ...syscall.Signal) {
	t.Helper()
	for _, s := range append(signals, syscall.SIGCONT) {
		require.NoError(t, cmd.Process.Signal(s))
	}
}
