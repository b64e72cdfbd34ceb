package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

func place(n int) replica.Place {
	return replica.Place{Zone: zones[n%3], Name: fmt.Sprintf("master-%c", 'a'+n)}
}

// wellOff is a cluster of n replicas that are all well. The first leads.
func wellOff(n int) plan.Inventory {
	i := plan.Inventory{Cluster: "prod-1", Record: plan.Record{Begun: true, Formed: true, Region: region, Wanted: n}}
	for k := range n {
		p := place(k)
		id, disk := fmt.Sprint(100+k), fmt.Sprint(200+k)
		i.VMs = append(i.VMs, plan.VM{Place: p, InstanceID: id, Status: "RUNNING", Image: "image-1",
			DataDisk: p.Name + "-data"})
		i.Disks = append(i.Disks, plan.Disk{Zone: p.Zone, Name: p.Name + "-data", ID: disk, User: p.Name})
		i.Record.Replicas = append(i.Record.Replicas, plan.Incarnation{Place: p, InstanceID: id, DiskID: disk})
		i.Members.List = append(i.Members.List, plan.Member{Place: p, Voter: n > 2 || k == 0, Leads: k == 0,
			Heard: true, Ready: true})
	}
	return i
}

// away takes a replica's member out of touch.
func away(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) { i.Members.List[k].Heard, i.Members.List[k].Ready = false, false }
}

// left is a replica whose order to leave is carried out.
func left(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		p := place(k)
		i.Record.Leaves = append(i.Record.Leaves, plan.Leave{Place: p, Number: 7, Done: true})
		for n, m := range i.Members.List {
			if m.Place == p {
				i.Members.List = append(i.Members.List[:n:n], i.Members.List[n+1:]...)
				break
			}
		}
	}
}

// gone is a replica whose VM was deleted, with its data disk left.
func gone(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.VMs = append(i.VMs[:k:k], i.VMs[k+1:]...)
		i.Disks[k].User = ""
	}
}

// leaderless is a cluster in which nobody says that it leads.
func leaderless(i *plan.Inventory) { i.Members = plan.Members{Unknown: "nobody leads"} }

func ordered(n int) func(*plan.Inventory) {
	return func(i *plan.Inventory) { i.Record.Wanted = n }
}

