package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/build"
	"weft/internal/golden"
	"weft/pjrt/pjrttest"
)

// The guide's check, by the binary on 4 and on 16 virtual devices: its lines, its sum, and the bandwidth of each
// collective.
func TestCollectivesGolden(t *testing.T) {
	for _, devices := range []string{"4", "16"} {
		t.Run(devices, func(t *testing.T) {
			out := must(t, "collectives", "--platform", "cpu", "--devices", devices, "--sizes", "64KiB,100000", "--warmup", "1", "--repeats", "2", "--compile-cache", cache)
			out = regexp.MustCompile(`ip=[0-9a-f.:]+`).ReplaceAllString(out, "ip=IP")
			out = regexp.MustCompile(`max_abs_diff=0\.0000\d\d`).ReplaceAllString(out, "max_abs_diff=0.0000XX")
			// Times and what follows from them, with the spaces that align them.
			out = regexp.MustCompile(`(?m)^([a-z-]+ +[\d,]+) +[\d.a-zµ]+ +[\d.]+ +[\d.]+ `).ReplaceAllString(out, "$1 TIME ALG BUS ")
			golden.Equal(t, "collectives_"+devices+".golden", []byte(out))
		})
	}
}

type collectivesJSON struct {
	Devices   int
	Expected  float64 `json:"expected_sum"`
	Confirmed int     `json:"confirmed_ranks"`
	Ranks     []struct {
		Rank      int
		Worker    int       `json:"worker_id"`
		Local     int       `json:"local_rank"`
		Reduced   []float64 `json:"all_reduce_sum"`
		Diff      float64   `json:"max_abs_diff"`
		DiffFloat float64   `json:"max_abs_diff_float32"`
	}
	Bandwidth []struct {
		Collective string
		Bytes      int
		Time       float64 `json:"time_s"`
		Algorithm  float64 `json:"algorithm_bandwidth"`
		Bus        float64 `json:"bus_bandwidth"`
		Checked    bool
	}
}

// --json has the same, with bandwidths that follow from bytes, time and devices. A topology on a CPU is so many virtual
// devices, here a number that the block's rows do not divide by.
func TestCollectivesJSON(t *testing.T) {
	out := must(t, "collectives", "--platform", "cpu", "--topology", "1x3", "--sizes", "1MiB", "--repeats", "1", "--seed", "7", "--json", "--compile-cache", cache)
	var r collectivesJSON
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 3, r.Devices)
	require.InDelta(t, 6, r.Expected, 0)
	require.Equal(t, 3, r.Confirmed)
	require.Len(t, r.Ranks, 3)
	for i, rank := range r.Ranks {
		require.Equal(t, []int{i, 0, i}, []int{rank.Rank, rank.Worker, rank.Local})
		require.Equal(t, []float64{6, 6, 6, 6}, rank.Reduced)
		require.Less(t, rank.Diff, 1e-5)
		require.Less(t, rank.DiffFloat, 1e-5)
	}
	require.Len(t, r.Bandwidth, 3)
	for _, m := range r.Bandwidth {
		require.Equal(t, 86*12288, m.Bytes, "1 MiB in whole tiles of three devices")
		require.True(t, m.Checked)
		require.InEpsilon(t, float64(m.Bytes)/m.Time, m.Algorithm, 1e-9)
		bus := 2.0 / 3
		if m.Collective == "all-reduce" {
			bus *= 2
		}
		require.InEpsilon(t, bus*m.Algorithm, m.Bus, 1e-9)
	}

	out = must(t, "collectives", "--platform", "cpu", "--no-bandwidth", "--compile-cache", cache)
	require.Regexp(t, `^Rank  0 \(worker_id=0, local_rank=0, ip=\S+\): all_reduce_sum=\[1\.0, 1\.0, 1\.0, 1\.0\]\nAll 1 weft ranks verified .* sum = 1\.0\n$`, out)
}

