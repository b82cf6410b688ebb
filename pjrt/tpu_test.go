package pjrt_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt"
	"weft/pjrt/pjrttest"
	"weft/pjrt/plugin"
)

// childEnv says to a copy of this test's process, which alone loads libtpu, what to do: libtpu does not bear other plugins beside it.
const childEnv = "WEFT_TEST_LIBTPU_CHILD"

// child makes the command that runs this test in a process of its own, with libtpu's path.
func child(t *testing.T, task, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+task, "WEFT_TEST_LIBTPU="+path)
	for name, value := range plugin.OffTPUEnv("v6e-16") {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if task == "hold" || task == "try" { // as on a TPU VM, where the lock matters
		cmd.Env = append(cmd.Env, "ALLOW_MULTIPLE_LIBTPU_LOAD=0")
	}
	return cmd
}

func TestLibtpuAheadOfTime(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		aheadOfTime(t)
		return
	}
	path := pjrttest.Path(t, "tpu")
	pjrttest.LockTPU(t)
	out, err := child(t, "ahead", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestLibtpuAheadOfTime")
}

// aheadOfTime describes a v6e 4x4 slice and compiles for it, with no chip present.
func aheadOfTime(t *testing.T) {
	p, err := pjrt.Load(os.Getenv("WEFT_TEST_LIBTPU"))
	require.NoError(t, err)
	major, minor := p.APIVersion()
	require.Equal(t, [2]int{0, 117}, [2]int{major, minor})
	require.Contains(t, p.Attributes(), "stablehlo_current_version")

	top, err := p.NewTopology("v6e:4x4", nil)
	require.NoError(t, err)
	platform, err := top.PlatformName()
	require.NoError(t, err)
	require.Equal(t, "tpu", platform)
	version, err := top.PlatformVersion()
	require.NoError(t, err)
	require.Contains(t, version, "TPU v6 lite")
	attrs, err := top.Attributes()
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0, 0}, attrs["wrap"], "a 4x4 mesh has no wrap-around")
	devices, err := top.Devices()
	require.NoError(t, err)
	require.Len(t, devices, 16)
	coords := map[string]bool{}
	for _, d := range devices {
		require.Equal(t, "TPU v6 lite", d.Kind())
		require.Positive(t, d.Attributes()["device_memory_bytes_limit"])
		coords[fmt.Sprint(d.Attributes()["coords"])] = true
	}
	require.Len(t, coords, 16, "every chip has its own place")
	serialized, err := top.Serialize()
	require.NoError(t, err)
	require.NotEmpty(t, serialized)

	compileAhead(t, top)
	require.NoError(t, top.Destroy())
	require.NoError(t, top.Destroy())
	_, err = top.Devices()
	require.ErrorContains(t, err, "the topology was destroyed")
	for _, name := range []string{"v6e:5x77", "bogus"} {
		_, err := p.NewTopology(name, nil)
		requireCode(t, pjrt.InvalidArgument, err)
		require.ErrorContains(t, err, name)
	}
	require.Zero(t, pjrt.LiveHandles()["topology"]+pjrt.LiveHandles()["executable"])
}

// compileAhead compiles a product whose contraction is split over the 16 chips, so that it needs an all-reduce.
func compileAhead(t *testing.T, top *pjrt.Topology) {
	const program = `module @dot attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=16]>
  func.func public @main(%a: tensor<256x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}]>},
      %b: tensor<512x128xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>})
      -> (tensor<256x128xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, tensor<512x128xbf16>) -> tensor<256x128xbf16>
    return %c : tensor<256x128xbf16>
  }
}`
	e, err := top.Compile([]byte(program), pjrt.CompileOptions{NumPartitions: 16, UseSPMD: true, UseShardy: true, OptimizationLevel: pjrt.EffortO0})
	require.NoError(t, err)
	partitions, err := e.NumPartitions()
	require.NoError(t, err)
	require.Equal(t, 16, partitions)
	dims, err := e.OutputDims()
	require.NoError(t, err)
	require.Equal(t, [][]int{{256, 128}}, dims)
	dtypes, err := e.OutputDTypes()
	require.NoError(t, err)
	require.Equal(t, []pjrt.DType{pjrt.BFloat16}, dtypes)
	cost, err := e.CostAnalysis()
	require.NoError(t, err)
	require.GreaterOrEqual(t, cost["flops"], float32(2*256*512/16*128), "a sixteenth of the product on each chip")
	stats, err := e.MemoryStats()
	require.NoError(t, err)
	require.GreaterOrEqual(t, stats.Argument, int64(2*(256*32+32*128)))
	require.Positive(t, stats.GeneratedCode)
	require.Positive(t, stats.Peak)
	format, code, err := e.OptimizedProgram()
	require.NoError(t, err)
	require.Equal(t, "hlo_with_config", format)
	require.Contains(t, string(code), "all-reduce")
	serialized, err := e.Serialize()
	require.NoError(t, err)
	require.NotEmpty(t, serialized)
	_, err = top.Compile([]byte("module { bad }"), pjrt.CompileOptions{})
	var pe *pjrt.Error
	require.ErrorAs(t, err, &pe)
	require.NoError(t, e.Destroy())
}

// Without a chip, a client is an error, not a crash or a long wait.
func TestLibtpuClientWithoutAChip(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		p, err := pjrt.Load(os.Getenv("WEFT_TEST_LIBTPU"))
		require.NoError(t, err)
		_, err = p.NewClient(nil)
		var pe *pjrt.Error
		require.ErrorAs(t, err, &pe)
		require.NotContains(t, err.Error(), "\n")
		fmt.Println("REFUSED:", err)
		return
	}
	if plugin.TPUChips() > 0 {
		t.Skip("SKIPPED: this machine has TPU chips; the test is about a machine without")
	}
	path := pjrttest.Path(t, "tpu")
	pjrttest.LockTPU(t)
	out, err := child(t, "client", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "REFUSED: pjrt: create client: ")
}

// A second process is refused with an error that names the lock file and its holder, and the file stays.
func TestLibtpuLockIsNamed(t *testing.T) {
	switch os.Getenv(childEnv) {
	case "hold":
		_, err := pjrt.Load(os.Getenv("WEFT_TEST_LIBTPU"))
		require.NoError(t, err)
		fmt.Println("HOLDING")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
		return
	case "try":
		_, err := pjrt.Load(os.Getenv("WEFT_TEST_LIBTPU"))
		requireCode(t, pjrt.Aborted, err)
		fmt.Println("REFUSED:", err)
		return
	}
	path := pjrttest.Path(t, "tpu")
	pjrttest.LockTPU(t)
	holder := child(t, "hold", path)
	stdin, err := holder.StdinPipe()
	require.NoError(t, err)
	stdout, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = holder.Wait()
	})
	var said strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "HOLDING" {
		said.WriteString(lines.Text() + "\n")
	}
	require.Equal(t, "HOLDING", lines.Text(), said.String())
	out, err := child(t, "try", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), fmt.Sprintf("process %d uses libtpu and holds its lock file /", holder.Process.Pid))
	require.Contains(t, string(out), "libtpu_lockfile: wait for that process or end it; weft leaves the file alone")
}
