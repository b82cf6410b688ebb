package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// runMain runs the command line in this process.
func runMain(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestK8sRender(t *testing.T) {
	base := []string{"--topology", "4x4", "--accelerator-type", "tpu-v6e", "--image", "example/weft:1"}
	job := []string{"--", "finetune", "--storage-path", "gs://runs/a b", "--dataset", "gs://data/x.jsonl"}

	args := append(append([]string{"k8s", "render", "jobset"}, base...), "--name", "mine", "--hf-secret", "tokens:hub", "--queue", "lq", "--shm", "10Gi")
	code, out, errs := runMain(append(args, job...)...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "name: mine")
	require.Contains(t, out, "kueue.x-k8s.io/queue-name: lq")
	require.Contains(t, out, "gs://runs --role=roles/storage.objectAdmin")
	require.Contains(t, out, "gs://data --role=roles/storage.objectAdmin")
	var set struct {
		Kind string `yaml:"kind"`
		Spec struct {
			ReplicatedJobs []struct {
				Template struct {
					Spec struct {
						Parallelism int `yaml:"parallelism"`
						Template    struct {
							Spec struct {
								Containers []struct {
									Args []string `yaml:"args"`
								} `yaml:"containers"`
							} `yaml:"spec"`
						} `yaml:"template"`
					} `yaml:"spec"`
				} `yaml:"template"`
			} `yaml:"replicatedJobs"`
		} `yaml:"spec"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(out), &set))
	require.Equal(t, "JobSet", set.Kind)
	spec := set.Spec.ReplicatedJobs[0].Template.Spec
	require.Equal(t, 4, spec.Parallelism)
	require.Equal(t, append(job[1:], "--grace-period", "30s"), spec.Template.Spec.Containers[0].Args)

	file := filepath.Join(t.TempDir(), "cluster.yaml")
	code, out, errs = runMain(append([]string{"k8s", "render", "RayCluster", "--hf-secret", "none", "-o", file}, base...)...)
	require.Zero(t, code, errs)
	require.Empty(t, out)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(written), "kind: RayCluster")
	require.NotContains(t, string(written), "HF_TOKEN")

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"kind":       {append([]string{"pod"}, base...), "raycluster, rayjob or jobset"},
		"no args":    {append([]string{"rayjob"}, base...), "-- finetune"},
		"topology":   {[]string{"jobset", "--topology", "3x3", "--accelerator-type", "TPU-V6E", "--image", "i"}, "3x3"},
		"type":       {[]string{"jobset", "--topology", "4x4", "--accelerator-type", "TPU-V99", "--image", "i"}, "TPU-V99"},
		"slices":     {append([]string{"raycluster", "--num-slices", "0"}, base...), "--num-slices"},
		"secret":     {append([]string{"raycluster", "--hf-secret", "a:b c"}, base...), "--hf-secret"},
		"no image":   {[]string{"raycluster", "--topology", "4x4", "--accelerator-type", "TPU-V6E"}, "--image"},
		"directory":  {append([]string{"raycluster", "-o", filepath.Join(t.TempDir(), "absent", "f")}, base...), "--output"},
		"long grace": {append(append([]string{"jobset"}, base...), "--", "finetune", "--grace-period", "2m"), "--grace-period 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runMain(append([]string{"k8s", "render"}, c.args...)...)
			require.Equal(t, 2, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, c.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
}

// What weft saves on a pod's own disk is lost with the pod: that is said where it is seen though the manifest goes into a pipe.
func TestK8sRenderTellsWhatWouldBeLost(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"finetune", "--storage-path", "gs://b/runs"}, ""},
		{[]string{"finetune", "--storage-path=gs://b/runs"}, ""},
		{[]string{"collectives"}, ""},
		{[]string{"finetune", "--config", "run.yaml"}, ""},
		{[]string{"finetune", "--storage-path", "out\nkind: x"}, `--storage-path "out\nkind: x" is on each pod's own disk`},
		{[]string{"finetune", "--dataset", "gs://b/d"}, "./weft-out, the default of --storage-path, is on each pod's own disk"},
	} {
		for _, kind := range []string{"jobset", "rayjob"} {
			code, out, errs := runMain(append([]string{"k8s", "render", kind, "--topology", "4x4", "--accelerator-type", "TPU-V6E", "--image", "i", "--"}, c.args...)...)
			require.Zero(t, code, errs)
			if c.want == "" {
				require.Empty(t, errs)
				require.NotContains(t, out, "# Caution")
				continue
			}
			require.Contains(t, errs, "weft: "+c.want)
			require.Contains(t, errs, "give --storage-path gs://BUCKET/PREFIX")
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
			require.Contains(t, out, "# Caution: "+c.want)
			var any map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(out), &any))
		}
	}
}
