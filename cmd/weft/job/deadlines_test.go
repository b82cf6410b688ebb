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

// Hosts wait for each other as long as a slow storage may take, and name the one that is missing before the watchdog ends the run.
func TestHostsWaitForPartsByTheSaveDeadline(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		time.Hour: 30 * time.Minute, 6 * time.Hour: 3 * time.Hour, 30 * time.Minute: 15 * time.Minute, time.Minute: 15 * time.Minute, 0: forever,
	} {
		d := DeadlineFlags{SaveDeadline: deadline}
		require.NoError(t, d.check())
		require.Equal(t, want, d.hostWait(), deadline)
		require.Positive(t, 4*d.hostWait(), "the longest wait is a multiple")
	}
}
