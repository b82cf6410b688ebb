package k8s

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"weft/engine/tpu"
)

// Kind is a kind of manifest.
type Kind string

// The kinds.
const (
	RayCluster Kind = "raycluster" // nodes that wait for jobs
	RayJob     Kind = "rayjob"     // a cluster made for one job and removed after it
	JobSet     Kind = "jobset"     // no Ray: Kubernetes starts one process a host
)

// Kinds lists them in the order of the help text.
var Kinds = []Kind{RayCluster, RayJob, JobSet}

// Options say what to write. DefaultOptions gives all but Name, Topology, Image and Args.
type Options struct {
	Kind Kind
	// Name is that of the object, and the beginning of those of its pods.
	Name      string
	Namespace string // "" leaves the choice to kubectl
	// Topology is the slice, and how many of it.
	Topology tpu.Topology
	// ChipsPerHost is the number of chips of a host, 0 for the usual: 4, or all of a slice of v5e or v6e with up to 8.
	ChipsPerHost int
	// Image holds weft at BinaryPath and, for Ray, Ray itself.
	Image      string
	BinaryPath string
	// Args are weft's own: the command and its flags. A RayCluster takes none.
	Args []string
	// HFSecret and HFKey name the secret with the token of the Hugging Face hub; "" leaves HF_TOKEN out.
	HFSecret, HFKey string
	// ServiceAccount is the Kubernetes service account whose pods may use the bucket; "" is the namespace's default.
	ServiceAccount string
	// Queue is a Kueue LocalQueue, "" for none.
	Queue string
	// Spot asks for spot nodes; Reservation names a reservation. At most one of them.
	Spot        bool
	Reservation string
	// CPU, Memory and Shm are of each TPU host's pod, "" for what its machine has room for; HeadCPU and HeadMemory are of
	// the Ray head's. Kubernetes quantities.
	CPU, Memory, Shm    string
	HeadCPU, HeadMemory string
	// Grace is how long weft has to save and end when its pod is told to.
	Grace time.Duration
	// MaxFailures is how often the whole job begins again after a failure; preemptions do not count.
	MaxFailures int
}

// DefaultOptions are those of the published guide for Gemma 4 on multi-host TPU.
func DefaultOptions(kind Kind, t tpu.Topology) Options {
	return Options{
		Kind: kind, Name: "weft", Topology: t, BinaryPath: "weft",
		HFSecret: "hf-secret", HFKey: "hf_api_token", HeadCPU: "4", HeadMemory: "16Gi",
		Grace: 30 * time.Second, MaxFailures: 3,
	}
}

// fill puts in what the machine has room for where nothing was asked for.
func (o *Options) fill() error {
	m, err := o.machine()
	if err != nil {
		return err
	}
	o.CPU, o.Memory, o.Shm = cmp.Or(o.CPU, m.cpu), cmp.Or(o.Memory, m.memory), cmp.Or(o.Shm, m.shm)
	return nil
}

