package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"weft/internal/golden"
	"weft/models/gemma"
	"weft/pjrt/pjrttest"
)

// planFields are the names that the JSON form of a plan promises.
const planFields = `fits compile_s hbm.limit_bytes hbm.peak_bytes hbm.parameters_bytes hbm.moments_bytes hbm.gathered_bytes
	hbm.activations_bytes hbm.temporaries_bytes hbm.code_bytes flops.useful flops.executed hbm_bytes wire_bytes
	collectives.0.kind collectives.0.dtype collectives.0.count collectives.0.bytes collectives.0.async
	roofline.compute_s roofline.hbm_s roofline.ici_s roofline.bound
	estimate.step_s_low estimate.step_s_high estimate.tokens_per_s_low estimate.tokens_per_s_high estimate.mfu_low estimate.mfu_high
	assumptions.0`

// shortE2B is a folder with the config.json of Gemma 4 E2B at its real widths with eight layers: two of each type that own
// their keys and values, and two of each that share them.
func shortE2B(t testing.TB) string {
	t.Helper()
	raw, ok := gemma.Preset("gemma-4-E2B")
	require.True(t, ok)
	var config map[string]any
	require.NoError(t, json.Unmarshal(raw, &config))
	config["num_hidden_layers"], config["num_kv_shared_layers"] = 8, 4
	config["layer_types"] = strings.Fields(strings.Repeat("sliding_attention full_attention ", 4))
	raw, err := json.Marshal(config)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o644))
	return dir
}

// planned runs weft plan, one at a time of the tests on this machine, apart from plans that its user runs.
func planned(t testing.TB, args ...string) outcome {
	t.Helper()
	path := pjrttest.Path(t, "tpu")
	pjrttest.LockTPU(t)
	return planIn(t, t.TempDir(), append(args, "--plugin", path)...)
}

// planIn runs weft plan with a cache folder of its own.
func planIn(t testing.TB, cacheDir string, args ...string) outcome {
	t.Helper()
	cmd := command(t, append([]string{"plan"}, args...)...)
	cmd.Env = append(cmd.Env, "WEFT_CACHE="+cacheDir)
	return finish(t, cmd)
}

// The training step of a shortened E2B compiles for both slices, and for one with weights that are gathered once, with the
// collectives and the memory that it had: a change of either is seen in the diff of testdata/plan_*.json.
func TestPlanGolden(t *testing.T) {
	for _, c := range []struct {
		topology string
		gathers  int
		golden   string
	}{
		{"v6e:4x4", 2, "plan_v6e_4x4.json"},
		{"tpu7x:2x2x2", 2, "plan_tpu7x_2x2x2.json"},
		{"v6e:4x4", 1, "plan_v6e_4x4_one_gather.json"},
	} {
		t.Run(fmt.Sprint(c.topology, " gathers ", c.gathers), func(t *testing.T) {
			dir := shortE2B(t)
			o := planned(t, "--model-id", dir, "--topology", c.topology, "--gathers", fmt.Sprint(c.gathers), "--effort", "O0", "--json")
			require.Zero(t, o.code, o.err)
			require.Regexp(t, `(?m)^weft: compiling for `+c.topology+`, 16 devices \(O0 effort\)`, o.err)
			var report map[string]any
			require.NoError(t, json.Unmarshal([]byte(o.out), &report))
			for _, field := range strings.Fields(planFields) {
				require.NotNil(t, lookUp(report, strings.Split(field, ".")), field)
			}
			require.Equal(t, true, report["fits"])
			require.Positive(t, report["compile_s"])
			requireArithmetic(t, o.out, 1.35)
			if c.topology == "v6e:4x4" {
				// On TPU7x the compiler makes loops of products and permutes out of a part of the gathers.
				requireWire(t, o.out, c.gathers)
			}
			text := regexp.MustCompile(`"compile_s": [0-9.e+-]+`).ReplaceAllString(o.out, `"compile_s": 0`)
			golden.Equal(t, c.golden, []byte(strings.ReplaceAll(text, dir, "DIR")))
		})
	}
}

