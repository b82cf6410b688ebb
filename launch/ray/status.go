package ray

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Node is one node of a cluster.
type Node struct {
	ID        string             `json:"node_id"`
	IP        string             `json:"node_ip"`
	Head      bool               `json:"is_head_node"`
	State     string             `json:"state"`
	Resources map[string]float64 `json:"resources_total"`
	Labels    map[string]string  `json:"labels"`
}

// Labels of TPU nodes.
const (
	labelSlice    = "ray.io/tpu-slice-name"
	labelWorker   = "ray.io/tpu-worker-id"
	labelTopology = "ray.io/tpu-topology"
	labelPod      = "ray.io/tpu-pod-type"
)

// Slice is a TPU slice as its nodes describe it.
type Slice struct {
	Name, PodType, Topology string
	// Hosts are its living nodes, by worker id.
	Hosts []Node
	// TPUs is the sum of their TPU resources.
	TPUs float64
}

// Cluster is what a cluster offers.
type Cluster struct {
	Version Version
	Nodes   []Node // living ones
	Dead    int
	Slices  []Slice
	Jobs    []Info
}

// maxNodes bounds one listing; Ray itself gives at most this many.
const maxNodes = 10_000

// Status looks at the whole cluster.
func (c *Client) Status(ctx context.Context) (*Cluster, error) {
	s := &Cluster{}
	var err error
	if s.Version, err = c.Version(ctx); err != nil {
		return nil, err
	}
	var answer struct {
		Result bool   `json:"result"`
		Msg    string `json:"msg"`
		Data   struct {
			Result struct {
				Result []Node `json:"result"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := c.get(ctx, fmt.Sprintf("/api/v0/nodes?limit=%d&detail=true", maxNodes), &answer); err != nil {
		return nil, err
	}
	if !answer.Result {
		return nil, fmt.Errorf("list the nodes of the Ray cluster at %s: %s", c.Address(), answer.Msg)
	}
	for _, n := range answer.Data.Result.Result {
		if n.State == "ALIVE" {
			s.Nodes = append(s.Nodes, n)
		} else {
			s.Dead++
		}
	}
	s.Slices = slicesOf(s.Nodes)
	s.Jobs, err = c.Jobs(ctx)
	return s, err
}

// slicesOf groups nodes by the slice that they are hosts of.
func slicesOf(nodes []Node) []Slice {
	byName := map[string]*Slice{}
	for _, n := range nodes {
		if n.Resources["TPU"] == 0 {
			continue
		}
		name := n.Labels[labelSlice]
		if name == "" {
			name = n.IP // a host that is a slice by itself
		}
		s := byName[name]
		if s == nil {
			s = &Slice{Name: name, PodType: n.Labels[labelPod], Topology: n.Labels[labelTopology]}
			byName[name] = s
		}
		s.Hosts = append(s.Hosts, n)
		s.TPUs += n.Resources["TPU"]
	}
	var out []Slice
	for _, s := range byName {
		slices.SortFunc(s.Hosts, func(a, b Node) int { return worker(a) - worker(b) })
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Slice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func worker(n Node) int {
	id, _ := strconv.Atoi(n.Labels[labelWorker])
	return id
}

// Missing lists the worker ids that a slice of its topology would have but that no living node is: those hosts are lost
// or not there yet. It is nil when the topology is not known.
func (s Slice) Missing() []int {
	chips := 1
	for side := range strings.SplitSeq(s.Topology, "x") {
		n, err := strconv.Atoi(side)
		if err != nil {
			return nil
		}
		chips *= n
	}
	if len(s.Hosts) == 0 || s.Hosts[0].Resources["TPU"] == 0 {
		return nil
	}
	perHost := int(s.Hosts[0].Resources["TPU"])
	if pod := strings.LastIndexByte(s.PodType, '-'); pod > 0 && strings.HasPrefix(s.PodType, "tpu7x") {
		// A TPU7x host may offer two resources a chip.
		if perHost > 4 {
			perHost /= 2
		}
	}
	var missing []int
	for id := range max(1, chips/perHost) {
		if !slices.ContainsFunc(s.Hosts, func(n Node) bool { return worker(n) == id }) {
			missing = append(missing, id)
		}
	}
	return missing
}
