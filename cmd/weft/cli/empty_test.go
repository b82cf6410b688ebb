package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A text that is given and empty is none: what the flag does without a value, or the folder that a path of nothing is, is not
// what was asked for.
func TestEmptyTextIsRefused(t *testing.T) {
	finetune := func(more ...string) []string {
		return append([]string{"finetune", "--model-id", "m", "--dataset", "d"}, more...)
	}
	for _, c := range []struct {
		name string
		args []string
		env  string
		want string
	}{
		{name: "run name", args: finetune("--run-name", ""), want: "--run-name is empty"},
		{name: "with an equals sign", args: finetune("--run-name="), want: "--run-name is empty"},
		{name: "storage path", args: finetune("--storage-path", ""), want: "--storage-path is empty"},
		{name: "model", args: finetune("--model-id", ""), want: "--model-id is empty"},
		{name: "data", args: finetune("--dataset="), want: "--dataset is empty"},
		{name: "evaluation", args: finetune("--eval-dataset="), want: "--eval-dataset is empty"},
		{name: "resume", args: finetune("--resume="), want: "--resume is empty"},
		{name: "topology", args: finetune("--topology", ""), want: "--topology is empty"},
		{name: "template", args: finetune("--template", ""), want: "--template is empty"},
		{name: "plugin", args: finetune("--plugin", ""), want: "--plugin is empty"},
		{name: "compile cache", args: finetune("--compile-cache", ""), want: "--compile-cache is empty"},
		{name: "changes", args: finetune("--allow-changed", ""), want: "--allow-changed is empty"},
		{name: "demo", args: []string{"finetune", "--demo", "--run-name", ""}, want: "--run-name is empty"},
		{name: "config", args: finetune("--config", ""), want: "--config is empty"},
		{name: "the variable of a name", args: finetune(), env: "WEFT_RUN_NAME", want: "the variable WEFT_RUN_NAME, which stands for --run-name, is set and empty"},
		{name: "the variable of a folder", args: finetune(), env: "STORAGE_PATH", want: "the variable STORAGE_PATH, which stands for --storage-path, is set and empty"},
		{name: "list of nothing", args: []string{"checkpoint", "ls", ""}, want: "<path> is empty"},
		{name: "prune of nothing", args: []string{"checkpoint", "prune", "", "--keep", "1"}, want: "<path> is empty"},
		{name: "export to nothing", args: []string{"checkpoint", "export", "a", ""}, want: "<out> is empty"},
		{name: "a manifest's name", args: []string{"k8s", "render", "jobset", "--topology", "4x4", "--accelerator-type", "TPU-V6E", "--image", "i", "--name", "", "--", "finetune"}, want: "--name is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv(c.env, "")
			}
			var out, errs bytes.Buffer
			require.Equal(t, exitInput, Main(c.args, strings.NewReader(""), &out, &errs), errs.String())
			require.True(t, strings.HasPrefix(errs.String(), "weft: "+c.want), errs.String())
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
			require.Empty(t, out.String())
		})
	}
}

// A flag goes before its variable, also before an empty one, and so does a line of a file.
func TestEmptyVariableBesideAFlag(t *testing.T) {
	t.Setenv("WEFT_RUN_NAME", "")
	for _, args := range [][]string{{"--run-name", "first"}, {"--config", yamlFile(t, "run-name: first\n")}} {
		var out, errs bytes.Buffer
		require.Equal(t, exitInput, Main(append([]string{"finetune"}, args...), strings.NewReader(""), &out, &errs))
		require.True(t, strings.HasPrefix(errs.String(), "weft: --model-id is missing"), errs.String())
	}
}
