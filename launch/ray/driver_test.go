package ray

import (
	"encoding/base64"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host that ends with 75 while the others go on leaves none of them waiting, and an end by the watchdog counts as a failure;
// what --env was given reaches the hosts. The whole driver is held on a real Ray in launch/ray/e2e.
func TestDriverFollows(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("WEFT_CI") == "" {
		t.Skip("SKIPPED: there is no python3 to run the driver with")
	}
	require.NoError(t, err)
	out, err := exec.Command(python, "-B", "testdata/follow.py", "driver.py").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "held\n")
}

// What --env is given is not on the command line, which Ray prints into the job's log.
func TestEnvIsNotLogged(t *testing.T) {
	d := &Drive{Topology: "4x4", AcceleratorType: "TPU-V6E", NumSlices: 1, Binary: "./weft", Env: map[string]string{"HF_TOKEN": "hf_secret"}, Args: []string{"finetune"}}
	job := d.Job(&Package{Name: "p"}, "id")
	require.NotContains(t, job.Entrypoint, "hf_secret")
	raw, err := base64.StdEncoding.DecodeString(job.RuntimeEnv.EnvVars["WEFT_RAY_ENV"])
	require.NoError(t, err)
	require.JSONEq(t, `{"HF_TOKEN": "hf_secret"}`, string(raw))
	require.Contains(t, d.Words(), "HF_TOKEN=hf_secret", "weft ray drive, within the cluster, hands it on")
}
