package table

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// claimIsMine: the newest claim names this instance; or this place, and the disk here carries its token or is the one
// that the claim names as its source.
func (h History) claimIsMine() bool {
	if h.newest == nil || h.newest.Claim == nil || h.newest.Outcome != nil {
		return false
	}
	c := h.newest.Claim
	if c.Seeder.InstanceID == h.Me.InstanceID {
		return true
	}
	if c.Seeder.Place != h.Me.Place || h.maySucceedMe(c.Seeder.InstanceID) {
		return false
	}
	sourceDisk := c.Source.DiskID != "" && c.Source.DiskID == h.DiskID
	return sourceDisk || h.holdsToken(c.Token) && (h.Directory.Exists || !h.onAnotherDisk())
}

// onAnotherDisk: the incarnation that agent.json names was taken on another disk, so this one is a copy. Of a directory
// its class says so; where there is none yet, two VMs would seed with one token.
func (h History) onAnotherDisk() bool {
	return slices.ContainsFunc(h.Record.Replicas[h.Me.Place], func(i record.Incarnation) bool {
		return i.Number == h.Agent.Incarnation && i.DiskID != "" && h.DiskID != "" && i.DiskID != h.DiskID
	})
}

// holdsToken: agent.json on this disk, written for this place, carries the newest claim's token. A directory may not be
// there yet.
func (h History) holdsToken(token string) bool {
	return h.AgentErr == nil && h.Agent.Replica == h.Me.Place && h.Agent.Epoch == h.newest.Number &&
		h.Agent.Token == token
}

// findClaim finds what the rows of Rs ask.
func (h History) findClaim(o *Observation) {
	o.Names.SeederMember = h.seederMember()
	if o.Record != Rs {
		// A seeder that read `formed` but died before it wrote agent.json still has to be finished: row 17 while it
		// runs.
		o.HasToken = o.DiskEpoch == DiskCurrent && o.Phase == PhaseSeeding
		return
	}
	c := h.newest.Claim
	o.Names.Seeder, o.Names.Claimed = c.Seeder.Place.String(), c.Source
	o.Mine = h.claimIsMine()
	o.HasSource = c.Source.Kind != record.SourceEmpty
	o.HasToken = o.Local != L0 && h.holdsToken(c.Token)
	o.Marked = o.HasToken && (h.Directory.Marker || o.Running)
	o.SeederGone = h.Gone(c.Seeder.Place, c.Seeder.InstanceID)
	if r := h.Orders.Restore; r != nil {
		o.NewerOrderForMe = r.Number > c.Source.Order && r.Restore.Replica == h.Me.Place
	}
	if o.HasSource {
		h.findSource(o, c.Source, h.Orders.byNumber(c.Source.Order))
	}
}

// seederMember is the first member of the disk's epoch; 0 where its incarnation is lost too.
func (h History) seederMember() record.MemberID {
	e := h.Record.Epoch(h.Agent.Epoch)
	if e == nil || e.Claim == nil {
		return 0
	}
	if e.Claim.Seeder.InstanceID == h.Me.InstanceID {
		return h.MemberID()
	}
	for _, i := range h.Record.Replicas[e.Claim.Seeder.Place] {
		if i.Epoch == e.Number && IncarnationMember(i) != 0 {
			return IncarnationMember(i)
		}
	}
	return 0
}

// findSource finds the source of a restore on this disk, and compares how far it reaches with what the order
// demands.
func (h History) findSource(o *Observation, source record.Source, order *record.Order) {
	if source.Kind == record.SourceSnapshot {
		// A list that failed proves nothing: whoever reads the snapshot finds out.
		o.SourceHere = h.SnapshotsErr != nil ||
			slices.ContainsFunc(h.Snapshots, func(s record.Snapshot) bool { return s.Name == source.Snapshot })
		return
	}
	var term, commit uint64
	if order != nil && order.Restore != nil {
		term, commit = order.Restore.Term, order.Restore.Commit
	}
	reaches := func(t, i uint64) bool { return t > term || t == term && i >= commit }
	d := h.Directory
	if h.directoryCanBeRestored(o) && d.MemberID == source.MemberID && reaches(d.LastTerm, d.LastIndex) {
		o.SourceHere, o.DirectoryIsSource = true, true
		return
	}
	for _, a := range d.Archives {
		switch {
		case a.ReadErr != nil:
			o.SourceUnread = fmt.Sprintf("archive/%s: %v", a.Name, a.ReadErr)
		case a.MemberID == source.MemberID && a.OpenErr == nil && reaches(a.Term, a.LastIndex):
			o.SourceHere, o.Names.SourceArchive = true, a.Name
		}
	}
}

// directoryCanBeRestored: the directory opens and is of the epoch that ends, as the log itself says where agent.json is
// lost, or says that it was rolled back: a person has named it, and knows how far it reaches.
func (h History) directoryCanBeRestored(o *Observation) bool {
	d := h.Directory
	switch {
	case !d.Exists || o.HasToken && o.Record == Rs || d.OpenErr != nil || o.Local == LF || o.Local == L5:
		return false
	case o.Local == L1:
		return true
	}
	return h.Formed != nil && d.ClusterID == h.Formed.Outcome.Formed.ClusterID
}

