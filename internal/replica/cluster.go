package replica

import "net/netip"

// APIVersion and Kind head every Cluster document.
const (
	APIVersion = "quorate.dev/v1alpha1"
	Kind       = "Cluster"
)

// Cluster is the configuration of one cluster: one document, the same for all its replicas. Load reads it from its
// sources: each is decoded strictly, a later one wins field by field, SetDefaults fills what is not given, Validate
// names every fault at once. The yaml tags are the document's field names; the comments here are the descriptions that
// Schema shows, so they are written for the operator.
type Cluster struct {
	// APIVersion is quorate.dev/v1alpha1, in every document.
	APIVersion string `yaml:"apiVersion" json:"apiVersion" jsonschema:"enum=quorate.dev/v1alpha1"`
	// Kind is Cluster, in every document.
	Kind string `yaml:"kind" json:"kind" jsonschema:"enum=Cluster"`
	// Name is part of every DNS name and of the record's object names: a DNS label.
	Name string `yaml:"name" json:"name"`
	// Endpoint is the address by which clients reach the cluster.
	Endpoint Endpoint `yaml:"endpoint" json:"endpoint"`
	// Record says where the write-once record is kept.
	Record Record `yaml:"record" json:"record"`
	// Seal says which key seals the bundle of CA keys and shared secrets.
	Seal Seal `yaml:"seal" json:"seal"`
	// Compute says where the Compute API is.
	Compute Compute `yaml:"compute,omitempty" json:"compute,omitempty"`
	// GCE says how masters' VMs are made. The operator's commands read it; agents never do.
	GCE *GCE `yaml:"gce,omitempty" json:"gce,omitempty"`
	// Replicas is the wanted number of replicas, 1 to 7; 3 where it is not given.
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" jsonschema:"minimum=1,maximum=7"`
	// Network holds the cluster's address ranges.
	Network Network `yaml:"network,omitempty" json:"network,omitempty"`
	// Etcd holds what can be chosen about the member.
	Etcd Etcd `yaml:"etcd,omitempty" json:"etcd,omitempty"`
	// Components are keyed by name: kube-apiserver, kube-controller-manager, kube-scheduler, cluster-autoscaler, and
	// any further one of the operator's own, which must name its binary.
	Components map[string]Component `yaml:"components,omitempty" json:"components,omitempty"`
	// Addons are kept applied to the cluster.
	Addons Addons `yaml:"addons,omitempty" json:"addons,omitempty"`
	// Kubelet says how the kubelet and the container runtime of each replica are watched.
	Kubelet Kubelet `yaml:"kubelet,omitempty" json:"kubelet,omitempty"`
	// Election is the profile of every lease: fast (9/3/1 s, the default) or slow (15/5/2 s).
	Election string `yaml:"election,omitempty" json:"election,omitempty" jsonschema:"enum=fast,enum=slow"`
	// Survivors says what happens where quorum is gone for good and the replicas that are left hold every acknowledged
	// write: restore (the default) goes on from the newest log among them without a person, wait only offers it.
	Survivors string `yaml:"survivors,omitempty" json:"survivors,omitempty" jsonschema:"enum=restore,enum=wait"`
	// EncryptionAtRest says whether secrets are written to etcd encrypted, with the bundle's key: true where it is not
	// given. What was written otherwise stays readable. A change counts from the agent's next start.
	EncryptionAtRest *bool `yaml:"encryptionAtRest,omitempty" json:"encryptionAtRest,omitempty"`
	// JWT are issuers of tokens whose users are let in (OpenID Connect). What a user may do is for RBAC and
	// authorization.
	JWT []JWT `yaml:"jwt,omitempty" json:"jwt,omitempty"`
	// Authorization says who may do what, in addition to Node and RBAC.
	Authorization Authorization `yaml:"authorization,omitempty" json:"authorization,omitempty"`
	// AuditPolicy is a file with the apiserver's audit policy; empty takes quorate's own, metadata of every request but
	// reads of health.
	AuditPolicy string `yaml:"auditPolicy,omitempty" json:"auditPolicy,omitempty"`
}

// Endpoint is the address by which clients reach the cluster. It stays when replicas come and go.
type Endpoint struct {
	// ExternalIP is a reserved external address, never an ephemeral one. At least one of the two addresses is given.
	ExternalIP string `yaml:"externalIP,omitempty" json:"externalIP,omitempty"`
	// InternalIP is the internal load balancer's address.
	InternalIP string `yaml:"internalIP,omitempty" json:"internalIP,omitempty"`
	// DNSNames are further names of the endpoint, for the apiserver's certificates.
	DNSNames []string `yaml:"dnsNames,omitempty" json:"dnsNames,omitempty"`
	// Port is the apiserver's port: 443 where it is not given.
	Port int `yaml:"port,omitempty" json:"port,omitempty" jsonschema:"minimum=1,maximum=65535"`
}

