package ray

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Drive are the options of the driver.
type Drive struct {
	Topology        string        // of a slice: 4x4
	AcceleratorType string        // TPU-V6E
	NumSlices       int           // at least 1
	MaxFailures     int           // how often a failed job begins again
	Grace           time.Duration // for each host to save when the job is stopped
	ReserveTimeout  time.Duration // how long to wait for free slices
	// Binary is the program on the hosts: ./weft of the job's package, or a path or name in their image.
	Binary string
	// Env is set on every host.
	Env map[string]string
	// Args are weft's own.
	Args []string
}

// stopMargin is what the driver gets beyond the grace period to see its hosts end.
const stopMargin = 15 * time.Second

// Words is the driver's command line after `python3 weft_driver.py`.
func (d *Drive) Words() []string {
	words := []string{
		"--topology", d.Topology, "--accelerator-type", d.AcceleratorType, "--num-slices", strconv.Itoa(d.NumSlices),
		"--max-failures", strconv.Itoa(d.MaxFailures), "--grace", seconds(d.Grace + stopMargin/3),
		"--reserve-timeout", seconds(d.ReserveTimeout), "--binary", d.Binary,
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		words = append(words, "--env", name+"="+d.Env[name])
	}
	return append(append(words, "--"), d.Args...)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// envVariable is where the driver finds Env: Ray prints a job's command line into its log, and a token is not to be there.
// It is JSON in base64, since Ray replaces what looks like a variable ($NAME) in values.
const envVariable = "WEFT_RAY_ENV"

// Job is the job that runs the driver out of a package.
func (d *Drive) Job(p *Package, id string) Job {
	words := *d
	words.Env = nil
	job := Job{
		Entrypoint:   "exec python3 -u " + DriverName + " " + Quote(words.Words()),
		SubmissionID: id,
		RuntimeEnv: RuntimeEnv{WorkingDir: p.URI(), EnvVars: map[string]string{
			// Ray kills a job that was asked to stop after 3 s, in which no state is saved.
			"RAY_JOB_STOP_WAIT_TIME_S": strconv.Itoa(int((d.Grace + stopMargin).Seconds())),
		}},
		Metadata: map[string]string{"job_submission_id": id, "weft": strings.Join(d.Args, " ")},
	}
	if len(d.Env) > 0 {
		raw, _ := json.Marshal(d.Env) // of strings: it cannot fail
		job.RuntimeEnv.EnvVars[envVariable] = base64.StdEncoding.EncodeToString(raw)
	}
	return job
}

// Quote joins words for the shell that Ray starts an entry point with.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+"
		if w == "" || strings.Trim(w, plain) != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// headPatience is how long a head that does not answer is waited for: a restarted one comes back, with the job or without. On
// GKE that may take a new node and its image.
const headPatience = 10 * time.Minute

// LostError is a job that was there and is not any more.
type LostError struct{ Address, ID string }

func (e *LostError) Error() string {
	return fmt.Sprintf("job %s is lost: the head of the Ray cluster at %s was started anew, and a job does not outlive it: submit the same line again to continue from what is saved", e.ID, e.Address)
}

// Wait follows a job to its end and writes its log to w; it returns the state that it ended in. A head that is lost for a
// while is waited for; notice takes a line about that. A job that did not outlive its head is a LostError.
func (c *Client) Wait(ctx context.Context, id string, w io.Writer, notice func(string)) (Info, error) {
	var done int64
	var since time.Time // when the head stopped to answer
	var seen bool       // the job was there
	for {
		written, err := c.Follow(ctx, id, w, done)
		done, seen = max(done, written), seen || written > 0
		var info Info
		if err == nil || !isUnreachable(err) {
			info, err = c.ended(ctx, id)
		}
		var gone *NoJobError
		switch {
		case err == nil && info.Over():
			return info, nil
		case errors.As(err, &gone) && (seen || !since.IsZero()):
			return Info{}, &LostError{c.Address(), id}
		case ctx.Err() != nil:
			return Info{}, ctx.Err()
		case err == nil:
			since, seen = time.Time{}, true
		case !isUnreachable(err) && !isStarting(err):
			return Info{}, err
		case since.IsZero():
			since = time.Now()
			notice(fmt.Sprintf("%v; waiting up to %s for it to come back", err, headPatience))
		case time.Since(since) > headPatience:
			return Info{}, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return Info{}, ctx.Err()
		}
	}
}

func isUnreachable(err error) bool {
	var u *UnreachableError
	return errors.As(err, &u)
}

// isStarting tells an answer of a head that is not whole yet: its dashboard answers before what stands behind it does.
func isStarting(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code >= http.StatusInternalServerError
}

// settleTime is how long after its log's end a job's state may still say that it runs.
const settleTime = 10 * time.Second

// ended waits a little for the state of a job whose log has ended.
func (c *Client) ended(ctx context.Context, id string) (Info, error) {
	for deadline := time.Now().Add(settleTime); ; {
		info, err := c.Info(ctx, id)
		if err != nil || info.Over() || time.Now().After(deadline) {
			return info, err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return info, ctx.Err()
		}
	}
}
