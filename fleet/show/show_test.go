package show_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/fleet/show"
	"github.com/quorate/quorate/internal/replica"
)

var (
	placeB = replica.Place{Zone: "us-central1-b", Name: "prod-1-b"}
	order  = plan.Step{Act: plan.OrderLeave, Place: placeB, What: "Order prod-1-b to leave.",
		Risk: plan.Risk{Members: 3, Voters: 3, Survives: 1, Undo: "Withdraw the order."}}
	leaves = plan.Step{Act: plan.AwaitLeft, Place: placeB, What: "Wait until no member of prod-1-b is left.",
		Risk: plan.Risk{Members: 2, Voters: 2, Clients: "Those connected to it reconnect.", Undo: "Withdraw the order."}}
	gone = plan.Step{Act: plan.DeleteVM, Place: placeB, InstanceID: "101", What: "Delete VM prod-1-b.",
		Risk: plan.Risk{Members: 1, Voters: 1, Survives: -1}}
	joins = plan.Step{Act: plan.AwaitJoined, Place: placeB, What: "Wait until prod-1-b is a voter and ready.",
		Risk: plan.Risk{Members: 5, Voters: 5, Survives: 2}}
)

// lines collects what is said; text is how a terminal of any width shows it.
type lines struct{ strings.Builder }

func (l *lines) text(indent, text string) { l.WriteString(indent + text + "\n") }

func compare(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAPlanSaysWhatEachStepRisks(t *testing.T) {
	var l lines
	show.Plan(plan.Plan{Steps: []plan.Step{{Act: plan.BeginRecord, What: "Begin the record."}, order, leaves, gone,
		joins}, Warnings: []string{"Its data disk is kept."}, Differences: []plan.Difference{
		{Replica: placeB, Field: "gce.machineType", Found: "e2-standard-2", Wanted: "e2-standard-4"},
		{Replica: placeB, Field: "gce.tags", Found: "", Wanted: "masters"}}}, l.text)
	compare(t, l.String(), `
us-central1-b.prod-1-b: gce.machineType is e2-standard-2; e2-standard-4 is wanted.
us-central1-b.prod-1-b: gce.tags is not given; masters is wanted.
1. Begin the record.
   Then etcd has no member. Clients notice nothing. It cannot be undone.
2. Order prod-1-b to leave.
   Then etcd has 3 members, 3 voters: one further voter may fail. Clients notice nothing. To undo it: Withdraw the order.
3. Wait until no member of prod-1-b is left.
   Then etcd has 2 members, 2 voters: no further voter may fail. Clients: Those connected to it reconnect. `+
		`To undo it: Withdraw the order.
4. Delete VM prod-1-b.
   Then etcd has 1 member, 1 voter: that is no quorum. Clients notice nothing. It cannot be undone.
5. Wait until prod-1-b is a voter and ready.
   Then etcd has 5 members, 5 voters: 2 further voters may fail. Clients notice nothing.
Note: Its data disk is kept.
`)
}

func TestProgressSaysWhichStepOfThePlanItIs(t *testing.T) {
	var l lines
	p := show.NewProgress(plan.Plan{Steps: []plan.Step{order, leaves, gone}}, l.text)
	other := gone
	other.InstanceID = "102"
	for _, e := range []fleet.Event{{Begins: &leaves}, {Waits: "order 4 is not done yet"}, {Waits: "Nobody leads."},
		{Ended: &leaves, Took: 12345 * time.Millisecond}, {Begins: &gone}, {Begins: &other}} {
		p.Tell(e)
	}
	compare(t, l.String(), `
[2/3] Wait until no member of prod-1-b is left.
       order 4 is not done yet.
       Nobody leads.
       Done after 12s.
[3/3] Delete VM prod-1-b.
[also] Delete VM prod-1-b.
`)
}

func TestAListSaysWhatEachReplicaIs(t *testing.T) {
	l := fleet.Listing{Unknown: "nobody leads", SpareDisks: []fleet.ListedDisk{{Name: "d", Zone: "z", ID: "7"}},
		Replicas: []fleet.ListedReplica{
			{Name: "a", Zone: "z", VM: "RUNNING", Role: fleet.Voter, Leads: true, Ready: true,
				Image: "projects/p/global/images/quorate-1", DataDisk: "a-data"},
			{Name: "b", Zone: "z", Role: fleet.NoMember, Order: 4},
			{Name: "c", Zone: "z", VM: "RUNNING", Role: fleet.RoleUnknown},
		}}
	var got lines
	for _, r := range show.Rows(l) {
		got.text("", strings.Join(r, "|"))
	}
	show.Notes(l, got.text)
	compare(t, got.String(), `
a|z|RUNNING|voter, leads|yes|quorate-1|a-data
b|z|-|no member, leaves by order 4|no|-|-
c|z|RUNNING|unknown|unknown|-|-
Who the members are is not known: nobody leads.
Data disk d in z (7) belongs to no VM.
`)
	if len(show.Head) != len(show.Rows(l)[0]) || show.Head[show.ReadyColumn] != "READY" {
		t.Errorf("%d headings for %d columns", len(show.Head), len(show.Rows(l)[0]))
	}
}
