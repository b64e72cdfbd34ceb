package plan

import (
	"fmt"

	"github.com/quorate/quorate/internal/replica"
)

// Act is what a step does.
type Act string

// The acts. Each can be repeated: what it wants done is found done.
const (
	// BeginRecord writes the inception, on which the first master forms the cluster.
	BeginRecord   Act = "begin-record"
	CreateDisk    Act = "create-disk"
	CreateVM      Act = "create-vm"
	OrderReplicas Act = "order-replicas"
	OrderLeave    Act = "order-leave"
	// AwaitJoined and AwaitLeft change nothing: they wait for what the agents do.
	AwaitJoined Act = "await-joined"
	AwaitLeft   Act = "await-left"
	// AwaitAttached waits until an agent has put its VM into the endpoint group of its zone.
	AwaitAttached Act = "await-attached"
	// AwaitHealthy waits until the load balancer's health check passes a VM.
	AwaitHealthy Act = "await-healthy"
	DeleteVM     Act = "delete-vm"
	DeleteDisk   Act = "delete-disk"
	// CreateResource and DeleteResource are about the surroundings.
	CreateResource Act = "create-resource"
	DeleteResource Act = "delete-resource"
	// TakeAddress and GiveAddress are about the endpoint's address and a VM.
	TakeAddress Act = "take-address"
	GiveAddress Act = "give-address"
)

// Step is one small thing to do. Its JSON keys are stable.
type Step struct {
	Act   Act           `json:"act"`
	Place replica.Place `json:"place,omitzero"`
	// InstanceID is the VM that is meant, of one that is there; Replaces of one that a new VM takes the place of.
	InstanceID string `json:"instanceID,omitempty"`
	Replaces   string `json:"replaces,omitempty"`
	// Disk is the data disk's name, DiskID its numeric id where one is deleted. Image is what a VM is made of.
	Disk   string `json:"disk,omitempty"`
	DiskID string `json:"diskID,omitempty"`
	Image  string `json:"image,omitempty"`
	// Address is the external address that a VM gets, loses, or is made with.
	Address string `json:"address,omitempty"`
	// Kind and Resource are the kind and the name of one of the surroundings, ResourceID its numeric id where it is
	// deleted. Its zone is the place's.
	Kind       string `json:"kind,omitempty"`
	Resource   string `json:"resource,omitempty"`
	ResourceID string `json:"resourceID,omitempty"`
	// Replicas is the number that is ordered.
	Replicas int `json:"replicas,omitempty"`
	// What says it in a sentence.
	What string `json:"what"`
	Risk Risk   `json:"risk"`
}

// Risk is what a step risks: how the cluster stands once it is taken, and how it is taken back.
type Risk struct {
	Members int `json:"members"`
	Voters  int `json:"voters"`
	// Survives is how many further voters may fail then; -1: there is no quorum then.
	Survives int `json:"survives"`
	// Clients says what clients notice; empty: nothing.
	Clients string `json:"clients,omitempty"`
	// Undo says how it is taken back; empty: it cannot be.
	Undo string `json:"undo,omitempty"`
}

// Plan is what is left to do for a wish; no step: it is done.
type Plan struct {
	Steps []Step `json:"steps"`
	// Warnings are sentences about what the plan leads to, or leaves behind.
	Warnings []string `json:"warnings,omitempty"`
	// Differences are why a roll makes VMs anew.
	Differences []Difference `json:"differences,omitempty"`
}

// Refusal is why no plan is made. Its Name is stable.
type Refusal struct {
	Name string
	// Why and Next are sentences: the reason, and what to do instead.
	Why, Next string
	// Place is the replica that is not well, of a refusal for that.
	Place replica.Place
}

// Error is the refusal in one line.
func (r *Refusal) Error() string { return r.Why + " " + r.Next }

func refuse(name, next, why string, args ...any) *Refusal {
	return &Refusal{Name: name, Why: fmt.Sprintf(why, args...), Next: next}
}

// notWell refuses to go on while a replica is not well.
func notWell(p replica.Place, next string) *Refusal {
	r := refuse(NotWell, next, "Replica %s is not well.", p)
	r.Place = p
	return r
}

// The names of refusals.
const (
	ListIncomplete   = "list-incomplete"
	ListContradicts  = "list-contradicts"
	RecordUnread     = "record-unread"
	RecordNotBegun   = "record-not-begun"
	MembershipBusy   = "membership-busy"
	MembersUnknown   = "members-unknown"
	WouldLoseQuorum  = "would-lose-quorum"
	WouldInterrupt   = "would-interrupt"
	LastReplica      = "last-replica"
	NotWell          = "not-well"
	AnotherUnderWay  = "another-under-way"
	NoSuchReplica    = "no-such-replica"
	WrongZone        = "wrong-zone"
	NameTaken        = "name-taken"
	TooManyReplicas  = "too-many-replicas"
	DiskNotKnown     = "disk-not-known"
	ReplicaIsNotDone = "replica-not-ready"
	OtherNetwork     = "other-network"
	SmallerDisk      = "smaller-disk"
	StillDiffers     = "still-differs"
	WasDeleted       = "was-deleted"
	OrderedOut       = "ordered-out"
	ResourceDiffers  = "resource-differs"
	ResourceMissing  = "resource-missing"
	// ProjectNotReady is said before there is a plan, by what checks the project.
	ProjectNotReady = "project-not-ready"
)

// inZone is a place of a zone alone.
func inZone(zone string) replica.Place { return replica.Place{Zone: zone} }

func riskOf(c count, clients, undo string) Risk {
	return Risk{Members: c.members, Voters: c.voters, Survives: c.survives(), Clients: clients, Undo: undo}
}
