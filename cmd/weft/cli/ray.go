package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"weft/cmd/weft/job"
	"weft/engine/tpu"
	"weft/launch/ray"
)

type rayCmd struct {
	Submit raySubmitCmd `cmd:"" help:"Run weft on whole TPU slices of a Ray cluster and follow it."`
	Status rayStatusCmd `cmd:"" help:"Show a Ray cluster's nodes, TPU slices and jobs."`
	Logs   rayLogsCmd   `cmd:"" help:"Print a job's log, and follow it."`
	Stop   rayStopCmd   `cmd:"" help:"Stop a job: its hosts finish the step, save and end."`
	Drive  rayDriveCmd  `cmd:"" help:"Run the driver of weft ray submit here: for the entry point of a RayJob, within the cluster."`
}

// clusterFlag says which cluster.
type clusterFlag struct {
	Address string `env:"RAY_ADDRESS" default:"http://127.0.0.1:8265" placeholder:"URL" help:"The cluster's dashboard. On GKE: kubectl port-forward svc/CLUSTER-head-svc 8265:8265."`
}

func (c *clusterFlag) client() (*ray.Client, error) {
	client, err := ray.New(c.Address)
	return client, job.Input(err)
}

// driveFlags are what the driver is told.
type driveFlags struct {
	Topology        string        `required:"" placeholder:"AxB" help:"Shape of each slice, such as 4x4 or 2x2x2."`
	AcceleratorType string        `name:"accelerator-type" required:"" placeholder:"TYPE" help:"Type of TPU, such as TPU-V6E or TPU-V7X."`
	NumSlices       int           `name:"num-slices" default:"1" placeholder:"N" help:"Slices to train on together."`
	MaxFailures     int           `name:"max-failures" default:"3" placeholder:"N" help:"How often the job begins again, from its last checkpoint, when a host fails or is lost. Preemptions do not count."`
	GracePeriod     time.Duration `name:"grace-period" default:"30s" placeholder:"TIME" help:"How long each host has to save when the job is stopped; give weft's own --grace-period the same."`
	ReserveTimeout  time.Duration `name:"reserve-timeout" default:"100s" placeholder:"TIME" help:"How long to wait for free slices. Then the exit code is 75."`
	Env             []string      `sep:"none" placeholder:"NAME=VALUE" help:"An environment variable for every host; can be given several times."`
	Args            []string      `arg:"" passthrough:"" help:"-- and what weft is to do, such as -- finetune --model-id … --storage-path gs://…"`
}

// drive checks the flags.
func (f *driveFlags) drive(binary string) (*ray.Drive, error) {
	args := f.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	env := map[string]string{}
	for _, pair := range f.Env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env %s: give NAME=VALUE", pair)
		}
		env[name] = value
	}
	switch {
	case len(args) == 0:
		return nil, errors.New("end the line with -- and what weft is to do, such as -- finetune --model-id … --storage-path gs://…")
	case f.NumSlices < 1:
		return nil, fmt.Errorf("--num-slices is %d: give 1 or more", f.NumSlices)
	case f.MaxFailures < 0:
		return nil, fmt.Errorf("--max-failures is %d: give 0 or more", f.MaxFailures)
	case f.GracePeriod < time.Second:
		return nil, fmt.Errorf("--grace-period is %s: give at least 1s", f.GracePeriod)
	}
	top, err := tpu.ParseJob(f.Topology, f.AcceleratorType)
	if err != nil {
		return nil, err
	}
	return &ray.Drive{
		Topology: strings.ToLower(f.Topology), AcceleratorType: ray.AcceleratorType(top.Chip), NumSlices: f.NumSlices, MaxFailures: f.MaxFailures,
		Grace: f.GracePeriod, ReserveTimeout: f.ReserveTimeout, Binary: binary, Env: env, Args: args,
	}, nil
}

