package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// rayLogs follows job x of a cluster.
func rayLogs(address string) (code int, out, errs string) {
	var o, e strings.Builder
	code = Main([]string{"ray", "logs", "--address", address, "x"}, nil, &o, &e)
	return code, o.String(), e.String()
}

// nobody is the URL of a port that refuses connections, and that nobody else gets.
func nobody(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("http://127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// An address where nobody answers, or somebody else, is said at once: only a head that was there is waited for.
func TestRayLogsOfAWrongAddress(t *testing.T) {
	dead := nobody(t)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for address, want := range map[string]string{
		dead:      `^weft: no Ray cluster answers at ` + dead + `: .*connection refused; on GKE run .*\n$`,
		other.URL: `^weft: ` + other.URL + ` is no Ray cluster .*usually port 8265\n$`,
	} {
		code, out, errs := rayLogs(address)
		require.Equal(t, exitFailed, code, errs)
		require.Empty(t, out)
		require.Regexp(t, want, errs)
	}
}

// A job that is lost with its head can be submitted again, whichever command followed it.
func TestRayLogsOfALostJob(t *testing.T) {
	var lost atomic.Bool
	head := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/version":
			fmt.Fprint(w, `{"ray_version":"2.58.0"}`)
		case lost.Swap(true):
			http.NotFound(w, r)
		default:
			conn, err := websocket.Accept(w, r, nil)
			if err == nil {
				_ = conn.Write(r.Context(), websocket.MessageText, []byte("a line\n"))
				_ = conn.CloseNow()
			}
		}
	}))
	defer head.Close()
	code, out, errs := rayLogs(head.URL)
	require.Equal(t, exitRetry, code, errs)
	require.Equal(t, "a line\n", out)
	require.Contains(t, errs, "weft: job x is lost: the head of the Ray cluster at "+head.URL+" was started anew")
}

// What is wrong with weft's own command line is said before a cluster is asked for anything; another program's is its own.
func TestRaySubmitChecksWhatTheHostsRun(t *testing.T) {
	dead := nobody(t)
	submit := func(more ...string) (code int, errs string) {
		var e strings.Builder
		code = Main(append([]string{"ray", "submit", "--address", dead, "--topology", "2x2", "--accelerator-type", "TPU-V6E"}, more...), nil, io.Discard, &e)
		return code, e.String()
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--", "finetune", "--learning-rat", "1"}, `^weft: after --: unknown flag --learning-rat, did you mean "--learning-rate"`},
		{[]string{"--", "fintune"}, `^weft: after --: unexpected argument fintune`},
		{[]string{"--", "finetune", "--remat", "half"}, `^weft: after --: --remat must be one of`},
		{[]string{"--", "finetune", "--num-epochs", "three"}, `^weft: after --: --num-epochs`},
	} {
		code, errs := submit(c.args...)
		require.Equal(t, exitInput, code, errs)
		require.Regexp(t, c.want, errs)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	for _, args := range [][]string{
		{"--", "finetune", "--model-id", "gs://b/m", "--dataset", "gs://b/d.jsonl", "--storage-path", "gs://b/r"},
		{"--", "finetune", "--help"}, {"--", "collectives"},
		{"--", "finetune", "--config", "/on/the/hosts.yaml"}, {"--", "finetune", "--config=/on/the/hosts.yaml", "--dataset", "d"},
		{"--binary", "image:weft", "--", "finetune", "--flag-of-a-newer-one"},
	} {
		code, errs := submit(args...)
		require.Equal(t, exitFailed, code, errs)
		require.Contains(t, errs, "no Ray cluster answers at "+dead)
	}
}
