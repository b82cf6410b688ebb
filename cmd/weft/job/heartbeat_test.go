package job

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
)

func TestHostsAreJudged(t *testing.T) {
	well := func(work float64) heard {
		return heard{beat: beat{Host: "h", Step: 7, Work: work, StepTime: 1, Phase: "step 8"}, ok: true}
	}
	silent := well(0.01)
	silent.age = time.Minute
	slow := well(0.5)
	slow.Host = "slow"
	for name, c := range map[string]struct {
		hosts []heard
		want  []string // parts of what is said of each
	}{
		"all well":     {[]heard{well(0.01), well(0.02), well(0.01)}, []string{"", "", ""}},
		"one silent":   {[]heard{well(0.01), silent, well(0.01)}, []string{"", "host h (1) is silent: it was in step 8 at step 7", ""}},
		"one missing":  {[]heard{well(0.01), {}}, []string{"", "host 1 has not been heard of"}},
		"one slow":     {[]heard{well(0.01), well(0.01), slow}, []string{"", "", "host slow (2) is the slowest: it makes the others wait, with 500 ms of its own work before each step where the others need 10 ms"}},
		"all slow":     {[]heard{well(0.5), well(0.5), well(0.5)}, []string{"", "", ""}},
		"alone":        {[]heard{well(0.9)}, []string{""}},
		"before steps": {[]heard{{beat: beat{Host: "a"}, ok: true}, {beat: beat{Host: "b"}, ok: true}}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(c.hosts)
			require.Len(t, got, len(c.want))
			for i, want := range c.want {
				if want == "" {
					require.Empty(t, got[i])
				} else {
					require.Contains(t, got[i], want)
				}
			}
		})
	}
}

func TestHeartbeatsThroughStorage(t *testing.T) {
	dir := t.TempDir()
	folder := place{checkpoint.OS{}, dir}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	phase := func() (string, time.Duration) { return "step 4", time.Second }
	first := newHeartbeat(folder, "a", 0, 3, phase, logger)
	second := newHeartbeat(folder, "b", 1, 3, phase, logger)
	first.step(3, 1, 10*time.Millisecond)
	second.step(3, 1, 900*time.Millisecond)
	first.beat()
	second.beat()
	first.look()
	require.Contains(t, log.String(), "host 2 has not been heard of")
	require.Contains(t, log.String(), "host b (1) is the slowest")
	log.Reset()
	first.look()
	require.Empty(t, log.String(), "what was said is not said again")
	second.step(3, 1, 800*time.Millisecond)
	second.beat()
	first.look()
	require.Empty(t, log.String(), "other figures are no news")

	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, heartbeatDir, "host-0001.json"), old, old))
	first.look()
	require.Contains(t, log.String(), "host b (1) is silent: it was in step 4 at step 3")

	require.Nil(t, startHeartbeat(folder, "a", 0, 1, phase, logger), "one host tells nobody")
	var none *heartbeat
	none.step(1, 1, 0)
	none.close()
}
