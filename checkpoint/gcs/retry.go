package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"weft/checkpoint"
)

var (
	// ErrCredentials: there are none, or the server does not take them.
	ErrCredentials = errors.New("no usable Google credentials")
	// ErrBucket: the bucket does not exist.
	ErrBucket = errors.New("the bucket does not exist")
	// ErrPermission: the credentials lack a permission. It is fs.ErrPermission too.
	ErrPermission = fmt.Errorf("no permission: %w", fs.ErrPermission)
	// ErrQuota: the server asked to slow down, or a quota is used up.
	ErrQuota = errors.New("over quota")
	// ErrRetention: a hold or retention policy of the bucket forbids it.
	ErrRetention = errors.New("the bucket's retention policy forbids it")
	// ErrUnavailable: the server could not be reached or failed, many times.
	ErrUnavailable = errors.New("no answer from Cloud Storage")
	// ErrChecksum: bytes changed on their way.
	ErrChecksum = errors.New("checksum differs")
	// ErrLeaseLost: the lock is no longer this process's. It is checkpoint.ErrLocked too.
	ErrLeaseLost = fmt.Errorf("the lock was lost: %w", checkpoint.ErrLocked)

	errPrecondition = errors.New("precondition failed")
)

// Error is what a request ended with, on one line.
type Error struct {
	Op   string // "reading"…
	URL  string // gs://…, empty when it is about none
	Kind error  // one of the errors above, or nil
	Err  error  // the last cause

	permission string // that is missing, for ErrPermission
	attempts   int
	temporary  bool
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.URL != "" {
		b.WriteString(" " + e.URL)
	}
	if e.Kind != nil {
		b.WriteString(": " + strings.TrimSuffix(e.Kind.Error(), ": "+fs.ErrPermission.Error()))
	}
	if e.permission != "" {
		b.WriteString(" " + e.permission)
	}
	if e.attempts > 1 {
		fmt.Fprintf(&b, ": %d attempts, the last", e.attempts)
	}
	if e.Err != nil {
		b.WriteString(": " + oneLine(e.Err))
	}
	if a := e.Advice(); a != "" {
		b.WriteString("; " + a)
	}
	return b.String()
}

// Unwrap returns kind and cause.
func (e *Error) Unwrap() []error {
	var list []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// Temporary tells that the same may succeed later.
func (e *Error) Temporary() bool { return e.temporary }

// Advice says what the user can do.
func (e *Error) Advice() string {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(e.URL, "gs://"), "/")
	switch e.Kind {
	case ErrCredentials:
		return "run `gcloud auth application-default login`, or give the VM a service account with the scope cloud-platform"
	case ErrBucket:
		return "make it with `gcloud storage buckets create gs://" + bucket + "`, or correct the name"
	case ErrPermission:
		return "grant roles/storage.objectAdmin on gs://" + bucket + " to the account that runs this, or use another bucket"
	case ErrQuota:
		return "try again later, or ask for more quota of the project"
	case ErrRetention:
		return "use a bucket without a retention policy and holds"
	case ErrUnavailable:
		return "check the network and try again"
	case ErrChecksum:
		return "try again"
	case ErrLeaseLost:
		return "another run took the storage path; only one of them may go on"
	}
	return ""
}

