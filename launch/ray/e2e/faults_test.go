package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostPIDs waits for the stubs on so many hosts and returns their process ids.
func hostPIDs(t *testing.T, r *running, dir string, hosts int) []int {
	t.Helper()
	var pids []int
	eventually(t, r, fmt.Sprintf("%d hosts run", hosts), func() bool {
		pids = nil
		for i := range hosts {
			raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pid%d", i)))
			if err != nil {
				return false
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		return true
	})
	return pids
}

// alive tells that a process runs: it may have ended, but not been asked for its exit code.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')'):]), " ")
	return !strings.HasPrefix(rest, "Z")
}

// allEnd waits for processes that would otherwise run for longer than that.
func allEnd(t *testing.T, r *running, pids []int) {
	t.Helper()
	since := time.Now()
	for _, pid := range pids {
		eventually(t, r, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
	}
	t.Logf("%d processes ended within %.1f s", len(pids), time.Since(since).Seconds())
}

// A host that is lost stops the others, though they wait for it and are deaf to a request; on a new host all begin again.
func TestHostLost(t *testing.T) {
	dir := t.TempDir()
	r := start(t, submit("--topology", "4x4", "--binary", stub, "--max-failures", "1", "--", "lost", dir)...)
	pids := hostPIDs(t, r, dir, 4)

	_, err := shared.do(node{"op": "kill", "name": "big/2"})
	require.NoError(t, err)
	allEnd(t, r, pids)

	missing := regexp.MustCompile(`(?m)^big +v6e-16 +4x4 +3 +12 +hosts \[2\] missing`)
	eventually(t, r, "status shows what is missing", func() bool {
		status := weft(t, "ray", "status", "--address", shared.dashboard)
		require.Zero(t, status.code, status)
		return missing.MatchString(status.out)
	})

	_, err = shared.do(bigHost(2))
	require.NoError(t, err)
	o := r.wait(t)
	require.Zero(t, o.code, o)
	require.Contains(t, o.out, "weft ray: h2 is lost (")
	require.Regexp(t, `weft ray: failure 1 of at most 1: h2 is lost \(.*\): starting again from the last checkpoint`, o.out)
	require.Contains(t, o.out, "weft ray: attempt 2: 4x4 on 4 host(s)")
	for i := range 4 {
		lines := linesOf(o.out, fmt.Sprintf("h%d", i))
		require.Equal(t, []string{"attempt 2", "recovered"}, lines[len(lines)-2:], o)
	}
}

// An actor that is killed with its machine alive leaves no weft on the chips.
func TestActorKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, submit("--topology", "2x2", "--binary", stub, "--max-failures", "0", "--", "deaf", dir)...)
	pids := hostPIDs(t, r, dir, 1)
	actor := parent(t, pids[0])
	require.NoError(t, syscall.Kill(actor, syscall.SIGKILL))
	allEnd(t, r, pids)
	o := r.wait(t)
	require.Equal(t, 1, o.code, o)
	require.Regexp(t, `(one|two)/0 is lost \(`, o.out)
}

// parent is the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	id, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	return id
}

// Stopped by Ctrl-C or by another weft, hosts get SIGTERM and the time to save.
func TestStop(t *testing.T) {
	for _, how := range []string{"Ctrl-C", "weft ray stop"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			r := start(t, submit("--topology", "2x2", "--binary", stub, "--", "runs", dir)...)
			hostPIDs(t, r, dir, 1)
			id := submitted(t, r)
			if how == "Ctrl-C" {
				require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
			} else {
				stop := weft(t, "ray", "stop", "--address", shared.dashboard, id)
				require.Zero(t, stop.code, stop)
				require.Equal(t, id+" stopped\n", stop.out)
			}
			o := r.wait(t)
			require.Equal(t, 75, o.code, o)
			require.Contains(t, o.out, "weft ray: asked to stop: each host finishes its step and saves\n")
			for line := range strings.Lines(o.out) {
				if strings.HasPrefix(line, "[") {
					require.Regexp(t, `^\[(one|two)/0\] (attempt 1|Terminated|saving|saved)$`, strings.TrimSpace(line))
				}
			}
			require.Contains(t, o.out, "] saved\n")
			require.Contains(t, o.err, "weft: job "+id+" was stopped")
		})
	}
}

// submitted is the id that submit says.
func submitted(t *testing.T, r *running) string {
	t.Helper()
	var id []string
	eventually(t, r, "submitted", func() bool {
		id = regexp.MustCompile(`submitted (\S+)\n`).FindStringSubmatch(r.err.String())
		return id != nil
	})
	return id[1]
}

// A driver that is killed takes its hosts along; the job has failed.
func TestDriverKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, submit("--topology", "2x2", "--binary", stub, "--", "deaf", dir)...)
	pids := hostPIDs(t, r, dir, 1)
	id := submitted(t, r)
	driver := driverOf(t, dir)
	require.NoError(t, syscall.Kill(driver, syscall.SIGKILL))
	allEnd(t, r, pids)
	o := r.wait(t)
	require.Equal(t, 1, o.code, o)
	require.Equal(t, "weft: job "+id+" failed (its driver was killed by signal 9): see weft ray logs "+id+"\n", o.err[strings.Index(o.err, "weft: "):])
}

// driverOf finds the driver of the job that has the folder among its words.
func driverOf(t *testing.T, dir string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range lines {
		raw, _ := os.ReadFile(file)
		words := strings.Split(string(raw), "\x00")
		if len(words) > 3 && words[2] == "weft_driver.py" && strings.Contains(string(raw), dir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			return pid
		}
	}
	require.Fail(t, "no driver runs")
	return 0
}

// A head that is started anew while a job is followed: submit waits for it, then says that the job is lost.
func TestHeadRestart(t *testing.T) {
	t.Parallel()
	c, err := startCluster(python)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.stop()) })
	r := start(t, "ray", "submit", "--address", c.dashboard, "--topology", "2x2", "--accelerator-type", "TPU-V6E",
		"--reserve-timeout", hang.String(), "--binary", stub, "--", "env")
	eventually(t, r, "the log is followed", func() bool { return strings.Contains(r.out.String(), "Running entrypoint") })

	_, err = c.do(node{"op": "kill", "name": "head"})
	require.NoError(t, err)
	eventually(t, r, "the loss is said", func() bool { return strings.Contains(r.err.String(), "waiting up to 10m0s for it to come back") })
	require.NoError(t, c.startHead())
	o := r.wait(t)
	require.Equal(t, 75, o.code, o)
	require.Contains(t, o.err, "weft: job "+submitted(t, r)+" is lost: the head of the Ray cluster at "+c.dashboard+" was started anew")
}
