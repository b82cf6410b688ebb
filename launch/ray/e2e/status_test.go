package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/launch/ray"
)

// Status shows slices and jobs as a person wants to see them, and the same as JSON.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	r := start(t, submit("--topology", "2x2", "--submission-id", "shown", "--binary", stub, "--", "runs", dir)...)
	hostPIDs(t, r, dir, 1)
	var status outcome
	eventually(t, r, "what an earlier test took is given back", func() bool {
		status = weft(t, "ray", "status", "--address", shared.dashboard)
		require.Zero(t, status.code, status)
		return strings.Count(status.out, ", free") == 2
	})
	require.Regexp(t, `^Ray 2\.58\.0 at http://127\.0\.0\.1:\d+: 7 node\(s\)`, status.out)
	require.Regexp(t, `(?m)^big +v6e-16 +4x4 +4 +16 +whole, free$`, status.out)
	require.Regexp(t, `(?m)^(one|two) +v6e-4 +2x2 +1 +4 +whole, in use$`, status.out)
	require.Regexp(t, `(?m)^(one|two) +v6e-4 +2x2 +1 +4 +whole, free$`, status.out)
	require.Regexp(t, `(?m)^shown +running +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +runs /`, status.out)

	status = weft(t, "ray", "status", "--address", shared.dashboard, "--json")
	require.Zero(t, status.code, status)
	var cluster ray.Cluster
	require.NoError(t, json.Unmarshal([]byte(status.out), &cluster))
	require.Len(t, cluster.Nodes, 7)
	require.Len(t, cluster.Slices, 3)
	require.Equal(t, "big", cluster.Slices[0].Name)
	require.Len(t, cluster.Slices[0].Hosts, 4)
	require.NotEqual(t, cluster.Slices[1].InUse, cluster.Slices[2].InUse)

	stop := weft(t, "ray", "stop", "--address", shared.dashboard, "shown")
	require.Zero(t, stop.code, stop)
	require.Equal(t, 75, r.wait(t).code)
	for _, command := range []string{"stop", "logs"} {
		o := weft(t, "ray", command, "--address", shared.dashboard, "no-such")
		require.Equal(t, 1, o.code, o)
		require.Contains(t, o.err, "has no job no-such: weft ray status lists those it has")
	}
}
