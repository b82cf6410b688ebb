package tpuvm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/engine/tpu"
	"weft/launch/ray"
)

// Slice says which slice, or slices made together, the steps are about.
type Slice struct {
	Name    string
	Zone    string
	Project string // "" is gcloud's
	// Number of slices; more than one are made as one queued resource.
	Number int
	// Queued waits for capacity in Cloud TPU's queue, where making a slice directly fails when there is none.
	Queued bool
}

// Create says what to make.
type Create struct {
	Topology tpu.Topology
	// Runtime is the software of the VMs; "" is the usual one of the chip.
	Runtime        string
	Spot, Reserved bool
	ServiceAccount string // "" is the project's default
}

// Step is one line: what it is for, and the arguments of gcloud.
type Step struct {
	What string
	Args []string
	// Wait repeats the line, which prints the state of a queued resource, until that is ACTIVE.
	Wait bool
	// secrets are values that a log must not have.
	secrets []string
}

// shown is the line for a log.
func (s Step) shown() string {
	line := s.String()
	for _, secret := range s.secrets {
		line = strings.ReplaceAll(line, secret, "***")
	}
	return line
}

// String is the line as a person would type it.
func (s Step) String() string {
	line := ray.Quote(append([]string{"gcloud"}, s.Args...))
	if s.Wait {
		return fmt.Sprintf(`until [ "$(%s)" = %s ]; do sleep 30; done`, line, active)
	}
	return line
}

