package k8s_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"weft/engine/tpu"
	"weft/internal/fixture"
	"weft/internal/golden"
	"weft/launch/k8s"
)

func topology(t *testing.T, name string, slices int) tpu.Topology {
	t.Helper()
	top, err := tpu.Parse(name)
	require.NoError(t, err)
	top, err = top.WithSlices(slices)
	require.NoError(t, err)
	return top
}

func options(t *testing.T, kind k8s.Kind, shape string, slices int) k8s.Options {
	t.Helper()
	o := k8s.DefaultOptions(kind, topology(t, shape, slices))
	o.Image = "example-docker.pkg.dev/project/repository/weft:1"
	if kind != k8s.RayCluster {
		o.Args = []string{"finetune", "--model-id", "gs://bucket/model", "--dataset", "gs://bucket/dolly.jsonl",
			"--dataset-split", "train[:1024]", "--storage-path", "gs://bucket/runs", "--template", "It's {instruction}"}
	}
	return o
}

// manifests are the cases that the goldens hold.
var manifests = []struct {
	name     string
	kind     k8s.Kind
	topology string
	slices   int
	change   func(*k8s.Options)
}{
	{"raycluster_v6e_4x4", k8s.RayCluster, "v6e:4x4", 1, nil},
	{"raycluster_tpu7x_2x2x2", k8s.RayCluster, "tpu7x:2x2x2", 1, nil},
	{"raycluster_v6e_4x4_two_slices", k8s.RayCluster, "v6e:4x4", 2, nil},
	{"rayjob_v6e_4x4", k8s.RayJob, "v6e:4x4", 1, nil},
	{"rayjob_v5p_2x2x2_queue", k8s.RayJob, "v5p:2x2x2", 1, func(o *k8s.Options) {
		o.Queue, o.Namespace, o.ServiceAccount = "tpu-queue", "training", "weft"
	}},
	{"rayjob_tpu7x_2x2x2_two_slices", k8s.RayJob, "tpu7x:2x2x2", 2, nil},
	{"jobset_v6e_4x4", k8s.JobSet, "v6e:4x4", 1, nil},
	{"jobset_v6e_2x2_single_host", k8s.JobSet, "v6e:2x2", 1, func(o *k8s.Options) { o.Spot, o.HFSecret = true, "" }},
	{"jobset_v5e_4x4_reservation", k8s.JobSet, "v5e:4x4", 1, func(o *k8s.Options) { o.Reservation, o.MaxFailures = "mine", 0 }},
	{"jobset_tpu7x_2x2x2_two_slices", k8s.JobSet, "tpu7x:2x2x2", 2, nil},
	{"jobset_v6e_2x4_two_hosts", k8s.JobSet, "v6e:2x4", 1, func(o *k8s.Options) { o.ChipsPerHost = 4 }},
	{"rayjob_v5e_2x4_one_host", k8s.RayJob, "v5e:2x4", 1, nil},
	{"jobset_v5e_1x1", k8s.JobSet, "v5e:1x1", 1, nil},
	{"jobset_v5p_4x4x4", k8s.JobSet, "v5p:4x4x4", 1, nil},
}

func TestRenderGolden(t *testing.T) {
	for _, c := range manifests {
		t.Run(c.name, func(t *testing.T) {
			o := options(t, c.kind, c.topology, c.slices)
			if c.change != nil {
				c.change(&o)
			}
			out, err := k8s.Render(o)
			require.NoError(t, err)
			golden.Equal(t, c.name+".yaml", out)
		})
	}
}

// TestManifestsFitTheSchemas holds every manifest against the custom resource's own schema, with fields that it does not
// know taken for mistakes: the API server would drop them silently.
func TestManifestsFitTheSchemas(t *testing.T) {
	files := map[k8s.Kind]string{
		k8s.RayCluster: "ray.io_rayclusters.yaml", k8s.RayJob: "ray.io_rayjobs.yaml", k8s.JobSet: "jobset.x-k8s.io_jobsets.yaml",
	}
	for _, c := range manifests {
		t.Run(c.name, func(t *testing.T) {
			schema := compileCRD(t, files[c.kind])
			o := options(t, c.kind, c.topology, c.slices)
			if c.change != nil {
				c.change(&o)
			}
			out, err := k8s.Render(o)
			require.NoError(t, err)
			var doc any
			require.NoError(t, yaml.Unmarshal(out, &doc))
			require.NoError(t, schema.Validate(jsonValue(doc)))
		})
	}
	t.Run("an unknown field is refused", func(t *testing.T) {
		schema := compileCRD(t, files[k8s.JobSet])
		require.Error(t, schema.Validate(jsonValue(map[string]any{"spec": map[string]any{"replicatedJob": []any{}}})))
	})
}

