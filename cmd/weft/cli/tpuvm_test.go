package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeGcloud puts a gcloud first on the PATH that records its arguments, kept apart by bytes that none of them has, answers the words in
// answers (one a call, empty for none), and ends with the codes (one a call, 0 beyond them).
func fakeGcloud(t *testing.T, codes []int, answers []string) (calls func() [][]string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	for i, c := range codes {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("code%d", i)), []byte(fmt.Sprint(c)), 0o644))
	}
	for i, a := range answers {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("answer%d", i)), []byte(a+"\n"), 0o644))
	}

	script := `#!/bin/sh
n=$(ls "` + dir + `" | grep -c ^call)
: > "` + dir + `/call$n"
for a; do printf '%s\001' "$a"; done >> "` + log + `"
printf '\002' >> "` + log + `"
cat "` + dir + `/answer$n" 2>/dev/null
exit $(cat "` + dir + `/code$n" 2>/dev/null || echo 0)
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gcloud"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() [][]string {
		raw, err := os.ReadFile(log)
		if os.IsNotExist(err) {
			return nil
		}
		require.NoError(t, err)
		var out [][]string
		for _, call := range strings.Split(strings.TrimSuffix(string(raw), "\x02"), "\x02") {
			out = append(out, strings.Split(strings.TrimSuffix(call, "\x01"), "\x01"))
		}
		return out
	}
}

var tpuvmLines = []struct {
	name string
	args []string
	want [][]string
}{
	{
		"create", []string{"create", "s", "--zone", "europe-west4-a", "--topology", "4x4", "--accelerator-type", "TPU-V6E"},
		[][]string{{"compute", "tpus", "tpu-vm", "create", "s", "--zone=europe-west4-a", "--accelerator-type=v6e-16", "--version=v2-alpha-tpuv6e"}},
	},
	{
		"create with all", []string{"create", "s", "--zone", "us-east5-a", "--project", "p", "--topology", "2x2x2", "--accelerator-type", "TPU-V5P", "--spot", "--service-account", "a@b.c", "--runtime-version", "r"},
		[][]string{{"compute", "tpus", "tpu-vm", "create", "s", "--zone=us-east5-a", "--project=p", "--accelerator-type=v5p-16", "--version=r", "--spot", "--service-account=a@b.c"}},
	},
	{
		"create cubes", []string{"create", "s", "--zone", "us-east5-a", "--topology", "4x4x8", "--accelerator-type", "TPU-V5P"},
		[][]string{{"compute", "tpus", "tpu-vm", "create", "s", "--zone=us-east5-a", "--type=v5p", "--topology=4x4x8", "--version=v2-alpha-tpuv5"}},
	},
	{
		"create v5e queued", []string{"create", "s", "--zone", "us-west4-a", "--queued", "--reserved", "--topology", "2x4", "--accelerator-type", "TPU-V5E"},
		[][]string{
			{"compute", "tpus", "queued-resources", "create", "s", "--zone=us-west4-a", "--node-id=s", "--accelerator-type=v5litepod-8", "--runtime-version=v2-alpha-tpuv5-lite", "--reserved"},
			{"compute", "tpus", "queued-resources", "describe", "s", "--format=value(state.state)", "--zone=us-west4-a"},
		},
	},
	{
		"create two", []string{"create", "s", "--zone", "us-east1-d", "--num-slices", "2", "--topology", "4x4", "--accelerator-type", "TPU-V6E"},
		[][]string{
			{"compute", "tpus", "queued-resources", "create", "s", "--zone=us-east1-d", "--node-count=2", "--node-prefix=s", "--accelerator-type=v6e-16", "--runtime-version=v2-alpha-tpuv6e"},
			{"compute", "tpus", "queued-resources", "describe", "s", "--format=value(state.state)", "--zone=us-east1-d"},
		},
	},
	{
		"run", []string{"run", "s", "--zone", "us-east1-d", "--env", "HF_TOKEN=a b", "--", "finetune", "--template", "It's {instruction}", "--storage-path", "gs://b/r", ""},
		[][]string{{"compute", "tpus", "tpu-vm", "ssh", "s", "--worker=all", "--batch-size=all", `--command=env 'HF_TOKEN=a b' ./weft finetune --template 'It'\''s {instruction}' --storage-path gs://b/r ''`, "--zone=us-east1-d"}},
	},
	{
		"run on two", []string{"run", "s", "--zone", "us-east1-d", "--num-slices", "2", "--", "collectives"},
		[][]string{{"compute", "tpus", "queued-resources", "ssh", "s", "--worker=all", "--batch-size=all", "--node=all", "--command=./weft collectives", "--zone=us-east1-d"}},
	},
	{
		"stop", []string{"stop", "s", "--zone", "us-east1-d"},
		[][]string{{"compute", "tpus", "tpu-vm", "ssh", "s", "--worker=all", "--batch-size=all", "--command=pkill -TERM -x weft; while pgrep -x weft >/dev/null; do sleep 1; done", "--zone=us-east1-d"}},
	},
	{
		"delete", []string{"delete", "s", "--zone", "us-east1-d"},
		[][]string{{"compute", "tpus", "tpu-vm", "delete", "s", "--quiet", "--zone=us-east1-d"}},
	},
	{
		"delete queued", []string{"delete", "s", "--zone", "us-east1-d", "--queued"},
		[][]string{{"compute", "tpus", "queued-resources", "delete", "s", "--quiet", "--force", "--zone=us-east1-d"}},
	},
}

