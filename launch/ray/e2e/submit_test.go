package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linesOf are the lines of a log that came from a host, in order.
func linesOf(out, host string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "["+host+"] "); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

var nineLines = []string{"line 1", "line 2", "line 3", "line 4", "line 5", "line 6", "line 7", "line 8", "line 9"}

// One process on each host of the slice, each with its own place and the node's variables; the same program is sent once.
func TestWholeSlice(t *testing.T) {
	mine := filepath.Join(t.TempDir(), "mine") // a package that no other test sends
	require.NoError(t, os.WriteFile(mine, []byte(stubProgram+"# mine\n"), 0o755))
	args := submit("--topology", "4x4", "--binary", mine, "--env", "MINE=it's a,b", "--", "env")
	first := weft(t, args...)
	require.Zero(t, first.code, first)
	require.Contains(t, first.err, "sent _ray_pkg_")
	require.Contains(t, first.out, "attempt 1: 4x4 on 4 host(s): h0 (127.0.0.10), h1 (127.0.0.11), h2 (127.0.0.12), h3 (127.0.0.13)")
	for i := range 4 {
		want := append([]string{
			"MINE=it's a,b", "TPU_ACCELERATOR_TYPE=v6e-16", "TPU_NAME=big", "TPU_TOPOLOGY=4x4",
			"TPU_WORKER_HOSTNAMES=h0.pods,h1.pods,h2.pods,h3.pods", fmt.Sprintf("TPU_WORKER_ID=%d", i),
		}, nineLines...)
		require.Equal(t, want, linesOf(first.out, fmt.Sprintf("h%d", i)), first)
	}
	require.Contains(t, first.out, "weft ray: done\n")

	second := weft(t, submit("--topology", "2x2", "--binary", mine, "--submission-id", "mine", "--", "env")...)
	require.Zero(t, second.code, second)
	require.NotContains(t, second.err, "sent ", "the package is there")
	require.Contains(t, second.err, "submitted mine\n")

	taken := weft(t, submit("--topology", "2x2", "--binary", stub, "--submission-id", "mine", "--", "env")...)
	require.Equal(t, 2, taken.code, taken)
	require.Equal(t, 1, strings.Count(taken.err, "\n"), taken)
	require.Contains(t, taken.err, "--submission-id mine")

	logs := weft(t, "ray", "logs", "--address", shared.dashboard, "--no-follow", "mine")
	require.Zero(t, logs.code, logs)
	require.Equal(t, second.out, logs.out)
	followed := weft(t, "ray", "logs", "--address", shared.dashboard, "mine")
	require.Zero(t, followed.code, followed)
	require.Equal(t, second.out, followed.out)
}

// Two slices are told of each other; hosts without names in their environment get addresses.
func TestTwoSlices(t *testing.T) {
	o := weft(t, submit("--topology", "2x2", "--num-slices", "2", "--binary", stub, "--", "env")...)
	require.Zero(t, o.code, o)
	for i, slice := range []string{"one", "two"} {
		want := append([]string{
			"MEGASCALE_COORDINATOR_ADDRESS=127.0.0.20", "MEGASCALE_NUM_SLICES=2", "MEGASCALE_PORT=8081", fmt.Sprintf("MEGASCALE_SLICE_ID=%d", i),
			"TPU_ACCELERATOR_TYPE=v6e-4", "TPU_NAME=" + slice, "TPU_TOPOLOGY=2x2", fmt.Sprintf("TPU_WORKER_HOSTNAMES=127.0.0.%d", 20+i), "TPU_WORKER_ID=0",
		}, nineLines...)
		require.Equal(t, want, linesOf(o.out, slice+"/0"), o)
	}
}

