package etcdmember

import (
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// A replica has departed if its order to leave is carried out, is not taken back, and no member has its place.
func TestWhoHasDeparted(t *testing.T) {
	a, b := replica.Place{Zone: "z", Name: "a"}, replica.Place{Zone: "z", Name: "b"}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	both := map[replica.Place][]record.Incarnation{
		a: {{Place: a, Number: 1, BootID: "boot1"}, {Place: a, Number: 2, BootID: "boot2"}}, b: {{Place: b, Number: 1}}}
	leave := record.Order{Number: 1, Kind: record.OrderLeave, Place: &a, Done: &record.Done{Time: now}}
	open := leave
	open.Done = nil
	withdrawn := record.Order{Number: 2, Kind: record.OrderWithdraw, Withdraws: 1}
	of := func(names ...string) (out []table.Member) {
		for _, n := range names {
			out = append(out, table.Member{Name: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		orders   []record.Order
		members  []table.Member
		departed bool
	}{
		"it left":                      {[]record.Order{leave}, of("z.b.1"), true},
		"no order":                     {nil, of("z.b.1"), false},
		"the order is not carried out": {[]record.Order{open}, of("z.b.1"), false},
		"the order was taken back":     {[]record.Order{leave, withdrawn}, of("z.b.1"), false},
		"a member has its place":       {[]record.Order{leave}, of("z.b.1", "z.a.7"), false},
		"a member without a name yet":  {[]record.Order{leave}, of("z.b.1", ""), false},
	} {
		got := departed(record.View{Replicas: both, Orders: c.orders}, c.members, now)
		if (len(got) == 1) != c.departed {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got) == 1 && (got[0].Place != a || !got[0].Boots["boot1"] || !got[0].Boots["boot2"] ||
			len(got[0].Boots) != 2) {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}
