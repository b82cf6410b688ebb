package k8s

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"
)

// Render writes the manifest as one YAML document with a comment that says how to make the nodes and apply it.
func Render(o Options) ([]byte, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	obj := object{Metadata: metadata{Name: o.Name, Namespace: o.Namespace, Labels: o.labels()}}
	switch o.Kind {
	case RayCluster:
		obj.APIVersion, obj.Kind, obj.Spec = "ray.io/v1", "RayCluster", o.rayClusterSpec()
	case RayJob:
		obj.APIVersion, obj.Kind, obj.Spec = "ray.io/v1", "RayJob", o.rayJobSpec()
	case JobSet:
		obj.APIVersion, obj.Kind, obj.Spec = "jobset.x-k8s.io/v1alpha2", "JobSet", o.jobSetSpec()
		obj.Metadata.Annotations = o.jobSetAnnotations()
	}
	var b bytes.Buffer
	o.comment(&b)
	enc := yaml.NewEncoder(&b, yaml.Indent(2), yaml.IndentSequence(false))
	if err := enc.Encode(obj); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return b.Bytes(), enc.Close()
}

// comment says for which nodes the manifest is, and the command that makes them.
func (o *Options) comment(b *bytes.Buffer) {
	hosts, chips := hostsOf(o.Topology)
	fmt.Fprintf(b, "# %s: %d slice(s) of %s, %d host(s) each with %d chips, %d devices in all. Written by weft k8s render.\n",
		o.Name, o.Topology.Slices, o.Topology.SliceName(), hosts, chips, o.Topology.Devices())
	machine := machineTypes[o.Topology.Chip.Name][chips]
	if machine == "" {
		return
	}
	fmt.Fprintf(b, "# On GKE Standard make each slice's nodes first (Autopilot makes them itself):\n")
	fmt.Fprintf(b, "#   gcloud container node-pools create %s-pool --cluster=$CLUSTER_NAME --zone=$ZONE --machine-type=%s", o.Name, machine)
	if hosts > 1 {
		fmt.Fprintf(b, " --tpu-topology=%s", shape(o.Topology))
	}
	fmt.Fprintf(b, " --num-nodes=%d", hosts)
	if o.Spot {
		fmt.Fprint(b, " --spot")
	}
	if o.Reservation != "" {
		fmt.Fprintf(b, " --reservation-affinity=specific --reservation=%s", o.Reservation)
	}
	fmt.Fprintln(b)
}
