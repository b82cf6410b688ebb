package doctor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/gcs/gcstest"
	"weft/launch/doctor"
	"weft/pjrt/plugin"
)

// host is one host of a v6e 4x4 as GKE sets it up, all well.
type host struct {
	env    map[string]string
	system doctor.System
	dir    string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	write("proc/meminfo", "MemTotal: 200000000 kB\nMemAvailable:   100000000 kB\n")
	write("proc/4711/cmdline", "/usr/bin/python3\x00train.py\x00--steps\x0010\x00--more\x00")
	write("sys/fs/cgroup/memory.max", "max\n")
	write("sys/fs/cgroup/memory.current", "1000\n")
	h := &host{dir: dir, env: map[string]string{
		"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b,c,d", "TPU_ACCELERATOR_TYPE": "v6e-16", "TPU_TOPOLOGY": "4x4",
		"TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1", "HOME": dir,
	}}
	h.system = doctor.System{
		Getenv: func(name string) string { return h.env[name] },
		Chips:  func() int { return 4 },
		Find: func(platform, override string) (plugin.Info, error) {
			return plugin.Info{Name: platform, Platform: platform, Version: "0.0.52", Path: "/lib/libtpu.so"}, nil
		},
		Holder:   func(string) int { return 0 },
		LockFile: filepath.Join(dir, "libtpu_lockfile"), Root: dir, Shm: dir,
		Hostname: func() (string, error) { return "b", nil }, Now: time.Now,
	}
	return h
}

func (h *host) options() doctor.Options {
	return doctor.Options{Version: "v1", System: h.system}
}

func find(t *testing.T, r *doctor.Report, name string) doctor.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	require.Failf(t, "no check", "%s in %+v", name, r.Checks)
	return doctor.Check{}
}

func TestAFitHost(t *testing.T) {
	h := newHost(t)
	o := h.options()
	o.Storage = filepath.Join(h.dir, "runs")
	r := doctor.Run(t.Context(), o)
	require.False(t, r.Failed(), "%+v", r.Checks)
	for name, want := range map[string]string{
		"plugin": "tpu 0.0.52, /lib/libtpu.so", "slice": "v6e:4x4, host 1 of 4 (b)", "chips": "4 TPU chips", "libtpu lock": "free",
		"memory": "95.4 GiB free of this machine", "storage": "can be written, read and deleted", "clock": "agrees with the storage's",
	} {
		c := find(t, r, name)
		require.Equal(t, doctor.OK, c.Status, "%+v", c)
		require.Contains(t, c.Detail, want)
	}
	left, err := os.ReadDir(o.Storage)
	require.NoError(t, err)
	require.Len(t, left, 1, "only the folder of the hosts' reports stays")
}

func TestEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, h *host, o *doctor.Options)
		check  string
		status doctor.Status
		want   string // of detail and fix together
	}{
		"no plugin": {func(t *testing.T, h *host, o *doctor.Options) {
			o.System.Find = func(string, string) (plugin.Info, error) { return plugin.Info{}, plugin.ErrNotInstalled }
		}, "plugin", doctor.Fail, "weft plugin install tpu"},
		"damaged plugin": {func(t *testing.T, h *host, o *doctor.Options) {
			o.System.Find = func(string, string) (plugin.Info, error) { return plugin.Info{}, errors.New("the file was changed") }
		}, "plugin", doctor.Fail, "the file was changed"},
		"contradictory environment": {func(t *testing.T, h *host, o *doctor.Options) { h.env["TPU_WORKER_ID"] = "7" }, "slice", doctor.Fail, "TPU_WORKER_ID=7"},
		"no chip": {func(t *testing.T, h *host, o *doctor.Options) {
			o.Platform = "tpu"
			o.System.Chips = func() int { return 0 }
		}, "chips", doctor.Fail, "google.com/tpu"},
		"half of the chips": {func(t *testing.T, h *host, o *doctor.Options) {
			o.System.Chips = func() int { return 8 }
		}, "chips", doctor.Fail, "8 chips on the PCI bus, the environment gives this process 4"},
		"lock held": {func(t *testing.T, h *host, o *doctor.Options) {
			require.NoError(t, os.WriteFile(h.system.LockFile, nil, 0o644))
			o.System.Holder = func(string) int { return 4711 }
		}, "libtpu lock", doctor.Fail, "held by process 4711 (python3 train.py --steps 10)"},
		"lock stale": {func(t *testing.T, h *host, o *doctor.Options) {
			require.NoError(t, os.WriteFile(h.system.LockFile, nil, 0o644))
		}, "libtpu lock", doctor.OK, "left of an earlier process"},
		"no shm": {func(t *testing.T, h *host, o *doctor.Options) { o.System.Shm = filepath.Join(h.dir, "none") }, "shm", doctor.Warn, "memory volume"},
		"little memory": {func(t *testing.T, h *host, o *doctor.Options) {
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, "sys/fs/cgroup/memory.max"), []byte("2000000000\n"), 0o644))
		}, "memory", doctor.Warn, "1.9 GiB free of this container"},
		"storage on a file": {func(t *testing.T, h *host, o *doctor.Options) {
			o.Storage = filepath.Join(h.dir, "proc/meminfo")
		}, "storage", doctor.Fail, "not a directory"},
		"storage of another kind": {func(t *testing.T, h *host, o *doctor.Options) { o.Storage = "s3://bucket" }, "storage", doctor.Fail, "s3://"},
		"no storage":              {func(t *testing.T, h *host, o *doctor.Options) { o.Storage = "" }, "storage", doctor.Skip, "no --storage-path"},
		"other hosts silent":      {func(t *testing.T, h *host, o *doctor.Options) {}, "hosts", doctor.Warn, "1 of 4 hosts have the same versions, [0 2 3] did not report"},
		"hosts unknown":           {func(t *testing.T, h *host, o *doctor.Options) { clear(h.env) }, "hosts", doctor.Skip, "weft version on each host"},
		"slice unknown":           {func(t *testing.T, h *host, o *doctor.Options) { clear(h.env) }, "slice", doctor.OK, "knows whether there are other hosts"},
		"hosts without storage":   {func(t *testing.T, h *host, o *doctor.Options) { o.Storage = "" }, "hosts", doctor.Skip, "the same --storage-path"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			o := h.options()
			o.Storage = filepath.Join(h.dir, "runs")
			c.spoil(t, h, &o)
			r := doctor.Run(t.Context(), o)
			got := find(t, r, c.check)
			require.Equal(t, c.status, got.Status, "%+v", got)
			require.Contains(t, got.Detail+" "+got.Fix, c.want)
			require.Equal(t, c.status == doctor.Fail, r.Failed())
		})
	}
}

// The clocks differ by what one of them is wrong, less what the machine takes between a look at it and the write.
func TestClocksDiffer(t *testing.T) {
	for wrong, want := range map[time.Duration]doctor.Status{2 * time.Hour: doctor.Fail, -4 * time.Minute: doctor.Warn} {
		h := newHost(t)
		o := h.options()
		o.Storage = filepath.Join(h.dir, "runs")
		o.System.Now = func() time.Time { return time.Now().Add(wrong) }
		began := time.Now()
		r := doctor.Run(t.Context(), o)
		took := time.Since(began)
		c := find(t, r, "clock")
		require.Equal(t, want, c.Status, "%+v", c)
		require.Equal(t, want == doctor.Fail, r.Failed())
		said := regexp.MustCompile(`differ by (\S+?)(:|$)`).FindStringSubmatch(c.Detail)
		require.Len(t, said, 3, c.Detail)
		differ, err := time.ParseDuration(said[1])
		require.NoError(t, err)
		require.LessOrEqual(t, differ, wrong.Abs())
		require.GreaterOrEqual(t, differ, (wrong.Abs() - took).Truncate(time.Second))
	}
}

