package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"weft/cmd/weft/job"
)

// configFile is the flag --config: a YAML file whose keys are the command's flags.
type configFile string

// BeforeResolve reads the file once the flags of the command line are known, so that those win.
func (configFile) BeforeResolve(ctx *kong.Context, trace *kong.Path) error {
	path := string(ctx.FlagValue(trace.Flag).(configFile))
	if path == "" {
		return job.Input(fmt.Errorf("--config %w", errEmpty))
	}
	text, err := readConfig(path, ctx.Stderr)
	if err != nil {
		return job.Input(fmt.Errorf("--config: %w", err))
	}
	preset, err := parsePreset(path, text, ctx.Selected())
	if err != nil {
		return job.Input(err)
	}
	ctx.AddResolver(preset)
	return nil
}

// maxConfig bounds the bytes of a file of flags: a device may have no end.
const maxConfig = 1 << 20

// pipeNotice is how long nobody writes to a pipe before a line says that it is waited for.
var pipeNotice = 2 * time.Second

// readConfig reads a file, or a pipe: that of <(…) in a shell, /dev/stdin, or a named one, on which it waits for a writer and
// tells so.
func readConfig(path string, log io.Writer) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		notice := time.AfterFunc(pipeNotice, func() {
			fmt.Fprintf(log, "weft: --config %s is a pipe: waiting for what is written to it\n", path)
		})
		defer notice.Stop()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s has more than %d bytes: give a file of 'flag: value' lines", path, maxConfig)
	}
	return text, err
}

// preset gives flags values that the command line did not: those of a YAML file.
type preset map[string]any

// Validate has nothing to check: parsePreset did.
func (preset) Validate(*kong.Application) error { return nil }

// Resolve returns the flag's value, nil for none.
func (p preset) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	return p[flag.Name], nil
}

// parsePreset reads a YAML mapping of flag names to scalars. An unknown key, a key given twice, a nested value and a
// value that the flag does not take are errors that name the file's line.
func parsePreset(file string, text []byte, command *kong.Node) (preset, error) {
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, yamlError(file, err)
	}
	out := preset{}
	if len(doc.Docs) == 0 || doc.Docs[0].Body == nil {
		return out, nil
	}
	if len(doc.Docs) > 1 {
		return nil, fmt.Errorf("%s holds %d YAML documents: keep one", file, len(doc.Docs))
	}
	var entries []*ast.MappingValueNode
	switch body := doc.Docs[0].Body.(type) {
	case *ast.MappingNode:
		entries = body.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{body}
	default:
		return nil, fmt.Errorf("%s:%d: a list of `flag: value` lines is expected", file, body.GetToken().Position.Line)
	}
	for _, entry := range entries {
		if err := out.add(entry, command); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, entry.Key.GetToken().Position.Line, err)
		}
	}
	return out, nil
}

func (p preset) add(entry *ast.MappingValueNode, command *kong.Node) error {
	key := entry.Key.GetToken().Value
	flag, negated := findFlag(command, key)
	if flag == nil {
		return fmt.Errorf("unknown key %q: the keys are the flags of `%s --help`, without the dashes", key, command.FullPath())
	}
	if _, twice := p[flag.Name]; twice {
		return fmt.Errorf("key %q is given twice: keep one", key)
	}
	text, ok := scalarText(entry.Value)
	if !ok {
		return fmt.Errorf("key %q: one value is expected, not a list, a mapping or nothing", key)
	}
	var value any = text
	if flag.IsBool() {
		on, ok := entry.Value.(*ast.BoolNode)
		if !ok {
			return fmt.Errorf("key %q is %s: give true or false", key, text)
		}
		value = on.Value != negated
	}
	if value == "" {
		return fmt.Errorf("key %q is empty: give a value, or leave the line out", key)
	}
	p[flag.Name] = value
	return checkValue(flag, key, value)
}

// checkValue parses a value as the flag will, so that an error can name the line.
func checkValue(flag *kong.Flag, key string, value any) error {
	trial := kongTarget(flag)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.Scan().PushTyped(value, kong.FlagValueToken)}, trial); err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	if flag.Enum == "" {
		return nil
	}
	text := fmt.Sprint(value)
	for _, allowed := range flag.EnumSlice() {
		if text == allowed {
			return nil
		}
	}
	return fmt.Errorf("key %q is %s: give one of %s", key, text, strings.Join(flag.EnumSlice(), ", "))
}

// findFlag returns the command's flag of that name, or of that negated name. A file can neither name another file nor
// bring the demo's values in below its own.
func findFlag(command *kong.Node, name string) (flag *kong.Flag, negated bool) {
	for _, f := range command.Flags {
		switch {
		case f.Name == "help" || f.Name == "config" || f.Name == "demo":
		case f.Name == name:
			return f, false
		case f.Tag.Negatable != "" && "no-"+f.Name == name:
			return f, true
		}
	}
	return nil, false
}

// scalarText is the text of a YAML scalar as it was written.
func scalarText(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// yamlError is a syntax error in one line.
func yamlError(file string, err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%s:%d: %s", file, syntax.Token.Position.Line, syntax.Message)
	}
	return fmt.Errorf("%s: %w", file, err)
}
