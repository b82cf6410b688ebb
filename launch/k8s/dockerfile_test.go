package k8s_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(raw)
}

// instruction is one of a Dockerfile, continued lines joined.
type instruction struct{ name, rest string }

func dockerfile(t *testing.T) []instruction {
	t.Helper()
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	var out []instruction
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		out = append(out, instruction{name, strings.TrimSpace(rest)})
	}
	return out
}

// No Docker is at hand where weft is built, so this reads what a build would trip over: stages, images, paths, flags.
func TestDockerfile(t *testing.T) {
	known := []string{"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "ENTRYPOINT", "CMD"}
	fromForm := regexp.MustCompile(`^\$\{([A-Z_]+)\} AS ([a-z]+)$`)
	images, stages := map[string]string{}, []string{}
	for _, in := range dockerfile(t) {
		require.Contains(t, known, in.name)
		switch in.name {
		case "ARG":
			require.Empty(t, stages, "an ARG after the first FROM is not seen by the others")
			name, image, ok := strings.Cut(in.rest, "=")
			require.True(t, ok, in.rest)
			images[name] = image
			_, tag, tagged := strings.Cut(image, ":")
			require.True(t, tagged && regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(tag) || strings.HasSuffix(image, "-debian12"), "%s has no version", image)
		case "FROM":
			m := fromForm.FindStringSubmatch(in.rest)
			require.NotNil(t, m, "FROM %s: every image is an ARG, every stage has a name", in.rest)
			require.Contains(t, images, m[1])
			stages = append(stages, m[2])
		case "COPY":
			checkCopy(t, in.rest, stages)
		}
	}
	require.Equal(t, []string{"build", "libtpu", "ray", "weft"}, stages, "the last is what is built without --target")
	require.Contains(t, images["BASE_IMAGE"], "distroless")
}

// checkCopy finds the sources of a COPY, here or in an earlier stage.
func checkCopy(t *testing.T, rest string, stages []string) {
	t.Helper()
	words := strings.Fields(rest)
	from := ""
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		if stage, ok := strings.CutPrefix(words[0], "--from="); ok {
			from = stage
		}
		words = words[1:]
	}
	require.GreaterOrEqual(t, len(words), 2, rest)
	sources := words[:len(words)-1]
	if from != "" {
		require.Contains(t, stages[:len(stages)-1], from)
		made := map[string]string{"/out/weft": "build", "/libtpu.so": "libtpu"}
		for _, s := range sources {
			require.Equal(t, from, made[s], s)
		}
		return
	}
	for _, s := range sources {
		_, err := os.Stat(filepath.Join(root, s))
		require.NoError(t, err)
	}
}

// The image is built as `make build` builds, with go.mod's Go and the Ray that the driver is tested with.
func TestDockerfileAgreesWithTheRepository(t *testing.T) {
	file := read(t, "Dockerfile")
	flags := regexp.MustCompile(`CGO_ENABLED=0 go build (.*?) -o `)
	made := flags.FindStringSubmatch(read(t, "Makefile"))
	require.NotNil(t, made)
	require.Equal(t, made[1], flags.FindStringSubmatch(file)[1])

	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	require.Contains(t, file, "golang:"+version[1]+"-")
	ray := regexp.MustCompile(`(?m)^ray==(\S+)`).FindStringSubmatch(read(t, "launch/ray/e2e/requirements.txt"))
	require.Contains(t, file, "rayproject/ray:"+ray[1]+"-py311")
}

// What the binary embeds is sent to the build.
func TestDockerignoreKeepsWhatIsBuilt(t *testing.T) {
	ignored := strings.Fields(read(t, ".dockerignore"))
	require.NotEmpty(t, ignored)
	for _, needed := range []string{"cmd", "engine", "launch", "models", "pjrt", "data", "checkpoint", "optim", "internal", "go.mod", "go.sum", "*.py", "*.yaml"} {
		require.NotContains(t, ignored, needed)
	}
}
