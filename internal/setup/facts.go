package setup

import (
	"net/netip"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Why says why a question has no answer.
type Why string

// The reasons.
const (
	Refused  Why = "refused"  // who asks lacks a permission
	Disabled Why = "disabled" // the API is off in the project
	Absent   Why = "absent"   // what was asked for does not exist
	Failed   Why = "failed"   // no answer, or one that cannot be read
)

// Fault is a question that has no answer.
type Fault struct {
	Why  Why
	Text string // what was asked, and what the server said, in one line
}

// Asked is the answer to a question, or why there is none.
type Asked[T any] struct {
	Answer T
	// Fault is nil where there is an answer.
	Fault *Fault
}

// Facts are what the APIs say about one cluster's project.
type Facts struct {
	// Cluster, Project and Region are what was asked about; Region comes from the record or a flag.
	Cluster, Project, Region string
	// BucketName is the record's bucket, Prefix what the record's objects begin with: [PREFIX/]CLUSTER/.
	BucketName, Prefix string
	// KeyName is the Cloud KMS key, projects/P/locations/L/keyRings/R/cryptoKeys/K; empty: the key is in the document.
	KeyName string
	// Account is the masters' service account where the caller names it; otherwise it is that of the VMs.
	Account string
	// DataDisk is the device name of the masters' data disks.
	DataDisk string
	// Port is the apiserver's; External and Internal are the endpoint's addresses, invalid where there is none.
	Port               int
	External, Internal netip.Addr
	// Planned are masters that a command is about to make, as the document says; none: only those that are there are
	// judged.
	Planned []VM
	// Balanced: the masters attach themselves to a load balancer. MakesRules and MakesAddress: the firewall rules, and
	// the reservation of the internal address, are made by `quorate create`, so they need not be there yet.
	Balanced, MakesRules, MakesAddress bool
	// Creates: that is the command which asks, and it makes what is missing of these.
	Creates bool
	// NetworkProject is the project that the masters' network is of, where it is another one: it is not asked.
	NetworkProject string
	// Needs are what who runs the command needs; nothing: it is not judged.
	Needs Permissions

	Bucket       Asked[Bucket]
	BucketPolicy Asked[Policy]
	Key          Asked[Key]
	// KeyPolicy is the key's own, RingPolicy that of its key ring.
	KeyPolicy, RingPolicy Asked[Policy]
	ProjectPolicy         Asked[Policy]
	// Roles are the permissions of each role that the policies name.
	Roles map[string]Asked[[]string]

	// ServiceAccount is whether the masters' is disabled.
	ServiceAccount Asked[bool]
	// HasOnProject and the others are which of Needs the caller has.
	HasOnProject, HasOnBucket, HasOnAccount Asked[[]string]

	// Zones are the region's.
	Zones Asked[[]Zone]
	// VMs are those of the region that carry the cluster's label or its document; Took is how long listing them took.
	VMs  Asked[[]VM]
	Took time.Duration
	// Metadata are the project's attributes, which all its VMs see.
	Metadata  Asked[map[string]string]
	Firewall  Asked[[]FirewallRule]
	Subnets   Asked[[]Subnet]
	NATs      Asked[[]NAT]
	Addresses Asked[[]Address]
}

// Bucket is what a bucket says of itself.
type Bucket struct {
	// Location is a region, such as US-CENTRAL1, or a larger place; LocationType region, dual-region or multi-region.
	Location, LocationType string
	UniformAccess          bool
	PublicAccessPrevented  bool
	Versioning             bool
	// SoftDelete is how long a deleted object can be restored, Retention how long one must stay.
	SoftDelete, Retention time.Duration
	// EventBasedHold is put on each new object, and keeps it from being replaced.
	EventBasedHold bool
	RequesterPays  bool
	// IPFilter lets in only some addresses.
	IPFilter  bool
	Lifecycle []Rule
}

// Rule is a lifecycle rule that deletes.
type Rule struct {
	// Prefixes are what an object's name has to begin with; none: any name.
	Prefixes []string
	// OldVersionsOnly: no live object meets the rule's condition.
	OldVersionsOnly bool
}

// Policy is an IAM policy.
type Policy []Binding

// Binding gives a role to members.
type Binding struct {
	Role    string
	Members []string
	// Condition is the expression under which it counts; empty: always.
	Condition string
}

// Key is what Cloud KMS says of a key.
type Key struct {
	// Purpose is ENCRYPT_DECRYPT for a key that seals. Primary is the state of the version that seals, such as ENABLED;
	// empty: there is none. PrimaryName is that version's number.
	Purpose, Primary, PrimaryName string
}

// Zone is a zone of the region.
type Zone struct {
	Name, Status string
}

// VM is a master, or a VM that has the cluster's document.
type VM struct {
	replica.Place
	Status string
	// Labelled: it carries the cluster's label. Document: it has an instance attribute with a Cluster document.
	Labelled, Document bool
	// Account is its service account; empty: none. Scopes cap what it may do.
	Account string
	Scopes  []string
	// Spot can be taken away at any time, with 30 s to stop. Migrates: it moves when its host is maintained.
	Spot, Migrates, Restarts bool
	// HostErrorTimeout is after how long a host that does not answer counts as dead; 0: Google's default.
	HostErrorTimeout time.Duration
	SecureBoot       bool
	// Network and Subnet are names. External: it has an external address.
	Network, Subnet string
	Address         netip.Addr
	// Range is where the address of one will be from that is not made yet.
	Range    netip.Prefix
	External bool
	Tags     []string
	Disks    []Disk
}

// Disk is a disk of a VM.
type Disk struct {
	// Device is the name under which the VM knows it, Name its own. Where is its zone or region.
	Device, Name, Where string
	Regional            bool
	Boot                bool
	// AutoDelete deletes it together with the VM.
	AutoDelete bool
	// Details are what the disk says of itself.
	Details Asked[DiskDetails]
}

// DiskDetails are what a disk says of itself.
type DiskDetails struct {
	Labelled bool
	// AccessMode is READ_WRITE_SINGLE, or another; empty: the disk's type has no other.
	AccessMode string
	// Users are the VMs that it is attached to.
	Users []string
}

// FirewallRule is a rule of a VPC network.
type FirewallRule struct {
	Name, Network string
	// Deny refuses what it matches; of rules with one priority a refusal counts, and the lowest number goes first.
	Deny     bool
	Priority int64
	// Ports are what it matches; none: nothing.
	Ports []Ports
	// The sources of which one has to match, and the targets; without targets it is for all VMs of the network.
	SourceRanges               []netip.Prefix
	SourceTags, SourceAccounts []string
	TargetTags, TargetAccounts []string
}

// Ports are ports of a protocol.
type Ports struct {
	// Protocol is a name or a number; all: every one.
	Protocol string
	// Ranges are ports or FROM-TO; none: all.
	Ranges []string
}

// Subnet is a subnetwork of the region. PrivateAccess lets VMs without an external address reach Google's APIs.
type Subnet struct {
	Name, Network string
	Range         netip.Prefix
	PrivateAccess bool
}

// NAT is a Cloud NAT of the region. Subnets are those that it serves; none: all of its network.
type NAT struct {
	Name, Network string
	Subnets       []string
}

// Address is a reserved address of the region.
type Address struct {
	Name     string
	IP       netip.Addr
	External bool
}
