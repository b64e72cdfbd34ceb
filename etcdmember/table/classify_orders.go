package table

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Orders is the newest order on each subject. An order that was withdrawn was never given.
type Orders struct {
	All      []record.Order // in force, newest first
	Restore  *record.Order  // the newest one that ends the epoch, unless it is done
	Replicas int            // 0: none was ordered
	Paused   bool
	// withdrawing is an accepted order to restore that is to be taken back, and has no verdict; 0: none.
	withdrawing uint64
}

// OrdersOf sorts the record's orders. A withdrawal is an order too and can be withdrawn. An order to restore that was
// accepted is withdrawn by its verdict alone: without one the epoch may be closed at any moment. One that ends another
// epoch than the given one (0: none) was written by somebody who had read an older record, and says nothing of this
// one.
func OrdersOf(given []record.Order, ends uint64, now time.Time) Orders {
	var out Orders
	withdrawn := map[uint64]bool{}
	pauseSaid, restoreSaid := false, false
	for _, o := range newestFirst(given) {
		if v := o.Verdict; v != nil && v.Withdrawn || withdrawn[o.Number] && !bound(o) {
			continue
		}
		if withdrawn[o.Number] && o.Verdict == nil {
			out.withdrawing = o.Number
		}
		out.All = append(out.All, o)
		switch o.Kind {
		case record.OrderWithdraw:
			withdrawn[o.Withdraws] = true
		case record.OrderReplicas:
			if out.Replicas == 0 {
				out.Replicas = o.Replicas
			}
		case record.OrderPause, record.OrderResume:
			if !pauseSaid {
				pauseSaid = true
				out.Paused = o.Kind == record.OrderPause && (o.Until == nil || now.Before(*o.Until))
			}
		case record.OrderRestore:
			if !restoreSaid && ends != 0 && o.Restore != nil && o.Restore.Ends == ends {
				restoreSaid = true
				if o.Done == nil {
					out.Restore = &o
				}
			}
		}
	}
	return out
}

// bound: the order to restore was accepted, or its verdict is that it is carried out, so a withdrawal alone ends
// nothing.
func bound(o record.Order) bool {
	return o.Kind == record.OrderRestore && (o.Accepted != nil || o.Verdict != nil)
}

func newestFirst(given []record.Order) []record.Order {
	return slices.SortedFunc(slices.Values(given),
		func(a, b record.Order) int { return cmp.Compare(b.Number, a.Number) })
}

// Left: the newest order for the place is `leave`. An order for a number of replicas that came later does not call a
// replica back by name; withdrawing the order does.
func (o Orders) Left(p replica.Place) *record.Order {
	for i := range o.All {
		if o.All[i].Kind == record.OrderLeave && o.All[i].Place != nil && *o.All[i].Place == p {
			return &o.All[i]
		}
	}
	return nil
}

// ToCopy is the order by which the second of two voters gives its vote up: two replicas are ordered, these two are the
// only members, and neither is about to leave. nil: there is none.
func (h History) ToCopy(members []Member) *record.Order {
	if h.Orders.Replicas != 2 || len(members) != 2 {
		return nil
	}
	for _, m := range members {
		p, _, _ := ParseMemberName(m.Name)
		if left := h.Orders.Left(p); m.Learner || left != nil && left.Done == nil {
			return nil
		}
	}
	i := slices.IndexFunc(h.Orders.All, func(o record.Order) bool { return o.Kind == record.OrderReplicas })
	return &h.Orders.All[i]
}

// Overrides: the operator gave the override of the row for the member, and it is not done: of a member that came back
// it says nothing any more.
func (o Orders) Overrides(row int, id record.MemberID) bool {
	return slices.ContainsFunc(o.All, func(x record.Order) bool {
		return x.Kind == record.OrderOverride && x.Row == row && x.MemberID == id && x.Done == nil
	})
}

// accepted is the newest order that ends the epoch and can be carried out, as the replica that it names says; 0:
// there is none. A newer order does not undo that.
func (o Orders) accepted(ends uint64) uint64 {
	for _, x := range o.All {
		if x.Restore != nil && x.Restore.Ends == ends && x.Accepted != nil {
			return x.Number
		}
	}
	return 0
}

func (o Orders) byNumber(n uint64) *record.Order {
	for i := range o.All {
		if o.All[i].Number == n {
			return &o.All[i]
		}
	}
	return nil
}

// withdrawnRestore: an order to restore that ends the epoch was given and withdrawn. A policy would else give it again
// at once.
func (o Orders) withdrawnRestore(given []record.Order, ends uint64) bool {
	return slices.ContainsFunc(given, func(x record.Order) bool {
		return x.Kind == record.OrderRestore && x.Restore != nil && x.Restore.Ends == ends &&
			o.byNumber(x.Number) == nil
	})
}

// Wanted is the number of replicas that is wanted: by order, else by configuration.
func (h History) Wanted() int {
	if h.Orders.Replicas > 0 {
		return h.Orders.Replicas
	}
	return h.Policy.Replicas
}

// findOrders finds what the orders say of this replica.
func (h History) findOrders(o *Observation) {
	o.Paused = h.Orders.Paused
	o.Left = h.Orders.Left(h.Me.Place) != nil
	h.findEnd(o)
	if h.Formed != nil && h.Formed.Closed == nil {
		o.Withdrawing = h.Orders.withdrawing
	}
	r := h.Orders.Restore
	if r == nil {
		return
	}
	o.Names.RestoreNumber, o.Names.Restore, o.Names.DiskID = r.Number, r.Restore, h.DiskID
	o.OrderNamesMe = r.Restore.Replica == h.Me.Place
	concerned := o.DiskEpoch == DiskNone || o.Names.DiskEpochNumber == r.Restore.Ends
	o.EndedByOrder = concerned && (h.Formed.Closed != nil || h.Orders.accepted(r.Restore.Ends) != 0)
	o.ToAccept = concerned && o.OrderNamesMe && o.Record == Rf && r.Accepted == nil && r.Verdict == nil
	o.Unfit = o.ToAccept && h.Tries.Unfit.Order == r.Number
	o.Closing = r.Verdict != nil && r.Verdict.Closing
	o.Names.EndOrder = h.Orders.accepted(r.Restore.Ends)
	o.Unproven = h.unproven()
	if o.Record != Rs {
		h.findSource(o, r.Restore.From, r)
		o.Better = h.betterSource(o, r)
	}
}

