package ray

import (
	"cmp"
	"context"
	"encoding/json"
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
	// Reserved tells that a placement group holds TPUs of it.
	Reserved bool `json:"reserved"`
}

// Place is the slice that a node is a host of, and which; "" for a node without TPUs.
func (n Node) Place() (slice string, host int) {
	if n.Resources["TPU"] == 0 {
		return "", 0
	}
	return cmp.Or(n.Labels[labelSlice], n.IP), worker(n) // one without the label is a slice by itself
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
	Name     string `json:"name"`
	PodType  string `json:"pod_type"`
	Topology string `json:"topology"`
	// Hosts are its living nodes, by worker id.
	Hosts []Node `json:"hosts"`
	// TPUs is the sum of their TPU resources.
	TPUs float64 `json:"tpus"`
	// Missing are the worker ids that a slice of its topology has but no living node is: lost, or not there yet.
	Missing []int `json:"missing"`
	// InUse tells that TPUs of it are reserved.
	InUse bool `json:"in_use"`
}

// Cluster is what a cluster offers.
type Cluster struct {
	Version Version `json:"version"`
	Nodes   []Node  `json:"nodes"` // living ones, the head first, then those of a slice together
	Dead    int     `json:"dead_nodes"`
	Slices  []Slice `json:"slices"`
	Jobs    []Info  `json:"jobs"`
}

// maxRows bounds one listing; Ray itself gives at most this many.
const maxRows = 10_000

// Status looks at the whole cluster.
func (c *Client) Status(ctx context.Context) (*Cluster, error) {
	s := &Cluster{}
	var err error
	if s.Version, err = c.Version(ctx); err != nil {
		return nil, err
	}
	var nodes []Node
	if err := c.list(ctx, "nodes", &nodes); err != nil {
		return nil, err
	}
	reserved, err := c.reserved(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if n.State == "ALIVE" {
			n.Reserved = reserved[n.ID]
			s.Nodes = append(s.Nodes, n)
		} else {
			s.Dead++
		}
	}
	slices.SortStableFunc(s.Nodes, byPlace)
	s.Slices = slicesOf(s.Nodes)
	s.Jobs, err = c.Jobs(ctx)
	return s, err
}

// byPlace has the head first, then nodes without TPUs, then the hosts of each slice in order.
func byPlace(a, b Node) int {
	if a.Head != b.Head {
		return map[bool]int{true: -1, false: 1}[a.Head]
	}
	sliceA, hostA := a.Place()
	sliceB, hostB := b.Place()
	return cmp.Or(strings.Compare(sliceA, sliceB), cmp.Compare(hostA, hostB), strings.Compare(a.IP, b.IP))
}

// list decodes what the cluster's state API knows of a kind.
func (c *Client) list(ctx context.Context, kind string, out any) error {
	var answer struct {
		Result bool   `json:"result"`
		Msg    string `json:"msg"`
		Data   struct {
			Result struct {
				Result json.RawMessage `json:"result"`
			} `json:"result"`
		} `json:"data"`
	}
	path := fmt.Sprintf("/api/v0/%s?limit=%d&detail=true", kind, maxRows)
	if err := c.get(ctx, path, &answer); err != nil {
		return err
	}
	if !answer.Result {
		return fmt.Errorf("list the %s of the Ray cluster at %s: %s", kind, c.Address(), answer.Msg)
	}
	if err := json.Unmarshal(answer.Data.Result.Result, out); err != nil {
		return fmt.Errorf("list the %s of the Ray cluster at %s: %w: this weft knows Ray 2.58", kind, c.Address(), err)
	}
	return nil
}

// reserved tells the nodes of which a placement group holds TPUs.
func (c *Client) reserved(ctx context.Context) (map[string]bool, error) {
	var groups []struct {
		State   string `json:"state"`
		Bundles []struct {
			Node      string             `json:"node_id"`
			Resources map[string]float64 `json:"unit_resources"`
		} `json:"bundles"`
	}
	if err := c.list(ctx, "placement_groups", &groups); err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	for _, g := range groups {
		for _, b := range g.Bundles {
			if g.State != "REMOVED" && b.Node != "" && b.Resources["TPU"] > 0 {
				nodes[b.Node] = true
			}
		}
	}
	return nodes, nil
}

// slicesOf groups nodes by the slice that they are hosts of.
func slicesOf(nodes []Node) []Slice {
	byName := map[string]*Slice{}
	for _, n := range nodes {
		if n.Resources["TPU"] == 0 {
			continue
		}
		name, _ := n.Place()
		s := byName[name]
		if s == nil {
			s = &Slice{Name: name, PodType: n.Labels[labelPod], Topology: n.Labels[labelTopology]}
			byName[name] = s
		}
		s.Hosts = append(s.Hosts, n)
		s.TPUs += n.Resources["TPU"]
		s.InUse = s.InUse || n.Reserved
	}
	var out []Slice
	for _, s := range byName {
		slices.SortFunc(s.Hosts, func(a, b Node) int { return worker(a) - worker(b) })
		s.Missing = s.missing()
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Slice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func worker(n Node) int {
	id, _ := strconv.Atoi(n.Labels[labelWorker])
	return id
}

// missing finds the missing hosts; none when the topology is not known.
func (s Slice) missing() []int {
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
	if strings.HasPrefix(s.PodType, "tpu7x-") && perHost > 4 {
		perHost /= 2 // such a host may offer two resources a chip
	}
	var missing []int
	for id := range max(1, chips/perHost) {
		if !slices.ContainsFunc(s.Hosts, func(n Node) bool { return worker(n) == id }) {
			missing = append(missing, id)
		}
	}
	return missing
}
