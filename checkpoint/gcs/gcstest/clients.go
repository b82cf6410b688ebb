package gcstest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Client is one client of a server, another process: a way to the server of its own, by which it is known when nothing that the
// client asked for can happen any more. A request may outlive the one who sent it.
type Client struct {
	http *httptest.Server

	mu   sync.Mutex
	open map[net.Conn]bool
	// ended is told when a connection has.
	ended sync.Cond
}

// Client makes a way for one client. Gone must be called when the client has ended.
func (s *Server) Client() *Client {
	c := &Client{http: httptest.NewUnstartedServer(s), open: map[net.Conn]bool{}}
	c.ended.L = &c.mu
	c.http.Config.ConnState = c.note
	c.http.Start()
	return c
}

// Env is the setting of the environment with which the client talks to the server.
func (c *Client) Env() string { return env(c.http) }

// note is told by the server what becomes of a connection. When it has ended, its last request was answered.
func (c *Client) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		c.ended.Broadcast()
	}
}

// Gone returns when all that the client asked for has happened, and ends its way to the server.
func (c *Client) Gone() {
	// Connections are accepted in their order: when this one is, those of the client are known.
	probe := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if r, err := probe.Get(c.http.URL); err == nil {
		_ = r.Body.Close()
	}
	c.mu.Lock()
	for len(c.open) > 0 {
		c.ended.Wait()
	}
	c.mu.Unlock()
	c.http.Close()
}
