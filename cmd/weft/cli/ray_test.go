package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// rayLogs follows job x of a cluster.
func rayLogs(address string) (code int, out, errs string) {
	var o, e strings.Builder
	code = Main([]string{"ray", "logs", "--address", address, "x"}, nil, &o, &e)
	return code, o.String(), e.String()
}

// An address where nobody answers, or somebody else, is said at once: only a head that was there is waited for.
func TestRayLogsOfAWrongAddress(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for address, want := range map[string]string{
		dead.URL:  `^weft: no Ray cluster answers at ` + dead.URL + `: .*connection refused; on GKE run .*\n$`,
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
