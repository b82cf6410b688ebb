package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/gcs"
	"weft/checkpoint/gcs/gcstest"
	"weft/pjrt"
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

// Devices that are held, or hosts that are lost, are no wrong input; other hosts' failures are on every host what they are there.
func TestLostHostsAreNoInput(t *testing.T) {
	lost := &pjrt.Error{Code: pjrt.Unavailable, Op: "create client", Message: "the TPU is already in use"}
	wrong := &pjrt.Error{Code: pjrt.InvalidArgument, Op: "create client", Message: "no such option"}
	name := func(process int) string { return fmt.Sprintf("host %d", process) }
	for _, c := range []struct {
		err   error
		input bool
		said  string
	}{
		{fmt.Errorf("open: %w", lost), false, lost.Error()},
		{fmt.Errorf("open: %w", wrong), true, wrong.Error()},
		{failureOf([][]byte{nil, reasonOf(lost), nil}, name), false, "host 1: " + lost.Error()},
		{failureOf([][]byte{nil, reasonOf(wrong)}, name), true, "host 1: " + wrong.Error()},
		{failureOf([][]byte{reasonOf(lost), reasonOf(wrong)}, name), true, "host 0: " + lost.Error() + "; host 1: "},
	} {
		var input *InputError
		got := inputUnlessPassing(c.err)
		require.Equal(t, c.input, errors.As(got, &input), "%v", c.err)
		require.ErrorContains(t, got, c.said)
	}
	require.NoError(t, failureOf([][]byte{nil, reasonOf(nil)}, name))
	long := reasonOf(errors.New(strings.Repeat("x", 2*maxReason)))
	require.Len(t, long, 1+maxReason)
}
