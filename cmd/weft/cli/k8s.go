package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"weft/cmd/weft/job"
	"weft/engine/tpu"
	"weft/launch/k8s"
)

type k8sCmd struct {
	Render k8sRenderCmd `cmd:"" help:"Write the manifest that runs weft on TPU slices of a GKE cluster."`
}

// k8sRenderCmd has the flags of k8s.Options.
type k8sRenderCmd struct {
	Kind            string        `arg:"" help:"raycluster: nodes of KubeRay that wait for weft ray submit. rayjob: a cluster of KubeRay for one job, removed after it. jobset: no Ray, one process a host."`
	Topology        string        `required:"" placeholder:"AxB" help:"Shape of each slice, such as 4x4 or 2x2x2."`
	AcceleratorType string        `name:"accelerator-type" required:"" placeholder:"TYPE" help:"Type of TPU, such as TPU-V6E or TPU-V7X."`
	NumSlices       int           `name:"num-slices" default:"1" placeholder:"N" help:"Slices to train on together."`
	ChipsPerHost    int           `name:"chips-per-host" default:"0" placeholder:"N" help:"Chips of a host. 0: 4, or all of a slice of v5e or v6e with up to 8."`
	Image           string        `required:"" placeholder:"IMAGE" help:"The image that holds weft and, but for a jobset, Ray: see Dockerfile."`
	BinaryPath      string        `name:"binary-path" default:"weft" placeholder:"PATH" help:"The weft within the image, a path or a name."`
	Name            string        `default:"weft" placeholder:"NAME" help:"Name of the object, and beginning of those of its pods."`
	Namespace       string        `placeholder:"NAME" help:"Namespace. Default: kubectl's."`
	ServiceAccount  string        `name:"service-account" placeholder:"NAME" help:"Service account of the pods, which may use the bucket. Default: the namespace's default."`
	Queue           string        `placeholder:"NAME" help:"Kueue's LocalQueue to wait in. Default: none."`
	HFSecret        string        `name:"hf-secret" default:"hf-secret:hf_api_token" placeholder:"SECRET:KEY" help:"The secret with the token of the Hugging Face hub, for HF_TOKEN; none leaves it out."`
	Spot            bool          `help:"Ask for spot nodes: cheaper, and taken away when others need them."`
	Reservation     string        `placeholder:"NAME" help:"Use the nodes of this reservation."`
	CPU             string        `name:"cpu" placeholder:"N" help:"CPUs of each host's pod. Default: what the machine has room for."`
	Memory          string        `placeholder:"SIZE" help:"Memory of each host's pod, such as 200Gi. Default: what the machine has room for."`
	Shm             string        `placeholder:"SIZE" help:"The part of the memory that /dev/shm may take. Default: about half of it."`
	GracePeriod     time.Duration `name:"grace-period" default:"30s" placeholder:"TIME" help:"How long weft has to save when its pod is told to end. finetune gets the same --grace-period where it has none; the pod gets 15s more."`
	MaxFailures     int           `name:"max-failures" default:"3" placeholder:"N" help:"How often the job begins again, from its last checkpoint, when a host fails or is lost. Preemptions do not count."`
	Output          string        `short:"o" default:"-" placeholder:"FILE" help:"Where to write, - for standard output."`
	Args            []string      `arg:"" optional:"" passthrough:"" help:"-- and what weft is to do, such as -- finetune --model-id … --storage-path gs://…"`
}

// Help is the long help.
func (k8sRenderCmd) Help() string {
	return `Writes one manifest for kubectl apply -f -. Its first lines are comments: the commands that make the nodes, the secret and the rights to the buckets that weft's arguments name. Nothing is sent to a cluster. docs/gke.md walks from an empty project to clean-up.

  weft k8s render jobset --topology 4x4 --accelerator-type TPU-V6E --image $IMAGE -- finetune --model-id gs://b/gemma --dataset gs://b/d.jsonl --storage-path gs://b/runs | kubectl apply -f -`
}

// Run writes the manifest.
func (c *k8sRenderCmd) Run(s streams) error {
	o, err := c.options()
	if err != nil {
		return job.Input(err)
	}
	out, err := k8s.Render(o)
	if err != nil {
		return job.Input(err)
	}
	if caution := o.Caution(); caution != "" {
		fmt.Fprintln(s.Err, "weft: "+caution)
	}
	if c.Output == "-" {
		_, err = s.Out.Write(out)
		return err
	}
	if err := os.WriteFile(c.Output, out, 0o644); err != nil {
		return job.Input(fmt.Errorf("--output: %w", err))
	}
	return nil
}

func (c *k8sRenderCmd) options() (k8s.Options, error) {
	top, err := tpu.ParseJob(c.Topology, c.AcceleratorType)
	if err != nil {
		return k8s.Options{}, err
	}
	if top, err = top.WithSlices(c.NumSlices); err != nil {
		return k8s.Options{}, fmt.Errorf("--num-slices: %w", err)
	}
	o := k8s.DefaultOptions(k8s.Kind(strings.ToLower(c.Kind)), top)
	o.Name, o.Namespace, o.Image, o.BinaryPath = c.Name, c.Namespace, c.Image, c.BinaryPath
	o.ServiceAccount, o.Queue, o.Spot, o.Reservation = c.ServiceAccount, c.Queue, c.Spot, c.Reservation
	o.ChipsPerHost, o.CPU, o.Memory, o.Shm = c.ChipsPerHost, c.CPU, c.Memory, c.Shm
	o.Grace, o.MaxFailures = c.GracePeriod, c.MaxFailures
	o.Args = afterDashes(c.Args)
	secret, key, given := strings.Cut(c.HFSecret, ":")
	switch {
	case c.HFSecret == "none":
		o.HFSecret = ""
	case given:
		o.HFSecret, o.HFKey = secret, key
	default:
		o.HFSecret = secret
	}
	return o, nil
}

// afterDashes are the arguments behind --.
func afterDashes(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}
