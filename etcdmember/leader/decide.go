package leader

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Decide chooses the one step of a tick of the leader loop, rows 40 to 49: the first row that wants one.
// Where none does, the first that waits is shown. It is pure; previous is what the tick before read. Every act is safe
// where two believe that they lead: removing a dead voter and disarming are idempotent, etcd refuses what its own view
// forbids, and the caller lists again before each.
func Decide(now time.Time, previous, ring Ring) table.Plan {
	v := viewOf(now, previous, ring)
	if p, stop := v.h.Standstill(v.Ahead); stop {
		return p
	}
	shown := table.Plan{Row: table.RowQuiet, Act: table.ActKeep, Reason: "nothing needs to be done"}
	for _, r := range rows {
		p, ok := r.find(v)
		if !ok {
			continue
		}
		p.Row = r.number
		if p.Act != table.ActWait && r.paused && v.h.Orders.Paused {
			p = wait(table.WaitPaused, "changes of the membership are paused by order; without that: "+p.Reason+".",
				"`quorate resume` lets it go on.")
			p.Row = r.number
		}
		if p.Blocked != nil {
			p.Blocked.Row = p.Row.String()
		}
		if p.Act != table.ActWait && p.Act != table.ActHalt || r.number == 47 {
			return p
		}
		if shown.Row == table.RowQuiet {
			shown = p
		}
	}
	return shown
}

func wait(name, reason, next string) table.Plan {
	return table.Plan{Act: table.ActWait}.Waiting(name, reason, next)
}

// row is one row of the leader loop. paused: a pause holds its steps back.
type row struct {
	number table.Row
	paused bool
	find   func(v view) (table.Plan, bool)
}

// rows are tested in this order: what may be wrong with the data stops everything else, orders come before our
// own ideas.
var rows = []row{
	{47, false, view.corruptUnknown},
	{46, true, view.corruptOne},
	{45, false, view.leaving},
	{45, true, view.threeToTwo},
	{40, true, view.deadVoter},
	{41, true, view.deadVoterWithDisk},
	{42, true, view.unreachableVoter},
	{43, true, view.stuckLearner},
	{44, true, view.promotable},
	{48, false, view.noSpace},
	{49, false, view.evenVoters},
	{45, false, view.carriedOut},
}

// Rows are the plans of all rows that have something to say, in the order in which they are tested.
func Rows(now time.Time, previous, ring Ring) (out []table.Plan) {
	v := viewOf(now, previous, ring)
	if _, stop := v.h.Standstill(v.Ahead); stop {
		return nil
	}
	for _, r := range rows {
		if p, ok := r.find(v); ok {
			p.Row = r.number
			out = append(out, p)
		}
	}
	return out
}

// view is a ring with its members sorted out and the record's orders read.
type view struct {
	Ring
	now      time.Time
	previous Ring
	h        table.History
	voters   []RingMember
	learners []RingMember
}

func viewOf(now time.Time, previous, ring Ring) view {
	v := view{Ring: ring, now: now, previous: previous}
	v.h = table.HistoryOf(table.Facts{Now: now, Me: ring.Me, Cluster: ring.Cluster, Record: ring.Record,
		RecordErr: ring.RecordErr, Compute: ring.Compute, Policy: ring.Policy})
	for _, m := range ring.Members {
		if m.Learner {
			v.learners = append(v.learners, m)
		} else {
			v.voters = append(v.voters, m)
		}
	}
	return v
}

// unreachableFor is how long the leader has not heard of it.
func (v view) unreachableFor(m RingMember) time.Duration {
	if v.reachable(m) || m.UnreachableSince.IsZero() {
		return 0
	}
	return v.now.Sub(m.UnreachableSince)
}

// instance is whose member it is: the VM of the newest incarnation with this id, or the one in its name.
func (v view) instance(m RingMember) (record.Incarnation, bool) {
	if i, ok := v.h.IncarnationOf(m.ID); ok {
		return i, true
	}
	p, id, ok := table.ParseMemberName(m.Name)
	return record.Incarnation{Place: p, InstanceID: id}, ok
}

// placeOf is the place of a member, by its incarnation, its name, or its peer URL.
func (v view) placeOf(m RingMember) (replica.Place, bool) {
	if i, ok := v.instance(m); ok {
		return i.Place, true
	}
	for p := range v.Record.Replicas {
		if slices.Contains(m.PeerURLs, table.PeerURL(p.DNSName(v.Cluster))) {
			return p, true
		}
	}
	return replica.Place{}, false
}

// Title is the member for a person: its name, or its id.
func Title(m RingMember) string {
	if m.Name != "" {
		return m.Name
	}
	return "member " + m.ID.String()
}
