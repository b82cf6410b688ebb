package ray

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// DefaultAddress is where `kubectl port-forward` and `ray start --head` put the cluster's HTTP interface.
const DefaultAddress = "http://127.0.0.1:8265"

// Client talks to the head of one cluster. Its errors name the address.
type Client struct {
	base *url.URL
	http *http.Client
}

// answerTime bounds one request and its answer, but for uploads and logs.
const answerTime = 30 * time.Second

// New returns a client of the cluster whose dashboard is at address: http://HOST:8265, or HOST:8265.
func New(address string) (*Client, error) {
	if address == "" {
		address = DefaultAddress
	}
	full := address
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	base, err := url.Parse(full)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("--address %s: give the address of the cluster's dashboard, such as %s (ray:// and host:6379 are for Python)", address, DefaultAddress)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return &Client{base: base, http: &http.Client{}}, nil
}

// Address is the base of all requests.
func (c *Client) Address() string { return c.base.String() }

// StatusError is an answer that is not a success.
type StatusError struct {
	Address, Path string
	Code          int
	Text          string // the line of what came with it that says what happened
	whole         string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the Ray cluster at %s answered %s with %d %s: %s", e.Address, e.Path, e.Code, http.StatusText(e.Code), e.Text)
}

// NotFound tells that what was asked for is not there.
func NotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// do sends a request and decodes the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.unreachable(err)
	}
	if resp.StatusCode != http.StatusOK {
		return &StatusError{c.Address(), path, resp.StatusCode, lastLine(raw), string(raw)}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s does not answer as a Ray cluster does (%s: %w): give the address of its dashboard, usually port 8265", c.Address(), path, err)
	}
	return nil
}

// unreachable says what to do about a cluster that does not answer.
func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &UnreachableError{Address: c.Address(), Err: err}
}

// UnreachableError: nobody answers at the address, at least not now.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no Ray cluster answers at %s: %v; on GKE run `kubectl port-forward svc/CLUSTER-head-svc 8265:8265` first, or give --address (or RAY_ADDRESS)", e.Address, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// raised is the line of a Python traceback that names what was raised.
var raised = regexp.MustCompile(`^[\w.]*(Error|Exception)\b`)

// lastLine is the line of a Python traceback that says what happened: of several, the last.
func lastLine(raw []byte) string {
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	last := ""
	for _, line := range lines {
		if raised.MatchString(line) {
			last = line
		}
	}
	return strings.TrimSpace(cmp.Or(last, lines[len(lines)-1]))
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// Version is what the head says of itself.
type Version struct {
	Ray     string `json:"ray_version"`
	Session string `json:"session_name"`
}

// Version asks the head who it is. Anything else than a Ray cluster is an error.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	if err = c.get(ctx, "/api/version", &v); err == nil && v.Ray == "" {
		err = fmt.Errorf("%s answers, but not as a Ray cluster does: give the address of its dashboard, usually port 8265", c.Address())
	}
	if NotFound(err) {
		err = fmt.Errorf("%s is no Ray cluster (it has no /api/version): give the address of its dashboard, usually port 8265", c.Address())
	}
	return v, err
}

// Job is what to submit.
type Job struct {
	Entrypoint   string            `json:"entrypoint"`
	SubmissionID string            `json:"submission_id,omitempty"`
	RuntimeEnv   RuntimeEnv        `json:"runtime_env"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	// CPUs is what the driver takes of the node that it runs on; 0 lets it run on a head that offers none.
	CPUs float64 `json:"entrypoint_num_cpus"`
}

// RuntimeEnv is what the driver and the hosts' actors find.
type RuntimeEnv struct {
	WorkingDir string            `json:"working_dir,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
}

// TakenError is a submission id that another job has.
type TakenError struct{ Address, ID string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("--submission-id %s: the Ray cluster at %s has a job of this name: give another one, or none; weft ray logs %[1]s shows it", e.ID, e.Address)
}