var (
	nameForm   = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	secretName = regexp.MustCompile(`(?i)token|secret|password|key$`)
	zoneForm   = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z]$`)
)

// maxName leaves room for the number of a slice within the 63 characters of a host's name.
const maxName = 56

// Check checks the slice; its errors name the flag of `weft tpuvm`.
func (s *Slice) Check() error {
	switch {
	case !nameForm.MatchString(s.Name) || len(s.Name) > maxName:
		return fmt.Errorf("name %q: give up to %d lower-case letters, digits and -, beginning with a letter and not ending with -", s.Name, maxName)
	case !zoneForm.MatchString(s.Zone):
		return fmt.Errorf("--zone %q: give a zone such as europe-west4-a", s.Zone)
	case s.Number < 1:
		return fmt.Errorf("--num-slices is %d: give 1 or more", s.Number)
	}
	return nil
}

// queued tells whether the slice is a queued resource.
func (s *Slice) queued() bool { return s.Queued || s.Number > 1 }

// many tells whether gcloud's ssh and scp go through the queued resource, which reaches the hosts of all its slices.
func (s *Slice) many() bool { return s.Number > 1 }

// line is a gcloud command about the slice.
func (s *Slice) line(queued bool, verb string, more ...string) []string {
	group := "tpu-vm"
	if queued {
		group = "queued-resources"
	}
	args := append([]string{"compute", "tpus", group, verb}, more...)
	args = append(args, "--zone="+s.Zone)
	if s.Project != "" {
		args = append(args, "--project="+s.Project)
	}
	return args
}

// flags are those that make the same weft command about the slice.
func (s *Slice) flags() string {
	words := []string{s.Name, "--zone", s.Zone}
	if s.Project != "" {
		words = append(words, "--project", s.Project)
	}
	if s.Number > 1 {
		words = append(words, "--num-slices", strconv.Itoa(s.Number))
	} else if s.Queued {
		words = append(words, "--queued")
	}
	return ray.Quote(words)
}

// Left says that the slice may be there, what that means, and how to end it.
func (s *Slice) Left() string {
	return fmt.Sprintf("the slice %s may exist, and is paid for until it is deleted: weft tpuvm delete %s --run", s.Name, s.flags())
}

// Goes says that weft may go on without whoever started it, and how to end it.
func (s *Slice) Goes() string {
	return fmt.Sprintf("weft may go on there: weft tpuvm stop %s --run", s.flags())
}

// generation is what Cloud TPU's API knows of a chip.
type generation struct {
	prefix   string // of an accelerator type
	perChip  int    // of its number
	runtime  string
	explicit bool // a shape of 4x4x4 chips and more is not the only one of its size
}

// generations are those of Cloud TPU's API, by weft's name. TPU7x is to be had through GKE alone.
var generations = map[string]generation{
	"v5e": {"v5litepod", 1, "v2-alpha-tpuv5-lite", false},
	"v5p": {"v5p", 2, "v2-alpha-tpuv5", true},
	"v6e": {"v6e", 1, "v2-alpha-tpuv6e", false},
}

// cube is the number of chips from which on shapes differ.
const cube = 64

// Create makes the slice, and waits for one that is queued.
func (s *Slice) Create(c Create) ([]Step, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	g, ok := generations[c.Topology.Chip.Name]
	switch {
	case !ok:
		return nil, fmt.Errorf("--accelerator-type: %s is not offered as Cloud TPU VMs: use GKE, with weft k8s render", c.Topology.Chip.Title)
	case c.Spot && c.Reserved:
		return nil, fmt.Errorf("--spot and --reserved exclude each other: leave out one")
	}
	kind := []string{fmt.Sprintf("--accelerator-type=%s-%d", g.prefix, c.Topology.ChipsPerSlice()*g.perChip)}
	if chips := c.Topology.ChipsPerSlice(); g.explicit && chips >= cube {
		_, shape, _ := strings.Cut(c.Topology.SliceName(), ":")
		kind = []string{"--type=" + g.prefix, "--topology=" + shape}
	}
	if c.Runtime == "" {
		c.Runtime = g.runtime
	}
	if !s.queued() {
		args := slices.Concat(s.line(false, "create", s.Name), kind, []string{"--version=" + c.Runtime}, c.flags())
		return []Step{{What: "make the slice", Args: args}}, nil
	}
	nodes := []string{"--node-id=" + s.Name}
	if s.many() {
		nodes = []string{"--node-count=" + strconv.Itoa(s.Number), "--node-prefix=" + s.Name}
	}
	args := slices.Concat(s.line(true, "create", s.Name), nodes, kind, []string{"--runtime-version=" + c.Runtime}, c.flags())
	return []Step{
		{What: "ask for the slice", Args: args},
		{What: "wait until it is there", Args: s.line(true, "describe", s.Name, "--format=value(state.state)"), Wait: true},
	}, nil
}

func (c *Create) flags() []string {
	var f []string
	if c.Spot {
		f = append(f, "--spot")
	}
	if c.Reserved {
		f = append(f, "--reserved")
	}
	if c.ServiceAccount != "" {
		f = append(f, "--service-account="+c.ServiceAccount)
	}
	return f
}

// everywhere are the flags with which gcloud reaches all hosts at once: in batches, the first ones would wait for the last.
func (s *Slice) everywhere() []string {
	f := []string{"--worker=all", "--batch-size=all"}
	if s.many() {
		f = append(f, "--node=all")
	}
	return f
}

func (s *Slice) ssh(what, command string) Step {
	return Step{What: what, Args: s.line(s.many(), "ssh", append(append([]string{s.Name}, s.everywhere()...), "--command="+command)...)}
}

// remote is weft in the home folder of each host.
const remote = "./weft"

// Copy puts a binary on all hosts, and libtpu beside it. A weft that runs there keeps its file.
func (s *Slice) Copy(binary string) ([]Step, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return []Step{
		{What: "copy weft to every host", Args: s.line(s.many(), "scp", append([]string{binary, s.Name + ":weft.new"}, s.everywhere()...)...)},
		s.ssh("put it in place, with libtpu", "chmod 755 weft.new && mv -f weft.new weft && "+remote+" plugin install tpu && "+remote+" version"),
	}, nil
}

// Run starts weft on all hosts and follows it. env are NAME=VALUE.
func (s *Slice) Run(args, env []string) ([]Step, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("end the line with -- and what weft is to do, such as -- finetune --model-id … --storage-path gs://…")
	}
	var words, secrets []string
	for _, pair := range env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env %s: give NAME=VALUE", pair)
		}
		if value != "" && secretName.MatchString(name) {
			secrets = append(secrets, value)
		}
	}
	if len(env) > 0 {
		words = append([]string{"env"}, env...)
	}
	step := s.ssh("run weft on every host", ray.Quote(append(append(words, remote), args...)))
	step.secrets = secrets
	return []Step{step}, nil
}

// Stop asks weft on all hosts to save and end, and waits until it has.
func (s *Slice) Stop() ([]Step, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return []Step{s.ssh("stop weft on every host", "pkill -TERM -x weft; while pgrep -x weft >/dev/null; do sleep 1; done")}, nil
}

// Delete deletes the slice and all that is on its disks.
func (s *Slice) Delete() ([]Step, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	force := []string{s.Name, "--quiet"}
	if s.queued() {
		force = append(force, "--force") // with its nodes
	}
	return []Step{{What: "delete the slice", Args: s.line(s.queued(), "delete", force...)}}, nil
}
