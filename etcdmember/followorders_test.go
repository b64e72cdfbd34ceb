package etcdmember

import (
	"context"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// An observation takes a moment too: reading the record, asking the others; and what it finds has to be done.
func TestOrdersAreReadWithinTenSeconds(t *testing.T) {
	if slowest := keepPause + calmPeriod + time.Second; slowest > 10*time.Second {
		t.Errorf("an order may wait for %s until it is read", slowest)
	}
	if longPause >= keepPause {
		t.Errorf("a boot that waits observes each %s, a replica that runs each %s", longPause, keepPause)
	}
}

// Two leaders may believe that they lead, and each may be cut off in the middle: the first word stands.
func TestAnOrderIsCompletedOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		m, _, k := kept(t)
		m.record.Change(func(v *record.View) {
			v.Orders = []record.Order{{Number: 1, Kind: record.OrderLeave, Place: &pb},
				{Number: 2, Kind: record.OrderPause}}
		})
		plan := table.Plan{Row: 45, Act: table.ActCompleteOrder, OrderNumber: 1,
			Reason: "no member of b is in the list"}
		complete := func() (wasCut bool) {
			defer func() { wasCut = recover() != nil }()
			if err := k.leader.change(context.Background(), nil, plan); err != nil {
				t.Error(err)
			}
			return false
		}
		m.power.n, m.power.when, m.power.after = 0, 1, after
		if !complete() {
			t.Fatal("the power was not cut")
		}
		m.power.when = 0
		complete()
		plan.Reason = "another word"
		complete()
		v, _ := m.record.Copied()
		if d := v.Orders[0].Done; d == nil || d.What != "no member of b is in the list" || d.By != m.me.MemberName() ||
			v.Orders[1].Done != nil {
			t.Errorf("after %t: %+v, %+v", after, d, v.Orders[1].Done)
		}
	}
}
