package job

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/trainer"
)

func stepRecord(step, epoch int, loss float64) trainer.StepRecord {
	return trainer.StepRecord{Step: step, Epoch: epoch, Loss: loss, Tokens: 1024, StepTime: 0.5, TokensPerSec: 2048}
}

// Without a terminal: about ten lines an epoch, and the first step of the process.
func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	r := newReport(Console{Out: &out}, false)
	r.begin(0, 20, 40)
	for i := range 5 {
		r.step(stepRecord(i+1, 1, 3-0.25*float64(i)))
	}
	r.epoch(trainer.EpochRecord{Epoch: 1, Epochs: 2, Loss: 3.14021, Seconds: 28.168, TokensPerSec: 18613.47})
	r.end()
	require.Equal(t, `step 1/40 | epoch 1 | loss=3.0000 | tokens/s=2048.0
step 2/40 | epoch 1 | loss=2.7500 | tokens/s=2048.0 | left 19s
step 4/40 | epoch 1 | loss=2.2500 | tokens/s=2048.0 | left 18s
Epoch 1/2 | loss=3.1402 | epoch_time=28.17s | tokens/s=18613.5
`, out.String())
}

// On a terminal: a bar with the loss, the rate and the time left; lines stand above it.
func TestTerminalProgress(t *testing.T) {
	var out bytes.Buffer
	r := newReport(Console{Out: &out, Terminal: true}, false)
	r.begin(0, 2, 2)
	r.step(stepRecord(1, 1, 3))
	r.step(stepRecord(2, 1, 2.5))
	r.epoch(trainer.EpochRecord{Epoch: 1, Epochs: 1, Loss: 2.75, Seconds: 1, TokensPerSec: 2048})
	r.printf("saved")
	r.end()
	r.end() // again: nothing
	r.printf("after")
	text := out.String()
	require.Contains(t, text, "Epoch 1/1 | loss=2.7500 | epoch_time=1.00s | tokens/s=2048.0\n")
	require.Contains(t, text, "saved\n", "a line after the last step")
	require.Contains(t, text, "after\n")
	require.Contains(t, text, "step 2/2")
	require.NotContains(t, text, "step 1/2 | epoch")
}

// A benchmark reports nothing.
func TestQuietReport(t *testing.T) {
	var out bytes.Buffer
	r := newReport(Console{Out: &out, Terminal: true}, true)
	r.begin(0, 1, 1)
	r.step(stepRecord(1, 1, 3))
	r.end()
	require.Empty(t, out.String())
}

func TestFigures(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 2348810240: "2,348,810,240"} {
		require.Equal(t, want, count(n))
	}
	for n, want := range map[int]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 6 << 30: "6.0 GiB"} {
		require.Equal(t, want, size(n))
	}
	for s, want := range map[float64]string{0.2: "0s", 59.6: "1m00s", 200: "3m20s", 7500: "2h05m"} {
		require.Equal(t, want, shortDuration(s))
	}
}

// The rate is that of the steps since the last line: of two steps that ended as one the second seems to take no time.
func TestRateOfUnevenSteps(t *testing.T) {
	var out bytes.Buffer
	r := newReport(Console{Out: &out}, false)
	r.begin(0, 20, 20)
	for i, seconds := range []float64{1, 1, 1, 1e-6} {
		record := stepRecord(i+1, 1, 3)
		record.StepTime, record.TokensPerSec = seconds, 1024/seconds
		r.step(record)
	}
	require.Contains(t, out.String(), "step 2/20 | epoch 1 | loss=3.0000 | tokens/s=1024.0 |")
	require.Contains(t, out.String(), "step 4/20 | epoch 1 | loss=3.0000 | tokens/s=2048.0 |")
}
