package table

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// DecideOnLeader chooses the one step of a tick of the leader loop, rows 40 to 49: the first row that wants one.
// Where none does, the first that waits is shown. It is pure; previous is what the tick before read. Every act is safe
// where two believe that they lead: removing a dead voter and disarming are idempotent, etcd refuses what its own view
// forbids, and the caller lists again before each.
func DecideOnLeader(now time.Time, previous, ring Ring) Plan {
	v := leaderViewOf(now, previous, ring)
	if p, stop := v.stands(); stop {
		return p
	}
	shown := Plan{Row: RowQuiet, Act: ActKeep, Reason: "nothing needs to be done"}
	for _, r := range leaderRows {
		p, ok := r.find(v)
		if !ok {
			continue
		}
		p.Row = r.number
		if p.Act != ActWait && r.paused && v.h.Orders.Paused {
			p = wait(WaitPaused, "changes of the membership are paused by order; without that: "+p.Reason+".",
				"`quorate resume` lets it go on.")
			p.Row = r.number
		}
		if p.Blocked != nil {
			p.Blocked.Row = p.Row.String()
		}
		if p.Act != ActWait && p.Act != ActHalt || r.number == 47 {
			return p
		}
		if shown.Row == RowQuiet {
			shown = p
		}
	}
	return shown
}

// leaderRow is one row of the leader loop. paused: a pause holds its steps back.
type leaderRow struct {
	number Row
	paused bool
	find   func(v leaderView) (Plan, bool)
}

// leaderRows are tested in this order: what may be wrong with the data stops everything else, orders come before our
// own ideas.
var leaderRows = []leaderRow{
	{47, false, leaderView.corruptUnknown},
	{46, true, leaderView.corruptOne},
	{45, false, leaderView.leaving},
	{45, true, leaderView.threeToTwo},
	{40, true, leaderView.deadVoter},
	{41, true, leaderView.deadVoterWithDisk},
	{42, true, leaderView.unreachableVoter},
	{43, true, leaderView.stuckLearner},
	{44, true, leaderView.promotable},
	{48, false, leaderView.noSpace},
	{49, false, leaderView.evenVoters},
	{45, false, leaderView.carriedOut},
}

// leaderView is a ring with its members sorted out and the record's orders read.
type leaderView struct {
	Ring
	now      time.Time
	previous Ring
	h        History
	voters   []RingMember
	learners []RingMember
}

func leaderViewOf(now time.Time, previous, ring Ring) leaderView {
	v := leaderView{Ring: ring, now: now, previous: previous}
	v.h = HistoryOf(Facts{Now: now, Me: ring.Me, Cluster: ring.Cluster, Record: ring.Record, Compute: ring.Compute,
		Policy: ring.Policy})
	for _, m := range ring.Members {
		if m.Learner {
			v.learners = append(v.learners, m)
		} else {
			v.voters = append(v.voters, m)
		}
	}
	return v
}

// stands: nothing is done where the record cannot be read or is damaged, or where the epoch ends: each act asks the
// record.
func (v leaderView) stands() (Plan, bool) {
	p := Plan{}
	switch {
	case v.RecordErr != nil:
		p = wait(WaitRecordUnreadable, "the record cannot be read: "+v.RecordErr.Error()+".",
			"Nobody is promoted or removed until it can be read.")
	case len(v.h.Damages()) > 0:
		p = wait(WaitRecordLost, "the record is damaged: "+v.h.Damages()[0].String()+".",
			"Nobody is promoted or removed. Run `quorate record rebuild`.")
	case v.Ahead:
		p = wait(WaitRecordRolledBack, "the record was rolled back: this replica has seen more than it holds.",
			"Nobody is promoted or removed by what is past. Run `quorate record rebuild`.")
	case v.h.Formed == nil || v.h.newest != v.h.Formed && v.h.newest.Outcome == nil || v.h.Formed.Closed != nil,
		v.h.Orders.accepted(v.h.Formed.Number) != 0:
		p = wait(WaitEpochClosed, "the epoch has ended, is being ended by order, or is not formed yet.",
			"Nobody is promoted or removed.")
	default:
		return p, false
	}
	p.Row = RowQuiet
	p.Blocked.Row = RowQuiet.String()
	return p, true
}

// reachable: the leader hears of it and both streams to it are up. The leader itself always is.
func (v leaderView) reachable(m RingMember) bool {
	return m.ID == v.Leader || m.RecentActive && m.StreamsActive
}

// connected counts the reachable voters other than the one left out (0: none is).
func (v leaderView) connected(without record.MemberID) int {
	n := 0
	for _, m := range v.voters {
		if m.ID != without && v.reachable(m) {
			n++
		}
	}
	return n
}

// restHasQuorum: without this voter the others are a quorum of themselves, connected now.
func (v leaderView) restHasQuorum(id record.MemberID) bool {
	return len(v.voters) > 1 && v.connected(id) >= QuorumOf(len(v.voters)-1)
}

// unreachableFor is how long the leader has not heard of it.
func (v leaderView) unreachableFor(m RingMember) time.Duration {
	if v.reachable(m) || m.UnreachableSince.IsZero() {
		return 0
	}
	return v.now.Sub(m.UnreachableSince)
}

// instance is whose member it is: the VM of the newest incarnation with this id, or the one in its name.
func (v leaderView) instance(m RingMember) (record.Incarnation, bool) {
	if i, ok := v.h.IncarnationOf(m.ID); ok {
		return i, true
	}
	p, id, ok := ParseMemberName(m.Name)
	return record.Incarnation{Place: p, InstanceID: id}, ok
}

// placeOf is the place of a member, by its incarnation, its name, or its peer URL.
func (v leaderView) placeOf(m RingMember) (replica.Place, bool) {
	if i, ok := v.instance(m); ok {
		return i.Place, true
	}
	for p := range v.Record.Replicas {
		if slices.Contains(m.PeerURLs, PeerURL(p.DNSName(v.Cluster))) {
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
