package property

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// failing, in a child process, lets TestDraws fail for some of the numbers that it draws.
const failing = "PROPERTY_TEST_FAIL"

func TestDraws(t *testing.T) {
	var drawn []uint64
	Check(t, func(r *rapid.T) {
		n := rapid.Uint64().Draw(r, "n")
		drawn = append(drawn, n)
		if os.Getenv(failing) != "" && n > 1<<20 {
			r.Fatalf("too much")
		}
	})
	t.Logf("drew %d", drawn)
}

// child runs TestDraws in a process of its own, and returns what it printed.
func child(t *testing.T, dir, fail string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, append([]string{"-test.v", "-test.run", "^TestDraws$"}, args...)...)
	c.Dir, c.Env = dir, append(os.Environ(), failing+"="+fail)
	out, err := c.CombinedOutput()
	require.Equal(t, fail == "", err == nil, "%s", out)
	return string(out)
}

// Each call of Check draws the same, in one process and in the next.
func TestEveryRunDrawsTheSame(t *testing.T) {
	drew := func(args ...string) string {
		out := child(t, t.TempDir(), "", append(args, "-test.count=2")...)
		lines := regexp.MustCompile(`drew .*`).FindAllString(out, -1)
		require.Len(t, lines, 2, out)
		if !slices.Contains(args, "-rapid.seed=0") {
			require.Equal(t, lines[0], lines[1])
		}
		return lines[0]
	}
	want := drew()
	require.Equal(t, want, drew())
	require.Equal(t, want, drew("-rapid.seed=1"))
	require.NotEqual(t, want, drew("-rapid.seed=2"))
	require.NotEqual(t, drew("-rapid.seed=0"), drew("-rapid.seed=0"))
}

func TestDrawsGoOn(t *testing.T) {
	seed := flag.Lookup("rapid.seed").Value.String()
	var drawn [][]uint64
	checkOn(t, func(r *rapid.T) {
		round := &drawn[len(drawn)-1]
		*round = append(*round, rapid.Uint64().Draw(r, "n"))
	}, func() bool {
		drawn = append(drawn, nil)
		return len(drawn) <= 2
	})
	require.NotEqual(t, drawn[0], drawn[1])
	require.Equal(t, seed, flag.Lookup("rapid.seed").Value.String())
}

// A failure names the seed that draws it at once, and leaves a file only where it is asked to.
func TestFailureIsDrawnAgain(t *testing.T) {
	dir := t.TempDir()
	out := child(t, dir, "1", "-rapid.seed=0")
	seed := regexp.MustCompile(`-rapid\.seed=[1-9]\d*`).FindString(out)
	require.NotEmpty(t, seed, out)
	require.Contains(t, child(t, dir, "1", seed), "failed after 0 tests: too much")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	child(t, dir, "1", "-rapid.nofailfile=false")
	files, err := filepath.Glob(filepath.Join(dir, "testdata/rapid/TestDraws/*.fail"))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// Every test of the module draws by Check and not by rapid's, and calls it itself, where `make properties` looks for it.
func TestTestsDrawByCheck(t *testing.T) {
	root := filepath.Join("..", "..")
	require.FileExists(t, filepath.Join(root, "go.mod"))
	calls := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, _ := s.X.(*ast.Ident)
				if pkg == nil {
					return true
				}
				if pkg.Name == "rapid" && (s.Sel.Name == "Check" || strings.HasPrefix(s.Sel.Name, "Make")) {
					t.Errorf("%s: rapid.%s draws other inputs in every run: use property.Check", path, s.Sel.Name)
				}
				if pkg.Name == "property" && s.Sel.Name == "Check" {
					calls++
					f, _ := d.(*ast.FuncDecl)
					require.True(t, f != nil && strings.HasPrefix(f.Name.Name, "Test"), "%s: call property.Check in the test itself", path)
				}
				return true
			})
		}
		return nil
	}))
	require.Positive(t, calls)
}
