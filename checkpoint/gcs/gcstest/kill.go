package gcstest

import (
	"io"
	"net/http"
	"net/http/httptest"
)

// Before calls f, which ends the client, before anything is done.
func Before(f func()) Action {
	return Action{"call before", func(_ *Server, _ Request, w http.ResponseWriter, _ *http.Request) {
		f()
		reset(w)
	}}
}

// Half calls f, which ends the client, when half of the body is there: nothing is done.
func Half(f func()) Action {
	return Action{"call within", func(_ *Server, _ Request, w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, max(0, r.ContentLength/2))
		f()
		reset(w)
	}}
}

// After calls f, which ends the client, when all is done and before the answer.
func After(f func()) Action {
	return Action{"call after", func(s *Server, req Request, w http.ResponseWriter, r *http.Request) {
		s.answer(req, httptest.NewRecorder(), r)
		f()
		reset(w)
	}}
}