type raySubmitCmd struct {
	clusterFlag
	Binary       string `default:"" placeholder:"PATH" help:"The weft to run on the hosts: a file here, which is sent; or a name or path within the cluster's image, with image: in front, such as image:weft. Default: this program."`
	SubmissionID string `name:"submission-id" placeholder:"ID" help:"Name of the job, new to the cluster. Default: one that Ray makes."`
	NoWait       bool   `name:"no-wait" help:"Return once the job is submitted."`
	driveFlags
}

// Help is the long help.
func (raySubmitCmd) Help() string {
	return `Sends this program to the cluster, reserves whole TPU slices there, starts one weft on each of their hosts and follows their lines, each with its host in front. When a host fails or is lost, all are stopped and the job begins again from its last checkpoint: --storage-path must be one that every host sees, such as gs://BUCKET/RUNS.

The first Ctrl-C stops the job as SIGTERM stops weft (it saves); a second one leaves it alone and returns. The exit code is the job's: 0 done, 1 failed, 2 wrong usage or input, 75 stopped or no free slice: submit the same line again.`
}

// Run submits.
func (c *raySubmitCmd) Run(s streams) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	packed, onHosts, err := c.binary()
	if err != nil {
		return job.Input(err)
	}
	drive, err := c.drive(onHosts)
	if err != nil {
		return job.Input(err)
	}
	if c.Binary == "" {
		if err := checkArgs(drive.Args); err != nil {
			return err
		}
	}
	pack, err := ray.NewPackage(packed)
	if err != nil {
		return job.Input(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	id, err := submit(ctx, client, drive, pack, c.SubmissionID, s.Err)
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("interrupted while the job was submitted: weft ray status --address %s shows whether it is there", client.Address())
	}
	stop()
	if err != nil || c.NoWait {
		if err == nil {
			fmt.Fprintln(s.Out, id)
		}
		return err
	}
	return follow(client, id, s)
}

// checkArgs looks whether this program takes a command line, so that a wrong flag is said before a slice is reserved. A file of
// flags is the hosts', who read it.
func checkArgs(args []string) (err error) {
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "--config" || strings.HasPrefix(arg, "--config=") }) {
		return nil
	}
	defer func() {
		if fault := recover(); fault != nil {
			if _, help := fault.(exited); !help {
				panic(fault)
			}
			err = nil
		}
	}()
	var root commands
	parser, err := newParser(&root, streams{Out: io.Discard, Err: io.Discard})
	if err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return fmt.Errorf("after --: %w", usageError{err})
	}
	return nil
}

// binary tells which file to pack and what the hosts call it.
func (c *raySubmitCmd) binary() (pack, onHosts string, err error) {
	if name, ok := strings.CutPrefix(c.Binary, "image:"); ok {
		if name == "" {
			return "", "", errors.New("--binary image: names nothing: give image:weft, or image: and a path")
		}
		return "", name, nil
	}
	pack = c.Binary
	if pack == "" {
		if pack, err = os.Executable(); err != nil {
			return "", "", fmt.Errorf("find this program: %w: give --binary", err)
		}
	}
	info, err := os.Stat(pack)
	if err != nil {
		return "", "", fmt.Errorf("--binary: %w: give a file, or image:NAME for a program within the cluster's image", err)
	}
	if !info.Mode().IsRegular() {
		return "", "", fmt.Errorf("--binary %s is not a file", pack)
	}
	return pack, "./" + ray.BinaryName, nil
}

