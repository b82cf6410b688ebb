package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ratios are taken within a round, their median counts, and each is held to its limit.
func TestReport(t *testing.T) {
	r := &report{Bytes: 1000}
	for _, slow := range []float64{1, 4, 2} { // the disk of a busy machine, other in each round
		r.Rounds = append(r.Rounds, round{
			DDZeros: slow, DDSame: 2 * slow, Blocking: 10 * slow, Stall: 1 * slow, AsyncWrite: 2 * slow, AsyncWhole: 4 * slow,
			ExtraMemory: 1500, ReadCold: 3 * slow, LoadCold: 4 * slow, ReadWarm: slow, ReadKept: 2 * slow, LoadWarm: 2 * slow,
		})
	}
	r.ratios()
	got := map[string]ratio{}
	for _, x := range r.Ratios {
		require.Equal(t, x.Least, x.Most, x.Name)
		require.Equal(t, x.Least, x.Median, x.Name)
		got[x.Name] = x
	}
	for name, want := range map[string]struct {
		value float64
		held  bool
	}{
		"bytes/s written in the background ÷ dd of zeros with fsync":                         {0.5, false},
		"bytes/s written in the background ÷ dd of the same bytes with fsync":                {1, true},
		"stall of the step ÷ blocking save":                                                  {0.1, true},
		"peak extra host memory ÷ state of the device":                                       {1.5, false},
		"bytes/s loaded ÷ plain sequential read, from the disk":                              {0.75, true},
		"bytes/s loaded ÷ plain sequential read through one buffer, from the page cache":     {0.5, false},
		"bytes/s loaded ÷ plain sequential read into memory of its own, from the page cache": {1, true},
		"bytes/s from the call to the commit ÷ dd of the same bytes with fsync":              {0.5, false},
	} {
		require.Contains(t, got, name)
		require.Equal(t, want.value, got[name].Median, name)
		require.Equal(t, want.held, got[name].Held, name)
	}
	text := r.markdown()
	require.True(t, strings.HasPrefix(text, marks.Begin+"\n"))
	require.True(t, strings.HasSuffix(text, "\n"+marks.End+"\n"))
	require.Contains(t, text, "| stall of the step ÷ blocking save | 0.100 | 0.100–0.100 | < 0.15 | yes |")
	require.Contains(t, text, "| blocking save | 20.000 |")
}

// What the process touches shows in its peak, which begins anew.
func TestMemory(t *testing.T) {
	require.NoError(t, resetPeak())
	before, err := memory("VmHWM")
	require.NoError(t, err)
	b := make([]byte, 64<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	after, err := memory("VmHWM")
	require.NoError(t, err)
	require.GreaterOrEqual(t, after-before, int64(48<<20))
	_, err = memory("VmNone")
	require.ErrorContains(t, err, "VmNone")
	require.EqualValues(t, 1, b[0])
}
