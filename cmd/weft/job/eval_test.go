package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/trainer"
)

// What asks for evaluations needs rows to evaluate on.
func TestEvalFlagsNeedRows(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Config)
		want string
	}{
		{"steps", func(c *Config) { c.EvalEverySteps = 5 }, "--eval-every-steps needs rows"},
		{"keep", func(c *Config) { c.KeepBy = "eval_loss" }, "--keep-by eval_loss needs rows"},
		{"demo", func(c *Config) { c.Demo, c.ModelID, c.Dataset, c.EvalDataset = true, "", "", "rows.jsonl" }, "leave out --eval-dataset"},
		{"split", func(c *Config) { c.EvalEverySteps, c.EvalSplit = 5, "train[-8:]" }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{ModelFlags: ModelFlags{ModelID: "m"}, Dataset: "d", KeepBy: "loss"}
			c.set(&config)
			err := config.checkInputs()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The line of an evaluation stays with the position that has it, and goes with one that will do it again.
func TestMetricsOfEvaluations(t *testing.T) {
	step := func(n string) string { return `{"step":` + n + `,"epoch":1,"loss":1.5}` + "\n" }
	eval := func(n string) string { return `{"step":` + n + `,"epoch":1,"eval_loss":1.5}` + "\n" }
	before := step("1") + step("2") + eval("2") + step("3") + step("4") + eval("4")
	for _, c := range []struct {
		from trainer.Position
		want string
	}{
		{trainer.Position{Step: 4, Evaluated: 4}, before},
		{trainer.Position{Step: 4, Evaluated: 2}, strings.TrimSuffix(before, eval("4"))},
		{trainer.Position{Step: 3, Evaluated: 2}, step("1") + step("2") + eval("2") + step("3")},
		{trainer.Position{Step: 2}, step("1") + step("2")},
		{trainer.Position{}, ""},
	} {
		path := filepath.Join(t.TempDir(), metricsName)
		require.NoError(t, os.WriteFile(path, []byte(before), 0o644))
		log, err := openMetrics(filepath.Dir(path), c.from)
		require.NoError(t, err)
		require.NoError(t, log.close())
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got), "%+v", c.from)
	}
}
