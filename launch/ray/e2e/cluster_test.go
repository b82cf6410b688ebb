package e2e

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed cluster.py
var clusterProgram []byte

//go:embed requirements.txt
var requirements string

// cluster is a Ray cluster whose nodes are processes of this machine.
type cluster struct {
	dashboard string // http://127.0.0.1:PORT
	dir       string
	cmd       *exec.Cmd
	mu        sync.Mutex
	in        io.WriteCloser
	out       *bufio.Reader
	ports     [3]int // of the head: Ray, dashboard, agent
}

// node is a command of cluster.py.
type node map[string]any

// host is a node of a TPU slice as Ray sees one. The webhook of KubeRay and the image of TPU VMs set these variables.
func host(address, slice string, worker int, podType, topology string, hosts ...string) node {
	resources := map[string]float64{"TPU": 4, slice: 1}
	if worker == 0 {
		resources["TPU-"+podType+"-head"] = 1
	}
	environment := map[string]string{"TPU_NAME": slice, "TPU_WORKER_ID": fmt.Sprint(worker), "TPU_ACCELERATOR_TYPE": podType, "TPU_TOPOLOGY": topology}
	if len(hosts) > 0 {
		environment["TPU_WORKER_HOSTNAMES"] = strings.Join(hosts, ",")
	}
	return node{
		"op": "add", "node_ip_address": address, "name": fmt.Sprintf("%s/%d", slice, worker), "environment": environment, "resources": resources,
		"labels": map[string]string{
			"ray.io/tpu-slice-name": slice, "ray.io/tpu-worker-id": fmt.Sprint(worker), "ray.io/tpu-topology": topology, "ray.io/tpu-pod-type": podType,
		},
	}
}

// startCluster starts a head and the nodes. The cluster ends with stop, and with this process however that ends.
func startCluster(python string, nodes ...node) (*cluster, error) {
	dir, err := os.MkdirTemp("", "wr") // short: Ray's sockets lie there
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir}
	program := filepath.Join(dir, "cluster.py")
	if err := os.WriteFile(program, clusterProgram, 0o644); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd = exec.Command(python, program, filepath.Join(dir, "r"))
	c.cmd.Stderr = log
	c.cmd.Dir = dir
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the tests, which end this
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "RAY_") && !strings.HasPrefix(kv, "TPU_") {
			c.cmd.Env = append(c.cmd.Env, kv)
		}
	}
	c.cmd.Env = append(c.cmd.Env, "PATH="+filepath.Dir(python)+":"+os.Getenv("PATH"), "RAY_USAGE_STATS_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1",
		// The machine may be slow: what Ray waits for at the start, a hang's time.
		"RAY_DASHBOARD_STARTUP_TIMEOUT_S=600", "RAY_gcs_server_port_wait_time_s=600", "RAY_worker_register_timeout_seconds=600", "RAY_agent_register_timeout_ms=600000")
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if c.ports, err = freePorts(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if err := c.startHead(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	for _, n := range nodes {
		if _, err := c.do(n); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	if _, err := c.do(node{"op": "wait", "timeout": hang.Seconds()}); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, c.answers()
}

// startHead starts the head, at the ports where an earlier one may have been.
func (c *cluster) startHead() error {
	answer, err := c.do(node{
		"op": "add", "name": "head", "environment": map[string]string{}, "include_dashboard": true,
		"gcs_server_port": c.ports[0], "dashboard_port": c.ports[1], "dashboard_agent_listen_port": c.ports[2],
	})
	c.dashboard = fmt.Sprintf("http://127.0.0.1:%d", c.ports[1])
	if err == nil && answer.Dashboard != c.dashboard {
		err = fmt.Errorf("the dashboard is at %q, not at %s", answer.Dashboard, c.dashboard)
	}
	return err
}

// answers waits for the dashboard.
func (c *cluster) answers() error {
	for deadline := time.Now().Add(hang); ; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get(c.dashboard + "/api/jobs/")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("Ray's dashboard does not answer: %w", err)
		}
	}
}

type answer struct {
	Error, Dashboard string
	PIDs             []int
}

func (c *cluster) do(command node) (a answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, err := json.Marshal(command)
	if err != nil {
		return a, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return a, fmt.Errorf("cluster.py: %w", err)
	}
	raw, err := c.out.ReadBytes('\n')
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		return a, fmt.Errorf("cluster.py: %w\n%s", err, log)
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		err = fmt.Errorf("%v %v: %s", command["op"], command["name"], a.Error)
	}
	return a, err
}

// stop ends all processes of the cluster and removes what they wrote.
func (c *cluster) stop() error {
	c.in.Close()
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(hang):
		err = errors.Join(errors.New("cluster.py does not end"), c.cmd.Process.Kill())
		<-done
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// freePorts finds three ports that nobody listens on. They are none of those that the kernel hands out by itself: while the
// head starts, or is away, nobody takes them.
func freePorts() (ports [3]int, err error) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return ports, err
	}
	var low, high int
	if _, err := fmt.Sscan(string(raw), &low, &high); err != nil {
		return ports, err
	}
	const first, last = 20000, 65535
	next := first + os.Getpid()%10000 // other runs begin elsewhere
	for i := range ports {
		for tries := 0; ports[i] == 0; tries++ {
			if tries > last-first {
				return ports, errors.New("no port is free outside of those that the kernel hands out")
			}
			if next++; next > last {
				next = first
			}
			if low <= next && next <= high {
				continue
			}
			if l, err := net.Listen("tcp", fmt.Sprintf(":%d", next)); err == nil {
				defer l.Close()
				ports[i] = next
			}
		}
	}
	return ports, nil
}
