package gcstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// Fault says to which requests something happens, and what.
type Fault struct {
	Op   Op     // of which kind; empty: of any
	Name string // only those whose bucket/name contains it
	Skip int    // of those, so many pass first
	// Times is how often it happens; 0 is once, Always for ever.
	Times int
	Do    Action

	met int
}

// Always makes a fault happen for ever.
const Always = -1

// Action is what happens instead of the right answer.
type Action struct {
	what string
	do   func(s *Server, req Request, w http.ResponseWriter, r *http.Request)
}

func (a Action) String() string { return a.what }

func (f *Fault) do(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
	f.Do.do(s, req, w, r)
}

// Inject adds faults; the first that matches a request happens to it.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// Heal takes all faults away and tells how often each has happened.
func (s *Server) Heal() (happened []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		happened = append(happened, max(0, f.met-f.Skip))
	}
	s.faults = nil
	return happened
}

// pick notes the request and finds what shall happen to it.
func (s *Server) pick(req *Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var picked *Fault
	for _, f := range s.faults {
		if f.Op != "" && f.Op != req.Op || !strings.Contains(req.Bucket+"/"+req.Name, f.Name) {
			continue
		}
		if f.Times != Always && f.met >= f.Skip+max(f.Times, 1) {
			continue
		}
		f.met++
		if f.met > f.Skip {
			picked, req.Fault = f, f.Do.what
			break
		}
	}
	s.requests = append(s.requests, *req)
	return picked
}

// Status answers with an error of the JSON API; reason is its short name.
func Status(code int, reason, message string) Action {
	return Action{fmt.Sprintf("HTTP %d %s", code, reason), func(_ *Server, _ Request, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fail(w, code, reason, message)
	}}
}

// TooMany is 429 with a Retry-After of some seconds.
func TooMany(seconds int) Action {
	return Action{"HTTP 429", func(_ *Server, _ Request, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		fail(w, http.StatusTooManyRequests, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations.")
	}}
}

// Unavailable is 503.
var Unavailable = Status(http.StatusServiceUnavailable, "backendError", "We encountered an internal error. Please try again.")

// Unauthorized is 401.
var Unauthorized = Status(http.StatusUnauthorized, "authError", "Invalid Credentials")

// Forbidden is 403 for the want of a permission.
func Forbidden(permission string) Action {
	return Status(http.StatusForbidden, "forbidden", "weft@example.iam.gserviceaccount.com does not have "+permission+" access to the Google Cloud Storage object. Permission '"+permission+"' denied on resource (or it may not exist).")
}

// Hang answers nothing until the client gives up.
var Hang = Action{"hang", func(s *Server, _ Request, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that is gone only when the body is read
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}}

// Reset breaks the connection before anything is done.
var Reset = Action{"reset", func(_ *Server, _ Request, w http.ResponseWriter, _ *http.Request) { reset(w) }}

func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// HalfUpload takes half of the body and answers 503.
var HalfUpload = Action{"half upload", func(_ *Server, _ Request, w http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	w.Header().Set("Connection", "close")
	fail(w, http.StatusServiceUnavailable, "backendError", "We encountered an internal error. Please try again.")
}}

// LostAnswer does what was asked and breaks the connection.
var LostAnswer = Action{"lost answer", func(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
	s.answer(req, httptest.NewRecorder(), r)
	reset(w)
}}

// LostDelete says that the object is deleted and keeps it.
var LostDelete = Action{"lost delete", func(_ *Server, _ Request, w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusNoContent)
}}

// BitFlip changes one bit in the middle of the bytes that are read.
var BitFlip = Action{"bit flip", func(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	s.answer(req, rec, r)
	b := rec.Body.Bytes()
	if rec.Code < 300 && len(b) > 0 {
		b[len(b)/2] ^= 1
	}
	replay(w, rec, b)
}}

// BitFlipUp changes one bit of an upload on its way.
var BitFlipUp = Action{"bit flip on the way up", func(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	// Behind the content stands only the closing boundary.
	if i := bytes.LastIndex(b, []byte("\r\n--")); i > 0 {
		b[i-1] ^= 1
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	s.answer(req, w, r)
}}

// HalfRead breaks the connection in the middle of the bytes that are read.
var HalfRead = Action{"half read", func(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	s.answer(req, rec, r)
	b := rec.Body.Bytes()
	replay(w, rec, b[:len(b)/2])
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}}

// StaleList leaves out of a listing what contains text, as if it were not there
// yet.
func StaleList(text string) Action {
	return Action{"stale list", func(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		s.answer(req, rec, r)
		var list map[string]any
		if rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), &list) != nil {
			replay(w, rec, rec.Body.Bytes())
			return
		}
		for _, key := range []string{"items", "prefixes"} {
			var kept []any
			all, _ := list[key].([]any)
			for _, v := range all {
				name, _ := v.(string)
				if o, ok := v.(map[string]any); ok {
					name, _ = o["name"].(string)
				}
				if !strings.Contains(name, text) {
					kept = append(kept, v)
				}
			}
			list[key] = kept
		}
		b, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		rec.Header().Del("Content-Length")
		replay(w, rec, b)
	}}
}

// replay sends a recorded answer with another body. Its announced length stays:
// a shorter body is a broken one.
func replay(w http.ResponseWriter, rec *httptest.ResponseRecorder, body []byte) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(body)
}
