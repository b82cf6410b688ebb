package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/internal/build"
	"weft/internal/pyenv"
	"weft/pjrt/plugin"
)

var (
	binary string // the weft that the tests run
	stub   string // what stands for it on the hosts
	python string // one that has Ray
	shared *cluster
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "weft-ray-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary, stub = filepath.Join(dir, "weft"), filepath.Join(dir, "stub")
	if err := os.WriteFile(stub, []byte(stubProgram), 0o755); err != nil {
		return 1, err
	}
	python, err = pyenv.Install(context.Background(), os.Stderr, "ray", pyenv.ParseRequirements(requirements))
	if errors.Is(err, pyenv.ErrUnavailable) && os.Getenv("WEFT_CI") == "" {
		fmt.Fprintln(os.Stderr, "SKIPPED all tests on a Ray cluster:", err)
		return 0, nil
	} else if err != nil {
		return 1, err
	}
	if err := build.Weft(context.Background(), binary, "-ldflags", "-s -w"); err != nil {
		return 1, err
	}
	if _, err := plugin.Ensure(context.Background(), "cpu", os.Stderr); err != nil {
		return 1, err
	}
	start := time.Now()
	shared, err = startCluster(python,
		bigHost(0), bigHost(1), bigHost(2), bigHost(3), host("127.0.0.20", "one", 0, "v6e-4", "2x2"), host("127.0.0.21", "two", 0, "v6e-4", "2x2"))
	if err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "a Ray cluster of 7 nodes after %.0f s\n", time.Since(start).Seconds())
	defer func() { err = errors.Join(err, shared.stop()) }()
	return m.Run(), nil
}

// bigHost is a host of the slice big.
func bigHost(worker int) node {
	return host(fmt.Sprintf("127.0.0.%d", 10+worker), "big", worker, "v6e-16", "4x4", "h0.pods", "h1.pods", "h2.pods", "h3.pods")
}

// stubProgram does on a host what its words say: MODE FOLDER. The folder is one that all hosts see.
const stubProgram = `#!/bin/sh
mode=$1 dir=$2
count() { # how often this host was here, this time included
	n=$(($(cat "$dir/count$TPU_WORKER_ID" 2>/dev/null || echo 0) + 1))
	echo $n >"$dir/count$TPU_WORKER_ID"
	echo "attempt $n"
}
case $mode in
env)
	env | grep -E '^(TPU_|MEGASCALE_|MINE)' | grep -v VISIBLE | sort
	for i in 1 2 3 4 5 6 7 8 9; do echo "line $i"; done
	;;
exits) # with each of the codes that follow, one an attempt
	count
	shift 1
	shift $n
	exit $1
	;;
runs | lost | deaf) # until it is told to stop
	count
	[ $mode = lost ] && [ $n = 2 ] && echo recovered && exit 0
	if [ $mode = runs ]; then
		trap 'echo saving; sleep 0.3; echo saved; exit 75' TERM
	else
		trap 'echo deaf' TERM # as one that waits in a collective
	fi
	echo $$ >"$dir/pid$TPU_WORKER_ID.new" && mv "$dir/pid$TPU_WORKER_ID.new" "$dir/pid$TPU_WORKER_ID"
	end=$(($(date +%s) + 3600)) # longer than any test waits
	while [ $(date +%s) -lt $end ]; do sleep 0.2; done
	;;
esac
`

// outcome is how a weft ended.
type outcome struct {
	code     int
	out, err string
}

func (o outcome) String() string { return fmt.Sprintf("exit code %d\n%s\n%s", o.code, o.out, o.err) }

// buffer is what a running process has written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a weft that has not ended.
type running struct {
	cmd      *exec.Cmd
	out, err *buffer
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith starts the binary with more in its environment.
func startWith(t *testing.T, environment []string, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.CommandContext(t.Context(), binary, args...), out: &buffer{}, err: &buffer{}}
	r.cmd.Dir = t.TempDir()
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.err
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "RAY_") && !strings.HasPrefix(kv, "TPU_") {
			r.cmd.Env = append(r.cmd.Env, kv)
		}
	}
	r.cmd.Env = append(r.cmd.Env, environment...)
	require.NoError(t, r.cmd.Start())
	return r
}

func (r *running) wait(t *testing.T) outcome {
	t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome{r.cmd.ProcessState.ExitCode(), r.out.String(), r.err.String()}
}

func weft(t *testing.T, args ...string) outcome {
	t.Helper()
	return start(t, args...).wait(t)
}

// submit is the command line of a job on the shared cluster: flags, then -- and the words.
func submit(args ...string) []string {
	return append([]string{"ray", "submit", "--address", shared.dashboard, "--accelerator-type", "TPU-V6E", "--reserve-timeout", hang.String()}, args...)
}

// hang is longer than anything takes, however slow the machine.
const hang = 10 * time.Minute

// eventually polls until a condition holds.
func eventually(t *testing.T, r *running, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Fail(t, "never: "+what, "%s\n%s", r.out, r.err)
		}
	}
}
