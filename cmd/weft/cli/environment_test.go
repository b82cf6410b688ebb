package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"weft/engine/process"
	"weft/pjrt/plugin"
)

const root = "../../.."

// docs/environment.md has a row for every variable that the code reads, and none for another.
func TestEnvironmentTable(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "environment.md"))
	require.NoError(t, err)
	text, others, found := strings.Cut(string(doc), "\n## Read by others\n")
	require.True(t, found)
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]+)`(?:, `([A-Z][A-Z0-9_]+)`)? \\|").FindAllStringSubmatch(text, -1) {
		rows = append(rows, m[1])
		if m[2] != "" {
			rows = append(rows, m[2])
		}
	}
	read := variablesRead(t)
	slices.Sort(rows)
	require.Equal(t, slices.Compact(slices.Clone(rows)), rows, "a variable has one row")
	require.Equal(t, slices.Sorted(maps.Keys(read)), rows)
	for name := range plugin.OffTPUEnv("") {
		require.True(t, read[name] || strings.Contains(others, name), "%s is set for libtpu", name)
	}
}

// variablesRead are the variables that the program reads by itself.
func variablesRead(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	_, err := process.Read(func(name string) string {
		names[name] = true
		return ""
	})
	require.NoError(t, err)
	parser, err := newParser(&commands{}, streams{Out: os.Stdout, Err: os.Stderr})
	require.NoError(t, err)
	require.NoError(t, kong.Visit(parser.Model.Node, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			for _, name := range f.Envs {
				names[name] = true
			}
		}
		return next(nil)
	}))
	calls, constants := sources(t)
	for where, arg := range calls {
		var name string
		switch arg := arg.(type) {
		case *ast.BasicLit:
			name, err = strconv.Unquote(arg.Value)
			require.NoError(t, err)
		case *ast.Ident:
			name = constants[arg.Name]
		case *ast.SelectorExpr:
			name = constants[arg.Sel.Name]
		}
		if name == "" {
			// The planner sets what the user has not set of plugin.OffTPUEnv; package process was asked above, and the flags too.
			known := []string{filepath.Join("job", "planner.go"), filepath.Join("engine", "process"), filepath.Join("cli", "empty.go")}
			require.True(t, slices.ContainsFunc(known, func(place string) bool { return strings.Contains(where, place) }), "%s: cannot tell which variable is read", where)
			continue
		}
		names[name] = true
	}
	return names
}

// sources finds the arguments of Getenv and LookupEnv, of package os or handed on, in the product's code, by place, and the string constants.
func sources(t *testing.T) (calls map[string]ast.Expr, constants map[string]string) {
	t.Helper()
	calls, constants = map[string]ast.Expr{}, map[string]string{}
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(path); {
		case err != nil:
			return err
		case d.IsDir() && (base == "internal" && filepath.Dir(path) == root || base == "bench" || base == "pjrttest" || base == ".git" || base == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING && i < len(n.Names) {
						constants[n.Names[i].Name], _ = strconv.Unquote(lit.Value)
					}
				}
			case *ast.CallExpr:
				if name := called(n.Fun); strings.EqualFold(name, "Getenv") || name == "LookupEnv" {
					calls[files.Position(n.Pos()).String()] = n.Args[0]
				}
			}
			return true
		})
		return nil
	}))
	require.NotEmpty(t, calls)
	return calls, constants
}

// called is the name of a function that is called.
func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