// Record says where the write-once record is kept.
type Record struct {
	// URL is a bucket, gs://NAME (with ?endpoint=http://ADDRESS: of a stand-in for Google's).
	URL string `yaml:"url" json:"url"`
}

// Seal says which key seals the bundle of CA keys and shared secrets.
type Seal struct {
	// Key is gcpkms://projects/…/cryptoKeys/…, or base64key://… (32 bytes), which serves one machine and tests: it is
	// refused where the record is a bucket, beside which it would stand.
	Key string `yaml:"key" json:"key"`
}

// Compute says where the Compute API is.
type Compute struct {
	// Endpoint replaces Google's own, for localgce: http://ADDRESS/compute/v1/.
	Endpoint string `yaml:"endpoint,omitempty" json:"endpoint,omitempty"`
}

// Network holds the cluster's address ranges.
type Network struct {
	// ServiceCIDRs are one or two ranges (dual stack: one of each family): 10.96.0.0/12 where none is given.
	ServiceCIDRs []string `yaml:"serviceCIDRs,omitempty" json:"serviceCIDRs,omitempty"`
	// PodCIDR is the range of the pods: 10.244.0.0/16 where it is not given.
	PodCIDR string `yaml:"podCIDR,omitempty" json:"podCIDR,omitempty"`
	// DNSDomain is the cluster's domain: cluster.local where it is not given.
	DNSDomain string `yaml:"dnsDomain,omitempty" json:"dnsDomain,omitempty"`
}

// Etcd holds what can be chosen about the member.
type Etcd struct {
	// DataDir is on the data disk: /var/lib/quorate where it is not given. etcd's own directory is <DataDir>/etcd.
	DataDir string `yaml:"dataDir,omitempty" json:"dataDir,omitempty"`
	// DataDisk is the GCE device name of the disk that must be mounted at DataDir; empty: the image's, if it mounts one
	// there.
	DataDisk string `yaml:"dataDisk,omitempty" json:"dataDisk,omitempty"`
	// QuotaBytes is the database's limit: 8 GiB where it is not given.
	QuotaBytes int64 `yaml:"quotaBytes,omitempty" json:"quotaBytes,omitempty"`
	// Heartbeat is how often the leader is heard, in whole milliseconds: 100ms where it is not given, 10ms at least.
	Heartbeat Duration `yaml:"heartbeat,omitempty" json:"heartbeat,omitempty"`
	// Election is how long a silent leader is waited for: 1s where it is not given, 5 heartbeats at least, 50s at most.
	Election Duration `yaml:"election,omitempty" json:"election,omitempty"`
	// CatchUpEntries is how many log entries are kept for a member that was away: 75000 where it is not given.
	CatchUpEntries uint64 `yaml:"catchUpEntries,omitempty" json:"catchUpEntries,omitempty"`
	// Snapshots says how often the database is saved to the record, and how long what was saved stays there.
	Snapshots Snapshots `yaml:"snapshots,omitempty" json:"snapshots,omitempty"`
}

// Snapshots says how often the database is saved to the record, and how long what was saved stays there.
type Snapshots struct {
	// Interval is the time between two snapshots: 1h where it is not given, 5m at least, 24h at most.
	Interval Duration `yaml:"interval,omitempty" json:"interval,omitempty"`
	// Hourly is how long one snapshot for each hour stays: 168h (7 days) where it is not given, 1h at least.
	Hourly Duration `yaml:"hourly,omitempty" json:"hourly,omitempty"`
	// Daily is how long one snapshot for each day stays: 2160h (90 days) where it is not given, not shorter than
	// Hourly.
	Daily Duration `yaml:"daily,omitempty" json:"daily,omitempty"`
}

// Addons keeps a folder of manifests applied to the cluster: one of the replicas' own, or examples that quorate brings.
// Without both no add-ons are kept.
type Addons struct {
	// Folder is an absolute path on each replica: the file version, manifests, and folders of manifests or with a
	// kustomization.
	Folder string `yaml:"folder,omitempty" json:"folder,omitempty"`
	// Examples are add-ons that quorate brings, in place of a folder: coredns, kube-proxy, metadata-guard. The image
	// must hold their container images.
	Examples []string `yaml:"examples,omitempty" json:"examples,omitempty" jsonschema:"enum=coredns,enum=kube-proxy,enum=metadata-guard"`
	// Version orders the sets of examples, as the file version orders those of a folder: raise it with every change of
	// Examples, and of what they are filled with (endpoint, network). 1 where it is not given.
	Version int `yaml:"version,omitempty" json:"version,omitempty" jsonschema:"minimum=1"`
}

