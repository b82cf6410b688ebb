// Package gcstest runs a fake Cloud Storage on loopback for tests, and makes it
// fail in the ways in which the real one and the network do.
//
// The store is fake-gcs-server. Before it stands a handler of our own, which
// adds what that lacks (generation preconditions of deletes, copies and
// composes, the check of an upload's CRC32C) and injects faults.
package gcstest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// Op is a kind of request.
type Op string

// The requests that weft makes.
const (
	Insert  Op = "insert"  // upload of an object
	Stat    Op = "stat"    // metadata of an object
	Read    Op = "read"    // bytes of an object
	List    Op = "list"    // names below a prefix
	Delete  Op = "delete"  // of an object
	Compose Op = "compose" // of several objects to one
	Copy    Op = "copy"    // of an object
)

// Request is one request as the server met it.
type Request struct {
	Op           Op
	Bucket, Name string // Name is the prefix for List, the new object for Compose and Copy
	Source       string // for Copy
	Fault        string // that was injected, or empty
}

// Server is a fake Cloud Storage.
type Server struct {
	Addr     string // 127.0.0.1:port
	http     *httptest.Server
	fake     *fakestorage.Server
	backend  http.Handler
	closed   chan struct{}
	changing sync.Mutex // checks and changes are one
	mu       sync.Mutex
	faults   []*Fault
	requests []Request
}

// Start runs a server with empty buckets until the end of the test.
func Start(t testing.TB, buckets ...string) *Server {
	t.Helper()
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{fake: fake, backend: fake.HTTPHandler(), closed: make(chan struct{})}
	for _, b := range buckets {
		fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: b})
	}
	s.http = httptest.NewServer(s)
	s.Addr = s.http.Listener.Addr().String()
	t.Cleanup(func() {
		close(s.closed)
		s.http.CloseClientConnections()
		s.http.Close()
		fake.Stop()
	})
	return s
}

// Env is the setting of the environment with which a program talks to the
// server.
func (s *Server) Env() string { return env(s.http) }

func env(h *httptest.Server) string {
	return "STORAGE_EMULATOR_HOST=" + h.Listener.Addr().String()
}

// Use makes this process talk to the server until the end of the test.
func (s *Server) Use(t *testing.T) { t.Setenv("STORAGE_EMULATOR_HOST", s.Addr) }

// Put makes an object, as somebody else would.
func (s *Server) Put(bucket, name string, content []byte) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.fake.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: bucket, Name: name}, Content: content})
}

// Objects returns all objects of a bucket with their content.
func (s *Server) Objects(bucket string) map[string][]byte {
	s.changing.Lock()
	defer s.changing.Unlock()
	out := map[string][]byte{}
	list, err := s.fake.ListObjectsWithOptionsPaginated(bucket, fakestorage.ListOptions{})
	if err != nil {
		panic(err)
	}
	for _, o := range list.Objects {
		obj, err := s.fake.GetObject(bucket, o.Name)
		if err != nil {
			panic(err)
		}
		out[o.Name] = obj.Content
	}
	return out
}

// Requests returns what has been asked since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

const (
	apiPath    = "/storage/v1/b/"
	uploadPath = "/upload/storage/v1/b/"
	mediaPath  = "/download/storage/v1/b/"
)

// parse recognises a request; ok is false for one that weft does not make.
func parse(r *http.Request) (req Request, ok bool) {
	p := r.URL.EscapedPath()
	media := r.URL.Query().Get("alt") == "media"
	rest, upload := strings.CutPrefix(p, uploadPath)
	if !upload {
		var download bool
		if rest, download = strings.CutPrefix(p, mediaPath); download {
			media = true
		} else if rest, ok = strings.CutPrefix(p, apiPath); !ok {
			return req, false
		}
	}
	parts := strings.Split(rest, "/")
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	req.Bucket = parts[0]
	switch {
	case len(parts) < 2 || parts[1] != "o":
		return req, false
	case upload:
		req.Op, req.Name = Insert, r.URL.Query().Get("name")
	case len(parts) == 2 && r.Method == http.MethodGet:
		req.Op, req.Name = List, r.URL.Query().Get("prefix")
	case len(parts) == 4 && parts[3] == "compose":
		req.Op, req.Name = Compose, parts[2]
	case len(parts) == 8 && parts[3] == "rewriteTo":
		req.Op, req.Source, req.Name = Copy, parts[2], parts[7]
	case len(parts) == 3 && r.Method == http.MethodDelete:
		req.Op, req.Name = Delete, parts[2]
	case len(parts) == 3 && r.Method == http.MethodGet:
		req.Op, req.Name = Stat, parts[2]
		if media {
			req.Op = Read
		}
	default:
		return req, false
	}
	return req, true
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, ok := parse(r)
	if !ok {
		fail(w, http.StatusNotImplemented, "notImplemented", "gcstest does not know "+r.Method+" "+r.URL.Path)
		return
	}
	fault := s.pick(&req)
	if fault != nil {
		fault.do(s, req, w, r)
		return
	}
	s.answer(req, w, r)
}

