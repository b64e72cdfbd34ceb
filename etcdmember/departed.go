package etcdmember

import (
	"context"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Departed is a replica that left by order. Boots are the boot ids under which its place was ever taken.
type Departed struct {
	Place replica.Place
	Boots map[string]bool
}

// Departed lists the replicas that left by order, by the record and by this machine's member. The Compute API is not
// asked: its list may be incomplete.
func (m *Membership) Departed(ctx context.Context) []Departed {
	seen := m.reported.record()
	s, err := m.Status(ctx)
	if err != nil || seen == nil || s.MemberID == 0 {
		return nil
	}
	return departed(*seen, s.Members, time.Now())
}

// departed: the order to leave is carried out and not taken back, and no member has the place.
func departed(v record.View, members []table.Member, now time.Time) (out []Departed) {
	taken := map[replica.Place]bool{}
	for _, m := range members {
		place, _, ok := table.ParseMemberName(m.Name)
		if !ok {
			return nil // one that has not started yet may be anybody's
		}
		taken[place] = true
	}
	orders := table.OrdersOf(v.Orders, 0, now)
	for _, p := range v.Places() {
		leave := orders.Left(p)
		if leave == nil || leave.Done == nil || taken[p] {
			continue
		}
		d := Departed{Place: p, Boots: map[string]bool{}}
		for _, i := range v.Replicas[p] {
			if i.BootID != "" {
				d.Boots[i.BootID] = true
			}
		}
		out = append(out, d)
	}
	return out
}
