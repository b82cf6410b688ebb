package job

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/gcs"
	"weft/checkpoint/gcs/gcstest"
)

// What is wrong with the input stays so; a server that does not answer may answer the next start.
func TestPassingFaultsAreNoInput(t *testing.T) {
	s := gcstest.Start(t, "bucket")
	s.Use(t)
	fsys, err := gcs.New(t.Context(), gcs.Options{Retry: gcs.Retry{Attempts: 1}})
	require.NoError(t, err)
	for _, c := range []struct {
		answer gcstest.Action
		input  bool
	}{
		{gcstest.Unavailable, false},
		{gcstest.TooMany(0), false},
		{gcstest.Reset, false},
		{gcstest.Forbidden("storage.objects.get"), true},
		{gcstest.Unauthorized, true},
	} {
		s.Inject(gcstest.Fault{Times: gcstest.Always, Do: c.answer})
		_, fault := fsys.Open("bucket/config.json")
		s.Heal()
		require.Error(t, fault)
		wrapped := inputUnlessPassing(fmt.Errorf("--model-id: %w", fault))
		var input *InputError
		require.Equal(t, c.input, errors.As(wrapped, &input), "%s: %v", c.answer, wrapped)
		require.ErrorIs(t, wrapped, fault)
	}
	require.NoError(t, inputUnlessPassing(nil))
	require.NoError(t, fsys.Close())
}
