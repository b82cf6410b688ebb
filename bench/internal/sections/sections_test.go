package sections

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A section is added once and then replaced, with what stands around it left alone.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "B.md")
	m := Marks{Begin: "<!-- a: begin -->", End: "<!-- a: end -->"}
	text := func(s string) string { return m.Begin + "\n" + s + "\n" + m.End + "\n" }
	read := func() string {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
	require.NoError(t, Write(path, m, text("one")))
	require.Equal(t, text("one"), read())
	require.NoError(t, os.WriteFile(path, []byte("head\n\n"+text("one")+"\ntail\n"), 0o644))
	require.NoError(t, Write(path, m, text("two")))
	require.Equal(t, "head\n\n"+text("two")+"\ntail\n", read())
	require.NoError(t, os.WriteFile(path, []byte("head\n"+m.Begin+"\n"), 0o644))
	require.ErrorContains(t, Write(path, m, text("two")), "put that line back")
}
