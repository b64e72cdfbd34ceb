package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

func TestHowAnOrderStands(t *testing.T) {
	past, future := t0.Add(-time.Minute), t0.Add(time.Minute)
	pause, resume := record.Order{Kind: record.OrderPause}, record.Order{Kind: record.OrderResume}
	until := func(at time.Time) record.Order { return record.Order{Kind: record.OrderPause, Until: &at} }
	replicas := func(n int) record.Order { return record.Order{Kind: record.OrderReplicas, Replicas: n} }
	withdraw := func(n uint64) record.Order { return record.Order{Kind: record.OrderWithdraw, Withdraws: n} }
	leaveB, leaveC := record.Order{Kind: record.OrderLeave, Place: &pb}, record.Order{Kind: record.OrderLeave,
		Place: &pc}
	override := func(row int, id record.MemberID) record.Order {
		return record.Order{Kind: record.OrderOverride, Row: row, MemberID: id}
	}
	done := func(o record.Order) record.Order { o.Done = &record.Done{By: "x"}; return o }
	restore := record.Order{Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1, Replica: pa}}
	accepted := func(o record.Order) record.Order { o.Accepted = &record.Accepted{}; return o }
	closing := func(o record.Order) record.Order { o.Verdict = &record.Verdict{Closing: true}; return o }
	takenBack := func(o record.Order) record.Order { o.Verdict = &record.Verdict{Withdrawn: true}; return o }
	for name, c := range map[string]struct {
		given []record.Order
		want  string
	}{
		"one order":                         {[]record.Order{pause}, "in force"},
		"the newer word on a pause wins":    {[]record.Order{pause, resume}, "superseded 2, in force"},
		"a pause that has ended":            {[]record.Order{until(past)}, "done"},
		"a pause that lasts":                {[]record.Order{until(future)}, "in force"},
		"an ended pause is the newest word": {[]record.Order{pause, until(past)}, "superseded 2, done"},
		"a withdrawn resume was never given": {[]record.Order{pause, resume, withdraw(2)},
			"in force, withdrawn 3, in force"},
		"a withdrawal can be withdrawn": {[]record.Order{pause, withdraw(1), withdraw(2)},
			"in force, withdrawn 3, in force"},
		"numbers of replicas":                {[]record.Order{replicas(5), replicas(3)}, "superseded 2, in force"},
		"different replicas leave":           {[]record.Order{leaveB, leaveC}, "in force, in force"},
		"the same replica leaves twice":      {[]record.Order{leaveB, leaveB}, "superseded 2, in force"},
		"done":                               {[]record.Order{done(leaveB)}, "done"},
		"done, then withdrawn":               {[]record.Order{done(leaveB), withdraw(1)}, "withdrawn 2, in force"},
		"overrides of different members":     {[]record.Order{override(42, 1), override(42, 2)}, "in force, in force"},
		"overrides of different rows":        {[]record.Order{override(42, 1), override(47, 1)}, "in force, in force"},
		"a restore that nobody has accepted": {[]record.Order{restore, withdraw(1)}, "withdrawn 2, in force"},
		"a restore that was accepted": {[]record.Order{accepted(restore), withdraw(1)},
			"being withdrawn 2, in force"},
		"and the withdrawal of that withdrawn": {[]record.Order{accepted(restore), withdraw(1), withdraw(2)},
			"in force, withdrawn 3, in force"},
		"a restore that is withdrawn by verdict": {[]record.Order{takenBack(accepted(restore)), withdraw(1)},
			"withdrawn 2, in force"},
		"by its verdict alone": {[]record.Order{takenBack(accepted(restore))}, "withdrawn"},
		"by its verdict, which is final": {[]record.Order{takenBack(restore), withdraw(1), withdraw(2)},
			"withdrawn, withdrawn 3, in force"},
		"a withdrawal that came too late": {[]record.Order{closing(accepted(restore)), withdraw(1)},
			"in force, too late"},
		"too late, and the restore is done": {[]record.Order{done(closing(accepted(restore))), withdraw(1)},
			"done, too late"},
		"a newer restore of one in withdrawal": {[]record.Order{accepted(restore), withdraw(1), restore},
			"being withdrawn 2, in force, in force"},
		"a newer restore": {[]record.Order{accepted(restore), restore},
			"superseded 2, in force"},
		"nothing withdraws itself or what comes": {[]record.Order{withdraw(1), withdraw(3), pause},
			"in force, in force, in force"},
	} {
		var got []string
		for i := range c.given {
			c.given[i].Number = uint64(i + 1)
		}
		states := OrderStates(c.given, t0)
		for i := range c.given {
			s := states[uint64(i+1)]
			got = append(got, strings.TrimSuffix(fmt.Sprintf("%s %d", s.State, s.By), " 0"))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// What people are told and what the agents do follow from the same orders.
func TestAnOrderInForceIsFollowed(t *testing.T) {
	restore := &record.RestoreOrder{Ends: 1, Replica: pa}
	another := &record.RestoreOrder{Ends: 2, Replica: pa}
	kinds := []record.Order{{Kind: record.OrderPause}, {Kind: record.OrderResume},
		{Kind: record.OrderLeave, Place: &pb},
		{Kind: record.OrderReplicas, Replicas: 5}, {Kind: record.OrderWithdraw, Withdraws: 1},
		{Kind: record.OrderWithdraw, Withdraws: 2},
		{Kind: record.OrderRestore, Restore: restore}, {Kind: record.OrderRestore, Restore: restore,
			Accepted: &record.Accepted{}},
		{Kind: record.OrderRestore, Restore: restore, Accepted: &record.Accepted{},
			Verdict: &record.Verdict{Closing: true}},
		{Kind: record.OrderRestore, Restore: restore, Accepted: &record.Accepted{},
			Verdict: &record.Verdict{Withdrawn: true}},
		{Kind: record.OrderRestore, Restore: another, Accepted: &record.Accepted{}}}
	for n := range len(kinds) * len(kinds) * len(kinds) * len(kinds) {
		var given []record.Order
		for i, rest := 1, n; i <= 4; i, rest = i+1, rest/len(kinds) {
			o := kinds[rest%len(kinds)]
			o.Number = uint64(i)
			given = append(given, o)
		}
		states, followed := OrderStates(given, t0), OrdersOf(given, 1, t0)
		inForce := func(k record.OrderKind) bool {
			return slices.ContainsFunc(given, func(o record.Order) bool {
				return o.Kind == k &&
					states[o.Number].State == OrderInForce
			})
		}
		if inForce(record.OrderPause) != followed.Paused || inForce(record.OrderLeave) != (followed.Left(pb) != nil) ||
			inForce(record.OrderReplicas) != (followed.Replicas != 0) {
			t.Fatalf("%+v: told %+v, followed: paused %t, left %v, replicas %d", given, states, followed.Paused,
				followed.Left(pb), followed.Replicas)
		}
		var newest uint64
		for _, o := range given {
			s := states[o.Number].State
			if o.Restore == restore && (s == OrderInForce || s == OrderBeingWithdrawn) {
				newest = o.Number
			}
			if s == OrderBeingWithdrawn && followed.withdrawing == 0 {
				t.Fatalf("%+v: told %+v, and no agent withdraws", given, states)
			}
		}
		if (followed.Restore != nil) != (newest != 0) || newest != 0 && followed.Restore.Number != newest {
			t.Fatalf("%+v: told %+v, followed: %+v", given, states, followed.Restore)
		}
	}
}
