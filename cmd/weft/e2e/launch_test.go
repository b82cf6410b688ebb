package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands that write manifests and gcloud lines need no cluster, no plugin and no account.
func TestLaunchCommandsPrint(t *testing.T) {
	manifest := must(t, "k8s", "render", "rayjob", "--topology", "2x2x2", "--accelerator-type", "TPU-V7X", "--image", "example/weft:1",
		"--", "finetune", "--dataset-split", "train[:16]", "--storage-path", "gs://b/runs")
	require.Contains(t, manifest, "kind: RayJob")
	require.Contains(t, manifest, "-- finetune --dataset-split 'train[:16]' --storage-path gs://b/runs --grace-period 30s")
	require.Contains(t, manifest, `TPU: "8"`)
	require.Contains(t, refused(t, "k8s", "render", "jobset", "--topology", "4x4", "--accelerator-type", "TPU-V6E", "--image", "i"), "-- finetune")

	lines := must(t, "tpuvm", "create", "t", "--zone", "europe-west4-a", "--topology", "4x4", "--accelerator-type", "TPU-V6E", "--spot")
	require.Equal(t, "gcloud compute tpus tpu-vm create t --zone=europe-west4-a --accelerator-type=v6e-16 --version=v2-alpha-tpuv6e --spot",
		strings.TrimSpace(lines[strings.IndexByte(lines, '\n'):]))
	require.Contains(t, must(t, "tpuvm", "copy", "t", "--zone", "europe-west4-a"), binary+" t:weft.new")
	require.Contains(t, refused(t, "tpuvm", "delete", "t", "--zone", "here"), "--zone")
}