// withRun puts --run in front of what weft is to do.
func withRun(args []string) []string {
	out := append([]string{"tpuvm"}, args...)
	for i, a := range out {
		if a == "--" {
			return append(append(append([]string{}, out[:i]...), "--run"), out[i:]...)
		}
	}
	return append(out, "--run")
}

// What is run is what is printed: a shell that reads the printed lines calls gcloud with the same arguments.
func TestTPUVMLines(t *testing.T) {
	for _, c := range tpuvmLines {
		t.Run(c.name, func(t *testing.T) {
			answers := []string{"", "ACTIVE"}
			calls := fakeGcloud(t, nil, answers)
			code, out, errs := runMain(append([]string{"tpuvm"}, c.args...)...)
			require.Zero(t, code, errs)
			require.Empty(t, errs)
			require.Nil(t, calls(), "printing runs nothing")
			shell := exec.Command("/bin/sh", "-c", out)
			said, err := shell.CombinedOutput()
			require.NoError(t, err, string(said))
			require.Equal(t, c.want, calls())

			calls = fakeGcloud(t, nil, answers)
			code, _, errs = runMain(withRun(c.args)...)
			require.Zero(t, code, errs)
			require.Equal(t, c.want, calls())
			require.Contains(t, errs, "+ ")
		})
	}
}

func TestTPUVMCopy(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "my weft")
	require.NoError(t, os.WriteFile(binary, []byte("x"), 0o755))
	calls := fakeGcloud(t, nil, nil)
	code, _, errs := runMain("tpuvm", "copy", "s", "--zone", "us-east1-d", "--binary", binary, "--run")
	require.Zero(t, code, errs)
	require.Equal(t, [][]string{
		{"compute", "tpus", "tpu-vm", "scp", binary, "s:weft.new", "--worker=all", "--batch-size=all", "--zone=us-east1-d"},
		{"compute", "tpus", "tpu-vm", "ssh", "s", "--worker=all", "--batch-size=all",
			"--command=chmod 755 weft.new && mv -f weft.new weft && ./weft plugin install tpu && ./weft version", "--zone=us-east1-d"},
	}, calls())

	code, out, errs := runMain("tpuvm", "copy", "s", "--zone", "us-east1-d")
	require.Zero(t, code, errs)
	self, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, out, self)

	code, _, errs = runMain("tpuvm", "copy", "s", "--zone", "us-east1-d", "--binary", filepath.Dir(binary))
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--binary")
}