// Without rematerialisation a step does hardly more arithmetic than the model needs.
func TestPlanWithoutRemat(t *testing.T) {
	o := planned(t, "--model-id", shortE2B(t), "--topology", "v6e:4x4", "--effort", "O0", "--remat", "none", "--json")
	require.Zero(t, o.code, o.err)
	requireArithmetic(t, o.out, 1.05)
	requireWire(t, o.out, 2)
}

// planJSON is the part of a plan that the tests of its figures read.
type planJSON struct {
	FLOPs struct{ Useful, Executed float64 }
	HBM   struct {
		Parameters float64 `json:"parameters_bytes"`
	}
	Collectives []struct {
		Kind  string
		Bytes float64
	}
}

func parsePlan(t *testing.T, out string) planJSON {
	t.Helper()
	var p planJSON
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	return p
}

// requireArithmetic holds a plan to at most limit times the useful products.
func requireArithmetic(t *testing.T, out string, limit float64) {
	t.Helper()
	p := parsePlan(t, out)
	require.Greater(t, p.FLOPs.Executed, p.FLOPs.Useful)
	require.Less(t, p.FLOPs.Executed, limit*p.FLOPs.Useful)
}

// requireWire holds the weights on the wire of a plan of the shortened E2B on 16 devices to within 10% of the least that
// FSDP needs: one or two gathers in bfloat16 and one reduce-scatter in float32 of what is trained but the embedding, whose
// words stay where they are. No all-reduce is larger than the embedding lookup's.
func requireWire(t *testing.T, out string, gathers int) {
	t.Helper()
	p := parsePlan(t, out)
	const devices, embedding, hidden = 16, 262144 * 1536, 64 * 512 * 1536
	least := (p.HBM.Parameters*devices/4 - embedding) * float64(2*gathers+4) * (devices - 1) / devices
	// The hidden states before the head, bfloat16, and their gradient, float32, travel too.
	weights := -float64(hidden * (2 + 4) * (devices - 1) / devices)
	for _, c := range p.Collectives {
		switch c.Kind {
		case "all-gather", "reduce-scatter":
			weights += c.Bytes
		case "all-reduce":
			require.LessOrEqual(t, c.Bytes, 2.0*2*hidden, "an all-reduce of %g bytes", c.Bytes)
		}
	}
	require.Greater(t, weights, 0.9*least)
	require.Less(t, weights, 1.1*least)
}

// lookUp follows a path of names and 0, the first element, through JSON.
func lookUp(v any, path []string) any {
	for _, name := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			if len(x) == 0 {
				return nil
			}
			v = x[0]
		default:
			return nil
		}
	}
	return v
}

// A model that does not fit is tried with smaller batches and larger slices, which are compiled; several settings stand
// side by side; what is kept lies in the compile cache.
func TestPlanTriesComparesAndKeeps(t *testing.T) {
	dir := tinyConfig(t)
	cacheDir := t.TempDir()
	o := planned(t, "--model-id", dir, "--topology", "v5e:2x2", "--max-seq-len", "64", "--compare", "batch=2,4", "--compare", "remat=none,full", "--save", "--compile-cache", cacheDir)
	require.Zero(t, o.code, o.err)
	require.Regexp(t, `as given +batch=2 +remat=none\n`, o.out)
	require.Regexp(t, `fits +yes +yes +yes\n`, o.out)
	entries, err := filepath.Glob(filepath.Join(cacheDir, "*.weftexe"))
	require.NoError(t, err)
	require.Len(t, entries, 3)
	for _, path := range entries {
		require.Contains(t, o.out, path)
	}

	o = planned(t, "--model-id", dir, "--topology", "v5e:1x1", "--max-seq-len", "256", "--batch-size-per-device", "8192", "--effort", "O0")
	require.Zero(t, o.code, o.err)
	require.Contains(t, o.out, "It does not fit: ")
	require.Contains(t, o.out, "--batch-size-per-device 4096: ")
	require.Regexp(t, `The smallest change tried that fits: --batch-size-per-device \d+\n`, o.out)
}