// oneLine is the message without what Google's library adds below it.
func oneLine(err error) string {
	if c := code(err); c != 0 {
		msg, _ := said(err)
		if msg == "" {
			msg = http.StatusText(c)
		}
		return fmt.Sprintf("HTTP %d: %s", c, strings.Join(strings.Fields(msg), " "))
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// Retry says how a request that failed for a reason that may pass is sent
// again: HTTP 408, 429 and 5xx, time-outs, broken connections, wrong checksums.
type Retry struct {
	Attempts int           // in all; 10 by default
	First    time.Duration // before the second attempt, doubled each time; 250 ms by default
	Max      time.Duration // the longest of these; 16 s by default
	Timeout  time.Duration // of one small request; 30 s by default
	// Upload is the time-out of one part on its way, and of a read without a
	// byte coming; 2 min by default.
	Upload time.Duration
}

func (r *Retry) defaults() {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&r.First, 250 * time.Millisecond}, {&r.Max, 16 * time.Second}, {&r.Timeout, 30 * time.Second}, {&r.Upload, 2 * time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if r.Attempts <= 0 {
		r.Attempts = 10
	}
}

// delay is the wait after the n-th attempt, from 0. The name spreads it, so that
// many objects that fail at once do not come back at once.
func (r *Retry) delay(n int, name string, err error) time.Duration {
	d := min(r.First<<min(n, 20), r.Max)
	h := fnv.New32a()
	fmt.Fprint(h, name, n)
	d -= d / 4 * time.Duration(h.Sum32()%1000) / 1000
	var g *googleapi.Error
	if errors.As(err, &g) && g.Header != nil {
		if s, err := strconv.Atoi(g.Header.Get("Retry-After")); err == nil && s >= 0 {
			d = max(d, min(time.Duration(s)*time.Second, 2*r.Max))
		}
	}
	return d
}

// retryable marks an error of our own that may pass.
type retryable struct{ error }

func (r retryable) Unwrap() error { return r.error }

// try calls do until it succeeds, fails for good or the attempts are used up.
func (f *FS) try(op, name string, timeout time.Duration, do func(context.Context) error) error {
	for n := 0; ; n++ {
		ctx, cancel := context.WithTimeout(f.ctx, timeout)
		err := do(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if !transient(err) || n+1 >= f.opts.Retry.Attempts {
			return f.classify(op, name, err, n+1)
		}
		if err := f.clock.sleep(f.ctx, f.opts.Retry.delay(n, name, err)); err != nil {
			return err
		}
	}
}

// code is the HTTP status of an error, 0 without one.
func code(err error) int {
	var g *googleapi.Error
	if errors.As(err, &g) {
		return g.Code
	}
	return 0
}

// transient tells what may succeed when it is sent again.
func transient(err error) bool {
	var (
		r     retryable
		netOp net.Error
		dns   *net.DNSError
		creds *auth.Error
	)
	switch c := code(err); {
	case c == http.StatusRequestTimeout, c == http.StatusTooManyRequests, c >= 500:
		return true
	case c == http.StatusForbidden:
		return slowDown(err)
	case c != 0:
		return badCRC(err)
	case errors.As(err, &creds):
		return creds.Temporary()
	case errors.As(err, &r), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE), badCRC(err):
		return true
	case errors.As(err, &dns):
		return dns.Temporary() || dns.Timeout()
	case errors.As(err, &netOp) && netOp.Timeout():
		return true
	}
	// What is left of broken connections has no type: EOF inside of a url.Error, "http2: client connection lost".
	var u *url.Error
	return errors.As(err, &u) && (errors.Is(err, io.EOF) || strings.Contains(err.Error(), "connection"))
}

// badCRC: the server compared the checksum of an upload, or the library that of
// an object read whole.
func badCRC(err error) bool {
	msg, _ := said(err)
	return strings.HasPrefix(err.Error(), "storage: bad CRC on read") || code(err) == http.StatusBadRequest && strings.Contains(strings.ToLower(msg), "crc32c")
}

// slowDown tells the 403 that ask for patience from those that mean it.
func slowDown(err error) bool { return hasReason(err, "rateLimitExceeded", "userRateLimitExceeded") }

// said returns the server's message and its short reasons. Of a failed read the
// library hands on the body as it came.
func said(err error) (message string, reasons []string) {
	var g *googleapi.Error
	if !errors.As(err, &g) {
		return "", nil
	}
	message = g.Message
	for _, item := range g.Errors {
		reasons = append(reasons, item.Reason)
	}
	var body struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if message == "" && json.Unmarshal([]byte(g.Body), &body) == nil {
		message = body.Error.Message
		for _, item := range body.Error.Errors {
			reasons = append(reasons, item.Reason)
		}
	}
	return message, reasons
}

func hasReason(err error, reasons ...string) bool {
	_, has := said(err)
	return slices.ContainsFunc(reasons, func(r string) bool { return slices.Contains(has, r) })
}

var permissionName = regexp.MustCompile(`storage\.[a-z]+\.[a-zA-Z]+`)

// permissions that the operations need, for messages that do not say it.
var permissions = map[string]string{
	"reading": "storage.objects.get", "listing": "storage.objects.list", "writing": "storage.objects.create",
	"deleting": "storage.objects.delete", "replacing": "storage.objects.delete", "renaming": "storage.objects.create", "locking": "storage.objects.create",
}

// classify gives the last error its name.
func (f *FS) classify(op, name string, err error, attempts int) error {
	e := &Error{Op: op, URL: f.URL(name), Err: err, attempts: attempts}
	msg, _ := said(err)
	var creds *auth.Error
	switch c := code(err); {
	case errors.Is(err, storage.ErrBucketNotExist), c == 404 && strings.Contains(msg, "bucket does not exist"):
		e.Kind, e.Err = ErrBucket, nil
	case errors.Is(err, storage.ErrObjectNotExist), c == 404:
		return &fs.PathError{Op: op, Path: e.URL, Err: fs.ErrNotExist}
	case c == 412:
		return fmt.Errorf("%s %s: %w", op, e.URL, errPrecondition)
	case c == 401, errors.As(err, &creds), strings.HasPrefix(err.Error(), "credentials:"):
		e.Kind = ErrCredentials
	case hasReason(err, "retentionPolicyNotMet", "objectUnderActiveHold"):
		e.Kind = ErrRetention
	case c == 429, hasReason(err, "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"):
		e.Kind, e.temporary = ErrQuota, true
	case c == 403:
		e.Kind, e.permission = ErrPermission, permissions[op]
		if p := permissionName.FindString(msg); p != "" {
			e.permission = p
		}
	case badCRC(err), errors.Is(err, ErrChecksum):
		e.Kind, e.temporary = ErrChecksum, true
	case transient(err):
		e.Kind, e.temporary = ErrUnavailable, true
	}
	return e
}
