package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The weft command lines of the pages about slices are ones that weft understands.
func TestDocumentedCommands(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range []string{"docs/gke.md", "docs/tpu-vm.md", "docs/multislice.md", "docs/untested.md"} {
		raw, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		text := strings.ReplaceAll(string(raw), "\\\n", " ")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				if !strings.HasPrefix(line, "weft ") {
					continue
				}
				line, _, _ = strings.Cut(line, " | ")
				line, _, _ = strings.Cut(line, "  #")
				args := strings.Fields(line)[1:]
				for i, a := range args {
					args[i] = strings.Trim(a, "'")
				}
				understood(t, page, args)
				seen[args[0]] = true
				for i, a := range args {
					if a == "--" {
						understood(t, page, args[i+1:])
					}
				}
			}
		}
	}
	for _, command := range []string{"k8s", "tpuvm", "ray", "plan"} {
		require.True(t, seen[command], "no page uses weft %s", command)
	}
}

func understood(t *testing.T, page string, args []string) {
	t.Helper()
	parser, err := newParser(&commands{}, streams{Out: os.Stdout, Err: os.Stderr})
	require.NoError(t, err)
	_, err = parser.Parse(args)
	require.NoError(t, err, "%s: weft %s", page, strings.Join(args, " "))
}

// The pages' links lead to files that are there.
func TestDocumentLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(raw), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}
