package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/replica"
)

// exhausted is a project in which a zone has no VM of the type.
type exhausted struct {
	*world
	zone string
	// asked counts how often it was asked for one.
	asked int
}

// InsertVM refuses what is in the zone.
func (e *exhausted) InsertVM(ctx context.Context, zone string, v gce.VMSpec) error {
	if zone == e.zone {
		e.asked++
		return errors.New("ZONE_RESOURCE_POOL_EXHAUSTED")
	}
	return e.world.InsertVM(ctx, zone, v)
}

// A zone has no VM. Create with the other zones leaves it alone, and says which disk is left there and what becomes of
// it; create with all zones makes no fourth of it; and remove deletes it where that is said.
func TestCreateGoesOnWithoutAZoneThatHasNoVMs(t *testing.T) {
	inWorld(t, 0, func(t *testing.T, w *world) {
		f, e := fleetOf(w), &exhausted{world: w, zone: zones[2]}
		f.Cloud = e
		run := func(wish plan.Wish) string {
			t.Helper()
			p, err := f.Run(t.Context(), wish, talk(nil))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(p.Warnings, "\n")
		}
		if _, err := f.Run(t.Context(), plan.Wish{Kind: plan.Create}, talk(nil)); !errors.Is(err, fleet.ErrStopped) {
			t.Fatal(err)
		}
		asked, left := e.asked, w.spareDisk(t)
		warned := run(plan.Wish{Kind: plan.Create, Zones: zones[:2]})
		if want := "'quorate remove " + left.String() + " --delete-disk' deletes it."; !strings.Contains(warned, want) {
			t.Errorf("create with other zones says %q, want %q", warned, want)
		}
		run(plan.Wish{Kind: plan.Create})
		if e.asked != asked || w.spareDisk(t) != left {
			t.Errorf("the zone was asked %d times more", e.asked-asked)
		}
		before := w.changes
		warned = run(plan.Wish{Kind: plan.Remove, Name: left.Name})
		if !strings.Contains(warned, "the next 'quorate add' there goes on with it") || w.changes != before {
			t.Errorf("remove says %q, and changes %d", warned, w.changes-before)
		}
		w.rules = rules{dropDisks: true}
		run(plan.Wish{Kind: plan.Remove, Name: left.Name, DropDisk: true})
		command{vms: 3, voters: 3}.check(t, w)
	})
}

// spareDisk is the place for which the only data disk was made that no VM has.
func (w *world) spareDisk(t *testing.T) replica.Place {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []replica.Place
	for _, d := range w.disks {
		if len(d.Users) == 0 {
			out = append(out, replica.Place{Zone: d.Zone, Name: d.Labels[fleet.ReplicaLabel]})
		}
	}
	if len(out) != 1 {
		t.Fatalf("disks without a VM: %v", out)
	}
	return out[0]
}

// A master that add has made is not ready. Within an hour it is the one that add goes on with; later it is an old one
// that fell ill, and add makes another.
func TestAddGoesOnWithAYoungOneAlone(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		f := fleetOf(w)
		if _, err := f.Run(t.Context(), plan.Wish{Kind: plan.Add}, talk(nil)); err != nil {
			t.Fatal(err)
		}
		third := w.made(t)
		w.mu.Lock()
		w.down[third] = "kube-scheduler"
		w.mu.Unlock()
		for _, tc := range []struct {
			after time.Duration
			makes bool
		}{{time.Minute, false}, {time.Hour, true}} {
			time.Sleep(tc.after)
			p, err := f.Plan(t.Context(), plan.Wish{Kind: plan.Add}, nil)
			makes := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Act == plan.CreateVM })
			says := strings.Contains(strings.Join(p.Warnings, "\n"), "Replica "+third.String()+" is not well")
			if err != nil || makes != tc.makes || says != tc.makes {
				t.Errorf("%s later: %+v, %q, %v", tc.after, p.Steps, p.Warnings, err)
			}
		}
	})
}

// made is the place of the only VM that a command has made.
func (w *world) made(t *testing.T) replica.Place {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, v := range w.vms {
		if w.disks[p.Zone+"/"+v.DataDisk].Labels[fleet.ReplicaLabel] == p.Name {
			return p
		}
	}
	t.Fatal("no command has made a VM")
	return replica.Place{}
}