func compileCRD(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(fixture.Shared(t), "crds", file))
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string `yaml:"name"`
				Schema struct {
					OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
				} `yaml:"schema"`
			} `yaml:"versions"`
		} `yaml:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &crd))
	require.NotEmpty(t, crd.Spec.Versions)
	schema := jsonValue(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	closeObjects(schema)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(file, schema))
	compiled, err := c.Compile(file)
	require.NoError(t, err)
	return compiled
}

// closeObjects forbids fields that a schema does not list, where it lists any.
func closeObjects(schema any) {
	m, ok := schema.(map[string]any)
	if !ok {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	_, open := m["additionalProperties"]
	if properties != nil && !open && m["x-kubernetes-preserve-unknown-fields"] != true {
		m["additionalProperties"] = false
	}
	for _, p := range properties {
		closeObjects(p)
	}
	closeObjects(m["items"])
	closeObjects(m["additionalProperties"])
}

// jsonValue turns what the YAML reader gives into what a JSON reader would.
func jsonValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = jsonValue(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = jsonValue(e)
		}
		return out
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	case int:
		return float64(v)
	}
	return v
}

// TestTheGuidesManifestIsContained reads the published guide's two RayCluster manifests and finds each of their fields,
// with its value, in weft's.
func TestTheGuidesManifestIsContained(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(fixture.Shared(t), "guides", "004_12d4fb0e42cdcb4b.txt"))
	require.NoError(t, err)
	found := guideManifests(string(guide))
	require.Len(t, found, 2)
	for i, topology := range []string{"v6e:4x4", "tpu7x:2x2x2"} {
		t.Run(topology, func(t *testing.T) {
			var want, have map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(found[i]), &want))
			o := options(t, k8s.RayCluster, topology, 1)
			o.Name, o.Image = "ray-torchtpu-cluster", "${IMAGE_URI}"
			out, err := k8s.Render(o)
			require.NoError(t, err)
			require.NoError(t, yaml.Unmarshal(out, &have))
			require.Empty(t, missing("", jsonValue(want), jsonValue(have)))
		})
	}
}

func guideManifests(text string) []string {
	var found []string
	for _, part := range strings.Split(text, "apiVersion: ray.io/v1")[1:] {
		var lines []string
		for line := range strings.Lines(part) {
			if trimmed := strings.TrimSpace(line); trimmed != "" && line[0] != ' ' && !strings.Contains(line, ":") {
				break
			}
			if strings.HasPrefix(line, "Ironwood") || strings.TrimSpace(line) != "" && line[0] > 127 {
				break
			}
			lines = append(lines, line)
		}
		found = append(found, "apiVersion: ray.io/v1"+strings.Join(lines, ""))
	}
	return found
}

// missing lists the fields of want that have does not hold with the same value. Environment variables are met by name.
func missing(path string, want, have any) []string {
	switch want := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		var out []string
		for k, v := range want {
			out = append(out, missing(path+"."+k, v, h[k])...)
		}
		return out
	case []any:
		h, _ := have.([]any)
		var out []string
		for i, v := range want {
			if i >= len(h) {
				return append(out, path+": too short")
			}
			out = append(out, missing(path+"[]", v, h[i])...)
		}
		return out
	}
	if want != have {
		return []string{path}
	}
	return nil
}

func TestOptionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		kind   k8s.Kind
		change func(*k8s.Options)
		want   string
	}{
		"kind":        {k8s.JobSet, func(o *k8s.Options) { o.Kind = "deployment" }, "raycluster, rayjob or jobset"},
		"name":        {k8s.JobSet, func(o *k8s.Options) { o.Name = "Weft_1" }, `--name "Weft_1"`},
		"long name":   {k8s.JobSet, func(o *k8s.Options) { o.Name = strings.Repeat("a", 41) }, "at most 40"},
		"no image":    {k8s.JobSet, func(o *k8s.Options) { o.Image = "" }, "--image"},
		"memory":      {k8s.JobSet, func(o *k8s.Options) { o.Memory = "lots" }, `--memory "lots"`},
		"both":        {k8s.JobSet, func(o *k8s.Options) { o.Spot, o.Reservation = true, "r" }, "--spot and --reservation"},
		"failures":    {k8s.JobSet, func(o *k8s.Options) { o.MaxFailures = -1 }, "--max-failures"},
		"grace":       {k8s.JobSet, func(o *k8s.Options) { o.Grace = time.Millisecond }, "--grace-period"},
		"no args":     {k8s.RayJob, func(o *k8s.Options) { o.Args = nil }, "-- finetune"},
		"args":        {k8s.RayCluster, func(o *k8s.Options) { o.Args = []string{"finetune"} }, "render a rayjob"},
		"secret key":  {k8s.JobSet, func(o *k8s.Options) { o.HFKey = "a b" }, "SECRET:KEY"},
		"queue":       {k8s.JobSet, func(o *k8s.Options) { o.Queue = "my queue" }, "--queue"},
		"cut grace":   {k8s.JobSet, func(o *k8s.Options) { o.Args = append(o.Args, "--grace-period", "5m") }, "longer than its pod's of 30s"},
		"cut grace =": {k8s.RayJob, func(o *k8s.Options) { o.Args = append(o.Args, "--grace-period=31s") }, "give weft k8s render --grace-period 31s too"},
		"bad grace":   {k8s.RayJob, func(o *k8s.Options) { o.Args = append(o.Args, "--grace-period=soon") }, "give a time such as 30s"},
		"three chips": {k8s.JobSet, func(o *k8s.Options) { o.ChipsPerHost = 3 }, "--chips-per-host 3"},
		"two chips":   {k8s.JobSet, func(o *k8s.Options) { o.ChipsPerHost = 2 }, "give one of 1, 4, 8"},
		"no chips":    {k8s.JobSet, func(o *k8s.Options) { o.ChipsPerHost = -4 }, "--chips-per-host -4"},
		"eight chips": {k8s.JobSet, func(o *k8s.Options) { o.ChipsPerHost = 8 }, "have 4 chips"},
		"ray 2x4":     {k8s.RayJob, func(o *k8s.Options) { o.Topology, o.ChipsPerHost = topology(t, "v6e:2x4", 1), 4 }, "render a jobset"},
		"two hosts":   {k8s.RayJob, func(o *k8s.Options) { o.Topology = topology(t, "v6e:2x2", 2) }, "slices of several hosts only"},
		"reservation": {k8s.JobSet, func(o *k8s.Options) { o.Reservation = "a/b" }, "--reservation"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, c.kind, "v6e:4x4", 1)
			c.change(&o)
			_, err := k8s.Render(o)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The grace period of the pod reaches weft, its driver and Kubernetes, each a little longer than the one before.
func TestGracePeriodsFit(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		want    string
		without string
	}{
		"added":       {[]string{"finetune", "--storage-path", "out"}, "--storage-path out --grace-period 1m30s", ""},
		"its own":     {[]string{"finetune", "--grace-period=20s"}, "-- finetune --grace-period=20s\"", "1m30s --grace"},
		"in a file":   {[]string{"finetune", "--config", "run.yaml"}, "-- finetune --config run.yaml\"", ""},
		"no finetune": {[]string{"collectives"}, "-- collectives\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, k8s.RayJob, "v6e:4x4", 1)
			o.Grace, o.Args = 90*time.Second, c.args
			out, err := k8s.Render(o)
			require.NoError(t, err)
			require.Contains(t, string(out), c.want)
			require.Contains(t, string(out), "--grace-period 1m30s")
			require.Contains(t, string(out), `RAY_JOB_STOP_WAIT_TIME_S: '105'`)
			require.Contains(t, string(out), "terminationGracePeriodSeconds: 105")
		})
	}
}

// The script that a Ray pod runs before it ends stops the processes of one name, waits for them, and touches no other.
func TestStopScript(t *testing.T) {
	name := fmt.Sprintf("weftst-%d", os.Getpid()) // no other run's, within the 15 characters that the kernel keeps
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	body, err := os.ReadFile(sleep)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(program, body, 0o755))
	mine, other := exec.CommandContext(t.Context(), program, "3600"), exec.CommandContext(t.Context(), sleep, "3600")
	require.NoError(t, mine.Start())
	require.NoError(t, other.Start())
	ended := make(chan error, 1)
	go func() { ended <- mine.Wait() }()
	out, err := exec.Command("/bin/sh", "-c", k8s.StopScript(name)).CombinedOutput()
	require.NoError(t, err, string(out))
	require.ErrorContains(t, <-ended, "terminated")
	require.NoError(t, other.Process.Signal(syscall.Signal(0)), "another process was ended")
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
}