func TestPlans(t *testing.T) {
	wish := func(k plan.Kind, change ...func(*plan.Wish)) plan.Wish {
		w := plan.Wish{Kind: k, Zones: zones, Prefix: "prod-1", Suffixes: []string{"x1", "x2", "x3", "x4"}, Count: 3,
			DropDisk: true}
		for _, c := range change {
			c(&w)
		}
		return w
	}
	named := func(name string) func(*plan.Wish) { return func(w *plan.Wish) { w.Name = name } }
	zone := func(z string) func(*plan.Wish) { return func(w *plan.Wish) { w.Zone = z } }
	inPlace := func(w *plan.Wish) { w.InPlace = true }
	newDisk := func(w *plan.Wish) { w.InPlace, w.NewDisk = true, true }
	interrupt := func(w *plan.Wish) { w.Interrupt = true }
	image := func(w *plan.Wish) { w.Image = "image-2" }
	sameImage := func(w *plan.Wish) { w.Image = "image-1" }
	change := func(list ...func(*plan.Inventory)) []func(*plan.Inventory) { return list }
	for _, tc := range []struct {
		name string
		n    int
		but  []func(*plan.Inventory)
		wish plan.Wish
		want string // the steps, or what is refused
	}{
		{"add a second: the number is ordered, so that it is known what it is to be", 1, nil, wish(plan.Add),
			"order-replicas 2; create-disk prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add goes to the emptiest zone", 4, nil, wish(plan.Add),
			"order-replicas 5; create-disk us-central1-b.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add in place of one that left needs no other number", 3, change(left(1), gone(1)), wish(plan.Add),
			"create-disk prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add in another region", 3, nil, wish(plan.Add, zone("europe-west1-b")), plan.WrongZone},
		{"add an eighth", 7, nil, wish(plan.Add), plan.TooManyReplicas},
		{"add under the name of one that was ordered out", 3, change(left(1), gone(1)),
			wish(plan.Add, named("master-b"), zone(zones[1])), plan.NameTaken},
		{"add goes on with the disk that an earlier try made", 3, change(func(i *plan.Inventory) {
			i.Disks = append(i.Disks, plan.Disk{Zone: zones[2], Name: "prod-1-zz-data", ID: "300",
				Replica: "prod-1-zz"})
		}), wish(plan.Add), "order-replicas 4; create-vm prod-1-zz; await-joined prod-1-zz"},
		{"add goes on while the third is a learner", 3, change(func(i *plan.Inventory) {
			i.Disks[2].Replica, i.Members.List[2].Voter = "master-c", false
		}), wish(plan.Add), "await-joined master-c"},
		{"add a third to a pair: its learner has come to its end", 2, change(func(i *plan.Inventory) {
			i.Disks[1].Replica = "master-b"
		}), wish(plan.Add),
			"order-replicas 3; create-disk us-central1-c.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"remove by name: member, number, VM, disk", 3, nil, wish(plan.Remove, named("master-b")),
			"order-leave master-b; await-left master-b; order-replicas 2; delete-vm master-b 101; delete-disk 201"},
		{"remove any of a zone", 3, nil, wish(plan.Remove, zone(zones[2])),
			"order-leave master-c; await-left master-c; order-replicas 2; delete-vm master-c 102; delete-disk 202"},
		{"remove of a zone rather who is away than who is well", 5, change(away(4)), wish(plan.Remove, zone(zones[1])),
			"order-leave master-e; await-left master-e; order-replicas 4; delete-vm master-e 104; delete-disk 204"},
		{"remove goes on after its order", 3, change(left(1), ordered(2)), wish(plan.Remove, named("master-b")),
			"delete-vm master-b 101; delete-disk 201"},
		{"remove goes on after its VM", 3, change(left(1), ordered(2), gone(1)), wish(plan.Remove, zone(zones[1])),
			"delete-disk 201"},
		{"remove one that is away, with its VM", 3, change(away(2)), wish(plan.Remove, named("master-c")),
			"order-leave master-c; await-left master-c; order-replicas 2; delete-vm master-c 102; delete-disk 202"},
		{"remove one whose VM is gone already", 3, change(away(2), gone(2)), wish(plan.Remove, named("master-c")),
			"order-leave master-c; await-left master-c; order-replicas 2; delete-disk 202"},
		{"remove one that is well while another is away", 3, change(away(2)), wish(plan.Remove, named("master-b")),
			plan.WouldLoseQuorum},
		{"remove one that is well while another of five is away", 5, change(away(2)),
			wish(plan.Remove, named("master-b")), plan.NotWell},
		{"remove without quorum", 3, change(away(1), away(2)), wish(plan.Remove, named("master-b")),
			plan.WouldLoseQuorum},
		{"remove the voter of a pair: the warm copy is promoted first", 2, nil, wish(plan.Remove, named("master-a")),
			"order-leave master-a; await-left master-a; order-replicas 1; delete-vm master-a 100; delete-disk 200"},
		{"remove the voter of a pair whose warm copy is away", 2, change(away(1)),
			wish(plan.Remove, named("master-a")), plan.WouldLoseQuorum},
		{"remove the warm copy", 2, nil, wish(plan.Remove, named("master-b")),
			"order-leave master-b; await-left master-b; order-replicas 1; delete-vm master-b 101; delete-disk 201"},
		{"remove the last", 1, nil, wish(plan.Remove, named("master-a")), plan.LastReplica},
		{"remove a stranger", 3, nil, wish(plan.Remove, named("node-1")), plan.NoSuchReplica},
		{"remove nobody", 3, nil, wish(plan.Remove), plan.NoSuchReplica},
		{"remove while another leaves", 5, change(func(i *plan.Inventory) {
			i.Record.Leaves = append(i.Record.Leaves, plan.Leave{Place: place(3), Number: 3})
		}), wish(plan.Remove, named("master-b")), plan.AnotherUnderWay},
		{"replace: the new one first", 3, nil, wish(plan.Replace, named("master-b")),
			"create-disk us-central1-b.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1; order-leave master-b; " +
				"await-left master-b; delete-vm master-b 101; delete-disk 201"},
		{"replace the only one: the new one first", 1, nil, wish(plan.Replace, named("master-a")),
			"create-disk prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1; order-leave master-a; " +
				"await-left master-a; delete-vm master-a 100; delete-disk 200"},
		{"replace in its place, with its disk", 3, nil, wish(plan.Replace, named("master-b"), inPlace),
			"delete-vm master-b 101; create-vm master-b; await-joined master-b"},
		{"replace in its place, with a new disk; the old one is kept", 3, nil,
			wish(plan.Replace, named("master-b"), newDisk),
			"delete-vm master-b 101; create-disk master-b; create-vm master-b; await-joined master-b"},
		{"replace in its place, with a new disk once more: one that was kept before is not taken", 3,
			change(func(i *plan.Inventory) {
				i.Disks = append(i.Disks, plan.Disk{Zone: zones[1], Name: "master-b-data-90", ID: "300",
					Replica: "master-b", Replaces: "90"})
			}), wish(plan.Replace, named("master-b"), newDisk),
			"delete-vm master-b 101; create-disk master-b; create-vm master-b; await-joined master-b"},
		{"replace in its place while another is away", 3, change(away(2)),
			wish(plan.Replace, named("master-b"), inPlace), plan.WouldLoseQuorum},
		{"replace in its place who is away", 3, change(away(2)), wish(plan.Replace, named("master-c"), inPlace),
			"delete-vm master-c 102; create-vm master-c; await-joined master-c"},
		{"replace in its place, and the disk is gone", 3, change(away(2), gone(2), func(i *plan.Inventory) {
			i.Disks = i.Disks[:2]
		}), wish(plan.Replace, named("master-c"), inPlace), plan.DiskNotKnown},
		{"replace the only one in its place", 1, nil, wish(plan.Replace, named("master-a"), inPlace),
			plan.WouldInterrupt},
		{"replace the only one in its place, accepted", 1, nil,
			wish(plan.Replace, named("master-a"), inPlace, interrupt),
			"delete-vm master-a 100; create-vm master-a; await-joined master-a"},
		{"replace the only one in its place, and its VM is gone: it is made, though nobody leads", 1,
			change(gone(0), leaderless), wish(plan.Replace, named("master-a"), inPlace, interrupt),
			"create-vm master-a; await-joined master-a"},
		{"replace the only one in its place, and nobody leads", 1, change(leaderless),
			wish(plan.Replace, named("master-a"), inPlace, interrupt), plan.MembersUnknown},
		{"roll the only one, and its VM is gone: it is made, though nobody leads", 1, change(gone(0), leaderless),
			wish(plan.Roll, image, interrupt), "create-vm master-a; await-joined master-a"},
		{"roll three that are rolled, and nobody leads: that is not done", 3, change(leaderless,
			func(i *plan.Inventory) {
				for n := range i.VMs {
					i.VMs[n].Image = "image-2"
				}
			}), wish(plan.Roll, image), "await-joined master-a; await-joined master-b; await-joined master-c"},
		{"replace the only one in its place, with a new disk", 1, nil,
			wish(plan.Replace, named("master-a"), newDisk, interrupt), plan.WouldLoseQuorum},
		{"replace one that left", 3, change(left(1)), wish(plan.Replace, named("master-b"), inPlace),
			plan.NoSuchReplica},
		{"roll: the leader last", 3, nil, wish(plan.Roll, image),
			"delete-vm master-b 101; create-vm master-b; await-joined master-b; delete-vm master-c 102; " +
				"create-vm master-c; await-joined master-c; delete-vm master-a 100; create-vm master-a; " +
				"await-joined master-a"},
		{"roll goes on with the one whose VM is gone", 3, change(away(1), gone(1), func(i *plan.Inventory) {
			i.VMs[1].Image = "image-2"
		}), wish(plan.Roll, image), "create-vm master-b; await-joined master-b; delete-vm master-a 100; " +
			"create-vm master-a; await-joined master-a"},
		{"roll waits for the one that was rolled before it takes the next", 3, change(away(1), func(i *plan.Inventory) {
			i.VMs[1].Image, i.VMs[1].InstanceID = "image-2", "900"
		}), wish(plan.Roll, image), "await-joined master-b; delete-vm master-c 102; create-vm master-c; " +
			"await-joined master-c; delete-vm master-a 100; create-vm master-a; await-joined master-a"},
		{"roll stops where one is not well", 3, change(away(1)), wish(plan.Roll, image), plan.NotWell},
		{"roll of what is rolled", 3, change(func(i *plan.Inventory) {
			for n := range i.VMs {
				i.VMs[n].Image = "image-2"
			}
		}), wish(plan.Roll, image), ""},
		{"roll the only one", 1, nil, wish(plan.Roll, image), plan.WouldInterrupt},
		{"roll the one whose machine type is another", 3, change(differs(1, "gce.machineType")),
			wish(plan.Roll, sameImage), "delete-vm master-b 101; create-vm master-b; await-joined master-b"},
		{"roll one whose data disk alone is another: that is kept", 3, change(differs(1, "gce.dataDisk.sizeGB")),
			wish(plan.Roll, sameImage), ""},
		{"roll to a smaller data disk", 3, change(disk(1, "100", "50")), wish(plan.Roll, image), plan.SmallerDisk},
		{"roll to a larger data disk: that is kept", 3, change(disk(1, "50", "100")), wish(plan.Roll, sameImage), ""},
		{"create with a smaller data disk than one that is there", 3, change(disk(2, "100", "50")),
			wish(plan.Create), plan.SmallerDisk},
		{"add one with a smaller data disk than the others have", 3, change(disk(1, "100", "50"), ordered(4)),
			wish(plan.Add), "create-disk prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"roll into another network", 3, change(differs(1, "gce.network")), wish(plan.Roll, sameImage),
			plan.OtherNetwork},
		{"roll what is not as it was asked for, though this command has made it", 3, change(differs(1, "gce.tags")),
			wish(plan.Roll, sameImage, func(w *plan.Wish) { w.Old = []string{"99"} }), plan.StillDiffers},
		{"create three", 0, change(ordered(3), func(i *plan.Inventory) { i.Record.Formed = false }), wish(plan.Create),
			"create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; create-disk us-central1-b.prod-1-x2; " +
				"create-vm prod-1-x2; create-disk us-central1-c.prod-1-x3; create-vm prod-1-x3; " +
				"await-joined prod-1-x1; await-joined prod-1-x2; await-joined prod-1-x3"},
		{"create of what is there", 3, nil, wish(plan.Create), ""},
		{"create where a cluster was, and nothing is left", 0, change(ordered(3)), wish(plan.Create),
			plan.WasDeleted},
		{"create from nothing begins the record", 0, change(ordered(1), func(i *plan.Inventory) {
			i.Record.Begun, i.Record.Formed = false, false
		}), wish(plan.Create, func(w *plan.Wish) { w.Count = 1 }),
			"begin-record ; create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"create with another record than that of the VMs", 2, change(func(i *plan.Inventory) {
			i.Record.Begun, i.Record.Formed, i.Members = false, false, plan.Members{}
		}), wish(plan.Create), plan.RecordNotBegun},
		{"create with a disk of a cluster that was", 0, change(func(i *plan.Inventory) {
			i.Record.Begun, i.Record.Formed = false, false
			i.Disks = []plan.Disk{{Zone: zones[0], Name: "prod-1-x0-data", ID: "300", Replica: "prod-1-x0"}}
		}), wish(plan.Create), plan.RecordNotBegun},
		{"delete all of it", 2, nil, wish(plan.Delete),
			"delete-vm master-a 100; delete-vm master-b 101; delete-disk 200; delete-disk 201"},
		{"delete by an empty list, while members are heard of", 3, change(func(i *plan.Inventory) {
			i.VMs, i.Disks = nil, nil
		}), wish(plan.Delete), plan.ListContradicts},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := wellOff(tc.n)
			for _, c := range tc.but {
				c(&i)
			}
			got := carriedOut(tc.wish, i)
			if got != tc.want && !fits(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// differs has a replica's VM differ from the document in a field.
func differs(k int, field string) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.VMs[k].Differs = []plan.Difference{{Replica: place(k), Field: field, Found: "a", Wanted: "b"}}
	}
}

