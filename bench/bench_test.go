package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
	"weft/internal/pyenv"
	"weft/pjrt/plugin"
)

func jaxBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{work: t.TempDir(), python: pyenv.Ensure(t, "jax", pyenv.ParseRequirements(jaxRequirements))}
	b.script = filepath.Join(b.work, "jax_gemma3.py")
	require.NoError(t, os.WriteFile(b.script, jaxScript, 0o644))
	return b
}

// TestJAXModelEqualsGolden proves the program that weft is compared with: it computes Gemma 3 and AdamW.
func TestJAXModelEqualsGolden(t *testing.T) {
	dir := fixture.Dir(t, "gemma3-tiny")
	b := jaxBench(t)
	out, err := b.output(t.Context(), b.jaxCommand(t.Context(), "jax-cpu", "--check-fixture", dir))
	require.NoError(t, err)
	var deviations map[string]float64
	require.NoError(t, json.Unmarshal(out, &deviations))
	require.Len(t, deviations, 9)
	t.Logf("deviations from the golden values: %v", deviations)
}

// TestJAXModelCheckFails shows that the check above can fail: a golden loss that is off by twice the tolerance is found.
func TestJAXModelCheckFails(t *testing.T) {
	source := fixture.Dir(t, "gemma3-tiny")
	b := jaxBench(t)
	dir := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors", "golden.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), raw, 0o644))
	}
	var golden map[string]any
	fixture.JSON(t, filepath.Join(source, "golden.json"), &golden)
	loss := golden["loss"].(map[string]any)
	loss["value"] = loss["value"].(float64) + 1e-4
	raw, err := json.Marshal(golden)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "golden.json"), raw, 0o644))
	_, err = b.output(t.Context(), b.jaxCommand(t.Context(), "jax-cpu", "--check-fixture", dir))
	require.ErrorContains(t, err, "config.json scan: loss: deviates by")
}

// TestBenchComparesAllPrograms runs the whole benchmark on a tiny model; it asserts what is computed, never a time.
func TestBenchComparesAllPrograms(t *testing.T) {
	config := filepath.Join(fixture.Dir(t, "gemma3-tiny"), "config.json")
	jaxBench(t) // skips where there is no Python
	if _, err := plugin.Resolve(t.Context(), "cpu", "", os.Stderr); err != nil {
		if os.Getenv("WEFT_CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: no CPU plugin: %v", err)
	}
	o := options{Config: config, Batch: 2, Seq: 24, DTypes: []string{"float32"}, Layers: "scan", Steps: 1, Warmup: 2, Repeat: 1,
		Programs: []string{"weft", "jax-plugin", "jax-cpu"}, Seed: 7, JSON: filepath.Join(t.TempDir(), "runs.json")}
	var table bytes.Buffer
	require.NoError(t, run(t.Context(), &table, o))
	var runs []figures
	fixture.JSON(t, o.JSON, &runs)
	require.Len(t, runs, 3)
	for _, f := range runs {
		require.Less(t, f.Loss[2], f.Loss[0], "%s %s: the steps train", f.Contender, f.DType)
		require.Greater(t, f.PeakRSSBytes, int64(1<<20))
	}
	for _, title := range []string{"| float32 | weft |", "on weft's plugin |", "on jaxlib's CPU |"} {
		require.Contains(t, table.String(), title)
	}
}

// twoPrograms are figures of two repetitions: weft takes 2 s then 3 s, JAX 1 s then 2 s.
func twoPrograms() []figures {
	temp := int64(1 << 30)
	made := func(program string, repeat int, step float64) figures {
		return figures{Contender: program, Repeat: repeat, Version: "1.2", DType: "float32", NumParameters: 2_500_000, CompileS: 4 + float64(repeat),
			StepS: []float64{step, step + 10, step - 1}, Loss: []float64{3, 2}, TempBytes: &temp, PeakRSSBytes: 3 << 29}
	}
	return []figures{made("weft", 0, 2), made("jax-cpu", 0, 1), made("jax-cpu", 1, 2), made("weft", 1, 3)}
}

func TestTable(t *testing.T) {
	o := options{Batch: 4, Seq: 128, DTypes: []string{"float32"}, Layers: "scan", Steps: 3, Warmup: 2, Repeat: 2, Programs: []string{"weft", "jax-cpu"}}
	var b strings.Builder
	require.NoError(t, printTable(&b, o, "Machine, 2 cores", twoPrograms()))
	_, rows, ok := strings.Cut(b.String(), "|---|---|---|---|---|---|---|---|\n")
	require.True(t, ok)
	require.Equal(t, ""+
		"| float32 | weft | 2.500 (2.000–3.000) | 204.8 | 1.00 (1.00–1.00) | 4.5 | 1.00 | 1.50 |\n"+
		"| float32 | JAX 1.2 on jaxlib's CPU | 1.500 (1.000–2.000) | 341.3 | 1.75 (1.50–2.00) | 4.5 | 1.00 | 1.50 |\n", rows)
	require.Contains(t, b.String(), "Training step of 2.5 M parameters, 4 × 128 tokens, AdamW, one device, layers scanned. Machine, 2 cores.")
}

func TestCheckLosses(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(f *figures)
		want string
	}{
		{"equal", func(*figures) {}, ""},
		{"within the tolerance", func(f *figures) { f.Loss[1] += 9e-5 }, ""},
		{"beyond it at a later step", func(f *figures) { f.Loss[1] += 1.1e-4 }, "float32, step 1: loss 2.000110 by jax-cpu, 2.000000 by weft: not the same computation"},
		{"not a number", func(f *figures) { f.Loss[0] = math.NaN() }, "float32, step 0: loss NaN by jax-cpu"},
		{"another model", func(f *figures) { f.NumParameters-- }, "jax-cpu has 2499999 parameters, weft 2500000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runs := twoPrograms()
			tc.edit(&runs[2])
			err := checkLosses(runs)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestCheckFigures(t *testing.T) {
	b := &bench{options: options{Layers: "scan", Batch: 4, Seq: 128, Steps: 1, Warmup: 1}}
	good := figures{DType: "float32", Layers: "scan", Batch: 4, Seq: 128, Devices: 1, StepS: []float64{1}, Loss: []float64{1, 1}}
	require.NoError(t, b.checkFigures(good, "float32"))
	for want, edit := range map[string]func(f *figures){
		"it ran bfloat16 with scan layers": func(f *figures) { f.DType = "bfloat16" },
		"it ran a batch of 2 × 128":        func(f *figures) { f.Batch = 2 },
		"it ran on 4 devices":              func(f *figures) { f.Devices = 4 },
		"it gave 1 times and 1 losses":     func(f *figures) { f.Loss = f.Loss[:1] },
	} {
		bad := good
		edit(&bad)
		require.ErrorContains(t, b.checkFigures(bad, "float32"), want)
	}
}
