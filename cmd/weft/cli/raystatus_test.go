package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a person sees of a cluster: slices with their TPUs, what is missing and what is taken, then every node, then the jobs.
func TestRayStatusIsReadable(t *testing.T) {
	node := func(id, ip, more, resources, labels string) string {
		return fmt.Sprintf(`{"node_id":%q,"node_ip":%q,"state":"ALIVE"%s,"resources_total":{"CPU":8,%s"memory":1},"labels":{%s}}`, id, ip, more, resources, labels)
	}
	host := func(id, ip, slice, worker, topology, pod string) string {
		return node(id, ip, "", `"TPU":4,`, fmt.Sprintf(`"ray.io/tpu-slice-name":%q,"ray.io/tpu-worker-id":%q,"ray.io/tpu-topology":%q,"ray.io/tpu-pod-type":%q`, slice, worker, topology, pod))
	}
	nodes := host("1", "10.0.0.4", "b", "1", "2x4", "v6e-8") + "," + host("2", "10.0.0.3", "b", "0", "2x4", "v6e-8") + "," + host("3", "10.0.0.9", "a", "3", "4x4", "v6e-16") + "," +
		node("4", "10.0.0.2", "", "", "") + "," + node("5", "10.0.0.8", "", `"TPU":1,`, "") + "," + node("6", "10.0.0.1", `,"is_head_node":true`, "", "") +
		`,{"node_id":"7","node_ip":"10.0.0.7","state":"DEAD"}`
	listing := func(rows string) string {
		return `{"result":true,"data":{"result":{"result":[` + rows + `]}}}`
	}
	answers := map[string]string{
		"/api/version":             `{"ray_version":"2.58.0"}`,
		"/api/v0/nodes":            listing(nodes),
		"/api/v0/placement_groups": listing(`{"state":"CREATED","bundles":[{"node_id":"2","unit_resources":{"TPU":4}}]}`),
		"/api/jobs/":               `[{"submission_id":"raysubmit_1","status":"RUNNING","start_time":1700000000000,"metadata":{"weft":"finetune --model-id gs://b/m"}}]`,
	}
	head := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answers[r.URL.Path]) }))
	defer head.Close()
	code, out, errs := runMain("ray", "status", "--address", head.URL)
	require.Zero(t, code, errs)
	require.Equal(t, "Ray 2.58.0 at "+head.URL+`: 6 node(s), 1 lost

SLICE     TYPE    TOPOLOGY  HOSTS  TPU  STATE
10.0.0.8  -       -         1      1    whole, free
a         v6e-16  4x4       1      4    hosts [0 1 2] missing
b         v6e-8   2x4       2      8    whole, in use

NODE      ROLE    CPU  TPU  SLICE     HOST
10.0.0.1  head    8    0    -         -
10.0.0.2  worker  8    0    -         -
10.0.0.8  worker  8    1    10.0.0.8  0
10.0.0.9  worker  8    4    a         3
10.0.0.3  worker  8    4    b         0
10.0.0.4  worker  8    4    b         1

JOB          STATE    STARTED               WHAT
raysubmit_1  running  2023-11-14 22:13:20Z  finetune --model-id gs://b/m
`, out)
}
