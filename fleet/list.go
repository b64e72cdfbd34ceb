package fleet

import (
	"slices"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

// Listing is what there is of a cluster. Its JSON keys are stable.
type Listing struct {
	Cluster  string          `json:"cluster"`
	Replicas []ListedReplica `json:"replicas"`
	// SpareDisks are data disks that no VM has.
	SpareDisks []ListedDisk `json:"spareDisks"`
	// Unknown says why nobody's role is known; empty: etcd's leader has said it.
	Unknown string `json:"unknown,omitempty"`
}

// ListedReplica is one replica: a VM, a member of etcd, or a place that the record knows.
type ListedReplica struct {
	Name string `json:"name"`
	Zone string `json:"zone"`
	// VM is the VM's status, such as RUNNING; empty: there is none.
	VM         string `json:"vm,omitempty"`
	InstanceID string `json:"instanceID,omitempty"`
	Role       Role   `json:"role"`
	Leads      bool   `json:"leads,omitempty"`
	// Ready: etcd's leader hears of it, its boot is done, and nothing is wrong with it.
	Ready bool `json:"ready"`
	// Order is the number of the order by which it leaves; 0: there is none.
	Order    uint64 `json:"leavesByOrder,omitempty"`
	Image    string `json:"image,omitempty"`
	DataDisk string `json:"dataDisk,omitempty"`
}

// Role is what a replica is to etcd.
type Role string

// The roles.
const (
	Voter       Role = "voter"
	Learner     Role = "learner"
	NoMember    Role = "no member"
	RoleUnknown Role = "unknown"
)

// ListedDisk is a data disk that no VM has.
type ListedDisk struct {
	Name string `json:"name"`
	Zone string `json:"zone"`
	ID   string `json:"id"`
}

// List says what there is, by a reading.
func (r Reading) List() Listing {
	out := Listing{Cluster: r.Cluster, Unknown: r.Members.Unknown, Replicas: []ListedReplica{},
		SpareDisks: []ListedDisk{}}
	for _, p := range r.Known() {
		out.Replicas = append(out.Replicas, r.listed(p))
	}
	for _, d := range r.Disks {
		if d.User == "" {
			out.SpareDisks = append(out.SpareDisks, ListedDisk{d.Name, d.Zone, d.ID})
		}
	}
	return out
}

func (r Reading) listed(p replica.Place) ListedReplica {
	one := ListedReplica{Name: p.Name, Zone: p.Zone, Role: NoMember}
	if vm, found := r.vm(p); found {
		one.VM, one.InstanceID, one.Image, one.DataDisk = vm.Status, vm.InstanceID, vm.Image, vm.DataDisk
	}
	at := slices.IndexFunc(r.Members.List, func(m plan.Member) bool { return m.Place == p })
	switch {
	case r.Members.Unknown != "":
		one.Role = RoleUnknown
	case at >= 0:
		m := r.Members.List[at]
		one.Role, one.Leads, one.Ready = Learner, m.Leads, m.Heard && m.Ready
		if m.Voter {
			one.Role = Voter
		}
	}
	for _, l := range r.Record.Leaves {
		if l.Place == p {
			one.Order = l.Number
		}
	}
	return one
}
