package etcdmember

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

const (
	// troubleWindow is how long alarms that stand and voters that are out of reach are looked at every slowPeriod;
	// later with the record, at the pace of the running replica. It covers the minute after which a proven death is
	// acted on.
	troubleWindow = 2 * time.Minute
	// listAfter is how long a voter is out of reach before the Compute API is asked whether its VM exists: two lists
	// are there when the minute is over, and a reboot asks nobody.
	listAfter = table.DeadAfter - 3*listPeriod
	// slowListPeriod is the time between two lists once a voter has been out of reach for longer than the
	// troubleWindow.
	slowListPeriod = time.Minute
)

// period is how soon the next tick is to come.
func (b *beside) period(now time.Time) time.Duration {
	if b.awaits() && now.Sub(b.changed) < bootWindow {
		return learnerPeriod
	}
	return besidePeriod
}

// awaits: a learner is on its way to be a voter, or may be.
func (b *beside) awaits() bool { return len(b.learners) > 0 && !b.quiet }

// due: there was something to do a moment ago, something is new that the leader's rows may act on, or it is time for
// another look at what stays. A new leader looks at once: the one before it may have handed over in the middle of an
// order. Where everybody is well nothing is due: the looks that follow the record are enough to find an order.
func (b *beside) due(now time.Time, s table.MemberStatus) bool {
	b.since = cmp.Or(b.since, now)
	arrives := b.notice(now, s)
	age := now.Sub(b.previous.At)
	switch {
	case arrives: // the first of the two looks that its promotion needs
		return true
	case age < table.PollGap: // a look in between would only be the one before the next, and too near to it
		return false
	case b.again || b.alarms.errand.ended():
		return true
	case len(b.learners) > 0 && now.Sub(b.changed) < bootWindow:
		return true
	case len(b.learners) > 0 && !b.quiet:
		return age >= slowPeriod
	}
	return b.trouble != "" && now.Sub(b.troubled) < troubleWindow && age >= slowPeriod
}

// notice follows what the member itself says, which costs nothing: its learners, its alarms, and whom it does not hear
// of. It reports that a learner has just caught up, where none had: where one waits for its second look already,
// another is seen by that.
func (b *beside) notice(now time.Time, s table.MemberStatus) (arrives bool) {
	learners := map[record.MemberID]bool{}
	var trouble []string
	arrived := false
	for _, e := range s.Members {
		if e.Learner {
			learners[e.ID] = true
			arrived = arrived || ringMember(e, s.Progress[e.ID]).Lacks(s.Progress[s.MemberID].Match) == ""
			continue
		}
		if p, ok := s.Progress[e.ID]; ok && !p.RecentActive {
			b.loses(e.ID, now)
		}
		if !b.unreachable[e.ID].IsZero() {
			trouble = append(trouble, e.ID.String())
		}
	}
	for _, a := range s.Alarms {
		trouble = append(trouble, fmt.Sprintf("%s %s", a.Kind, a.MemberID))
	}
	arrives, b.arrived = arrived && !b.arrived, arrived
	if arrives || !maps.Equal(learners, b.learners) {
		b.learners, b.changed = learners, now
	}
	slices.Sort(trouble)
	if all := strings.Join(trouble, ", "); all != b.trouble {
		b.trouble, b.troubled = all, now
	}
	return arrives
}

// loses notes since when a member is out of reach.
func (b *beside) loses(id record.MemberID, now time.Time) {
	b.unreachable[id] = cmp.Or(b.unreachable[id], now)
}

// listGone asks the Compute API for what exists while a voter is out of reach for so long that its death would matter.
// An idle, whole cluster asks it nothing.
func (b *beside) listGone(ctx context.Context, now time.Time, s table.MemberStatus) {
	var away time.Duration
	for _, e := range s.Members {
		if since := b.unreachable[e.ID]; !e.Learner && !since.IsZero() {
			away = max(away, now.Sub(since))
		}
	}
	period := listPeriod
	if away > troubleWindow {
		period = slowListPeriod
	}
	if away < listAfter || now.Sub(b.m.lists.compute.Second.Time) < period {
		return
	}
	b.m.lists.list(ctx, b.previous.Record)
}
