package job

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/engine"
)

// On a slice the devices open when all hosts have come: the wait for one that does not come is watched.
func TestOpeningTheDevicesOfASliceIsWatched(t *testing.T) {
	for slice, want := range map[bool]string{true: "the opening of the devices", false: ""} {
		c := &Config{DeviceFlags: DeviceFlags{Platform: PlatformCPU}}
		c.CompileDeadline = time.Hour
		r := &run{Config: c, hosts: slice, report: newReport(Console{Out: io.Discard, Log: slog.New(slog.DiscardHandler)}, false)}
		gone := errors.New("no devices")
		phase := ""
		r.open = func(context.Context, *DeviceFlags, *report) (*engine.Runtime, error) {
			phase, _ = r.dog.Phase()
			return nil, gone
		}
		require.ErrorIs(t, r.openDevices(t.Context()), gone)
		require.Equal(t, want, phase)
		r.leavePhase()
		phase, _ = r.dog.Phase()
		require.Empty(t, phase)
	}
}