// betterSource is the order for the replica that stopped with a longer log than the named one, where the order leaves
// that open.
func (h History) betterSource(o *Observation, r *record.Order) *record.RestoreOrder {
	if !r.Restore.Newest || r.Restore.From.Kind != record.SourceDirectory {
		return nil
	}
	stopped := h.stoppedSurvivors()
	named, known := h.namedSource(o, r.Restore.From.MemberID, stopped)
	if !known {
		return nil // how far it reaches is not known yet
	}
	best := newestLog(append([]survivor{named}, stopped...)) // of two that reach as far, the named one
	// also where its disk is not known by an id, as after a boot without the Compute API: what it acknowledged counts
	if best.id != named.id {
		better := best.order(h.Formed.Number)
		better.Silent = r.Restore.Silent
		return better
	}
	return nil
}

// namedSource is how far the source that an order names reaches: what is on this disk, or else the end of the log by
// its stopped/ object.
func (h History) namedSource(o *Observation, id record.MemberID, stopped []survivor) (survivor, bool) {
	if o.DirectoryIsSource {
		return survivor{id: id, term: h.Directory.LastTerm, index: h.Directory.LastIndex}, true
	}
	for _, a := range h.Directory.Archives {
		if o.SourceHere && a.Name == o.Names.SourceArchive {
			return survivor{id: id, term: a.Term, index: a.LastIndex}, true
		}
	}
	if n := slices.IndexFunc(stopped, func(s survivor) bool { return s.id == id }); n >= 0 {
		return stopped[n], true
	}
	return survivor{}, false
}

// findEntries finds this place's entries in the linearizable member list, and what may be done with them.
func (h History) findEntries(o *Observation) {
	id := h.MemberID()
	members, ok := h.quorumList()
	if !ok {
		return
	}
	for _, m := range members {
		own := h.isOwn(m)
		if m.ID == id && id != 0 {
			o.Listed, o.OwnPlace = true, own
		}
		successor, unknown := h.unknownOwner(m)
		if own && unknown {
			o.Successor = successor
		}
		switch {
		case !own || unknown:
		case h.reusable(o, m):
			o.Reusable = true
		default:
			o.Former = append(o.Former, m.ID)
		}
	}
	o.ListedByAll = h.listedByAll(id)
	o.PeersSilent = h.PeersAsked && !h.PeersAnswered()
}

// quorumList is the linearizable member list of the newest formed epoch's cluster.
func (h History) quorumList() ([]Member, bool) {
	for _, a := range h.Answers {
		if h.isQuorum(a) && (a.InstanceID != h.Me.InstanceID || h.Directory.Running) {
			return a.Members, true
		}
	}
	return nil, false
}

// isOwn: the entry is of this place, by its name, or by its peer URL while it has no name.
func (h History) isOwn(m Member) bool {
	if m.Started() {
		p, _, ok := ParseMemberName(m.Name)
		return ok && p == h.Me.Place
	}
	return slices.Contains(m.PeerURLs, PeerURL(h.Me.DNSName(h.Cluster)))
}

// unknownOwner: an entry of this place is of an instance that the record does not know, or is a voter that no
// incarnation in it names. Where the record was read before the list, whoever has taken the place in between has its
// member there, which is no former one of ours. An entry that an earlier list had already is older than the record.
func (h History) unknownOwner(m Member) (instance string, unknown bool) {
	if name, listed := h.ListedBefore[m.ID]; listed && name == m.Name {
		return "", false
	}
	if !m.Started() {
		_, named := h.IncarnationOf(m.ID)
		return "unknown", !m.Learner && !named
	}
	_, instance, _ = ParseMemberName(m.Name)
	known := slices.ContainsFunc(h.Record.Replicas[h.Me.Place],
		func(i record.Incarnation) bool { return i.InstanceID == instance })
	return instance, !known
}

// reusable: agent.json on this disk says that this very entry was added for it, and no directory ever existed. That an
// entry has no name proves nothing: a learner can have acknowledged before it published one.
func (h History) reusable(o *Observation, m Member) bool {
	a := h.Agent
	return o.Local == L0 && h.AgentErr == nil && a.Phase == PhaseAdded && a.Epoch == record.NumberOf(h.Formed) &&
		a.Replica == h.Me.Place &&
		m.ID == a.MemberID && m.Learner && !m.Started() && !o.Ended
}

// listedByAll: every member of the cluster that gave a list shows the id.
func (h History) listedByAll(id record.MemberID) bool {
	for _, a := range h.Answers {
		if h.Formed == nil || a.ClusterID != h.Formed.Outcome.Formed.ClusterID || a.Members == nil {
			continue
		}
		if !slices.ContainsFunc(a.Members, func(m Member) bool { return m.ID == id }) {
			return false
		}
	}
	return true
}

// RestoreInSight: one is ordered of the newest formed epoch, or an epoch is claimed for one.
func (h History) RestoreInSight() bool {
	return h.Orders.Restore != nil || h.newest != nil && h.newest.Outcome == nil && h.newest.Claim != nil &&
		h.newest.Claim.Source.Kind != record.SourceEmpty
}