// tinyConfig is a folder with the config.json of a very small Gemma 3.
func tinyConfig(t testing.TB) string {
	t.Helper()
	raw, ok := gemma.Preset("gemma-3-270m")
	require.True(t, ok)
	var config map[string]any
	require.NoError(t, json.Unmarshal(raw, &config))
	for name, value := range map[string]any{"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "sliding_window_pattern": 2, "vocab_size": 1024, "head_dim": 128} {
		config[name] = value
	}
	raw, err := json.Marshal(config)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o644))
	return dir
}

// Wrong input of a plan is one line, with the way out, before anything is compiled.
func TestPlanRefuses(t *testing.T) {
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "config.json"), []byte(`{"model_type":"llama"}`), 0o644))
	e2b := []string{"plan", "--model-id", "gemma-4-E2B"}
	v6e := append(e2b, "--topology", "v6e:4x4")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"no model", []string{"plan", "--topology", "v6e:4x4"}, []string{"--model-id is missing", "gemma-4-E2B"}},
		{"no topology", e2b, []string{"--topology is missing", "v6e: 1x1", "tpu7x: 2x2x1"}},
		{"unknown chip", append(e2b, "--topology", "v9x:4x4"), []string{`TPU type "v9x" is not known`, "v6e: 1x1", "16x16"}},
		{"unknown shape", append(e2b, "--topology", "v6e:3x5"), []string{"there is no such slice", "4x4"}},
		{"a shape without a chip", append(e2b, "--topology", "4x4"), []string{"give the chip and the chips along each side"}},
		{"unknown accelerator", append(e2b, "--topology", "4x4", "--accelerator-type", "GPU-H100"), []string{"GPU-H100", "TPU-V6E"}},
		{"two chips", append(v6e, "--accelerator-type", "TPU-V5P"), []string{"--accelerator-type TPU-V5P contradicts v6e"}},
		{"other number of devices", append(v6e, "--num-workers", "8"), []string{"--num-workers is 8, v6e:4x4 has 16 devices"}},
		{"no slice", append(v6e, "--num-slices", "0"), []string{"--num-slices", "from 1 to 1024"}},
		{"no batch", append(v6e, "--batch-size-per-device", "0"), []string{"--batch-size-per-device is 0"}},
		{"too long", append(v6e, "--max-seq-len", "200000"), []string{"--max-seq-len is 200000", "at most 131072"}},
		{"unknown preset", []string{"plan", "--model-id", "gemma-9", "--topology", "v6e:4x4"}, []string{"no preset of that name", "gemma-4-E2B"}},
		{"mixture of experts", []string{"plan", "--model-id", "gemma-4-26B-A4B", "--topology", "v6e:4x4"}, []string{"mixture of experts"}},
		{"bad config", []string{"plan", "--model-id", broken, "--topology", "v6e:4x4"}, []string{`"llama"`, "not supported"}},
		{"no such tensor", append(v6e, "--freeze", "layers.99.*"), []string{"layers.99.*", "matches no tensor"}},
		{"unknown comparison", append(v6e, "--compare", "speed=1"), []string{"speed is not known", "batch, seq"}},
		{"three gathers", append(v6e, "--gathers", "3"), []string{"--gathers must be one of", "but got"}},
		{"three gathers to compare", append(v6e, "--compare", "gathers=1,3"), []string{`value "3"`, "give one of 1, 2"}},
		{"bad value to compare", append(v6e, "--compare", "remat=none,half"), []string{`--compare remat=none,half: value "half": give one of none, full`}},
		{"bad batch to compare", append(v6e, "--compare", "batch=4,x"), []string{`--compare batch=4,x: value "x": give a whole number`}},
		{"no batch to compare", append(v6e, "--compare", "batch="), []string{`value "": give a whole number`}},
		{"bad switch to compare", append(v6e, "--compare", "scan=maybe"), []string{`value "maybe": give true or false`}},
		{"bad number to compare", append(v6e, "--compare", "max-grad-norm=x"), []string{`value "x": give a number`}},
		{"a slice to compare that is not", append(v6e, "--compare", "topology=v6e:9x9"), []string{"--compare topology=v6e:9x9: --topology: ", "4x4"}},
		{"keep at another effort", append(v6e, "--save", "--effort", "O0"), []string{"--save", "leave out --effort O0"}},
		{"keep nowhere", append(v6e, "--save", "--compile-cache", "off"), []string{"--save contradicts --compile-cache off"}},
		{"no such plugin", append(v6e, "--plugin", filepath.Join(broken, "none.so")), []string{"there is no file", "give the path of a PJRT plugin"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := refused(t, c.args...)
			for _, want := range c.want {
				require.Contains(t, text, want)
			}
		})
	}
}

