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

// Beside a run that saves and deletes on an object store nothing counts as lost, wherever both of them stand.
func TestIncompleteBesideARun(t *testing.T) {
	base, _ := objBase(t)
	reads := 0
	for write := 1; ; write++ {
		for read := 1; ; read++ {
			o := base.clone()
			writer, reader := o.client(), o.client()
			written, found := make(chan error, 1), make(chan []Entry, 1)
			m, err := Open(reader, "b/run", Options{ReadOnly: true})
			require.NoError(t, err)
			writer.arm(write, crash, nil, 1)
			writer.pause = make(chan chan struct{})
			go func() { written <- saveObj(writer) }()
			var writeOn chan struct{}
			select {
			case writeOn = <-writer.pause:
			case err := <-written:
				require.NoError(t, err)
				require.Greater(t, reads, 100)
				return
			}
			reader.arm(read, crash, nil, 1)
			reader.pause = make(chan chan struct{})
			failed := make(chan error, 1)
			go func() {
				list, err := m.Incomplete()
				failed <- err
				found <- list
			}()
			var readOn chan struct{}
			select {
			case readOn = <-reader.pause:
			case err = <-failed:
			}
			close(writeOn)
			require.NoError(t, <-written)
			if readOn != nil {
				close(readOn)
				err = <-failed
			}
			require.NoError(t, err)
			require.Empty(t, <-found, "the run stood at operation %d (%s), the reader at %d", write, writer.trace[write-1], read)
			reads++
			if readOn == nil {
				break
			}
		}
	}
}
