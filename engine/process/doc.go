// Package process tells what part of a TPU slice this process is: which host of how many, with which chips, in which of
// several slices. It learns that from the environment, which Cloud TPU VMs, GKE and the webhook of KubeRay fill in, and
// checks it against what the PJRT client says: a job whose hosts disagree about that waits for ever in its first
// collective, so weft refuses to begin.
package process