var (
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	quantity  = regexp.MustCompile(`^[1-9][0-9]*(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$`)
	secretKey = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// maxName leaves room for what KubeRay and JobSet append within the 63 characters of a host's name.
const maxName = 40

// named is a value that must have a form.
type named struct {
	flag, value string
	form        *regexp.Regexp
	optional    bool
	want        string
}

func (n named) check() error {
	if n.value == "" && n.optional || n.value != "" && n.form.MatchString(n.value) {
		return nil
	}
	return fmt.Errorf("%s %q: give %s", n.flag, n.value, n.want)
}

// Check checks the options and fills in the sizes that were left to it; its errors name the flag of `weft k8s render`.
func (o *Options) Check() error {
	if !slices.Contains(Kinds, o.Kind) {
		return fmt.Errorf("%q is no kind of manifest: give raycluster, rayjob or jobset", o.Kind)
	}
	if err := o.fill(); err != nil {
		return err
	}
	const label = "lower-case letters, digits and -, beginning and ending with a letter or digit"
	const size = "a Kubernetes quantity such as 64 or 200Gi"
	for _, n := range []named{
		{"--name", o.Name, dnsLabel, false, label},
		{"--namespace", o.Namespace, dnsLabel, true, label},
		{"--service-account", o.ServiceAccount, dnsLabel, true, label},
		{"--queue", o.Queue, dnsLabel, true, label},
		{"--hf-secret", o.HFSecret, dnsLabel, true, label},
		{"--reservation", o.Reservation, dnsLabel, true, label},
		{"--cpu", o.CPU, quantity, false, size}, {"--memory", o.Memory, quantity, false, size}, {"--shm", o.Shm, quantity, false, size},
		{"--head-cpu", o.HeadCPU, quantity, false, size}, {"--head-memory", o.HeadMemory, quantity, false, size},
	} {
		if err := n.check(); err != nil {
			return err
		}
	}
	switch {
	case len(o.Name) > maxName:
		return fmt.Errorf("--name %s has %d characters: give at most %d, since the pods' names are longer", o.Name, len(o.Name), maxName)
	case o.HFSecret != "" && !secretKey.MatchString(o.HFKey):
		return fmt.Errorf("--hf-secret %s:%s: give SECRET:KEY", o.HFSecret, o.HFKey)
	case o.Image == "" || strings.ContainsAny(o.Image, " \t\n"):
		return fmt.Errorf("--image %q: give the image that holds weft, such as REGION-docker.pkg.dev/PROJECT/REPOSITORY/weft:TAG", o.Image)
	case o.Spot && o.Reservation != "":
		return fmt.Errorf("--spot and --reservation %s exclude each other: leave out one", o.Reservation)
	case o.MaxFailures < 0:
		return fmt.Errorf("--max-failures is %d: give 0 or more", o.MaxFailures)
	case o.Grace < time.Second:
		return fmt.Errorf("--grace-period %s: give at least 1s", o.Grace)
	}
	if hosts, _ := o.hosts(); hosts == 1 && o.Topology.Slices > 1 {
		return fmt.Errorf("--num-slices %d of %s: GKE joins slices of several hosts only: give a larger --topology, or --num-slices 1", o.Topology.Slices, o.Topology.SliceName())
	}
	return o.checkArgs()
}

func (o *Options) checkArgs() error {
	if o.Kind == RayCluster {
		if len(o.Args) > 0 {
			return fmt.Errorf("a RayCluster runs nothing by itself: leave out -- %s, or render a rayjob", strings.Join(o.Args, " "))
		}
		return nil
	}
	if len(o.Args) == 0 {
		return fmt.Errorf("a %s needs what to run: end the line with -- finetune --model-id … --dataset … --storage-path gs://…", o.Kind)
	}
	return o.checkGrace()
}

// Flags of weft's own.
const (
	graceFlag   = "--grace-period"
	storageFlag = "--storage-path"
)

// weftFlag is the value of a flag among weft's arguments, and whether it is there.
func (o *Options) weftFlag(flag string) (value string, given bool) {
	for i, a := range o.Args {
		value, ok := strings.CutPrefix(a, flag+"=")
		if !ok && a == flag && i+1 < len(o.Args) {
			value, ok = o.Args[i+1], true
		}
		if ok {
			return value, true
		}
	}
	return "", false
}

// hasConfig tells that a file, which is not here, holds flags too.
func (o *Options) hasConfig() bool {
	return slices.ContainsFunc(o.Args, func(a string) bool { return a == "--config" || strings.HasPrefix(a, "--config=") })
}

// ownGrace is the grace period among weft's arguments, and whether there is one.
func (o *Options) ownGrace() (time.Duration, bool, error) {
	value, given := o.weftFlag(graceFlag)
	if !given {
		return 0, false, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, true, fmt.Errorf("-- %s %s: give a time such as 30s", graceFlag, value)
	}
	return d, true, nil
}

// checkGrace refuses a grace period of weft's that its pod would not live to see.
func (o *Options) checkGrace() error {
	own, _, err := o.ownGrace()
	if err == nil && own > o.Grace {
		return fmt.Errorf("weft's own %s %s is longer than its pod's of %s: give weft k8s render %[1]s %[2]s too", graceFlag, own, o.Grace)
	}
	return err
}

// weftArgs are weft's arguments, with the pod's grace period where they leave it out. A --config may hold it.
func (o *Options) weftArgs() []string {
	_, given, _ := o.ownGrace()
	if len(o.Args) == 0 || o.Args[0] != "finetune" || given || o.hasConfig() {
		return o.Args
	}
	return append(slices.Clone(o.Args), graceFlag, o.Grace.String())
}
