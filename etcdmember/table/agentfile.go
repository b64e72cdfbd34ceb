package table

import (
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Phase is how far this disk's member has come. It is written with fsync before the step that it names.
type Phase string

// The phases. A disk that never held a member has none.
const (
	// PhaseSeeding: a directory is being made for a claim of ours, by seeding or by restoring.
	PhaseSeeding Phase = "seeding"
	// PhaseAdding: a learner is about to be added for this disk; whether it was is not known.
	PhaseAdding Phase = "adding"
	// PhaseAdded: the member MemberID was added for this disk and has never started.
	PhaseAdded Phase = "added"
	// PhaseStarted: etcd may have started on this directory. A seeder writes it only after it has read `formed`, so it
	// proves that the epoch was formed.
	PhaseStarted Phase = "started"
	// PhaseStopped: the incarnation has ended, and etcd has exited. It starts on this directory again only under a
	// later incarnation, once the order StoppedFor was taken back. Written before the stopped/ object.
	PhaseStopped Phase = "stopped"
	// PhaseArchiving: the directory is being renamed away. It is what "reset" leaves: epoch, token, member and
	// incarnation are cleared with it, so a crash before the rename cannot be taken for a directory whose agent.json
	// was lost.
	PhaseArchiving Phase = "archiving"
)

// AgentFile is agent.json, next to the etcd directory on the data disk: whose directory it is and how far it has come.
// It is replaced durably. It must never be made anew next to a directory that has none: that would make a directory of
// an unknown owner pass for ours.
type AgentFile struct {
	// ClusterUID is the inception's; a disk of another cluster is never touched.
	ClusterUID string `json:"clusterUID"`
	// Epoch and Token are of the claim that the directory belongs to; 0 and empty: it belongs to none.
	Epoch uint64 `json:"epoch,omitempty"`
	Token string `json:"token,omitempty"`
	// Replica is the place whose disk this is.
	Replica replica.Place `json:"replica"`
	// InstanceID and BootID are of the VM and the boot that took the incarnation: together with PhaseStarted they say
	// that etcd ran on this directory in this very boot, so no other write of the file may change them.
	InstanceID string `json:"instanceID"`
	BootID     string `json:"bootID"`
	// Incarnation is the newest one taken with this disk; 0: none.
	Incarnation uint64 `json:"incarnation,omitempty"`
	// MemberID is etcd's id of the member; 0 while it is not known.
	MemberID record.MemberID `json:"memberID,omitempty"`
	// NewestEpoch is the newest epoch that this agent has ever seen in the record. It survives archiving.
	NewestEpoch uint64 `json:"newestEpoch,omitempty"`
	Phase       Phase  `json:"phase,omitempty"`
	// StoppedFor is the order to restore for which Phase is PhaseStopped; 0: none, or not noted by an earlier version.
	StoppedFor uint64 `json:"stoppedFor,omitempty"`
	// Ended is the newest incarnation that has ended as this disk says; 0: none. It is written before the stopped/
	// object, whose creation may take effect long after it has failed: nothing goes on under this number. It survives
	// archiving.
	Ended uint64 `json:"ended,omitempty"`
}

// Begin writes a new incarnation into the file. An entry that was added in the one before is given up: this disk may be
// a copy of the disk that it was added for, and the VM there may have started the member. The join removes it and adds
// another.
func (a *AgentFile) Begin(me replica.Identity, incarnation uint64, clusterUID string) {
	a.Replica, a.InstanceID, a.BootID = me.Place, me.InstanceID, me.BootID
	a.Incarnation, a.ClusterUID = incarnation, clusterUID
	if a.Phase == PhaseAdded {
		a.Phase, a.MemberID = PhaseAdding, 0
	}
}

// End writes that the plan's incarnation has ended, and, where the directory is of the plan's epoch, for which order.
func (a *AgentFile) End(p Plan, directory bool) {
	a.Ended = max(a.Ended, p.Incarnation)
	if directory && a.Epoch == p.Epoch {
		a.Phase, a.StoppedFor = PhaseStopped, p.OrderNumber
	}
}
