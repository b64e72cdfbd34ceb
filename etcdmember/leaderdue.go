package etcdmember

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// leaderPace says when the leader loop has to observe again. It follows what the leader's own member says at each tick,
// which costs nothing: its learners, its alarms, and whom it does not hear of. It is of one leadership.
type leaderPace struct {
	learners map[record.MemberID]bool
	arrived  bool      // some learner had caught up at the last tick
	changed  time.Time // when learners last changed, or the first of them caught up
	trouble  string    // the alarms and the voters out of reach
	troubled time.Time // when trouble last changed
	// unreachable is since when a member is out of reach.
	unreachable map[record.MemberID]time.Time
	observed    time.Time // when the loop last observed
	quiet       bool      // and found nothing to do and nothing to wait for
	// saving is since when a step waits for a snapshot, which a voter saves within a second or so; zero: none does.
	saving time.Time
	// again: observe in the next tick. The last observation led to a step, or the leadership is new.
	again bool
	since time.Time // when this leadership was first seen
}

// newLeaderPace is for a leadership that is yet to come.
func newLeaderPace() leaderPace {
	return leaderPace{again: true, unreachable: map[record.MemberID]time.Time{}}
}

// period is how soon the next tick is to come.
func (p *leaderPace) period(now time.Time) time.Duration {
	if p.awaits() && now.Sub(p.changed) < bootWindow {
		return learnerPeriod
	}
	return tickPeriod
}

// awaits: a learner is on its way to be a voter, or may be.
func (p *leaderPace) awaits() bool { return len(p.learners) > 0 && !p.quiet }

// calm: the last observation was quiet, and nothing that the member itself says has called for another since.
func (p *leaderPace) calm() bool {
	return p.quiet && !p.again && len(p.learners) == 0 && p.trouble == "" && p.saving.IsZero()
}

// due: there was something to do a moment ago, something is new that the leader loop may act on, or it is time to
// observe again what stays. A new leader observes at once: the one before it may have handed over in the middle of an
// order. Where everybody is well nothing is due: the rounds that read the record are enough to find an order.
// taskEnded: a background task has a result.
func (p *leaderPace) due(now time.Time, s table.MemberStatus, taskEnded bool) bool {
	p.since = cmp.Or(p.since, now)
	arrives := p.notice(now, s)
	age := now.Sub(p.observed)
	switch {
	case arrives: // the first of the two observations that its promotion needs
		return true
	case age < leader.PollGap: // one in between would only be the one before the next, and too near to it
		return false
	case p.again || taskEnded:
		return true
	case len(p.learners) > 0 && now.Sub(p.changed) < bootWindow:
		return true
	case len(p.learners) > 0 && !p.quiet:
		return age >= slowPeriod
	}
	troubled := p.trouble != "" && now.Sub(p.troubled) < troubleWindow
	saving := !p.saving.IsZero() && now.Sub(p.saving) < troubleWindow
	return (troubled || saving) && age >= slowPeriod
}

// awaitsSnapshot notes whether the last observation waits for a snapshot.
func (p *leaderPace) awaitsSnapshot(now time.Time, waits bool) {
	if !waits {
		p.saving = time.Time{}
		return
	}
	p.saving = cmp.Or(p.saving, now)
}

// notice follows what the member itself says. It reports that a learner has just caught up, where none had: where one
// waits for its second observation already, another is seen by that.
func (p *leaderPace) notice(now time.Time, s table.MemberStatus) (arrives bool) {
	learners := map[record.MemberID]bool{}
	var trouble []string
	arrived := false
	for _, e := range s.Members {
		if e.Learner {
			learners[e.ID] = true
			arrived = arrived || ringMember(e, s.Progress[e.ID]).Lacks(s.Progress[s.MemberID].Match) == ""
			continue
		}
		if progress, ok := s.Progress[e.ID]; ok && !progress.RecentActive {
			p.loses(e.ID, now)
		}
		if !p.unreachable[e.ID].IsZero() {
			trouble = append(trouble, e.ID.String())
		}
	}
	for _, a := range s.Alarms {
		trouble = append(trouble, fmt.Sprintf("%s %s", a.Kind, a.MemberID))
	}
	arrives, p.arrived = arrived && !p.arrived, arrived
	if arrives || !maps.Equal(learners, p.learners) {
		p.learners, p.changed = learners, now
	}
	slices.Sort(trouble)
	if all := strings.Join(trouble, ", "); all != p.trouble {
		p.trouble, p.troubled = all, now
	}
	return arrives
}

// loses notes since when a member is out of reach.
func (p *leaderPace) loses(id record.MemberID, now time.Time) {
	p.unreachable[id] = cmp.Or(p.unreachable[id], now)
}

// heardOf notes what the leader's raft says of a member's connections, and returns since when it is out of reach; zero:
// it is not.
func (p *leaderPace) heardOf(id record.MemberID, heard bool, now time.Time) time.Time {
	if heard {
		delete(p.unreachable, id)
	} else {
		p.loses(id, now)
	}
	return p.unreachable[id]
}

// listDue: a voter is out of reach for so long that its death would matter, and the Compute API was not asked a moment
// ago what exists. An idle, whole cluster asks it nothing.
func (p *leaderPace) listDue(now, listed time.Time, s table.MemberStatus) bool {
	var away time.Duration
	for _, e := range s.Members {
		if since := p.unreachable[e.ID]; !e.Learner && !since.IsZero() {
			away = max(away, now.Sub(since))
		}
	}
	period := listPeriod
	if away > troubleWindow {
		period = slowListPeriod
	}
	return away >= listAfter && now.Sub(listed) >= period
}