// Submit starts a job and returns its submission id.
func (c *Client) Submit(ctx context.Context, job Job) (string, error) {
	body, err := json.Marshal(job)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*answerTime)
	defer cancel()
	var answer struct {
		SubmissionID string `json:"submission_id"`
	}
	err = c.do(ctx, http.MethodPost, "/api/jobs/", bytes.NewReader(body), &answer)
	var status *StatusError
	if errors.As(err, &status) && strings.Contains(status.whole, "already exists") {
		return "", &TakenError{c.Address(), job.SubmissionID}
	}
	if err != nil {
		return "", err
	}
	return answer.SubmissionID, nil
}

// Status of a job.
const (
	Pending   = "PENDING"
	Running   = "RUNNING"
	Stopped   = "STOPPED"
	Succeeded = "SUCCEEDED"
	Failed    = "FAILED"
)

// Info is the state of a job.
type Info struct {
	SubmissionID string            `json:"submission_id"`
	Status       string            `json:"status"`
	Message      string            `json:"message"`
	Entrypoint   string            `json:"entrypoint"`
	Metadata     map[string]string `json:"metadata"`
	StartTime    int64             `json:"start_time"` // Unix, ms
	EndTime      int64             `json:"end_time"`
	ExitCode     *int              `json:"driver_exit_code"` // nil unless the driver ended by itself
}

// Over tells that the job will not change any more.
func (i Info) Over() bool { return slices.Contains([]string{Stopped, Succeeded, Failed}, i.Status) }

// NoJobError is a job that the cluster does not know.
type NoJobError struct{ Address, ID string }

func (e *NoJobError) Error() string {
	return fmt.Sprintf("the Ray cluster at %s has no job %s: weft ray status lists those it has", e.Address, e.ID)
}

// noJob says which job it was that is not there.
func (c *Client) noJob(err error, id string) error {
	if NotFound(err) {
		return &NoJobError{c.Address(), id}
	}
	return err
}

func jobPath(id string) string { return "/api/jobs/" + url.PathEscape(id) }

// Info returns the state of a job.
func (c *Client) Info(ctx context.Context, id string) (info Info, err error) {
	err = c.get(ctx, jobPath(id), &info)
	return info, c.noJob(err, id)
}

// Jobs lists the submitted jobs, the newest first.
func (c *Client) Jobs(ctx context.Context) ([]Info, error) {
	var all []Info
	if err := c.get(ctx, "/api/jobs/", &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i Info) bool { return i.SubmissionID == "" })
	slices.SortFunc(all, func(a, b Info) int { return int(b.StartTime - a.StartTime) })
	return all, nil
}

// Stop asks a job to end; it goes on until its driver has ended or the wait time of its environment is over.
func (c *Client) Stop(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return c.noJob(c.do(ctx, http.MethodPost, jobPath(id)+"/stop", nil, nil), id)
}

// Logs returns what a job has printed up to now.
func (c *Client) Logs(ctx context.Context, id string) (string, error) {
	var answer struct {
		Logs string `json:"logs"`
	}
	err := c.get(ctx, jobPath(id)+"/logs", &answer)
	return answer.Logs, c.noJob(err, id)
}

// maxLogMessage bounds one message of the log stream: it holds up to some thousand lines.
const maxLogMessage = 64 << 20

// Follow writes a job's log to w, from its first line on, until the job has ended. written counts its bytes; on an error,
// such as a head that was lost, give it as skip to go on where it broke off.
func (c *Client) Follow(ctx context.Context, id string, w io.Writer, skip int64) (written int64, err error) {
	shake, cancel := context.WithTimeout(ctx, answerTime) // bounds the handshake only
	defer cancel()
	conn, resp, err := websocket.Dial(shake, c.base.String()+jobPath(id)+"/logs/tail", &websocket.DialOptions{HTTPClient: c.http})
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return 0, &NoJobError{c.Address(), id}
		}
		return 0, c.unreachable(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxLogMessage)
	for {
		_, text, err := conn.Read(ctx)
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			return written, nil
		}
		if err != nil {
			return written, c.unreachable(err)
		}
		old := min(skip-min(skip, written), int64(len(text)))
		written += int64(len(text))
		if _, err := w.Write(text[old:]); err != nil {
			return written, err
		}
	}
}
