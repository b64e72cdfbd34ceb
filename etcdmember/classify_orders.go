package etcdmember

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// orders is the newest word on each subject. An order that was withdrawn was never given.
type orders struct {
	all      []record.Order // in force, newest first
	restore  *record.Order  // the newest one, not done
	replicas int            // 0: no word on it
	paused   bool
}

// ordersOf sorts the record's orders. A withdrawal is an order too and can be withdrawn.
func ordersOf(given []record.Order, now time.Time) orders {
	var out orders
	withdrawn := map[uint64]bool{}
	pauseSaid, restoreSaid := false, false
	for _, o := range newestFirst(given) {
		if withdrawn[o.Number] {
			continue
		}
		out.all = append(out.all, o)
		switch o.Kind {
		case record.OrderWithdraw:
			withdrawn[o.Withdraws] = true
		case record.OrderReplicas:
			if out.replicas == 0 {
				out.replicas = o.Replicas
			}
		case record.OrderPause, record.OrderResume:
			if !pauseSaid {
				pauseSaid = true
				out.paused = o.Kind == record.OrderPause && (o.Until == nil || now.Before(*o.Until))
			}
		case record.OrderRestore:
			if !restoreSaid && o.Restore != nil {
				restoreSaid = true
				if o.Done == nil {
					out.restore = &o
				}
			}
		}
	}
	return out
}

func newestFirst(given []record.Order) []record.Order {
	return slices.SortedFunc(slices.Values(given), func(a, b record.Order) int { return cmp.Compare(b.Number, a.Number) })
}

// left: the newest order for the place is `leave`. An order for a number of replicas that came later does not call a replica back by
// name; withdrawing the order does.
func (o orders) left(p replica.Place) *record.Order {
	for i := range o.all {
		if o.all[i].Kind == record.OrderLeave && o.all[i].Place != nil && *o.all[i].Place == p {
			return &o.all[i]
		}
	}
	return nil
}

// overrides: the operator gave the override of the row for the member, and it is not done: of a member that came back it says nothing any more.
func (o orders) overrides(row int, id record.MemberID) bool {
	return slices.ContainsFunc(o.all, func(x record.Order) bool {
		return x.Kind == record.OrderOverride && x.Row == row && x.MemberID == id && x.Done == nil
	})
}

// accepted: a restore that ends the epoch can be carried out, by the word of the replica that it names. A newer order does not undo that.
func (o orders) accepted(ends uint64) bool {
	return slices.ContainsFunc(o.all, func(x record.Order) bool {
		return x.Restore != nil && x.Restore.Ends == ends && x.Accepted != nil
	})
}

func (o orders) byNumber(n uint64) *record.Order {
	for i := range o.all {
		if o.all[i].Number == n {
			return &o.all[i]
		}
	}
	return nil
}

// withdrawnRestore: an order to restore that ends the epoch was given and withdrawn. A policy would else give it again at once.
func (o orders) withdrawnRestore(given []record.Order, ends uint64) bool {
	return slices.ContainsFunc(given, func(x record.Order) bool {
		return x.Kind == record.OrderRestore && x.Restore != nil && x.Restore.Ends == ends && o.byNumber(x.Number) == nil
	})
}

// wanted is the number of replicas that is wanted: by order, else by configuration.
func (h history) wanted() int {
	if h.orders.replicas > 0 {
		return h.orders.replicas
	}
	return h.Policy.Replicas
}

// findOrders finds what the orders say of this replica.
func (h history) findOrders(o *Observation) {
	o.Paused = h.orders.paused
	o.Left = h.orders.left(h.Me.Place) != nil
	r := h.orders.restore
	if r == nil || h.formed == nil || r.Restore.Ends != h.formed.Number {
		return
	}
	o.Names.RestoreNumber, o.Names.Restore = r.Number, r.Restore
	o.OrderNamesMe = r.Restore.Replica == h.Me.Place
	concerned := o.DiskEpoch == DiskNone || o.Names.DiskEpochNumber == r.Restore.Ends
	o.EndedByOrder = concerned && (h.formed.Closed != nil || h.orders.accepted(r.Restore.Ends))
	o.ToAccept = concerned && o.OrderNamesMe && o.Record == Rf && r.Accepted == nil
	o.Unfit = o.ToAccept && h.Unfit == r.Number
	o.Loud = h.loud()
	if o.Record != Rs {
		h.findSource(o, r.Restore.From, r)
		o.Better = h.betterSource(o, r)
	}
}

// betterSource is the order for the replica that stopped with a longer log than the named one, where the order leaves that open.
func (h history) betterSource(o *Observation, r *record.Order) *record.RestoreOrder {
	if !r.Restore.Newest || r.Restore.From.Kind != record.SourceDirectory {
		return nil
	}
	stopped := h.stoppedSurvivors()
	named, known := h.namedSource(o, r.Restore.From.MemberID, stopped)
	if !known {
		return nil // how far it reaches is not known yet
	}
	best := newestLog(append([]survivor{named}, stopped...)) // of two that reach as far, the named one
	if best.id != named.id {                                 // also where its disk is not known by an id, as after a boot without the Compute API: what it acknowledged counts
		return best.order(h.formed.Number)
	}
	return nil
}