// Where libtpu is not there and cannot be had, one line says how to get it.
func TestPlanWithoutLibtpu(t *testing.T) {
	cmd := command(t, "plan", "--model-id", "gemma-4-E2B", "--topology", "v6e:4x4")
	cmd.Env = append(cmd.Env, "WEFT_CACHE="+t.TempDir(), "WEFT_PYTHON=/nonexistent/python3", "WEFT_PJRT_PLUGIN=", "TPU_LIBRARY_PATH=", "PATH=/nonexistent")
	o := finish(t, cmd)
	require.Equal(t, 2, o.code, o.err)
	last := o.err[strings.LastIndexByte(strings.TrimRight(o.err, "\n"), '\n')+1:]
	require.Regexp(t, `^weft: .*libtpu`, last)
	require.Contains(t, last, "--plugin")
}

// A libtpu of another time is named with its version.
func TestPlanWithOldLibtpu(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("SKIPPED: this test needs a C compiler to make an old plugin: %v", err)
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "old.c"), filepath.Join(dir, "libtpu.so")
	// PJRT_Api: its size, extensions, then PJRT_Api_Version with its size, extensions, major and minor.
	const old = "struct {unsigned long size; void *ext; struct {unsigned long size; void *ext; int major, minor;} v; void *f[64];} api = {sizeof api, 0, {24, 0, 0, 30}};\n" +
		"void *GetPjrtApi(void) { return &api; }\n"
	require.NoError(t, os.WriteFile(source, []byte(old), 0o644))
	out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	o := planIn(t, dir, "--model-id", "gemma-4-E2B", "--topology", "v6e:4x4", "--plugin", library)
	require.Equal(t, 2, o.code, o.err)
	require.Regexp(t, `^weft: .*libtpu\.so has API 0\.30.*install another version.*\n$`, o.err)
}

// A lock that another process holds is named, with the process, and left alone.
func TestPlanNamesWhoHoldsTheLock(t *testing.T) {
	path := pjrttest.Path(t, "tpu")
	dir := t.TempDir()
	lock := filepath.Join(dir, "plan.lock")
	held := flock.New(lock, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	ok, err := held.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, os.WriteFile(lock, []byte("4711\n"), 0o644))
	o := planIn(t, dir, "--model-id", "gemma-4-E2B", "--topology", "v6e:4x4", "--plugin", path)
	require.Equal(t, 2, o.code, o.err)
	require.Regexp(t, `^weft: process 4711 compiles with libtpu \(it holds .*plan\.lock\): wait until it ends, or end it\n$`, o.err)
	raw, err := os.ReadFile(lock)
	require.NoError(t, err)
	require.Equal(t, "4711\n", string(raw))
	require.NoError(t, held.Close())
}
