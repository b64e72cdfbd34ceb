package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// stopping is the phase of a replica that goes: it hands over, so what it says of who leads is not of now.
const stopping = "stopping"

// witnesses are the reports of one epoch, and the VMs that they may be of.
type witnesses struct {
	reports []report.Sighting
	epoch   *record.Epoch
	vms     []gce.FleetVM
	// gone are the ids of VMs that this command has deleted: what they reported is not of now.
	gone map[string]bool
}

// members finds the leader's report, and what it says. fresh: the store got it after others were listed. Then a
// replica counts no more that led before and that this leader does not hear of.
func (w witnesses) members(after Seen) (m plan.Members, fresh bool) {
	if w.epoch == nil {
		return plan.Members{Unknown: "no cluster has been formed yet"}, false
	}
	var claims, newer []report.Sighting
	for _, s := range w.reports {
		if !w.isOfNow(s) || s.Member == "" || !s.Own().Leader || s.Phase == stopping {
			continue
		}
		claims = append(claims, s)
		if after != nil && after.before(s) {
			newer = append(newer, s)
		}
	}
	if fresh = len(newer) == 1; fresh {
		claims = slices.DeleteFunc(claims, func(s report.Sighting) bool {
			return s.Place != newer[0].Place && !hears(newer[0], s.Member)
		})
	}
	switch len(claims) {
	case 1:
		return plan.Members{List: w.membersBy(claims[0])}, fresh
	case 0:
		return plan.Members{Unknown: fmt.Sprintf("no report of the last %s is of a replica that leads etcd",
			health.SilentAfter)}, false
	}
	var names []string
	for _, s := range claims {
		names = append(names, s.Place.String())
	}
	return plan.Members{Unknown: "several replicas say that they lead etcd: " + strings.Join(names, ", ")}, false
}

// hears reports whether a leader hears of a member.
func hears(leader report.Sighting, member string) bool {
	return slices.ContainsFunc(leader.Members, func(m report.Member) bool {
		return m.ID == member && m.Heard != nil && *m.Heard
	})
}

// isOfNow reports whether a report is young, of this epoch, and not of a VM that is off or gone.
func (w witnesses) isOfNow(s report.Sighting) bool {
	if w.gone[s.InstanceID] || s.Age > health.SilentAfter || s.Epoch != w.epoch.Number ||
		s.ClusterID != w.epoch.Formed().ClusterID.String() {
		return false
	}
	at := slices.IndexFunc(w.vms, func(v gce.FleetVM) bool { return v.Place == s.Place })
	if at < 0 {
		return true // the list may lack it: the plan finds the contradiction
	}
	return w.vms[at].InstanceID == s.InstanceID && !health.IsOff(w.vms[at].Status)
}

// membersBy are the members as the leader lists them. Of two of one place that which has started comes first: the
// former one may still be listed.
func (w witnesses) membersBy(leader report.Sighting) (out []plan.Member) {
	members := slices.Clone(leader.Members)
	slices.SortStableFunc(members, func(a, b report.Member) int {
		switch {
		case a.Started == b.Started:
			return 0
		case a.Started:
			return -1
		}
		return 1
	})
	for _, m := range members {
		place, ok := replica.ParsePlace(m.Name)
		if !ok {
			place = replica.Place{Name: "member " + m.ID} // it has not said yet whose it is
		}
		out = append(out, plan.Member{Place: place, Voter: m.Role == "voter", Leads: m.ID == leader.Member,
			Heard: m.Heard != nil && *m.Heard, Ready: w.isReady(place, m.ID)})
	}
	return out
}

// isReady reports whether the replica of a member says that its boot is done and nothing is wrong with it.
func (w witnesses) isReady(p replica.Place, member string) bool {
	return slices.ContainsFunc(w.reports, func(s report.Sighting) bool {
		return s.Place == p && s.Member == member && s.Phase != stopping && w.isOfNow(s) &&
			conditionOf(s.Report).State() == health.Well
	})
}

// conditionOf is what package health judges one replica by.
func conditionOf(r report.Report) health.Condition {
	c := health.Condition{Ready: r.Ready}
	for _, x := range r.Components {
		if x.State != "ready" {
			c.Down = append(c.Down, x.Name)
		}
	}
	for _, w := range r.Waits {
		c.Waits = append(c.Waits, w.Name)
	}
	return c
}