// disk has a replica's data disk have another size than the document says, in GB.
func disk(k int, found, wanted string) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.VMs[k].Differs = []plan.Difference{{Replica: place(k), Field: plan.DataDiskSize, Found: found,
			Wanted: wanted}}
	}
}

// A document that would shrink a disk is refused with the field, what is there and what is allowed; one that would
// enlarge it says how that is done.
func TestADataDiskOnlyGrows(t *testing.T) {
	i := wellOff(3)
	disk(1, "100", "50")(&i)
	_, err := plan.Make(plan.Wish{Kind: plan.Roll, Image: "image-1"}, i)
	const want = "gce.dataDisk.sizeGB is 50, and data disk master-b-data of us-central1-b.master-b has 100: a disk " +
		"cannot be made smaller. Give the document 100 or more; or replace each replica by one with a disk of its " +
		"own ('quorate replace NAME')."
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	disk(1, "50", "100")(&i)
	p, err := plan.Make(plan.Wish{Kind: plan.Roll, Image: "image-1"}, i)
	const resize = "gcloud compute disks resize master-b-data --zone=us-central1-b --size=100GB"
	if text := strings.Join(p.Warnings, " "); err != nil || !strings.HasSuffix(text, resize) {
		t.Errorf("%v: %q lacks %q", err, text, resize)
	}
}

