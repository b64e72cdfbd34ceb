package order

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// EndLiving says what there is for a cluster that lives.
const EndLiving = "To end a cluster that lives, add --end-living-cluster; nothing was written"

// HeldBack says why an order is not written yet, and for how long; empty: it may be, or there is one to follow.
func (r Restore) HeldBack(w Wish) (why string, left time.Duration) {
	if _, ok := r.ToFollow(); ok && w.From == "" || w.EndsLiving {
		return "", 0
	}
	return r.living()
}

// living says that members of the epoch served a moment ago, and how long that keeps a restore back; empty: nothing
// shows it. A mark that is written anew is a heartbeat and shows nothing; that its member came further takes a
// quorum.
func (r Restore) living() (why string, left time.Duration) {
	up := func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
	if r.Ends.Closed != nil {
		return "", 0
	}
	if since := r.Now.Sub(r.Ends.Outcome.Time); since < 2*livingFor {
		what := fmt.Sprintf("epoch %d was formed %s ago", r.Ends.Number, since.Truncate(time.Second))
		if c := r.Ends.Claim; c != nil && c.Source.Kind == record.SourceRebuilt {
			what = fmt.Sprintf("the record of epoch %d was rebuilt %s ago, and its members' marks with it are gone",
				r.Ends.Number, since.Truncate(time.Second))
		}
		return what + ", so it may well have a quorum: a member that serves writes its first mark only up to " +
			"a minute after its control plane has started, and that takes a while, too.", up(2*livingFor - since)
	}
	for _, m := range r.Record.Marks {
		if d := livingFor - r.Now.Sub(m.Time); m.Epoch == r.Ends.Number && d > 0 && up(d) > left {
			why, left = fmt.Sprintf("the cluster lives: member %s went on %s ago, which takes a quorum.", m.MemberID,
				r.Now.Sub(m.Time).Truncate(time.Second)), up(d)
		}
	}
	return why, left
}

// Advances counts how often the mark of each member is found to have come further. The first time may show what was
// acknowledged before the loss; from the second on the cluster lives.
type Advances struct {
	seen  map[record.MemberID]time.Time
	count map[record.MemberID]int
}

// NewAdvances counts from what the record has.
func NewAdvances(v record.View) *Advances {
	a := &Advances{map[record.MemberID]time.Time{}, map[record.MemberID]int{}}
	for id, m := range v.Marks {
		a.seen[id] = m.Time
	}
	return a
}

// See takes the newest marks. The error is that the cluster lives: a member has come further twice.
func (a *Advances) See(r Restore) error {
	for id, m := range r.Record.Marks {
		if m.Epoch != r.Ends.Number || !m.Time.After(a.seen[id]) {
			continue
		}
		a.seen[id] = m.Time
		if a.count[id]++; a.count[id] > 1 {
			return fmt.Errorf("the cluster lives: member %s goes on while this command waits, which takes a "+
				"quorum.\n%s",
				id, EndLiving)
		}
	}
	return nil
}
