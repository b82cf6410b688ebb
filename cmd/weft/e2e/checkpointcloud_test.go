package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/gcs/gcstest"
)

// The commands work on Cloud Storage as on a disk, and between the two.
func TestCheckpointCommandsOnCloudStorage(t *testing.T) {
	c := startCloud(t)
	local := filepath.Join(t.TempDir(), "local")
	must(t, c.local(local)...)
	o := c.run(t, c.remote("gs://bucket/run")...)
	require.Zero(t, o.code, o.err)
	weft := func(args ...string) outcome { return c.run(t, append([]string{"checkpoint"}, args...)...) }
	must := func(args ...string) string {
		o := weft(args...)
		require.Zero(t, o.code, "%s\n%s\n%s", strings.Join(args, " "), o.out, o.err)
		return o.out
	}
	const second = "gs://bucket/run/checkpoints/epoch-0002-step-00000012"

	out := must("ls", "gs://bucket/run")
	require.Regexp(t, `epoch-0003-step-00000018 +\d+\.\d{4}\*? +\d+\.\d{4}\*? +\S+ MB +full +20\d\d-\d\d-\d\d \d\d:\d\d +ok +newest`, out)
	require.Contains(t, must("verify", "gs://bucket/run"), "epoch-0003-step-00000018 is whole: ")
	require.Contains(t, must("diff", "gs://bucket/run", local, "--state"), "equal: ", "the same bits as on a disk")
	require.Equal(t, 1, weft("diff", second, "gs://bucket/run").code)
	require.Contains(t, c.run(t, "checkpoint", "ls", "gs://bucket/nothing").err, "gs://bucket/nothing")

	here := filepath.Join(t.TempDir(), "here")
	for _, to := range []string{here, "gs://bucket/exported"} {
		out := must("export", second, to, "--compile-cache", cache)
		require.Contains(t, out, "all of the difference is rounding to bfloat16")
		require.Contains(t, out, "checkpoint "+second+": epoch 2, step 12")
	}
	require.Contains(t, must("diff", here, "gs://bucket/exported"), "equal: ")
	taken := weft("export", second, "gs://bucket/exported")
	require.Equal(t, 2, taken.code, taken.err)
	require.Contains(t, taken.err, "folder is not empty")

	raw := c.Objects("bucket")["run/checkpoints/epoch-0001-step-00000006/model/config.json"]
	c.Put("bucket", "run/checkpoints/epoch-0001-step-00000006/model/config.json", append([]byte{}, strings.ToUpper(string(raw))...))
	broken := weft("verify", "gs://bucket/run")
	require.Equal(t, 1, broken.code)
	require.Contains(t, broken.err, "gs://bucket/run/checkpoints/epoch-0001-step-00000006 is damaged in model/config.json")

	c.Requests()
	require.Contains(t, must("prune", "gs://bucket/run", "--keep-every", "2", "--dry-run"), "would delete epoch-0001-step-00000006")
	for _, r := range c.Requests() {
		require.NotEqual(t, gcstest.Delete, r.Op, "a dry run deletes nothing")
	}
	require.Contains(t, must("prune", "gs://bucket/run", "--keep-every", "2"), "deleted 1 checkpoint, ")
	for name := range c.Objects("bucket") {
		require.NotContains(t, name, "epoch-0001")
		require.NotRegexp(t, `weft-part|intent|\.lock|tmp`, name)
	}
}
