package leader

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// carriedOut is the end of row 45, and of what an override let rows 40 and 46 do: the order has come true, and the
// record says so. It is the last of the rows, because nothing waits for it. An order that is done stays in force: a
// replica that left stays out.
func (v view) carriedOut() (table.Plan, bool) {
	for _, o := range slices.Backward(v.h.Orders.All) {
		if o.Done != nil {
			continue
		}
		if why, ok := v.cameTrue(o); ok {
			return table.Plan{Act: table.ActCompleteOrder, OrderNumber: o.Number, Reason: why}, true
		}
	}
	return table.Plan{}, false
}

// cameTrue says of an order that can be done what proves that it is. A number of replicas, a pause and its end are
// orders that last.
func (v view) cameTrue(o record.Order) (string, bool) {
	switch {
	case o.Kind == record.OrderLeave && o.Place != nil:
		for _, m := range v.Members {
			if p, known := v.placeOf(m); !known || p == *o.Place {
				return "", false // an entry that is nobody's may be its
			}
		}
		return fmt.Sprintf("no member of %s is in the list", o.Place), true
	case o.Kind == record.OrderOverride && o.Row == 42 && v.cameBack(o):
		return fmt.Sprintf("member %s is heard of again, so the order, which said that it is gone, is done",
			o.MemberID), true
	case o.Kind == record.OrderOverride && o.Row == 47:
		return "etcd calls no member corrupt any more", len(v.corrupt()) == 0 &&
			(!v.isMember(o.MemberID) || v.now.Sub(o.Time) >= DeadAfter)
	case o.Kind == record.OrderOverride:
		alarmed := slices.ContainsFunc(v.Alarms, func(a table.Alarm) bool { return a.MemberID == o.MemberID })
		return fmt.Sprintf("member %s is not in the list", o.MemberID), !v.isMember(o.MemberID) && !alarmed
	}
	return "", false
}

// cameBack: the member of an override of row 42 is heard of. The order was about the time that it was away: years later
// it would remove a live voter that is slow to reboot. One that has only just gone may still look alive, so a fresh
// order waits.
func (v view) cameBack(o record.Order) bool {
	return longAgo(v.now, o.Time, DeadAfter) &&
		slices.ContainsFunc(v.Members, func(m RingMember) bool { return m.ID == o.MemberID && v.reachable(m) })
}

// longAgo: an order was given so long ago or longer. One of the future is as old as can be: the clock of the person's
// machine, or this one, is wrong, and nobody waits for an hour for its time to come.
func longAgo(now, given time.Time, d time.Duration) bool {
	since := now.Sub(given)
	return since >= d || since <= -d
}