func TestHostsAreCompared(t *testing.T) {
	h := newHost(t)
	storage := filepath.Join(h.dir, "runs")
	for i := range 4 {
		h.env["TPU_WORKER_ID"] = fmt.Sprint(i)
		o := h.options()
		o.Storage = storage
		doctor.Run(t.Context(), o)
	}
	o := h.options()
	o.Storage = storage
	require.Contains(t, find(t, doctor.Run(t.Context(), o), "hosts").Detail, "4 hosts with weft v1 and tpu 0.0.52")

	h.env["TPU_WORKER_ID"], o.Version = "2", "v2"
	doctor.Run(t.Context(), o)
	h.env["TPU_WORKER_ID"], o.Version = "0", "v1"
	c := find(t, doctor.Run(t.Context(), o), "hosts")
	require.Equal(t, doctor.Fail, c.Status)
	require.Contains(t, c.Detail, "host 2 (b) has weft v2, this one v1")

	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(storage, ".weft-doctor/host-0002.json"), old, old))
	require.Contains(t, find(t, doctor.Run(t.Context(), o), "hosts").Detail, "[2] did not report", "an old report is of another examination")

	require.NoError(t, os.WriteFile(filepath.Join(storage, ".weft-doctor/host-0003.json"), []byte("nonsense"), 0o644))
	require.Contains(t, find(t, doctor.Run(t.Context(), o), "hosts").Detail, "is no report of weft doctor")
}

func TestHostsAreWaitedFor(t *testing.T) {
	h := newHost(t)
	h.env["TPU_WORKER_HOSTNAMES"], h.env["TPU_TOPOLOGY"], h.env["TPU_ACCELERATOR_TYPE"] = "a,b", "2x4", "v6e-8"
	o := h.options()
	o.Storage, o.Wait = filepath.Join(h.dir, "runs"), time.Hour
	done := make(chan *doctor.Report)
	go func() { done <- doctor.Run(t.Context(), o) }()
	other := newHost(t)
	for k, v := range h.env {
		other.env[k] = v
	}
	other.env["TPU_WORKER_ID"] = "0"
	p := other.options()
	p.Storage, p.Wait = o.Storage, time.Hour
	require.Equal(t, doctor.OK, find(t, doctor.Run(t.Context(), p), "hosts").Status)
	require.Equal(t, doctor.OK, find(t, <-done, "hosts").Status)
}

func TestCloudStorage(t *testing.T) {
	gcs := gcstest.Start(t, "bucket")
	gcs.Use(t)
	h := newHost(t)
	o := h.options()
	o.Storage = "gs://bucket/runs"
	r := doctor.Run(t.Context(), o)
	require.Equal(t, doctor.OK, find(t, r, "storage").Status, "%+v", r.Checks)
	require.Contains(t, find(t, r, "storage").Detail, "gs://bucket/runs can be written")
	o.Storage = "gs://absent/runs"
	c := find(t, doctor.Run(t.Context(), o), "storage")
	require.Equal(t, doctor.Fail, c.Status)
	require.Contains(t, c.Detail, "absent")
}

func TestHubToken(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/whoami-v2" || r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"name":"somebody"}`))
	}))
	defer hub.Close()
	for name, c := range map[string]struct {
		token, file string
		ask         bool
		status      doctor.Status
		want        string
	}{
		"none":      {"", "", true, doctor.Skip, "gated models"},
		"not asked": {"good", "", false, doctor.OK, "--hub asks"},
		"good":      {"good", "", true, doctor.OK, "of somebody"},
		"in a file": {"", "good\n", true, doctor.OK, "of somebody"},
		"wrong":     {"bad", "", true, doctor.Fail, "refuses it (401"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.env["HF_TOKEN"] = c.token
			if c.file != "" {
				dir := filepath.Join(h.dir, ".cache/huggingface")
				require.NoError(t, os.MkdirAll(dir, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(c.file), 0o600))
			}
			o := h.options()
			o.Hub, o.Endpoint = c.ask, hub.URL
			got := find(t, doctor.Run(t.Context(), o), "hub token")
			require.Equal(t, c.status, got.Status, "%+v", got)
			require.Contains(t, got.Detail, c.want)
		})
	}
}

func TestPrinting(t *testing.T) {
	h := newHost(t)
	h.env["TPU_WORKER_ID"] = "7"
	r := doctor.Run(t.Context(), h.options())
	var out strings.Builder
	require.NoError(t, r.Print(&out))
	require.Contains(t, out.String(), "weft v1 on b\n")
	require.Regexp(t, `(?m)^fail +slice +TPU_WORKER_ID=7`, out.String())
	require.Contains(t, out.String(), "→ unset what is left of another slice")
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"status":"fail"`)
}
