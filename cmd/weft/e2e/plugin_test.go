package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPluginListAndVerify(t *testing.T) {
	require.Regexp(t, `(?m)^NAME +VERSION +BYTES +PATH$`, must(t, "plugin", "list"))
	require.Regexp(t, `(?m)^cpu +\d+\.\d+\.\d+ +\d+ +/.*\.so$`, must(t, "plugin", "list"))
	require.Regexp(t, `^cpu .* is whole: sha256 [0-9a-f]{64}\n$`, must(t, "plugin", "verify", "cpu"))
	require.Regexp(t, `\.so\n$`, must(t, "plugin", "install", "cpu"))

	empty := command(t, "plugin", "list")
	empty.Env = append(empty.Env, "WEFT_CACHE="+t.TempDir())
	o := finish(t, empty)
	require.Zero(t, o.code)
	require.Equal(t, "no plugin is installed; install one with: weft plugin install cpu\n", o.out)

	absent := command(t, "plugin", "verify", "cpu")
	absent.Env = append(absent.Env, "WEFT_CACHE="+t.TempDir())
	o = finish(t, absent)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.err, "not installed; install it with: weft plugin install cpu")
}
