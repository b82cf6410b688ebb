// Package pjrttest gives tests their plugins and clients.
package pjrttest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"

	"weft/pjrt"
	"weft/pjrt/plugin"
)

// CPUPlugins are the names of the CPU plugins that the binding is tested with.
var CPUPlugins = []string{"cpu", "cpu-alt"}

// Path is the file of a plugin, installed if need be. Without a network the test is skipped, loudly; with WEFT_CI set it fails.
func Path(t testing.TB, name string) string {
	t.Helper()
	info, err := plugin.Ensure(context.Background(), name, os.Stderr)
	if err == nil {
		return info.Path
	}
	if os.Getenv("WEFT_CI") != "" {
		t.Fatalf("this test needs plugin %s: %v", name, err)
	}
	t.Skipf("SKIPPED: this test needs plugin %s: %v", name, err)
	return ""
}

// Plugin loads a plugin; see [Path].
func Plugin(t testing.TB, name string) *pjrt.Plugin {
	t.Helper()
	p, err := pjrt.Load(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Client is a client of a CPU plugin with so many virtual devices, closed when the test ends; a test that leaves buffers or executables
// alive fails.
func Client(t testing.TB, name string, devices int) *pjrt.Client {
	t.Helper()
	c, err := Plugin(t, name).NewClient(map[string]any{"cpu_device_count": devices})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// tpuLock is the lock of this process, and how many of its tests and subtests hold it.
var tpuLock struct {
	sync.Mutex
	file    *flock.Flock
	holders int
}

// LockTPU makes this the only process on the machine whose tests use libtpu, until the test ends: libtpu refuses a
// second one. A test may take it when one around it has.
func LockTPU(t testing.TB) {
	t.Helper()
	tpuLock.Lock()
	defer tpuLock.Unlock()
	if tpuLock.holders == 0 {
		tpuLock.file = flock.New(filepath.Join(os.TempDir(), "weft-test-libtpu.lock"))
		if err := tpuLock.file.Lock(); err != nil {
			t.Fatalf("lock %s: %v", tpuLock.file.Path(), err)
		}
	}
	tpuLock.holders++
	t.Cleanup(func() {
		tpuLock.Lock()
		defer tpuLock.Unlock()
		if tpuLock.holders--; tpuLock.holders == 0 {
			_ = tpuLock.file.Unlock()
		}
	})
}

// tpuChild holds libtpu's path in the process that TPU starts.
const tpuChild = "WEFT_TEST_TPU_CHILD"

// TPU runs the body of a test with libtpu in a copy of the test's process, with no chip present: libtpu does not bear
// other plugins beside it. args are flags for the copy, such as -update. It takes [LockTPU], and skips as [Path] does.
func TPU(t *testing.T, body func(t *testing.T, p *pjrt.Plugin), args ...string) {
	t.Helper()
	if path := os.Getenv(tpuChild); path != "" {
		p, err := pjrt.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		body(t, p)
		return
	}
	path := Path(t, "tpu")
	LockTPU(t)
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^" + t.Name() + "$", "-test.v"}, args...)...)
	cmd.Env = append(os.Environ(), tpuChild+"="+path)
	for name, value := range plugin.OffTPUEnv("v6e-16") {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the test's process with libtpu: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}
