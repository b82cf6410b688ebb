package ray

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// serve is a client of a server that answers as f does.
func serve(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	c, err := New(s.URL + "/")
	require.NoError(t, err)
	return c
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"": DefaultAddress, "head:8265": "http://head:8265", "https://ray.example/x/": "https://ray.example/x", "127.0.0.1:80": "http://127.0.0.1:80",
	} {
		c, err := New(address)
		require.NoError(t, err)
		require.Equal(t, want, c.Address())
	}
	for _, address := range []string{"ray://head:10001", "http://", "gcs:// x"} {
		_, err := New(address)
		require.ErrorContains(t, err, "--address "+address+": give the address of the cluster's dashboard")
	}
}

// What is no Ray cluster is said to be none.
func TestNotRay(t *testing.T) {
	ctx := t.Context()
	for body, want := range map[string]string{
		`<html>`: "does not answer as a Ray cluster does", `{}`: "answers, but not as a Ray cluster does", "404": "is no Ray cluster (it has no /api/version)",
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if body == "404" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, body)
		})
		_, err := c.Version(ctx)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, c.Address())
		require.ErrorContains(t, err, "usually port 8265")
	}
	s := httptest.NewServer(nil)
	s.Close()
	c, err := New(s.URL)
	require.NoError(t, err)
	_, err = c.Version(ctx)
	require.ErrorContains(t, err, "no Ray cluster answers at "+s.URL)
	require.ErrorContains(t, err, "connection refused; on GKE run `kubectl port-forward")
	require.True(t, isUnreachable(err))
}

const traceback = `Traceback (most recent call last):
  File "job_head.py", line 1, in submit_job
    resp = await job_agent_client.submit_job_internal(submit_request)
RuntimeError: Request failed with status code 400: Traceback (most recent call last):
  File "job_manager.py", line 2, in submit_job
ValueError: Job with submission_id mine %s Please use a different submission_id.
.
`

// Of a traceback the line that says what happened is left; a taken id is its own error.
func TestTraceback(t *testing.T) {
	text := "was refused."
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/api/jobs/", r.URL.Path)
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, traceback, text)
	})
	_, err := c.Submit(t.Context(), Job{SubmissionID: "mine"})
	require.EqualError(t, err, "the Ray cluster at "+c.Address()+" answered /api/jobs/ with 500 Internal Server Error: "+
		"ValueError: Job with submission_id mine was refused. Please use a different submission_id.")
	text = "already exists."
	_, err = c.Submit(t.Context(), Job{SubmissionID: "mine"})
	var taken *TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "mine", taken.ID)
}

func TestNoJob(t *testing.T) {
	c := serve(t, http.NotFound)
	var gone *NoJobError
	_, err := c.Info(t.Context(), "x")
	require.ErrorAs(t, err, &gone)
	require.ErrorAs(t, c.Stop(t.Context(), "x"), &gone)
	_, err = c.Logs(t.Context(), "x")
	require.ErrorAs(t, err, &gone)
	_, err = c.Follow(t.Context(), "x", io.Discard, 0)
	require.ErrorAs(t, err, &gone)
	_, err = c.Wait(t.Context(), "x", io.Discard, func(string) {})
	require.ErrorAs(t, err, &gone, "a job that never was is not lost")
}

// A head that hangs is left when the context says so.
func TestHang(t *testing.T) {
	release := make(chan struct{})
	c := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Version(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = c.Wait(ctx, "x", io.Discard, func(string) {})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A package that is there is not sent.
func TestUpload(t *testing.T) {
	p, err := NewPackage("")
	require.NoError(t, err)
	same, err := NewPackage("")
	require.NoError(t, err)
	require.Equal(t, p, same, "equal content, equal package")
	there := map[string][]byte{}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			there[r.URL.Path], _ = io.ReadAll(r.Body)
		} else if _, ok := there[r.URL.Path]; !ok {
			http.NotFound(w, r)
		}
	})
	for _, want := range []bool{true, false} {
		sent, err := c.Upload(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, want, sent)
	}
	require.Equal(t, map[string][]byte{"/api/packages/gcs/" + p.Name: p.Bytes}, there)
	_, err = NewPackage("no-such-file")
	require.ErrorContains(t, err, "--binary: open no-such-file")
}

// A log that breaks off is gone on with where it was; a job that is not there afterwards is lost.
func TestBrokenLog(t *testing.T) {
	lines := []string{"one\n", "two\n", "three\n"}
	for _, lost := range []bool{false, true} {
		tries := 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/tail") {
				if lost {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, `{"submission_id": "x", "status": "SUCCEEDED"}`)
				return
			}
			tries++
			if lost && tries > 1 {
				http.NotFound(w, r)
				return
			}
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			for i := range lines {
				if tries == 1 && i == 2 {
					_ = conn.Write(r.Context(), websocket.MessageText, []byte("thr"))
					return // as a head that is killed
				}
				_ = conn.Write(r.Context(), websocket.MessageText, []byte(lines[i]))
			}
			conn.Close(websocket.StatusNormalClosure, "")
		})
		var out bytes.Buffer
		var notices []string
		info, err := c.Wait(t.Context(), "x", &out, func(line string) { notices = append(notices, line) })
		require.Len(t, notices, 1)
		require.Contains(t, notices[0], "waiting up to 10m0s for it to come back")
		if lost {
			var gone *LostError
			require.True(t, errors.As(err, &gone), "%v", err)
			require.Equal(t, "one\ntwo\nthr", out.String())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, Succeeded, info.Status)
		require.Equal(t, "one\ntwo\nthree\n", out.String(), "each line once")
	}
}

// A head that has just been started answers before it knows its jobs: that is waited for, too.
func TestHeadStarts(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tail") {
			conn, err := websocket.Accept(w, r, nil)
			if err == nil {
				conn.Close(websocket.StatusNormalClosure, "")
			}
			return
		}
		if asked++; asked == 1 {
			http.Error(w, "RuntimeError: the head is not there yet", http.StatusInternalServerError)
			return
		}
		http.NotFound(w, r)
	})
	var notices []string
	_, err := c.Wait(t.Context(), "x", io.Discard, func(line string) { notices = append(notices, line) })
	var gone *LostError
	require.ErrorAs(t, err, &gone)
	require.Len(t, notices, 1)
	require.Contains(t, notices[0], "the head is not there yet; waiting up to 10m0s for it to come back")
}

func TestQuote(t *testing.T) {
	require.Equal(t, `a-b=c '' 'it'\''s' '$x' gs://b/x`, Quote([]string{"a-b=c", "", "it's", "$x", "gs://b/x"}))
}

// Which hosts of a slice are missing follows from its topology and its hosts' chips.
func TestSlices(t *testing.T) {
	host := func(slice, worker, topology, pod string, tpus float64) Node {
		return Node{Resources: map[string]float64{"TPU": tpus}, Labels: map[string]string{labelSlice: slice, labelWorker: worker, labelTopology: topology, labelPod: pod}}
	}
	got := slicesOf([]Node{
		{IP: "head"}, host("b", "3", "4x4", "v6e-16", 4), host("b", "0", "4x4", "v6e-16", 4), host("a", "0", "2x4", "v6e-8", 8),
		host("c", "1", "2x2x2", "tpu7x-16", 8), host("d", "0", "", "", 4),
	})
	missing := map[string][]int{}
	for _, s := range got {
		missing[s.Name] = s.Missing
	}
	require.Equal(t, map[string][]int{"a": nil, "b": {1, 2}, "c": {0}, "d": nil}, missing)
	require.Equal(t, "0", got[1].Hosts[0].Labels[labelWorker])
}
