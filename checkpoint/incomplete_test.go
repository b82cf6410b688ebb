package checkpoint

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A checkpoint that lost its manifest is told; somebody else's folder, and what stays of a deleted checkpoint for a file in
// it, are not.
func TestIncomplete(t *testing.T) {
	base, _ := crashBase(t)
	m, err := Open(base, "/run", Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err)
	defer m.Close()
	none := func() {
		t.Helper()
		list, err := m.Incomplete()
		require.NoError(t, err)
		require.Empty(t, list)
	}
	none()
	for _, step := range []int{newStep, newStep + 10} {
		_, err := m.Save(context.Background(), snapshotOf(step, 1))
		require.NoError(t, err)
		none()
	}
	e, ok, err := m.Latest()
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, base.Remove(e.Dir+"/"+ManifestFile))
	list, err := m.Incomplete()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, e.Name, list[0].Name)
	require.ErrorIs(t, list[0].Err, ErrDamaged)
	require.ErrorContains(t, list[0].Err, e.Dir+" is damaged: manifest.json: it is missing")
	for _, name := range []string{"process-0000-shard-00000", "process-0000-shard-00001"} {
		require.NoError(t, base.Remove(e.Dir+"/state/"+name+".safetensors"))
	}
	none()
}
