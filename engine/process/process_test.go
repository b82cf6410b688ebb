package process_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/process"
)

func hosts(pattern string, n int) string {
	var out []string
	for i := range n {
		out = append(out, strings.ReplaceAll(pattern, "%", strconv.Itoa(i)))
	}
	return strings.Join(out, ",")
}

// v6e is what GKE's device plugin and KubeRay's webhook put into the pod of host 3 of a v6e 4x4, as the published guide
// prints it.
func v6e() map[string]string {
	var builders []string
	for i := range 4 {
		for port := 8471; port < 8475; port++ {
			builders = append(builders, fmt.Sprintf("v6e-16-0-%d.ray-torchtpu-cluster-headless:%d", i, port))
		}
	}
	return map[string]string{
		"TPU_WORKER_HOSTNAMES":             hosts("v6e-16-0-%.ray-torchtpu-cluster-headless", 4),
		"TPU_WORKER_ID":                    "3",
		"TPU_NAME":                         "v6e-16-0",
		"TPU_ACCELERATOR_TYPE":             "v6e-16",
		"TPU_TOPOLOGY":                     "4x4",
		"TPU_CHIPS_PER_HOST_BOUNDS":        "2,2,1",
		"TPU_HOST_BOUNDS":                  "2,2,1",
		"TORCH_TPU_TOPOLOGY":               "4,4,1",
		"TORCH_TPU_SLICEBUILDER_ADDRESSES": strings.Join(builders, ","),
	}
}

func read(env map[string]string) (*process.View, error) {
	return process.Read(func(name string) string { return env[name] })
}