// submit sends the package and the job.
func submit(ctx context.Context, client *ray.Client, drive *ray.Drive, pack *ray.Package, id string, notices io.Writer) (string, error) {
	version, err := client.Version(ctx)
	if err != nil {
		return "", err
	}
	sent, err := client.Upload(ctx, pack)
	if err != nil {
		return "", err
	}
	if sent {
		fmt.Fprintf(notices, "sent %s (%.1f MB) to Ray %s at %s\n", pack.Name, float64(len(pack.Bytes))/1e6, version.Ray, client.Address())
	}
	id, err = client.Submit(ctx, drive.Job(pack, id))
	var taken *ray.TakenError
	if errors.As(err, &taken) {
		return "", job.Input(err)
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(notices, "submitted %s\n", id)
	return id, nil
}

// jobError is a job that did not end well; its exit code becomes weft's.
type jobError struct {
	id, status string
	code       int
	why        string // more about it, or ""
}

func (e *jobError) Error() string {
	switch e.code {
	case exitRetry:
		return fmt.Sprintf("job %s was stopped, or found no free slice: submit the same line again to continue", e.id)
	case exitInput:
		return fmt.Sprintf("job %s: wrong usage or input, as its log says", e.id)
	}
	return fmt.Sprintf("job %s %s (%s): see weft ray logs %[1]s", e.id, strings.ToLower(e.status), cmp.Or(e.why, fmt.Sprintf("exit code %d", e.code)))
}

// follow prints a job's log to its end. The first signal stops the job, the second leaves it alone.
func follow(client *ray.Client, id string, s streams) error {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		fmt.Fprintf(s.Err, "stopping %s: its hosts save and end; once more to leave it alone\n", id)
		go func() {
			if err := client.Stop(ctx, id); err != nil {
				fmt.Fprintln(s.Err, "weft: "+job.OneLine(err))
			}
		}()
		select {
		case <-signals:
			leave()
		case <-ctx.Done():
		}
	}()
	err := wait(ctx, client, id, s)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("left job %s alone, which is stopping: weft ray logs %[1]s follows it", id)
	}
	return err
}

// wait prints a job's log to its end, whose exit code its error has: one that was lost with its head can be submitted again.
func wait(ctx context.Context, client *ray.Client, id string, s streams) error {
	info, err := client.Wait(ctx, id, s.Out, func(line string) { fmt.Fprintln(s.Err, line) })
	var lost *ray.LostError
	switch {
	case errors.As(err, &lost):
		return &codedError{err, exitRetry}
	case err != nil:
		return err
	}
	return jobEnd(info)
}

// jobEnd is the error of a job that is over, with its exit code; nil when it ended well.
func jobEnd(info ray.Info) error {
	e := &jobError{id: info.SubmissionID, status: info.Status, code: exitFailed}
	switch {
	case info.Status == ray.Succeeded:
		return nil
	case info.Status == ray.Stopped:
		e.code = exitRetry
	case info.ExitCode == nil:
		e.why = cmp.Or(lastOf(info.Message), "its driver did not end by itself")
	case slices.Contains([]int{exitFailed, exitInput, exitRetry}, *info.ExitCode):
		e.code = *info.ExitCode
	case *info.ExitCode < 0:
		e.why = fmt.Sprintf("its driver was killed by signal %d", -*info.ExitCode)
	default:
		e.why = fmt.Sprintf("its driver ended with exit code %d", *info.ExitCode)
	}
	return e
}

// lastOf is the last line of a text.
func lastOf(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

type rayStatusCmd struct {
	clusterFlag
	JSON bool `name:"json" help:"Print it as JSON: version, nodes, slices, jobs."`
}

// Run prints the state of a cluster.
func (c *rayStatusCmd) Run(s streams) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	cluster, err := client.Status(context.Background())
	if err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(cluster)
	}
	printCluster(s.Out, client.Address(), cluster)
	return nil
}