// findIncarnation finds this place's incarnations: mine, the one to take next, and those that still need a stopped/
// object.
func (h History) findIncarnation(o *Observation) {
	mine := h.Record.Replicas[h.Me.Place]
	o.Names.NextIncarnation = 1
	o.Superseded = h.Superseded // for as long as this boot lasts, also while the record cannot be read
	if h.RecordErr != nil || len(mine) == 0 {
		return
	}
	last := mine[len(mine)-1]
	o.Names.NewestInstance = last.InstanceID
	o.Names.LaterBoot = h.laterBoot(mine)
	o.Superseded = o.Superseded || last.InstanceID != h.Me.InstanceID && h.hadIncarnation(mine) &&
		!h.tookLater(last.Number) || o.Names.LaterBoot
	o.Names.NextIncarnation = last.Number + 1
	here := h.isHere(last) && last.Epoch == h.epochToJoin(o)
	if here && last.Started == nil && h.Agent.Incarnation < last.Number {
		o.Names.NextIncarnation = last.Number // it was created, and agent.json was not written
	}
	if here && h.AgentErr == nil && h.Agent.Incarnation == last.Number && h.Agent.Replica == h.Me.Place {
		o.OwnIncarnation, o.Names.Incarnation = true, last.Number
		o.Pending = last.Started == nil
		o.Confirmed = last.Started != nil && last.Started.MemberID == h.MemberID() && last.Started.Epoch == last.Epoch
	}
	h.findStopReport(o, mine)
	o.FormerSilent = last.InstanceID == h.Me.InstanceID || h.Formed != nil && last.Epoch == h.Formed.Number &&
		h.speaks(last, nil) == ""
}

// isHere: the incarnation was taken by this instance in this boot on this disk, and has not ended. An id of the disk
// that is not known, or was not known then, is not another one.
func (h History) isHere(i record.Incarnation) bool {
	return h.takenHere(i) && !h.hasEnded(i) && i.Number > h.Agent.Ended
}

// takenHere: and whether or not it has ended.
func (h History) takenHere(i record.Incarnation) bool {
	sameDisk := i.DiskID == h.DiskID || i.DiskID == "" || h.DiskID == ""
	return i.InstanceID == h.Me.InstanceID && i.BootID == h.Me.BootID && sameDisk
}

// spoken: there is a stopped/ object of the incarnation, whoever wrote it: its name is taken.
func (h History) spoken(i record.Incarnation) bool {
	e := h.Record.Epoch(i.Epoch)
	return e != nil && slices.ContainsFunc(e.Stopped, func(s record.Stopped) bool {
		return s.Place == i.Place &&
			s.Incarnation == i.Number
	})
}

// hasEnded: the incarnation has ended as it said itself, so nothing runs under it again.
func (h History) hasEnded(i record.Incarnation) bool {
	e := h.Record.Epoch(i.Epoch)
	return e != nil && e.StoppedBy(i) != nil
}

// laterBoot: this boot took an incarnation, and another boot of this very instance took a later one: the cloud has
// started the instance on another host. One instance id has one living boot, the newest. The record's own objects say
// so, because agent.json may be the other boot's.
func (h History) laterBoot(mine []record.Incarnation) bool {
	own := func(i record.Incarnation) bool { return i.InstanceID == h.Me.InstanceID && i.BootID == h.Me.BootID }
	first := slices.IndexFunc(mine, own)
	return first >= 0 && slices.ContainsFunc(mine[first:],
		func(i record.Incarnation) bool { return i.InstanceID == h.Me.InstanceID && !own(i) })
}

// epochToJoin is the epoch in which an incarnation is to be taken: the claimed one where the claim is mine, whatever
// the disk still holds; the disk's; or the formed one for a join.
func (h History) epochToJoin(o *Observation) uint64 {
	if o.Record == Rs && o.Mine {
		return h.newest.Number
	}
	if o.Local != L0 && o.Names.DiskEpochNumber != 0 {
		return o.Names.DiskEpochNumber
	}
	return record.NumberOf(h.Formed)
}

// tookLater: this very instance took an incarnation of this place above the newest that the record has. So the record
// was rolled back to before that, and what it holds of the place is the past: a replica that was recreated would else
// stop its member for its own predecessor.
func (h History) tookLater(newest uint64) bool {
	a := h.Agent
	return h.AgentErr == nil && a.Incarnation > newest && a.InstanceID == h.Me.InstanceID && a.Replica == h.Me.Place
}

func (h History) hadIncarnation(mine []record.Incarnation) bool {
	for _, i := range mine {
		if i.InstanceID == h.Me.InstanceID {
			return true
		}
	}
	return h.Agent.Incarnation > 0 && h.Agent.InstanceID == h.Me.InstanceID && h.Agent.Replica == h.Me.Place
}

// IncarnationMember is the etcd member of an incarnation: the confirmed one, or the one it was taken for.
func IncarnationMember(i record.Incarnation) record.MemberID {
	if i.Started != nil && i.Started.MemberID != 0 {
		return i.Started.MemberID
	}
	return i.MemberID
}

// MaxLearners is written into every claim and is the same on every member: it is checked where a change is applied, so
// members with different values would apply different memberships. A member starts without the record, too, so it does
// not read the number there: one whose claim has another is a fault.
const MaxLearners = 4
