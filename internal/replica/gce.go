package replica

// GCE says how a master's VM and disks are made, for the operator's commands such as "quorate create". Agents read
// nothing of it but loadBalancer, a change of which counts at once: no change of the section needs a restart.
type GCE struct {
	// Project is the project's id, such as example; not its number.
	Project string `yaml:"project" json:"project"`
	// Region is the one that all masters are in.
	Region string `yaml:"region" json:"region"`
	// Zones are those in which masters are made where no zone is named: the one with the fewest first. All are of the
	// region.
	Zones []string `yaml:"zones" json:"zones"`
	// MachineType is that of each master: e2-standard-4 where it is not given.
	MachineType string `yaml:"machineType,omitempty" json:"machineType,omitempty"`
	// Image is what the boot disk is made of: NAME or family/NAME of the project, or
	// projects/PROJECT/global/images/NAME, or projects/PROJECT/global/images/family/NAME.
	Image string `yaml:"image" json:"image"`
	// Network is the VPC network, NAME or projects/PROJECT/global/networks/NAME: default where it is not given.
	Network string `yaml:"network,omitempty" json:"network,omitempty"`
	// Subnetwork is NAME or projects/PROJECT/regions/REGION/subnetworks/NAME. A network that makes its subnetworks by
	// itself needs none.
	Subnetwork string `yaml:"subnetwork,omitempty" json:"subnetwork,omitempty"`
	// ServiceAccount is the email of the masters' service account. Its scope is cloud-platform: IAM alone decides.
	ServiceAccount string `yaml:"serviceAccount" json:"serviceAccount"`
	// BootDisk goes with its VM: pd-balanced of 20 GB where nothing is given.
	BootDisk GCEDisk `yaml:"bootDisk,omitempty" json:"bootDisk,omitempty"`
	// DataDisk outlives its VM: pd-ssd of 50 GB where nothing is given. It must have room for three databases of
	// etcd.quotaBytes and 1 GiB.
	DataDisk GCEDisk `yaml:"dataDisk,omitempty" json:"dataDisk,omitempty"`
	// Tags are the network tags of each master, for firewall rules.
	Tags []string `yaml:"tags,omitempty" json:"tags,omitempty"`
	// Labels are put on each master and its disks, in addition to quorate-cluster.
	Labels map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
	// Firewall says who reaches the masters. Without it commands make no rules.
	Firewall GCEFirewall `yaml:"firewall,omitempty" json:"firewall,omitempty"`
	// LoadBalancer is the one of the endpoint.
	LoadBalancer LoadBalancer `yaml:"loadBalancer,omitempty" json:"loadBalancer,omitempty"`
}

// GCEFirewall is what the firewall rules of a cluster let in, by the masters' service account: among masters etcd, the
// API and the kubelets; the health checks of load balancers; and the API from some ranges.
type GCEFirewall struct {
	// APISources are the ranges from which endpoint.port is reached, such as those of nodes and people.
	APISources []string `yaml:"apiSources,omitempty" json:"apiSources,omitempty"`
}

// The types of load balancer.
const (
	ExternalBalancer = "external"
	InternalBalancer = "internal"
	NoBalancer       = "none"
)

// LoadBalancer is the passthrough load balancer that the masters of a cluster are behind. Its backends are zonal
// network endpoint groups of type GCE_VM_IP, one in each zone with masters. Each master attaches itself to the group of
// its zone, and detaches itself before it stops.
type LoadBalancer struct {
	// Type is where clients come from: external (anywhere) or internal (the VPC network). With none, the default,
	// quorate touches no load balancer.
	Type string `yaml:"type,omitempty" json:"type,omitempty" jsonschema:"enum=external,enum=internal,enum=none"`
	// Name is that of the load balancer's parts: forwarding rule, backend service, health check, and the endpoint group
	// of each zone. The cluster's name where it is not given.
	Name string `yaml:"name,omitempty" json:"name,omitempty"`
	// OnDemand has the load balancer made when a second master is added, and deleted when the last but one is removed.
	// The VM of the only master has endpoint.externalIP itself. Each of these two moves takes about a minute without
	// endpoint. It is for type external alone.
	OnDemand bool `yaml:"onDemand,omitempty" json:"onDemand,omitempty"`
}

// GCEDisk is how a disk of a master is made.
type GCEDisk struct {
	// Type is the disk's type in its zone.
	Type string `yaml:"type,omitempty" json:"type,omitempty"`
	// SizeGB is its size in GB of 2^30 bytes, 10 at least.
	SizeGB int64 `yaml:"sizeGB,omitempty" json:"sizeGB,omitempty" jsonschema:"minimum=10,maximum=65536"`
}

// setDefaults returns the section with what is not given. The given one is not changed: a copy of the Cluster, such as
// Show makes, has the same one.
func (g *GCE) setDefaults(cluster string) *GCE {
	if g == nil {
		return nil
	}
	out := *g
	orElse(&out.MachineType, "e2-standard-4")
	orElse(&out.Network, "default")
	orElse(&out.BootDisk.Type, "pd-balanced")
	orElse(&out.BootDisk.SizeGB, 20)
	orElse(&out.DataDisk.Type, "pd-ssd")
	orElse(&out.DataDisk.SizeGB, 50)
	orElse(&out.LoadBalancer.Type, NoBalancer)
	if out.LoadBalancer.Type != NoBalancer {
		orElse(&out.LoadBalancer.Name, cluster)
	}
	return &out
}

// LoadBalancer is what the document says of the load balancer; nothing where quorate touches none.
func (c *Cluster) LoadBalancer() LoadBalancer {
	if c.GCE == nil || c.GCE.LoadBalancer.Type == NoBalancer {
		return LoadBalancer{}
	}
	return c.GCE.LoadBalancer
}
