package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"weft/internal/golden"
)

// The flags of every command, with their defaults, are frozen: one that appears, vanishes or changes its default is a
// change of the contract, to be seen in the diff of testdata/flags.golden (written with -update).
func TestFlagsGolden(t *testing.T) {
	parser, err := newParser(&commands{}, streams{Out: os.Stdout, Err: os.Stderr})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, kong.Visit(parser.Model.Node, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok && n.Leaf() && n.Type == kong.CommandNode {
			describe(&b, n)
		}
		return next(nil)
	}))
	golden.Equal(t, "flags.golden", []byte(b.String()))
}

func describe(b *strings.Builder, n *kong.Node) {
	fmt.Fprintln(b, n.FullPath())
	for _, p := range n.Positional {
		fmt.Fprintf(b, "  <%s> %s\n", p.Name, p.Target.Type())
	}
	for _, f := range n.Flags {
		line := fmt.Sprintf("  --%s %s", f.Name, f.Target.Type())
		if f.Tag.Negatable != "" {
			line = fmt.Sprintf("  --[no-]%s %s", f.Name, f.Target.Type())
		}
		if f.HasDefault {
			line += " =" + f.Default
		}
		if f.Enum != "" {
			line += " {" + f.Enum + "}"
		}
		if len(f.Envs) > 0 {
			line += " $" + strings.Join(f.Envs, " $")
		}
		fmt.Fprintln(b, line)
	}
}

// The published job's flags are all there, under their names.
func TestPublishedFlags(t *testing.T) {
	flags, err := os.ReadFile(filepath.Join("testdata", "flags.golden"))
	require.NoError(t, err)
	for _, want := range []string{
		"--model-id string", "--topology string", "--accelerator-type string", "--num-workers int", "--dataset-split string",
		"--num-epochs int =3", "--batch-size-per-device int =4", "--storage-path string =./weft-out $STORAGE_PATH",
		"--learning-rate float64 =2e-5", "--weight-decay float64 =0.01", "--max-seq-len int =512", "--seed int64 =42",
	} {
		require.Contains(t, string(flags), "  "+want)
	}
}

// Every flag says what it does, in a sentence.
func TestEveryFlagHasHelp(t *testing.T) {
	parser, err := newParser(&commands{}, streams{Out: os.Stdout, Err: os.Stderr})
	require.NoError(t, err)
	require.NoError(t, kong.Visit(parser.Model.Node, func(node kong.Visitable, next kong.Next) error {
		switch n := node.(type) {
		case *kong.Flag:
			require.True(t, n.Name == "help" || strings.HasSuffix(n.Help, ".") || strings.HasSuffix(n.Help, ")"), "--%s: %q", n.Name, n.Help)
		case *kong.Node:
			require.True(t, n.Type != kong.CommandNode || strings.HasSuffix(n.Help, "."), n.FullPath())
		}
		return next(nil)
	}))
}
