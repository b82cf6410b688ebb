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