// A plan to roll says of each master what differs, also where the image is the same.
func TestARollSaysWhatDiffers(t *testing.T) {
	i := wellOff(3)
	differs(2, "gce.machineType")(&i)
	i.VMs[0].Image = "image-0"
	w, err := plan.Resolve(plan.Wish{Kind: plan.Roll, Image: "image-1"}, i)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(w, i)
	const want = "[{us-central1-a.master-a gce.image image-0 image-1} {us-central1-c.master-c gce.machineType a b}]"
	if got := fmt.Sprint(p.Differences); err != nil || got != want || len(p.Steps) != 6 {
		t.Errorf("%v, %d steps\ngot  %s\nwant %s", err, len(p.Steps), got, want)
	}
}

// carriedOut is a plan in words, or the name of its refusal.
func carriedOut(w plan.Wish, i plan.Inventory) string {
	var err error
	if w.Old == nil {
		w, err = plan.Resolve(w, i)
	}
	var p plan.Plan
	if err == nil {
		p, err = plan.Make(w, i)
	}
	var r *plan.Refusal
	switch {
	case errors.As(err, &r):
		return r.Name
	case err != nil:
		return err.Error()
	}
	var out []string
	for _, s := range p.Steps {
		text := string(s.Act)
		switch s.Act {
		case plan.OrderReplicas:
			text += fmt.Sprint(" ", s.Replicas)
		case plan.DeleteDisk:
			text += " " + s.DiskID
		case plan.DeleteVM:
			text += " " + s.Place.Name + " " + s.InstanceID
		case plan.CreateDisk:
			text += " " + s.Place.String()
		default:
			text += " " + s.Place.Name
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// fits compares step by step; a step that says no zone is of any.
func fits(got, want string) bool {
	g, w := strings.Split(got, "; "), strings.Split(want, "; ")
	if len(g) != len(w) {
		return false
	}
	for n := range g {
		for _, z := range zones {
			if !strings.Contains(w[n], z) {
				g[n] = strings.ReplaceAll(g[n], z+".", "")
			}
		}
		if g[n] != w[n] {
			return false
		}
	}
	return true
}

// What may be wrong with what was read: no wish gets a plan by it.
func TestNothingIsPlannedByWhatMayBeWrong(t *testing.T) {
	drawn := []string{"x"}
	for _, tc := range []struct {
		name, want string
		change     func(*plan.Inventory)
	}{
		{"a zone did not answer", plan.ListIncomplete,
			func(i *plan.Inventory) { i.Incomplete = "zone b did not answer" }},
		{"an empty list", plan.ListContradicts, func(i *plan.Inventory) { i.VMs = nil }},
		{"a list that lacks one that is heard of", plan.ListContradicts,
			func(i *plan.Inventory) { i.VMs = i.VMs[:2] }},
		{"one VM twice", plan.ListContradicts, func(i *plan.Inventory) { i.VMs = append(i.VMs, i.VMs[0]) }},
		{"no record", plan.RecordUnread, func(i *plan.Inventory) { i.Record.Unread = "403" }},
		{"a record that has not begun", plan.RecordNotBegun, func(i *plan.Inventory) { i.Record.Begun = false }},
		{"a pause", plan.MembershipBusy, func(i *plan.Inventory) { i.Record.Busy = "order 3 pauses changes" }},
		{"nobody leads", plan.MembersUnknown, func(i *plan.Inventory) { i.Members.Unknown = "no leader" }},
	} {
		for _, w := range []plan.Wish{{Kind: plan.Add, Zones: zones, Prefix: "p", Suffixes: drawn},
			{Kind: plan.Remove, Name: "master-b"},
			{Kind: plan.Replace, Name: "master-b", Prefix: "p", Suffixes: drawn},
			{Kind: plan.Replace, Name: "master-b", InPlace: true}, {Kind: plan.Roll, Image: "image-2"},
			{Kind: plan.Create, Count: 3, Zones: zones, Prefix: "p", Suffixes: drawn}} {
			i := wellOff(3)
			tc.change(&i)
			want := tc.want
			if w.Kind == plan.Create && len(i.VMs) == 0 {
				want = plan.WasDeleted // nothing that could come makes a new cluster of it
			}
			if got := carriedOut(w, i); got != want {
				t.Errorf("%s, %s: got %s", tc.name, w.Kind, got)
			}
			whole := wellOff(3)
			resolved, err := plan.Resolve(w, whole)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := plan.Make(resolved, i); err == nil {
				t.Errorf("%s, %s: planned %+v", tc.name, w.Kind, p)
			}
		}
	}
}

// A VM that was recreated under the name meanwhile is not the one that the wish meant.
func TestARecreatedVMIsNotDeleted(t *testing.T) {
	i := wellOff(3)
	w, err := plan.Resolve(plan.Wish{Kind: plan.Remove, Name: "master-b", DropDisk: true}, i)
	if err != nil {
		t.Fatal(err)
	}
	left(1)(&i)
	i.VMs[1].InstanceID = "999"
	p, err := plan.Make(w, i)
	if err != nil || len(p.Steps) != 1 || p.Steps[0].Act != plan.OrderReplicas {
		t.Fatalf("%v %+v", err, p.Steps)
	}
	if len(p.Warnings) == 0 || !strings.Contains(p.Warnings[0], "Another VM (999) has the name") {
		t.Errorf("warnings: %q", p.Warnings)
	}
}

// Who is ordered out while a command makes it, or waits for it, does not join as long as the order is in force. That is
// said at once, with what ends it.
func TestNobodyWaitsForWhoIsOrderedOutMeanwhile(t *testing.T) {
	for _, wish := range []plan.Wish{{Kind: plan.Add}, {Kind: plan.Replace, Name: "master-b"},
		{Kind: plan.Create, Count: 4}} {
		wish.Zones, wish.Prefix, wish.Suffixes = zones, "prod-1", []string{"x1"}
		i := wellOff(3)
		w, err := plan.Resolve(wish, i)
		if err != nil {
			t.Fatal(err)
		}
		was := w.New
		if wish.Kind == plan.Create {
			was = w.Places[3]
		}
		for _, vm := range []bool{false, true} {
			if vm {
				i.VMs = append(i.VMs, plan.VM{Place: was, InstanceID: "300"})
			}
			for _, done := range []bool{false, true} {
				i.Record.Leaves = []plan.Leave{{Place: was, Number: 9, Done: done}}
				p, err := plan.Make(w, i)
				var r *plan.Refusal
				if !errors.As(err, &r) || r.Name != plan.OrderedOut ||
					!strings.Contains(r.Next, "'quorate orders withdraw 9'") {
					t.Errorf("%s, VM %v, done %v: planned %+v, %v", wish.Kind, vm, done, p.Steps, err)
				}
			}
		}
	}
}

// Each step says how the cluster stands once it is taken.
func TestStepsSayWhatTheyRisk(t *testing.T) {
	w, _ := plan.Resolve(plan.Wish{Kind: plan.Remove, Name: "master-b", DropDisk: true}, wellOff(3))
	p, err := plan.Make(w, wellOff(3))
	if err != nil {
		t.Fatal(err)
	}
	order, leaves := p.Steps[0].Risk, p.Steps[1].Risk
	if order.Voters != 3 || order.Survives != 1 || order.Undo == "" || order.Clients != "" {
		t.Errorf("the order: %+v", order)
	}
	if leaves.Members != 2 || leaves.Voters != 2 || leaves.Survives != 0 || leaves.Clients == "" {
		t.Errorf("its end: %+v", leaves)
	}
	if two := p.Steps[2]; two.Act != plan.OrderReplicas || !strings.Contains(two.Risk.Clients, "warm copy") {
		t.Errorf("the second of two gives its vote up: %+v", two)
	}
	if last := p.Steps[len(p.Steps)-1].Risk; last.Undo != "" {
		t.Errorf("a deleted disk comes back by %q", last.Undo)
	}
	w, _ = plan.Resolve(plan.Wish{Kind: plan.Replace, Name: "master-a", InPlace: true, Interrupt: true}, wellOff(1))
	if p, err = plan.Make(w, wellOff(1)); err != nil {
		t.Fatal(err)
	}
	if r := p.Steps[0].Risk; r.Survives != -1 || !strings.HasPrefix(r.Clients, "Nobody is served") {
		t.Errorf("the only one goes: %+v", r)
	}
}