// answer is the right one.
func (s *Server) answer(req Request, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch req.Op {
	case Insert, Delete, Compose, Copy:
		s.changing.Lock()
		defer s.changing.Unlock()
	}
	if status, reason, msg := s.check(req, r, body); status != 0 {
		fail(w, status, reason, msg)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.backend.ServeHTTP(w, r)
}

// stat returns the generation of an object, 0 without one.
func (s *Server) stat(bucket, name string) int64 {
	o, err := s.fake.GetObject(bucket, name)
	if err != nil {
		return 0
	}
	return o.Generation
}

// check does what fake-gcs-server leaves out.
func (s *Server) check(req Request, r *http.Request, body []byte) (status int, reason, msg string) {
	if !slices.ContainsFunc(s.buckets(), func(b string) bool { return b == req.Bucket }) {
		return http.StatusNotFound, "notFound", "The specified bucket does not exist."
	}
	failed := func(name, want string) bool {
		gen, err := strconv.ParseInt(want, 10, 64)
		return want != "" && (err != nil || s.stat(req.Bucket, name) != gen)
	}
	const precondition = "At least one of the pre-conditions you specified did not hold."
	q := r.URL.Query()
	if failed(req.Name, q.Get("ifGenerationMatch")) {
		// A delete of what is not there is "not found" first.
		if req.Op == Delete && s.stat(req.Bucket, req.Name) == 0 {
			return http.StatusNotFound, "notFound", "No such object: " + req.Bucket + "/" + req.Name
		}
		return http.StatusPreconditionFailed, "conditionNotMet", precondition
	}
	switch req.Op {
	case Copy:
		if s.stat(req.Bucket, req.Source) == 0 {
			return http.StatusNotFound, "notFound", "No such object: " + req.Bucket + "/" + req.Source
		}
		if failed(req.Source, q.Get("ifSourceGenerationMatch")) {
			return http.StatusPreconditionFailed, "conditionNotMet", precondition
		}
	case Compose:
		var c struct {
			SourceObjects []struct {
				Name                string
				ObjectPreconditions struct{ IfGenerationMatch json.RawMessage }
			}
		}
		if err := json.Unmarshal(body, &c); err != nil {
			return http.StatusBadRequest, "invalid", err.Error()
		}
		for _, o := range c.SourceObjects {
			if s.stat(req.Bucket, o.Name) == 0 {
				return http.StatusNotFound, "notFound", "Object " + o.Name + " not found"
			}
			if failed(o.Name, strings.Trim(string(o.ObjectPreconditions.IfGenerationMatch), `"`)) {
				return http.StatusPreconditionFailed, "conditionNotMet", precondition
			}
		}
	case Insert:
		if err := checkUpload(r, body); err != nil {
			return http.StatusBadRequest, "invalid", err.Error()
		}
	}
	return 0, "", ""
}

func (s *Server) buckets() (names []string) {
	list, err := s.fake.Backend().ListBuckets()
	if err != nil {
		panic(err)
	}
	for _, b := range list {
		names = append(names, b.Name)
	}
	return names
}

// checkUpload compares the CRC32C in an upload's metadata with its bytes.
func checkUpload(r *http.Request, body []byte) error {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	mr := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	part, err := mr.NextPart()
	if err != nil {
		return err
	}
	var meta struct {
		CRC32C string `json:"crc32c"`
	}
	if err := json.NewDecoder(part).Decode(&meta); err != nil {
		return err
	}
	if part, err = mr.NextPart(); err != nil {
		return err
	}
	content, err := io.ReadAll(part)
	if err != nil {
		return err
	}
	if meta.CRC32C == "" {
		return fmt.Errorf("the upload carries no crc32c, and weft's always do")
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
	if got := base64.StdEncoding.EncodeToString(sum); got != meta.CRC32C {
		return fmt.Errorf("provided CRC32C %q doesn't match calculated CRC32C %q", meta.CRC32C, got)
	}
	return nil
}

// fail answers an error as the JSON API does.
func fail(w http.ResponseWriter, status int, reason, msg string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": status, "message": msg,
		"errors": []map[string]any{{"message": msg, "domain": "global", "reason": reason}},
	}})
}
