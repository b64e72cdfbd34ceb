package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

// livingFor is how long after a member last came further a cluster counts as living. A member that goes on writes a
// mark each 30 s.
const livingFor = time.Minute

// untilSilent waits until nothing shows any more that members of the epoch serve, which takes a minute after a loss;
// not where that is not asked, or an order is in force. Nothing is written meanwhile.
func (f *restoreFlags) untilSilent(ctx context.Context, out io.Writer, store *bucket.Store, w wreck) (wreck, error) {
	why, left := f.heldBack(w)
	switch {
	case why == "":
		return w, nil
	case f.noWait:
		return w, fmt.Errorf("%s\nIf it has lost its quorum since, try again in %s. %s", why, left, endLiving)
	}
	if err := f.refusedAnyway(w); err != nil {
		return w, err
	}
	printText(out, "", why+" If it has lost its quorum since, that is sure once no member has gone on for a minute: "+
		"this command waits for it. Nothing is written before.")
	line := &countdown{out: out}
	defer line.end()
	advances := newAdvances(w)
	for begin := time.Now(); why != ""; {
		line.show(time.Now(), fmt.Sprintf("Waiting: another %s without a sign of life. ^C ends this with nothing "+
			"written.", left))
		select {
		case <-ctx.Done():
			return w, fmt.Errorf("no longer waiting: %w; nothing was written", context.Cause(ctx))
		case <-time.After(time.Second):
		}
		w.now = time.Now()
		if w.now.Sub(begin) >= followPeriod {
			var err error
			if w, err = readWreck(ctx, store, w.now); err != nil {
				return w, err
			}
			begin = w.now
		}
		if id := advances.see(w); id != 0 {
			return w, errors.New(advances.living(id))
		}
		why, left = f.heldBack(w)
	}
	return w, nil
}

// refusedAnyway is what is refused after a wait, too.
func (f *restoreFlags) refusedAnyway(w wreck) error {
	c, err := w.choose(f)
	if err == nil {
		_, err = w.silentRisk(f.silent, c.order.Replica)
	}
	return err
}

// endLiving says what there is for a cluster that lives.
const endLiving = "To end a cluster that lives, add --end-living-cluster; nothing was written"

// heldBack says why an order is not written yet, and for how long; empty: it may be, or there is one to follow.
func (f *restoreFlags) heldBack(w wreck) (why string, left time.Duration) {
	if _, ok := w.orderInForce(); ok && f.from == "" || f.endsLiving {
		return "", 0
	}
	return w.living()
}

// living says that members of the epoch served a moment ago, and how long that keeps a restore back; empty: nothing
// shows it. A mark that is written anew is a heartbeat and shows nothing; that its member came further takes a
// quorum.
func (w wreck) living() (why string, left time.Duration) {
	up := func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
	if w.epoch.Closed != nil {
		return "", 0
	}
	if since := w.now.Sub(w.epoch.Outcome.Time); since < 2*livingFor {
		what := fmt.Sprintf("epoch %d was formed %s ago", w.epoch.Number, since.Truncate(time.Second))
		if c := w.epoch.Claim; c != nil && c.Source.Kind == record.SourceRebuilt {
			what = fmt.Sprintf("the record of epoch %d was rebuilt %s ago, and its members' marks with it are gone",
				w.epoch.Number, since.Truncate(time.Second))
		}
		return what + ", so it may well have a quorum: a member that serves writes its first mark only up to " +
			"a minute after its control plane has started, and that takes a while, too.", up(2*livingFor - since)
	}
	for _, m := range w.Marks {
		if d := livingFor - w.now.Sub(m.Time); m.Epoch == w.epoch.Number && d > 0 && up(d) > left {
			why, left = fmt.Sprintf("the cluster lives: member %s went on %s ago, which takes a quorum.", m.MemberID,
				w.now.Sub(m.Time).Truncate(time.Second)), up(d)
		}
	}
	return why, left
}

// advances counts how often the mark of each member is found to have come further. The first time may show what was
// acknowledged before the loss; from the second on the cluster lives.
type advances struct {
	seen  map[record.MemberID]time.Time
	count map[record.MemberID]int
}

func newAdvances(w wreck) *advances {
	a := &advances{map[record.MemberID]time.Time{}, map[record.MemberID]int{}}
	for id, m := range w.Marks {
		a.seen[id] = m.Time
	}
	return a
}

// see takes the newest marks, and returns a member that has come further twice; 0: none has.
func (a *advances) see(w wreck) record.MemberID {
	for id, m := range w.Marks {
		if m.Epoch != w.epoch.Number || !m.Time.After(a.seen[id]) {
			continue
		}
		a.seen[id] = m.Time
		if a.count[id]++; a.count[id] > 1 {
			return id
		}
	}
	return 0
}

func (a *advances) living(id record.MemberID) string {
	return fmt.Sprintf("the cluster lives: member %s goes on while this command waits, which takes a quorum.\n%s",
		id, endLiving)
}