func printCluster(out io.Writer, address string, c *ray.Cluster) {
	dead := ""
	if c.Dead > 0 {
		dead = fmt.Sprintf(", %d lost", c.Dead)
	}
	fmt.Fprintf(out, "Ray %s at %s: %d node(s)%s\n", c.Version.Ray, address, len(c.Nodes), dead)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(c.Slices) > 0 {
		fmt.Fprintln(w, "\nSLICE\tTYPE\tTOPOLOGY\tHOSTS\tTPU\tSTATE")
	} else {
		fmt.Fprintln(w, "\nno TPU slices")
	}
	for _, slice := range c.Slices {
		state := "whole"
		if len(slice.Missing) > 0 {
			state = fmt.Sprintf("hosts %v missing", slice.Missing)
		}
		if slice.InUse {
			state += ", in use"
		} else if len(slice.Missing) == 0 {
			state += ", free"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%g\t%s\n", slice.Name, cmp.Or(slice.PodType, "-"), cmp.Or(slice.Topology, "-"), len(slice.Hosts), slice.TPUs, state)
	}
	fmt.Fprintln(w, "\nNODE\tROLE\tCPU\tTPU\tSLICE\tHOST")
	for _, n := range c.Nodes {
		role, of, host := "worker", "-", "-"
		if n.Head {
			role = "head"
		}
		if name, id := n.Place(); name != "" {
			of, host = name, strconv.Itoa(id)
		}
		fmt.Fprintf(w, "%s\t%s\t%g\t%g\t%s\t%s\n", n.IP, role, n.Resources["CPU"], n.Resources["TPU"], of, host)
	}
	if len(c.Jobs) > 0 {
		fmt.Fprintln(w, "\nJOB\tSTATE\tSTARTED\tWHAT")
	}
	for _, j := range c.Jobs {
		started := "-"
		if j.StartTime > 0 {
			started = time.UnixMilli(j.StartTime).UTC().Format("2006-01-02 15:04:05Z")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.SubmissionID, strings.ToLower(j.Status), started, short(cmp.Or(j.Metadata["weft"], j.Entrypoint)))
	}
	_ = w.Flush()
}

// short cuts a line for a table.
func short(line string) string {
	const most = 60
	if r := []rune(line); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return line
}

type rayLogsCmd struct {
	clusterFlag
	NoFollow bool   `name:"no-follow" help:"Print what there is and return."`
	ID       string `arg:"" help:"The job, as weft ray status lists it."`
}

// Run prints the log. Following it, the exit code is the job's.
func (c *rayLogsCmd) Run(s streams) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if c.NoFollow {
		logs, err := client.Logs(context.Background(), c.ID)
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.Out, logs)
		return err
	}
	// A head that is lost while it is followed is waited for; one that never answered is a wrong address.
	if _, err := client.Version(context.Background()); err != nil {
		return err
	}
	return wait(context.Background(), client, c.ID, s)
}

type rayStopCmd struct {
	clusterFlag
	ID string `arg:"" help:"The job, as weft ray status lists it."`
}

// Run asks the job to stop and waits until it has.
func (c *rayStopCmd) Run(s streams) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	ctx := context.Background()
	info, err := client.Info(ctx, c.ID)
	if err != nil {
		return err
	}
	if !info.Over() {
		if err := client.Stop(ctx, c.ID); err != nil {
			return err
		}
	}
	for !info.Over() {
		time.Sleep(500 * time.Millisecond)
		if info, err = client.Info(ctx, c.ID); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.Out, "%s %s\n", c.ID, strings.ToLower(info.Status))
	return nil
}

type rayDriveCmd struct {
	Python string `default:"python3" placeholder:"PATH" help:"The Python that has Ray."`
	Binary string `default:"" placeholder:"PATH" help:"The weft on the hosts. Default: the path of this one."`
	driveFlags
}

// Run becomes the driver, so that signals and the exit code are its own.
func (c *rayDriveCmd) Run(streams) error {
	binary := c.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return job.Input(fmt.Errorf("find this program: %w: give --binary", err))
		}
	}
	drive, err := c.drive(binary)
	if err != nil {
		return job.Input(err)
	}
	python, err := exec.LookPath(c.Python)
	if err != nil {
		return job.Input(fmt.Errorf("--python: %w: run this within a Ray cluster's image, or use weft ray submit from outside", err))
	}
	dir, err := os.MkdirTemp("", "weft-ray-")
	if err != nil {
		return err
	}
	script := filepath.Join(dir, ray.DriverName)
	if err := os.WriteFile(script, ray.Driver(), 0o644); err != nil {
		return err
	}
	return syscall.Exec(python, append([]string{python, "-u", script}, drive.Words()...), os.Environ())
}
