package k8s

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// comment says what the manifest is for, and which commands make what it expects to be there.
func (o *Options) comment(b *bytes.Buffer) {
	hosts, chips := o.hosts()
	fmt.Fprintf(b, "# %s: %d slice(s) of %s, %d host(s) each with %d chips, %d devices in all. Written by weft k8s render.\n",
		o.Name, o.Topology.Slices, o.Topology.SliceName(), hosts, chips, o.Topology.Devices())
	if o.Kind == JobSet {
		fmt.Fprintf(b, "# Needs JobSet v0.10.0 or newer.\n")
	}
	fmt.Fprintf(b, "# The nodes are paid for while they exist: kubectl delete -f this file, and the node pools that you made.\n")
	fmt.Fprintf(b, "# On GKE Standard make each slice's nodes first (Autopilot makes them itself):\n")
	o.nodePools(b, hosts)
	if caution := o.Caution(); caution != "" {
		fmt.Fprintf(b, "# Caution: %s\n", caution)
	}
	if o.HFSecret != "" {
		fmt.Fprintf(b, "# The token of the Hugging Face hub, where one is needed:\n#   kubectl create secret generic %s%s --from-literal=%s=$HF_TOKEN\n", o.HFSecret, o.inNamespace(), o.HFKey)
	}
	if account := o.ServiceAccount; account != "" && account != defaultAccount {
		fmt.Fprintf(b, "# The pods' service account:\n#   kubectl create serviceaccount %s%s\n", account, o.inNamespace())
	}
	o.bucketRights(b)
}

// Caution says that what weft saves would not outlive its pod, "" where it does: a pod's disk goes with it, and is no other's.
func (o *Options) Caution() string {
	if len(o.Args) == 0 || o.Args[0] != "finetune" || o.hasConfig() {
		return ""
	}
	at := "./weft-out, the default of --storage-path,"
	if value, given := o.weftFlag(storageFlag); given {
		if strings.HasPrefix(value, "gs://") {
			return ""
		}
		at = storageFlag + " " + strconv.Quote(value)
	}
	return at + " is on each pod's own disk, which is gone when the pod ends: give " + storageFlag + " gs://BUCKET/PREFIX, or mount a volume there that all pods share"
}

func (o *Options) inNamespace() string {
	if o.Namespace == "" {
		return ""
	}
	return " --namespace=" + o.Namespace
}

// nodePools writes the command that makes the pool of each slice.
func (o *Options) nodePools(b *bytes.Buffer, hosts int) {
	m, _ := o.machine() // Check has found it
	name := o.Name + "-pool"
	line := fmt.Sprintf("gcloud container node-pools create %s --cluster=$CLUSTER_NAME --zone=$ZONE --machine-type=%s", name, m.name)
	if o.Topology.Slices > 1 {
		line = strings.Replace(line, name, name+"-$i", 1)
	}
	if hosts > 1 {
		line += " --tpu-topology=" + shape(o.Topology)
	}
	line += fmt.Sprintf(" --num-nodes=%d", hosts)
	if o.Spot {
		line += " --spot"
	}
	if o.Reservation != "" {
		line += " --reservation-affinity=specific --reservation=" + o.Reservation
	}
	if n := o.Topology.Slices; n > 1 {
		line = fmt.Sprintf("for i in $(seq 0 %d); do %s; done", n-1, line)
	}
	fmt.Fprintf(b, "#   %s\n", line)
}

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

var bucketURL = regexp.MustCompile(`gs://([a-z0-9][a-z0-9._-]*)`)

// buckets are those that weft's arguments name, in order.
func (o *Options) buckets() []string {
	var names []string
	for _, a := range o.Args {
		for _, m := range bucketURL.FindAllStringSubmatch(a, -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	if o.Kind == RayCluster && len(names) == 0 {
		names = []string{"$BUCKET_NAME"} // what will run there is not known yet
	}
	return names
}

// bucketRights writes the commands that let the pods use the buckets, by Workload Identity Federation.
func (o *Options) bucketRights(b *bytes.Buffer) {
	names := o.buckets()
	if len(names) == 0 {
		return
	}
	namespace, account := o.Namespace, o.ServiceAccount
	if namespace == "" {
		namespace = "default"
	}
	if account == "" {
		account = defaultAccount
	}
	fmt.Fprintf(b, "# What lets its pods use the bucket(s) (PROJECT_NUMBER: gcloud projects describe $PROJECT_ID --format='value(projectNumber)'):\n")
	for _, name := range names {
		fmt.Fprintf(b, "#   gcloud storage buckets add-iam-policy-binding gs://%s --role=roles/storage.objectAdmin --member=principal://iam.googleapis.com/projects/$PROJECT_NUMBER/locations/global/workloadIdentityPools/$PROJECT_ID.svc.id.goog/subject/ns/%s/sa/%s\n", name, namespace, account)
	}
}