// Compiled for slices that are not there, the programs communicate as they are written: the block has one all-reduce of its
// rows over all devices, the sum of ranks one, an all-gather and an all-reduce one in one group, a reduce-scatter one for
// each axis of the mesh. A change of what the compiler makes is seen in the diff of testdata/collectives_ahead_*.json.
func TestCollectivesAheadGolden(t *testing.T) {
	path := pjrttest.Path(t, "tpu")
	pjrttest.LockTPU(t)
	for topology, scatters := range map[string]int{"v6e:4x4": 2, "tpu7x:2x2x2": 1} {
		t.Run(topology, func(t *testing.T) {
			cmd := command(t, "collectives", "--ahead", topology, "--effort", "O0", "--sizes", "1MiB", "--json", "--plugin", path)
			cmd.Env = append(cmd.Env, "WEFT_CACHE="+t.TempDir())
			o := finish(t, cmd)
			require.Zero(t, o.code, o.err)
			require.Contains(t, o.err, "weft: compiling for "+topology+", 16 devices (O0 effort)")
			type found struct {
				Kind  string
				DType string
				Count int
				Bytes int
				Group int `json:"group_size"`
			}
			var r struct {
				Devices  int
				Programs []struct {
					Name  string
					Found []found `json:"collectives"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(o.out), &r))
			require.Equal(t, 16, r.Devices)
			got := map[string][]found{}
			for _, p := range r.Programs {
				got[p.Name] = p.Found
			}
			reduced := []found{{"all-reduce", "f32", 1, 64 * 128 * 4, 16}}
			scattered := []found{{"reduce-scatter", "f32", 1, 1 << 20, 16}}
			if scatters == 2 {
				scattered = []found{{"reduce-scatter", "f32", 1, 1 << 20, 4}, {"reduce-scatter", "f32", 1, 1 << 18, 4}}
			}
			require.Equal(t, map[string][]found{
				"feed-forward": reduced, "feed-forward, float32 arithmetic": reduced,
				"sum of ranks":              {{"all-reduce", "f32", 1, 16, 16}},
				"all-gather of 1.0 MiB":     {{"all-gather", "f32", 1, 1 << 20, 16}},
				"reduce-scatter of 1.0 MiB": scattered,
				"all-reduce of 1.0 MiB":     {{"all-reduce", "f32", 1, 1 << 20, 16}},
			}, got)
			text := regexp.MustCompile(`"compile_s": [0-9.e+-]+`).ReplaceAllString(o.out, `"compile_s": 0`)
			golden.Equal(t, "collectives_ahead_"+strings.NewReplacer(":", "_").Replace(topology)+".json", []byte(text))
		})
	}
}

// brokenReduction is a weft whose all-reduce takes the maximum instead of the sum: one line of the program's source is
// another.
func brokenReduction(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", "..", "..", "engine", "collectives", "check.go"))
	require.NoError(t, err)
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), `operation: "add"`))
	dir := t.TempDir()
	changed, overlay, broken := filepath.Join(dir, "check.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "weft")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), `operation: "add"`, `operation: "maximum"`, 1)), 0o644))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, list, 0o644))
	require.NoError(t, build.Weft(t.Context(), broken, "-overlay", overlay))
	return broken
}

// A reduction that goes wrong is exit code 1 and one line that names the ranks, what was expected and what came; nothing is
// measured and nothing is said to be right.
func TestCollectivesFindsBrokenReduction(t *testing.T) {
	cmd := command(t, "collectives", "--platform", "cpu", "--devices", "4", "--compile-cache", cache)
	cmd.Path = brokenReduction(t)
	o := finish(t, cmd)
	require.Equal(t, 1, o.code, o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
	require.Contains(t, o.err, "weft: the devices compute or communicate wrongly")
	for rank := range 4 {
		require.Contains(t, o.err, fmt.Sprintf("rank %d (worker_id=0, local_rank=%[1]d): all_reduce_sum: expected [10.0, 10.0, 10.0, 10.0], got [4.0, 4.0, 4.0, 4.0]", rank))
		require.Contains(t, o.out, fmt.Sprintf("Rank  %d (", rank))
	}
	require.NotContains(t, o.out, "verified")
	require.NotContains(t, o.out, "bandwidth")
	require.NotContains(t, o.out, "all-gather")
}

// Wrong input is one line, before anything runs.
func TestCollectivesRefuses(t *testing.T) {
	cpu := []string{"collectives", "--platform", "cpu"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(cpu, "--sizes", "1MB"), `--sizes: "1MB" is no size: give a number of bytes`},
		{append(cpu, "--sizes", "4096GiB"), "is more than the devices' memory allows, which is"},
		{append(cpu, "--repeats", "0"), "--repeats 0: give at least"},
		{append(cpu, "--devices", "4", "--num-workers", "3"), "--devices asks for 4 devices and --num-workers for 3"},
		{append(cpu, "--devices", "1000"), "1000 virtual CPU devices are more than"},
		{append(cpu, "--ahead", "v6e:4x4"), "--ahead v6e:4x4 contradicts --platform cpu"},
		{[]string{"collectives", "--ahead", "v6e:3x5"}, "there is no such slice"},
		{[]string{"collectives", "--ahead", "v6e:4x4", "--topology", "4x4"}, "leave out --topology"},
		{[]string{"collectives", "--ahead", "v6e:4x4", "--num-workers", "8"}, "--num-workers is 8, v6e:4x4 has 16 devices"},
		{[]string{"collectives", "--ahead", "v6e:4x4", "--plugin", "none.so"}, "there is no file"},
	} {
		t.Run(strings.Join(c.args[1:], " "), func(t *testing.T) { require.Contains(t, refused(t, c.args...), c.want) })
	}
}