// A line that fails ends the command; the error says that the slice is paid for and how to end that.
func TestTPUVMFailures(t *testing.T) {
	const left = "may exist, and is paid for until it is deleted: weft tpuvm delete s --zone us-east1-d"
	binary := filepath.Join(t.TempDir(), "weft")
	require.NoError(t, os.WriteFile(binary, nil, 0o755))
	create := []string{"create", "s", "--zone", "us-east1-d", "--topology", "4x4", "--accelerator-type", "TPU-V6E"}
	run := []string{"run", "s", "--zone", "us-east1-d", "--", "finetune"}
	for name, c := range map[string]struct {
		args    []string
		codes   []int
		answers []string
		code    int
		calls   int
		want    string
	}{
		"no capacity":      {create, []int{1}, nil, 1, 1, "make the slice: gcloud ended with exit code 1"},
		"queue fails":      {append(create, "--queued"), nil, []string{"", "FAILED"}, 1, 2, "wait until it is there: it is FAILED"},
		"look fails":       {append(create, "--queued"), []int{0, 3}, nil, 1, 2, "exit code 3"},
		"copy fails":       {[]string{"copy", "s", "--zone", "us-east1-d", "--binary", binary}, []int{1}, nil, 1, 1, "copy weft to every host"},
		"run fails":        {run, []int{1}, nil, 1, 1, "run weft on every host: gcloud ended with exit code 1"},
		"ssh is lost":      {run, []int{255}, nil, 1, 1, "exit code 255"},
		"stopped":          {run, []int{75}, nil, 75, 1, "exit code 75"},
		"wrong usage":      {run, []int{2}, nil, 2, 1, "exit code 2"},
		"delete fails":     {[]string{"delete", "s", "--zone", "us-east1-d"}, []int{1}, nil, 1, 1, "delete the slice"},
		"delete two fails": {[]string{"delete", "s", "--zone", "us-east1-d", "--num-slices", "2"}, []int{1}, nil, 1, 1, left + " --num-slices 2 --run"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fakeGcloud(t, c.codes, c.answers)
			code, _, errs := runMain(withRun(c.args)...)
			require.Equal(t, c.code, code, errs)
			require.Len(t, calls(), c.calls)
			require.Contains(t, errs, c.want)
			require.Contains(t, errs, left)
		})
	}
	t.Run("weft goes on", func(t *testing.T) {
		fakeGcloud(t, []int{255}, nil)
		_, _, errs := runMain(withRun(run)...)
		require.Contains(t, errs, "weft tpuvm stop s --zone us-east1-d --run")
		fakeGcloud(t, []int{75}, nil)
		_, _, errs = runMain(withRun(run)...)
		require.NotContains(t, errs, "tpuvm stop")
	})
	t.Run("a token is not logged", func(t *testing.T) {
		calls := fakeGcloud(t, nil, nil)
		code, out, errs := runMain(withRun([]string{"run", "s", "--zone", "us-east1-d", "--env", "HF_TOKEN=hf_secret", "--env", "A=b", "--", "finetune"})...)
		require.Zero(t, code, errs)
		require.NotContains(t, out+errs, "hf_secret")
		require.Contains(t, errs, "A=b")
		require.Contains(t, strings.Join(calls()[0], " "), "HF_TOKEN=hf_secret")
	})
	t.Run("no gcloud", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		code, _, errs := runMain(withRun(create)...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "gcloud is not on the PATH")
		require.NotContains(t, errs, "may exist")
	})
}

func TestTPUVMRefused(t *testing.T) {
	calls := fakeGcloud(t, nil, nil)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"name":      {[]string{"delete", "My_slice", "--zone", "us-east1-d"}, `name "My_slice"`},
		"zone":      {[]string{"delete", "s", "--zone", "us-east1"}, `--zone "us-east1"`},
		"no zone":   {[]string{"delete", "s"}, "--zone"},
		"slices":    {[]string{"delete", "s", "--zone", "us-east1-d", "--num-slices", "0"}, "--num-slices is 0"},
		"tpu7x":     {[]string{"create", "s", "--zone", "us-east1-d", "--topology", "2x2x2", "--accelerator-type", "TPU-V7X"}, "weft k8s render"},
		"both":      {[]string{"create", "s", "--zone", "us-east1-d", "--topology", "4x4", "--accelerator-type", "TPU-V6E", "--spot", "--reserved"}, "leave out one"},
		"topology":  {[]string{"create", "s", "--zone", "us-east1-d", "--topology", "5x5", "--accelerator-type", "TPU-V6E"}, "5x5"},
		"no args":   {[]string{"run", "s", "--zone", "us-east1-d"}, "-- finetune"},
		"wrong env": {[]string{"run", "s", "--zone", "us-east1-d", "--env", "x", "--", "finetune"}, "--env x"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := runMain(withRun(c.args)...)
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, c.want)
			require.Nil(t, calls())
		})
	}
}