// namedSource is how far the source that an order names reaches: by its stopped/ object, or, where that carries no log because a successor wrote it
// or the directory had been put away before, by what is on this disk.
func (h history) namedSource(o *Observation, id record.MemberID, stopped []survivor) (survivor, bool) {
	if n := slices.IndexFunc(stopped, func(s survivor) bool { return s.id == id }); n >= 0 {
		return stopped[n], true
	}
	if o.DirectoryIsSource {
		return survivor{id: id, term: h.Directory.LastTerm, index: h.Directory.LastIndex}, true
	}
	for _, a := range h.Directory.Archives {
		if o.SourceHere && a.Name == o.Names.SourceArchive {
			return survivor{id: id, term: a.Term, index: a.LastIndex}, true
		}
	}
	return survivor{}, false
}

// loud names the instances that took an incarnation of the newest formed epoch and could still run: all but this one. An instance is silent by
// its own word alone, or by two lists. A newer incarnation does not prove the former instance silent here, as it does for a join, which
// asks the quorum that the former one would need: a lone voter whose VM is made again runs on until it hears of that.
func (h history) loud() []string {
	var out []string
	for p, incarnations := range h.Record.Replicas {
		for n, i := range incarnations {
			again := slices.ContainsFunc(incarnations[n+1:], func(later record.Incarnation) bool { return later.InstanceID == i.InstanceID })
			if again || i.Epoch != h.formed.Number || i.InstanceID == h.Me.InstanceID {
				continue
			}
			if !saysStopped(h.formed, i) && !h.unlisted(i.InstanceID) && !h.terminated(i.InstanceID) {
				out = append(out, fmt.Sprintf("%s (instance %s)", p, i.InstanceID))
			}
		}
	}
	slices.Sort(out)
	return out
}

// saysStopped: the incarnation's instance wrote its stopped/ object, and not a successor that found the place's disk empty.
func saysStopped(e *record.Epoch, i record.Incarnation) bool {
	return slices.ContainsFunc(e.Stopped, func(s record.Stopped) bool {
		return s.Place == i.Place && s.Incarnation == i.Number && (s.InstanceID == i.InstanceID || s.InstanceID == "")
	})
}

// findEntries finds this place's entries in the linearizable member list, and what may be done with them.
func (h history) findEntries(o *Observation) {
	id := h.memberID()
	o.StoppedID = h.Agent.Phase == PhaseStopped && o.Local != L0 || idStopped(h.epoch(h.Agent.Epoch), id)
	members, ok := h.quorumList()
	if !ok {
		return
	}
	for _, m := range members {
		own := h.isOwn(m)
		if m.ID == id && id != 0 {
			o.Listed, o.OwnPlace = true, own
		}
		switch {
		case !own:
		case h.reusable(o, m):
			o.Reusable = true
		default:
			o.Former = append(o.Former, m.ID)
		}
	}
	o.ListedByAll = h.listedByAll(id)
	o.PeersSilent = h.PeersAsked && !h.peersAnswered()
}

// quorumList is the linearizable member list of the newest formed epoch's cluster.
func (h history) quorumList() ([]Member, bool) {
	for _, a := range h.Answers {
		if h.isQuorum(a) && (a.InstanceID != h.Me.InstanceID || h.Directory.Running) {
			return a.Members, true
		}
	}
	return nil, false
}

// isOwn: the entry is of this place, by its name, or by its peer URL while it has no name.
func (h history) isOwn(m Member) bool {
	if m.Started() {
		p, _, ok := ParseMemberName(m.Name)
		return ok && p == h.Me.Place
	}
	return slices.Contains(m.PeerURLs, PeerURL(h.Me.DNSName(h.Cluster)))
}

// reusable: agent.json on this disk says that this very entry was added for it, and no directory ever existed. That an entry has no name
// proves nothing: a learner can have acknowledged before it published one.
func (h history) reusable(o *Observation, m Member) bool {
	a := h.Agent
	return o.Local == L0 && h.AgentErr == nil && a.Phase == PhaseAdded && a.Epoch == number(h.formed) && a.Replica == h.Me.Place &&
		m.ID == a.MemberID && m.Learner && !m.Started() && !o.StoppedID
}

// listedByAll: every member of the cluster that gave a list shows the id.
func (h history) listedByAll(id record.MemberID) bool {
	for _, a := range h.Answers {
		if h.formed == nil || a.ClusterID != h.formed.Outcome.Formed.ClusterID || a.Members == nil {
			continue
		}
		if !slices.ContainsFunc(a.Members, func(m Member) bool { return m.ID == id }) {
			return false
		}
	}
	return true
}