func with(env map[string]string, pairs ...string) map[string]string {
	out := maps.Clone(env)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(out, pairs[i])
		} else {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

func TestTheGuidesEnvironment(t *testing.T) {
	v, err := read(v6e())
	require.NoError(t, err)
	require.Equal(t, "v6e-16-0", v.Name)
	require.Equal(t, 3, v.Index)
	require.Equal(t, 3, v.Global())
	require.Equal(t, 4, v.Count())
	require.Equal(t, 4, v.Chips)
	require.Equal(t, []int{2, 2, 1}, v.HostGrid)
	require.Equal(t, "v6e:4x4", v.Topology.String())
	require.Equal(t, "host 3 of 4 (v6e-16-0-3.ray-torchtpu-cluster-headless)", v.String())
	require.NoError(t, v.Agree(process.Seen{Process: 3, Processes: 4, Local: 4, Devices: 16, Kind: "TPU v6 lite"}))
}

func TestOtherEnvironments(t *testing.T) {
	tpu7x := map[string]string{
		"TPU_WORKER_HOSTNAMES": hosts("tpu7x-16-0-%.c", 2), "TPU_WORKER_ID": "1", "TPU_NAME": "tpu7x-16-0",
		"TPU_ACCELERATOR_TYPE": "tpu7x-16", "TPU_TOPOLOGY": "2x2x2", "TORCH_TPU_TOPOLOGY": "2,2,2,2",
	}
	for name, c := range map[string]struct {
		env           map[string]string
		index, count  int
		global        int
		slice, slices int
		topology      string
		chips         int
	}{
		"nothing":          {map[string]string{}, 0, 1, 0, 0, 1, "", 0},
		"tpu7x, two hosts": {tpu7x, 1, 2, 1, 0, 1, "tpu7x:2x2x2", 0},
		"second slice of two": {
			with(v6e(), "MEGASCALE_NUM_SLICES", "2", "MEGASCALE_SLICE_ID", "1", "MEGASCALE_COORDINATOR_ADDRESS", "a:8080"),
			3, 8, 7, 1, 2, "2 × v6e:4x4", 4,
		},
		"a TPU VM of one host": {
			map[string]string{"TPU_ACCELERATOR_TYPE": "v5p-8", "TPU_TOPOLOGY": "2x2x1", "TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "10.0.0.2"},
			0, 1, 0, 0, 1, "v5p:2x2x1", 0,
		},
		"v5p counts cores": {
			map[string]string{"TPU_ACCELERATOR_TYPE": "v5p-16", "TPU_TOPOLOGY": "2x2x2", "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"},
			1, 2, 1, 0, 1, "v5p:2x2x2", 0,
		},
		"v5e, its long name": {
			map[string]string{"TPU_ACCELERATOR_TYPE": "v5litepod-16", "TPU_TOPOLOGY": "4x4", "TPU_WORKER_ID": "2", "TPU_WORKER_HOSTNAMES": "a,b,c,d"},
			2, 4, 2, 0, 1, "v5e:4x4", 0,
		},
		"processes given by hand": {
			map[string]string{"CLOUD_TPU_TASK_ID": "1", "TPU_PROCESS_ADDRESSES": "a:8476,b:8476", "TPU_PROCESS_BOUNDS": "1,2,1", "TPU_CHIPS_PER_PROCESS_BOUNDS": "2,2,1"},
			1, 2, 1, 0, 1, "", 4,
		},
		"a generation without figures": {
			map[string]string{"TPU_ACCELERATOR_TYPE": "v4-8", "TPU_TOPOLOGY": "2x2x1"},
			0, 1, 0, 0, 1, "", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := read(c.env)
			require.NoError(t, err)
			require.Equal(t, c.index, v.Index)
			require.Equal(t, c.count, v.Count())
			require.Equal(t, c.global, v.Global())
			require.Equal(t, c.slice, v.Slice)
			require.Equal(t, c.slices, v.Slices)
			require.Equal(t, c.chips, v.Chips)
			require.Equal(t, c.count == 1, v.Single())
			topology := ""
			if v.Topology != nil {
				topology = v.Topology.String()
			}
			require.Equal(t, c.topology, topology)
		})
	}
}

// TestEachVariable has a row for every variable: a wrong value and what is said of it, or none at all.
func TestEachVariable(t *testing.T) {
	for _, c := range []struct {
		change []string
		want   string
	}{
		{[]string{"TPU_WORKER_ID", ""}, "TPU_WORKER_ID does not say which of them this is"},
		{[]string{"TPU_WORKER_ID", "4"}, "it is at most 3"},
		{[]string{"TPU_WORKER_ID", "three"}, "TPU_WORKER_ID=three is no number"},
		{[]string{"TPU_WORKER_ID", "-1"}, "TPU_WORKER_ID=-1 is no number"},
		{[]string{"TPU_WORKER_ID", "", "CLOUD_TPU_TASK_ID", "9"}, "CLOUD_TPU_TASK_ID=9"},
		{[]string{"TPU_WORKER_HOSTNAMES", "a,,b,c"}, "TPU_WORKER_HOSTNAMES=a,,b,c has an empty name"},
		{[]string{"TPU_WORKER_HOSTNAMES", "a,b"}, "TPU_WORKER_HOSTNAMES names 2 hosts"},
		{[]string{"TPU_WORKER_HOSTNAMES", "a,b,c,d"}, "TORCH_TPU_SLICEBUILDER_ADDRESSES tells of the hosts"},
		{[]string{"TPU_WORKER_HOSTNAMES", "", "TPU_PROCESS_ADDRESSES", "a,b"}, "a is no HOST:PORT"},
		{[]string{"TPU_ACCELERATOR_TYPE", "v6e-8"}, "TPU_TOPOLOGY=4x4 is a slice of 16 devices, TPU_ACCELERATOR_TYPE=v6e-8 one of 8"},
		{[]string{"TPU_TOPOLOGY", "4x8"}, "TPU_TOPOLOGY=4x8 is a slice of 32 devices"},
		{[]string{"TPU_TOPOLOGY", "4by4"}, "TPU_TOPOLOGY=4by4"},
		{[]string{"TPU_CHIPS_PER_HOST_BOUNDS", "2,2"}, ""},
		{[]string{"TPU_CHIPS_PER_HOST_BOUNDS", "2,4,1"}, "TPU_CHIPS_PER_HOST_BOUNDS gives 8 chips a host"},
		{[]string{"TPU_CHIPS_PER_HOST_BOUNDS", "2,x,1"}, "TPU_CHIPS_PER_HOST_BOUNDS=2,x,1"},
		{[]string{"TPU_HOST_BOUNDS", "1,2,1"}, "TPU_HOST_BOUNDS gives 2 hosts, TPU_WORKER_HOSTNAMES names 4"},
		{[]string{"TPU_PROCESS_BOUNDS", "1,1,1"}, "TPU_PROCESS_BOUNDS gives 1 hosts"},
		{[]string{"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"}, "TPU_CHIPS_PER_PROCESS_BOUNDS gives 1 chips"},
		{[]string{"TORCH_TPU_TOPOLOGY", "4,2,1"}, "TORCH_TPU_TOPOLOGY is a slice of 8 devices, TPU_TOPOLOGY one of 16"},
		{[]string{"TORCH_TPU_TOPOLOGY", ""}, ""},
		{[]string{"TORCH_TPU_SLICEBUILDER_ADDRESSES", "a"}, "a is no HOST:PORT"},
		{[]string{"TORCH_TPU_SLICEBUILDER_ADDRESSES", "v6e-16-0-0.ray-torchtpu-cluster-headless:8471"}, "there is one address a device"},
		{[]string{"MEGASCALE_SLICE_ID", "0"}, "MEGASCALE_NUM_SLICES must be set"},
		{[]string{"MEGASCALE_NUM_SLICES", "2"}, "MEGASCALE_SLICE_ID does not say"},
		{[]string{"MEGASCALE_NUM_SLICES", "2", "MEGASCALE_SLICE_ID", "2", "MEGASCALE_COORDINATOR_ADDRESS", "a"}, "MEGASCALE_SLICE_ID=2, but there are 2 slices"},
		{[]string{"MEGASCALE_NUM_SLICES", "2", "MEGASCALE_SLICE_ID", "1"}, "MEGASCALE_COORDINATOR_ADDRESS is not set"},
		{[]string{"MEGASCALE_NUM_SLICES", "0"}, "MEGASCALE_NUM_SLICES must be set"},
		{[]string{"MEGASCALE_NUM_SLICES", "two"}, "MEGASCALE_NUM_SLICES=two is no number"},
		{[]string{"MEGASCALE_NUM_SLICES", "2", "MEGASCALE_SLICE_ID", "x"}, "MEGASCALE_SLICE_ID=x is no number"},
		{[]string{"MEGASCALE_NUM_SLICES", "1"}, ""},
		{[]string{"TPU_NAME", ""}, ""},
	} {
		t.Run(strings.Join(c.change, " "), func(t *testing.T) {
			_, err := read(with(v6e(), c.change...))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// A TPU VM's environment may name the slice and no host of it: what there is of it is compared, and the rest is the runtime's.
func TestSliceWithoutNamedHosts(t *testing.T) {
	v, err := read(map[string]string{"TPU_ACCELERATOR_TYPE": "v6e-16", "TPU_TOPOLOGY": "4x4", "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1"})
	require.NoError(t, err)
	require.Equal(t, "v6e:4x4", v.Topology.String())
	require.Equal(t, 4, v.Chips)
	require.Empty(t, v.Hosts)
	seen := process.Seen{Process: 3, Processes: 4, Local: 4, Devices: 16, Kind: "TPU v6 lite"}
	require.NoError(t, v.Agree(seen))
	seen.Local = 8
	require.ErrorContains(t, v.Agree(seen), "devices of this host: 4 by TPU_CHIPS_PER_HOST_BOUNDS, 8 by the TPU's runtime")
}

func TestDisagreementIsNamed(t *testing.T) {
	good := process.Seen{Process: 3, Processes: 4, Local: 4, Devices: 16, Kind: "TPU v6 lite"}
	for name, c := range map[string]struct {
		change func(*process.Seen)
		want   []string
	}{
		"another index":     {func(s *process.Seen) { s.Process = 2 }, []string{"this process: 3 by TPU_WORKER_ID, 2 by the TPU's runtime"}},
		"a missing host":    {func(s *process.Seen) { s.Processes, s.Devices = 3, 12 }, []string{"processes: 4 by TPU_WORKER_HOSTNAMES, 3", "devices of v6e:4x4: 16 by TPU_TOPOLOGY"}},
		"one host alone":    {func(s *process.Seen) { s.Process, s.Processes, s.Devices = 0, 1, 4 }, []string{"processes: 4", "devices of v6e:4x4: 16"}},
		"another chip":      {func(s *process.Seen) { s.Kind = "TPU v5 lite" }, []string{"chip: TPU v6e (Trillium) by TPU_ACCELERATOR_TYPE, TPU v5e"}},
		"half of a host":    {func(s *process.Seen) { s.Local = 2 }, []string{"devices of this host: 4 by TPU_CHIPS_PER_HOST_BOUNDS, 2"}},
		"a kind unheard of": {func(s *process.Seen) { s.Kind = "TPU v9" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := read(v6e())
			require.NoError(t, err)
			s := good
			c.change(&s)
			err = v.Agree(s)
			if c.want == nil {
				require.NoError(t, err)
			}
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}