// On reports whether add-ons are kept.
func (a Addons) On() bool { return a.Folder != "" || len(a.Examples) > 0 }

// Kubelet says how the kubelet and the container runtime of each replica are watched. Both are units of systemd.
type Kubelet struct {
	// Watch restarts the two where they hang: true where it is not given.
	Watch *bool `yaml:"watch,omitempty" json:"watch,omitempty"`
	// Unit is the kubelet's: kubelet.service where it is not given.
	Unit string `yaml:"unit,omitempty" json:"unit,omitempty"`
	// RuntimeUnit is the runtime's: containerd.service where it is not given. It needs KillMode=process.
	RuntimeUnit string `yaml:"runtimeUnit,omitempty" json:"runtimeUnit,omitempty"`
	// RuntimeSocket is where the runtime answers: /run/containerd/containerd.sock where it is not given.
	RuntimeSocket string `yaml:"runtimeSocket,omitempty" json:"runtimeSocket,omitempty"`
	// HealthPort is the kubelet's healthzPort, on loopback: 10248 where it is not given.
	HealthPort int `yaml:"healthPort,omitempty" json:"healthPort,omitempty" jsonschema:"minimum=1,maximum=65535"`
	// AnswerWithin is how long an answer may take: 10s where it is not given, 1s to 1m.
	AnswerWithin Duration `yaml:"answerWithin,omitempty" json:"answerWithin,omitempty"`
	// Misses is how many answers must fail in a row for a process to be taken for hung: 3 where it is not given, 2 to
	// 20.
	Misses int `yaml:"misses,omitempty" json:"misses,omitempty" jsonschema:"minimum=2,maximum=20"`
	// StartWithin is how long a start-up may take: 5m where it is not given, 1m to 1h.
	StartWithin Duration `yaml:"startWithin,omitempty" json:"startWithin,omitempty"`
}

// Component is one supervised process of the control plane.
type Component struct {
	// Enabled starts it: true where it is not given, but for cluster-autoscaler, which is off.
	Enabled *bool `yaml:"enabled,omitempty" json:"enabled,omitempty"`
	// Binary is an absolute path: /usr/local/bin/<name> where it is not given.
	Binary string `yaml:"binary,omitempty" json:"binary,omitempty"`
	// ExtraArgs are put behind quorate's own flags and win over them, except those that quorate must own.
	ExtraArgs []string `yaml:"extraArgs,omitempty" json:"extraArgs,omitempty"`
	// Env is added to the process's environment.
	Env Env `yaml:"env,omitempty" json:"env,omitempty"`
	// Resources bound what it may take of the replica. Nothing is bound where nothing is given.
	Resources Resources `yaml:"resources,omitempty" json:"resources,omitempty"`
	// Probe tells whether a component that quorate does not know is well; for such a one it must be given.
	Probe *Probe `yaml:"probe,omitempty" json:"probe,omitempty"`
	// Elect says who elects a leader among the replicas' processes: self (the default), the component itself, or agent:
	// it runs on one replica at a time, the one whose agent holds the Lease quorate. The components that quorate knows
	// elect themselves.
	Elect string `yaml:"elect,omitempty" json:"elect,omitempty" jsonschema:"enum=self,enum=agent"`
}

// Resources bound what a component may take of the replica. They need the kernel's cgroup2 controllers; where a bound
// is not in force, the status and the log say so. There are no defaults: what an apiserver needs grows with the
// cluster, and a bound that is too low would end it on every replica alike. The OOM scores say who is killed first in
// any case.
type Resources struct {
	// MemoryMaxBytes is where the component is killed and started again, 16 MiB at least.
	MemoryMaxBytes int64 `yaml:"memoryMaxBytes,omitempty" json:"memoryMaxBytes,omitempty"`
	// MemoryHighBytes is where it is slowed down and memory is taken back from it, 16 MiB at least.
	MemoryHighBytes int64 `yaml:"memoryHighBytes,omitempty" json:"memoryHighBytes,omitempty"`
	// CPUWeight is its share where processors are short, 1 to 10000. Components have 100 where it is not given, the
	// agent and etcd about three times that.
	CPUWeight int `yaml:"cpuWeight,omitempty" json:"cpuWeight,omitempty" jsonschema:"minimum=1,maximum=10000"`
}

// Probe is an HTTP(S) check of a component on the replica itself.
type Probe struct {
	// URL answers 2xx while the component is well. The host must be a loopback address.
	URL string `yaml:"url" json:"url"`
}

// EndpointAddresses are the given addresses of the endpoint, external first. Validate has checked that they parse.
func (c *Cluster) EndpointAddresses() []netip.Addr {
	var out []netip.Addr
	for _, s := range []string{c.Endpoint.ExternalIP, c.Endpoint.InternalIP} {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, a)
		}
	}
	return out
}
