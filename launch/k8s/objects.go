package k8s

// The parts of the Kubernetes API that the manifests use, in the order in which they are written.

type object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec"`
}

type metadata struct {
	Name        string            `yaml:"name,omitempty"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type podTemplate struct {
	Metadata *metadata `yaml:"metadata,omitempty"`
	Spec     podSpec   `yaml:"spec"`
}

type podSpec struct {
	ServiceAccountName            string            `yaml:"serviceAccountName,omitempty"`
	RestartPolicy                 string            `yaml:"restartPolicy,omitempty"`
	TerminationGracePeriodSeconds int               `yaml:"terminationGracePeriodSeconds,omitempty"`
	Containers                    []container       `yaml:"containers"`
	Volumes                       []volume          `yaml:"volumes,omitempty"`
	NodeSelector                  map[string]string `yaml:"nodeSelector,omitempty"`
}

type container struct {
	Name         string        `yaml:"name"`
	Image        string        `yaml:"image"`
	Command      []string      `yaml:"command,omitempty"`
	Args         []string      `yaml:"args,omitempty"`
	Env          []envVar      `yaml:"env,omitempty"`
	Ports        []port        `yaml:"ports,omitempty"`
	Resources    resources     `yaml:"resources"`
	VolumeMounts []volumeMount `yaml:"volumeMounts,omitempty"`
	Lifecycle    *lifecycle    `yaml:"lifecycle,omitempty"`
}

type lifecycle struct {
	PreStop handler `yaml:"preStop"`
}

type handler struct {
	Exec execAction `yaml:"exec"`
}

type execAction struct {
	Command []string `yaml:"command"`
}

type envVar struct {
	Name      string     `yaml:"name"`
	Value     string     `yaml:"value,omitempty"`
	ValueFrom *valueFrom `yaml:"valueFrom,omitempty"`
}

type valueFrom struct {
	SecretKeyRef *secretRef `yaml:"secretKeyRef,omitempty"`
	FieldRef     *fieldRef  `yaml:"fieldRef,omitempty"`
}

type secretRef struct {
	Name     string `yaml:"name"`
	Key      string `yaml:"key"`
	Optional bool   `yaml:"optional"`
}

type fieldRef struct {
	FieldPath string `yaml:"fieldPath"`
}

type port struct {
	ContainerPort int    `yaml:"containerPort"`
	Name          string `yaml:"name,omitempty"`
}

type resources struct {
	Limits   map[string]string `yaml:"limits"`
	Requests map[string]string `yaml:"requests"`
}

type volume struct {
	Name     string   `yaml:"name"`
	EmptyDir emptyDir `yaml:"emptyDir"`
}

type emptyDir struct {
	Medium    string `yaml:"medium"`
	SizeLimit string `yaml:"sizeLimit"`
}

type volumeMount struct {
	MountPath string `yaml:"mountPath"`
	Name      string `yaml:"name"`
}
