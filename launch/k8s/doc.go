// Package k8s writes the manifests that run weft on GKE: a RayCluster or a RayJob of KubeRay, or a plain JobSet.
//
// A slice is one group of pods, a host one pod with one weft process. The mutating webhooks of GKE and of KubeRay put the
// TPU_* variables into the pods; what they are told, by labels, ports and the numbers of hosts, is all here.
package k8s