// A preemption is no failure; a failure begins again as often as allowed; the exit code comes back.
func TestFailures(t *testing.T) {
	t.Parallel()
	o := weft(t, submit("--topology", "2x2", "--binary", stub, "--max-failures", "1", "--", "exits", t.TempDir(), "75", "7", "9", "0")...)
	require.Equal(t, 1, o.code, o)
	var said []string
	for line := range strings.Lines(o.out) {
		if rest, ok := strings.CutPrefix(line, "weft ray: "); ok && !strings.HasPrefix(rest, "attempt ") {
			said = append(said, regexp.MustCompile(`(one|two)/0`).ReplaceAllString(strings.TrimSpace(rest), "HOST"))
		}
	}
	require.Equal(t, []string{
		"preempted: starting again from what was saved",
		"HOST ended with exit code 7: stopping the other hosts",
		"failure 1 of at most 1: HOST ended with exit code 7: starting again from the last checkpoint",
		"HOST ended with exit code 9: stopping the other hosts",
		"failed 2 time(s), which is more than --max-failures 1: HOST ended with exit code 9",
		"failed",
	}, said)
	require.Contains(t, o.err, "failed (exit code 1)")
}

// What is wrong with the command line is not tried again.
func TestWrongInput(t *testing.T) {
	t.Parallel()
	o := weft(t, submit("--topology", "2x2", "--binary", stub, "--", "exits", t.TempDir(), "2", "0")...)
	require.Equal(t, 2, o.code, o)
	require.Equal(t, 1, strings.Count(o.out, "weft ray: attempt"), o)
}

// A program that the image does not hold is said at once.
func TestNoBinary(t *testing.T) {
	t.Parallel()
	o := weft(t, submit("--topology", "2x2", "--binary", "image:no-such-weft", "--", "finetune")...)
	require.Equal(t, 2, o.code, o)
	require.Contains(t, o.out, "no-such-weft: No such file or directory: give --binary")

	o = weft(t, submit("--topology", "2x2", "--binary", "no-such-file", "--", "finetune")...)
	require.Equal(t, 2, o.code, o)
	require.Equal(t, "weft: --binary: stat no-such-file: no such file or directory: give a file, or image:NAME for a program within the cluster's image\n", o.err)
}

// Without a free slice the job ends in the time given and says what the cluster has.
func TestNoSlice(t *testing.T) {
	t.Parallel()
	o := weft(t, submit("--topology", "8x8", "--reserve-timeout", "2s", "--binary", stub, "--", "env")...)
	require.Equal(t, 75, o.code, o)
	require.Contains(t, o.out, "no slice: within 2 s none of this kind is free. This cluster has big (v6e-16, 4x4, 4 host(s)), "+
		"one (v6e-4, 2x2, 1 host(s)), two (v6e-4, 2x2, 1 host(s))")
}

// Within the cluster, as a RayJob's entry point, the same driver runs; its exit code is the command's.
func TestDrive(t *testing.T) {
	t.Parallel()
	r := startWith(t, []string{fmt.Sprintf("RAY_ADDRESS=127.0.0.2:%d", shared.ports[0])}, "ray", "drive", "--python", python, "--binary", stub,
		"--topology", "2x2", "--accelerator-type", "TPU-V6E", "--reserve-timeout", hang.String(), "--", "exits", t.TempDir(), "75", "2")
	o := r.wait(t)
	require.Equal(t, 2, o.code, o)
	require.Contains(t, o.out, "weft ray: preempted: starting again from what was saved\n")
	require.Regexp(t, `(?m)^\[(one|two)/0\] attempt 2$`, o.out)
}

// An address where nobody answers, and one where another server does.
func TestWrongAddress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, c := range []struct {
		address string
		code    int
		want    string
	}{
		{"http://127.0.0.1:9", 1, "no Ray cluster answers at http://127.0.0.1:9: "},
		{server.URL, 1, server.URL + " is no Ray cluster (it has no /api/version): give the address of its dashboard, usually port 8265"},
		{"ray://127.0.0.1:10001", 2, "--address ray://127.0.0.1:10001: give the address of the cluster's dashboard"},
	} {
		for _, o := range []outcome{
			weft(t, "ray", "submit", "--address", c.address, "--topology", "2x2", "--accelerator-type", "TPU-V6E", "--binary", stub, "--", "env"),
			weft(t, "ray", "status", "--address", c.address),
		} {
			require.Equal(t, c.code, o.code, o)
			require.Empty(t, o.out)
			require.Equal(t, 1, strings.Count(o.err, "\n"), o)
			require.Contains(t, o.err, "weft: "+c.want)
		}
	}
}
