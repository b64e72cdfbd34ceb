package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

// stranger is a VM with a data disk of its own that has never been a member, and that the record does not know.
func stranger(name, zone string) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.VMs = append(i.VMs, plan.VM{Place: replica.Place{Zone: zone, Name: name}, InstanceID: "190",
			Status: "PROVISIONING", Image: "image-1", DataDisk: name + "-data"})
		i.Disks = append(i.Disks, plan.Disk{Zone: zone, Name: name + "-data", ID: "290", Replica: name, User: name})
	}
}

// noDisk has a replica's data disk deleted.
func noDisk(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		name := place(k).Name + "-data"
		i.Disks = slices.DeleteFunc(i.Disks, func(d plan.Disk) bool { return d.Name == name })
	}
}

// made has a replica's data disk bear the label of the command that made it.
func made(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) { i.Disks[k].Replica = place(k).Name }
}

// begunDisk is the data disk of a replica that was begun, and that got no VM.
func begunDisk(name, zone string) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.Disks = append(i.Disks, plan.Disk{Zone: zone, Name: name + "-data", ID: "300", Replica: name})
	}
}

// youngVM has a replica's VM be made within the last hour, in the place of none or of another VM.
func youngVM(k int, replaces string) func(*plan.Inventory) {
	return func(i *plan.Inventory) { i.VMs[k].Young, i.VMs[k].Replaces = true, replaces }
}

func learner(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) { i.Members.List[k].Voter = false }
}

func notReady(k int) func(*plan.Inventory) {
	return func(i *plan.Inventory) { i.Members.List[k].Ready = false }
}

// nameless has a replica's member join again: it has not said yet whose it is.
func nameless(k int, heard bool) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.Members.List[k] = plan.Member{Place: replica.Place{Name: "member 7"}, Heard: heard}
	}
}

func leaves(k int, done bool) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		i.Record.Leaves = append(i.Record.Leaves, plan.Leave{Place: place(k), Number: 3, Done: done})
	}
}

// What TestPlans does not come to: who counts, who is meant, and what a command that runs again finds.
func TestPlansWhereMoreIsAmiss(t *testing.T) {
	type changes = []func(*plan.Inventory)
	type wishes = []func(*plan.Wish)
	image := func(w *plan.Wish) { w.Image = "image-2" }
	named := func(name string) func(*plan.Wish) { return func(w *plan.Wish) { w.Name = name } }
	zone := func(z string) func(*plan.Wish) { return func(w *plan.Wish) { w.Zone = z } }
	but := func(z string) func(*plan.Wish) {
		return func(w *plan.Wish) {
			w.Zones = slices.DeleteFunc(slices.Clone(zones), func(o string) bool { return o == z })
		}
	}
	keep := func(w *plan.Wish) { w.DropDisk = false }
	inPlace := func(w *plan.Wish) { w.InPlace = true }
	again := func(w *plan.Wish) { w.InPlace, w.Again = true, true }
	newImage := func(i *plan.Inventory) { i.VMs[1].Image = "image-2" }
	newDisk := func(w *plan.Wish) { w.InPlace, w.NewDisk = true, true }
	young := func(i *plan.Inventory) {
		i.VMs[1].InstanceID, i.VMs[1].Replaces, i.VMs[1].Young = "900", "101", true
	}
	for _, tc := range []struct {
		name string
		n    int
		but  changes
		kind plan.Kind
		wish wishes
		want string
	}{
		{"add counts nobody who has left", 4, changes{left(3), gone(3), noDisk(3), ordered(4)}, plan.Add, nil,
			"create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add draws a name that no VM has", 3, changes{stranger("prod-1-x1", zones[1])}, plan.Add, nil,
			"order-replicas 4; await-joined prod-1-x1"},
		{"add draws a name that no disk has, nor begins with", 3, changes{func(i *plan.Inventory) {
			i.Disks = append(i.Disks, plan.Disk{Zone: zones[0], Name: "prod-1-x1-old", ID: "300"})
		}}, plan.Add, nil,
			"order-replicas 4; create-disk prod-1-x2; create-vm prod-1-x2; await-joined prod-1-x2"},
		{"add draws a name that nobody had", 3, changes{func(i *plan.Inventory) {
			at := replica.Place{Zone: zones[0], Name: "prod-1-x1"}
			i.Record.Replicas = append(i.Record.Replicas, plan.Incarnation{Place: at, InstanceID: "7", DiskID: "8"})
			i.Record.Leaves = append(i.Record.Leaves, plan.Leave{Place: at, Number: 3, Done: true})
		}}, plan.Add, nil,
			"order-replicas 4; create-disk prod-1-x2; create-vm prod-1-x2; await-joined prod-1-x2"},
		{"add draws a name that nobody was ordered out under", 3, changes{func(i *plan.Inventory) {
			at := replica.Place{Zone: zones[0], Name: "prod-1-x1"}
			i.Record.Leaves = append(i.Record.Leaves, plan.Leave{Place: at, Number: 3, Done: true})
		}}, plan.Add, nil,
			"order-replicas 4; create-disk prod-1-x2; create-vm prod-1-x2; await-joined prod-1-x2"},
		{"a VM that has not joined is not listed, and its disk is in use", 3, changes{stranger("prod-1-x1", zones[1]),
			func(i *plan.Inventory) { i.VMs = i.VMs[:3] }}, plan.Add, nil, plan.ListContradicts},
		{"the disk of one that was begun is attached to another VM, which is none of the cluster", 3,
			changes{begunDisk("prod-1-zz", zones[1]), func(i *plan.Inventory) { i.Disks[3].User = "rescue" }}, plan.Remove,
			wishes{named("master-b")}, "order-leave master-b; await-left master-b; order-replicas 2; delete-vm master-b 101; " +
				"delete-disk 201"},
		{"add under a name, in no zone that is named", 3, nil, plan.Add, wishes{named("extra")},
			"order-replicas 4; create-disk us-central1-a.extra; create-vm extra; await-joined extra"},
		{"add under a name goes on where its VM is", 3, changes{stranger("extra", zones[2])}, plan.Add,
			wishes{named("extra")}, "order-replicas 4; await-joined extra"},
		{"add under a name that is none", 3, nil, plan.Add, wishes{named("Master_B")}, plan.NameTaken},
		{"add waits for one that was made just now, and is in touch and not ready", 3,
			changes{made(2), notReady(2), youngVM(2, "")}, plan.Add, nil, "await-joined master-c"},
		{"add takes no old voter that is not ready for one that joins", 3, changes{made(2), notReady(2)}, plan.Add, nil,
			"order-replicas 4; create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add takes no old voter whose VM was made anew for one that joins", 3,
			changes{made(2), notReady(2), youngVM(2, "99")}, plan.Add, nil,
			"order-replicas 4; create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add takes no old warm copy that is not ready for one that joins", 2, changes{made(1), notReady(1)}, plan.Add, nil,
			"order-replicas 3; create-disk us-central1-c.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add waits for the second, which was made just now", 2, changes{made(1), notReady(1), youngVM(1, "")}, plan.Add,
			nil, "await-joined master-b"},
		{"add makes the third that was ordered: the second waits for it", 2, changes{made(1), youngVM(1, ""), ordered(3)},
			plan.Add, nil, "create-disk us-central1-c.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add makes the third that was ordered: the leader is not whole without it", 2,
			changes{made(0), youngVM(0, ""), notReady(0), made(1), youngVM(1, ""), ordered(3)}, plan.Add, nil,
			"create-disk us-central1-c.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add makes no VM for a disk that another one has", 3, changes{begunDisk("prod-1-zz", zones[1]),
			func(i *plan.Inventory) { i.Disks[3].User = "by-hand" }}, plan.Add, nil,
			"order-replicas 4; create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add waits for a third that does not vote yet, however old", 3, changes{made(2), learner(2), notReady(2)},
			plan.Add, nil, "await-joined master-c"},
		{"add waits for one that was ready, and is not in touch", 3, changes{func(i *plan.Inventory) {
			i.Members.List[2].Heard = false
		}}, plan.Add, wishes{named("master-c"), zone(zones[2])}, "await-joined master-c"},
		{"add counts no member that has not said yet whose it is", 3, changes{nameless(2, false)}, plan.Add, nil,
			"order-replicas 4; create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
		{"add waits until the one that joins says whose it is", 3, changes{nameless(2, true)}, plan.Add, nil,
			plan.MembersUnknown},
		{"add goes on with one that was begun in the zone that is named", 3,
			changes{stranger("prod-1-zz", zones[1])}, plan.Add, wishes{zone(zones[2])},
			"order-replicas 5; create-disk us-central1-c.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},

		{"remove one that has never been a member: no order can name it", 3,
			changes{stranger("prod-1-zz", zones[1])}, plan.Remove, wishes{named("prod-1-zz")},
			"delete-vm prod-1-zz 190; delete-disk 290"},
		{"remove goes on with the disk of one that has never been a member", 3, changes{begunDisk("prod-1-zz", zones[1])},
			plan.Remove, wishes{named("prod-1-zz")}, "delete-disk 300"},
		{"remove takes the number back that was ordered for one without a VM", 3,
			changes{begunDisk("prod-1-zz", zones[1]), ordered(4)}, plan.Remove, wishes{named("us-central1-b.prod-1-zz")},
			"order-replicas 3; delete-disk 300"},
		{"remove keeps the disk of one without a VM", 3, changes{begunDisk("prod-1-zz", zones[1])}, plan.Remove,
			wishes{named("prod-1-zz"), keep}, ""},
		{"remove of a zone goes on with a disk that is to go", 3, changes{begunDisk("prod-1-zz", zones[1])}, plan.Remove,
			wishes{zone(zones[1])}, "delete-disk 300"},
		{"remove of a zone does not mean a disk that is kept", 3, changes{begunDisk("prod-1-zz", zones[1])}, plan.Remove,
			wishes{zone(zones[1]), keep}, "order-leave master-b; await-left master-b; order-replicas 2; delete-vm master-b 101"},
		{"remove takes no disk that a command did not make for its name", 3, changes{func(i *plan.Inventory) {
			i.Disks = append(i.Disks, plan.Disk{Zone: zones[1], Name: "prod-1-zz-data", ID: "300"})
		}}, plan.Remove, wishes{named("prod-1-zz")}, plan.NoSuchReplica},
		{"remove takes no disk that a VM has which is not listed", 3, changes{begunDisk("prod-1-zz", zones[1]),
			func(i *plan.Inventory) { i.Disks[3].User = "prod-1-zz" }}, plan.Remove, wishes{named("prod-1-zz")},
			plan.ListContradicts},
		{"remove takes no disk that a member of another place ran on", 3, changes{func(i *plan.Inventory) {
			i.Disks[1].Replica, i.Disks[1].User = "prod-1-zz", ""
		}}, plan.Remove, wishes{named("prod-1-zz")}, plan.NoSuchReplica},
		{"remove takes one whose disk the record knows out by order, though its VM is gone", 3,
			changes{away(1), gone(1), made(1)}, plan.Remove, wishes{named("master-b")},
			"order-leave master-b; await-left master-b; order-replicas 2; delete-disk 201"},
		{"replace does not mean a disk alone", 3, changes{begunDisk("prod-1-zz", zones[1])}, plan.Replace,
			wishes{named("prod-1-zz")}, plan.NoSuchReplica},
		{"remove by ZONE.NAME", 3, nil, plan.Remove, wishes{named(place(1).String())},
			"order-leave master-b; await-left master-b; order-replicas 2; delete-vm master-b 101; delete-disk 201"},
		{"remove by a name that two have", 3, changes{stranger("master-b", zones[2])}, plan.Remove,
			wishes{named("master-b")}, plan.NoSuchReplica},
		{"remove goes on while its order is not carried out", 5, changes{leaves(1, false)}, plan.Remove,
			wishes{named("master-b")},
			"await-left master-b; order-replicas 4; delete-vm master-b 101; delete-disk 201"},
		{"remove after another has left", 5, changes{left(3), gone(3), ordered(4)}, plan.Remove,
			wishes{named("master-b")},
			"order-leave master-b; await-left master-b; order-replicas 3; delete-vm master-b 101; delete-disk 201"},
		{"remove while another is in touch and not ready", 5, changes{notReady(3)}, plan.Remove,
			wishes{named("master-b")}, plan.NotWell},
		{"remove one that is not well itself", 5, changes{notReady(1)}, plan.Remove, wishes{named("master-b")},
			"order-leave master-b; await-left master-b; order-replicas 4; delete-vm master-b 101; delete-disk 201"},
		{"remove one of two that are away: it repairs", 5, changes{away(3), away(4)}, plan.Remove,
			wishes{named("master-e")},
			"order-leave master-e; await-left master-e; order-replicas 4; delete-vm master-e 104; delete-disk 204"},
		{"remove leaves a disk alone that another VM has", 3, changes{left(1), ordered(2), func(i *plan.Inventory) {
			i.Disks[1].User = "rescue"
		}}, plan.Remove, wishes{named("master-b")}, "delete-vm master-b 101"},

		{"replace nobody", 3, nil, plan.Replace, nil, plan.NoSuchReplica},
		{"replace any of a zone: the new one could be meant next", 3, nil, plan.Replace, wishes{zone(zones[1])},
			plan.NoSuchReplica},
		{"replace without quorum", 3, changes{away(1), away(2)}, plan.Replace, wishes{named("master-b")},
			plan.WouldLoseQuorum},
		{"replace in its place one that is well while another of five is away", 5, changes{away(4)}, plan.Replace,
			wishes{named("master-b"), inPlace}, plan.NotWell},
		{"replace in its place one of two that are away", 5, changes{away(3), away(4)}, plan.Replace,
			wishes{named("master-e"), inPlace}, "delete-vm master-e 104; create-vm master-e; await-joined master-e"},
		{"replace in its place goes on with the VM that was made", 3, changes{away(1), func(i *plan.Inventory) {
			i.VMs[1].InstanceID, i.VMs[1].Replaces = "900", "101"
		}}, plan.Replace, wishes{named("master-b"), inPlace}, "await-joined master-b"},
		{"replace in its place once more, on demand", 3, changes{away(1), func(i *plan.Inventory) {
			i.VMs[1].InstanceID, i.VMs[1].Replaces = "900", "101"
		}}, plan.Replace, wishes{named("master-b"), again},
			"delete-vm master-b 900; create-vm master-b; await-joined master-b"},
		{"replace in its place one that was replaced and is well", 3, changes{func(i *plan.Inventory) {
			i.VMs[1].InstanceID, i.VMs[1].Replaces = "900", "101"
		}}, plan.Replace, wishes{named("master-b"), inPlace},
			"delete-vm master-b 900; create-vm master-b; await-joined master-b"},
		{"replace in its place one that was replaced just now and is well", 3, changes{young}, plan.Replace,
			wishes{named("master-b"), inPlace}, ""},
		{"a new disk for one that got its VM just now, and kept its disk", 3, changes{young}, plan.Replace,
			wishes{named("master-b"), newDisk},
			"delete-vm master-b 900; create-disk master-b; create-vm master-b; await-joined master-b"},
		{"a new disk for one that got it just now", 3, changes{young, func(i *plan.Inventory) {
			i.Disks[1].Replaces = "101"
		}}, plan.Replace, wishes{named("master-b"), newDisk}, ""},

		{"roll where a VM and its disk are gone", 3, changes{newImage, away(1), gone(1), noDisk(1)}, plan.Roll,
			wishes{image}, plan.ReplicaIsNotDone},
		{"roll where a VM is gone and its disk has another", 3, changes{away(1), gone(1), func(i *plan.Inventory) {
			i.Disks[1].User = "rescue"
		}}, plan.Roll, wishes{image}, plan.ReplicaIsNotDone},
		{"roll one whose disk is not known", 3, changes{noDisk(1)}, plan.Roll, wishes{image}, plan.DiskNotKnown},

		{"create goes on with those that are there", 2, changes{ordered(3), made(0), made(1)}, plan.Create, nil,
			"create-disk us-central1-c.prod-1-x1; create-vm prod-1-x1; await-joined master-b; await-joined prod-1-x1"},
		{"create goes on with a disk that was begun", 2, changes{ordered(3), begunDisk("prod-1-zz", zones[2])}, plan.Create,
			nil, "create-vm prod-1-zz; await-joined master-b; await-joined prod-1-zz"},
		{"create in other zones leaves a disk alone that was begun", 2,
			changes{ordered(3), begunDisk("prod-1-zz", zones[2])}, plan.Create, wishes{but(zones[2])},
			"create-disk us-central1-a.prod-1-x1; create-vm prod-1-x1; await-joined master-b; await-joined prod-1-x1"},
		{"create makes no more than are wanted of what was begun", 3, changes{begunDisk("prod-1-zz", zones[2])},
			plan.Create, nil, ""},
		{"create where one has no VM any more", 3, changes{away(1), gone(1)}, plan.Create, nil, plan.ReplicaIsNotDone},
		{"create where one is away", 3, changes{away(1)}, plan.Create, nil, plan.NotWell},
		{"create where one is on its way out", 3, changes{leaves(1, false)}, plan.Create, nil, plan.OrderedOut},
		{"create where one has left, and its VM is there", 3, changes{left(1)}, plan.Create, nil, plan.OrderedOut},
		{"create where one has left, and its VM is gone", 3, changes{left(1), gone(1)}, plan.Create, nil,
			"create-disk us-central1-b.prod-1-x1; create-vm prod-1-x1; await-joined prod-1-x1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := wellOff(tc.n)
			for _, c := range tc.but {
				c(&i)
			}
			w := plan.Wish{Kind: tc.kind, Zones: zones, Prefix: "prod-1", Suffixes: []string{"x1", "x2", "x3", "x4"},
				Count: 3, DropDisk: true}
			for _, c := range tc.wish {
				c(&w)
			}
			if got := carriedOut(w, i); got != tc.want && !fits(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Each plan says what it leads to, and what it leaves behind.
func TestPlansWarn(t *testing.T) {
	oneZone := func(i *plan.Inventory) {
		for k, name := range []string{"master-a", "master-b"} {
			at := replica.Place{Zone: zones[0], Name: name}
			i.VMs[k].Place, i.Disks[k].Zone, i.Record.Replicas[k].Place = at, zones[0], at
			i.Members.List[k].Place = at
		}
	}
	for _, tc := range []struct {
		name string
		n    int
		but  func(*plan.Inventory)
		wish plan.Wish
		want []string // how they begin
	}{
		{"two", 1, nil, plan.Wish{Kind: plan.Add}, []string{"Of two replicas one votes"}},
		{"three", 2, nil, plan.Wish{Kind: plan.Add}, nil},
		{"four", 3, nil, plan.Wish{Kind: plan.Add}, []string{"4 replicas survive no more failures than 3."}},
		{"two of three in one zone", 3, oneZone, plan.Wish{Kind: plan.Replace, Name: "master-c", DropDisk: true},
			[]string{"2 of 3 replicas are in zone us-central1-a", "The certificates of master-c"}},
		{"one is left, and its disk is kept", 2, nil, plan.Wish{Kind: plan.Remove, Name: "master-b"},
			[]string{"Its data disk master-b-data in us-central1-b is kept.", "The certificates of master-b"}},
		{"nothing is left to do", 3, func(i *plan.Inventory) { left(1)(i); gone(1)(i); noDisk(1)(i); ordered(2)(i) },
			plan.Wish{Kind: plan.Remove, Name: "master-b"}, nil},
		{"one that never joined goes, and its disk is kept", 3, stranger("prod-1-zz", zones[1]),
			plan.Wish{Kind: plan.Remove, Name: "prod-1-zz"},
			[]string{"Its data disk prod-1-zz-data in us-central1-b is kept, and the next 'quorate add' there goes on with " +
				"it. 'quorate remove us-central1-b.prod-1-zz --delete-disk' deletes it; 'quorate add NAME' makes another.",
				"The certificates of prod-1-zz"}},
		{"one that never joined has no VM any more", 3, begunDisk("prod-1-zz", zones[1]),
			plan.Wish{Kind: plan.Remove, Name: "prod-1-zz"},
			[]string{"Its data disk prod-1-zz-data in us-central1-b is kept, and the next 'quorate add' there"}},
		{"one that was begun for a replacement has no VM", 3, func(i *plan.Inventory) {
			begunDisk("prod-1-zz", zones[1])(i)
			i.Disks[3].Replaces = "101"
		}, plan.Wish{Kind: plan.Remove, Name: "prod-1-zz"},
			[]string{"Its data disk prod-1-zz-data in us-central1-b is kept, and the same 'quorate replace' goes on"}},
		{"the disk that is to go has another VM", 3, func(i *plan.Inventory) {
			begunDisk("prod-1-zz", zones[1])(i)
			i.Disks[3].User = "rescue"
		}, plan.Wish{Kind: plan.Remove, Name: "prod-1-zz", DropDisk: true},
			[]string{"Its data disk prod-1-zz-data in us-central1-b is kept: VM rescue has it."}},
		{"one was begun in another zone than those of create", 3, begunDisk("prod-1-zz", "us-central1-f"),
			plan.Wish{Kind: plan.Create, Count: 3},
			[]string{"Data disk prod-1-zz-data in us-central1-f is kept: prod-1-zz was begun with it, and has no VM. " +
				"'quorate add --zone us-central1-f' goes on with it; " +
				"'quorate remove us-central1-f.prod-1-zz --delete-disk' deletes it."}},
		{"one was begun in another zone than that of add", 3, begunDisk("prod-1-zz", zones[1]),
			plan.Wish{Kind: plan.Add, Zone: zones[2]},
			[]string{"4 replicas survive", "Data disk prod-1-zz-data in us-central1-b is kept"}},
		{"add goes on with the disk that was begun", 3, begunDisk("prod-1-zz", zones[1]), plan.Wish{Kind: plan.Add},
			[]string{"4 replicas survive"}},
		{"add next to one that is not well", 3, func(i *plan.Inventory) { made(2)(i); notReady(2)(i) },
			plan.Wish{Kind: plan.Add}, []string{"4 replicas survive", "Replica us-central1-c.master-c is not well"}},
		{"the same disk", 3, nil, plan.Wish{Kind: plan.Replace, Name: "master-b", InPlace: true}, nil},
		{"another disk", 3, nil, plan.Wish{Kind: plan.Replace, Name: "master-b", InPlace: true, NewDisk: true},
			[]string{"The former data disk of master-b, master-b-data in us-central1-b, is kept."}},
		{"another disk, and the former is gone", 3, func(i *plan.Inventory) { away(1)(i); gone(1)(i); noDisk(1)(i) },
			plan.Wish{Kind: plan.Replace, Name: "master-b", InPlace: true, NewDisk: true}, nil},
		{"all of it", 2, nil, plan.Wish{Kind: plan.Delete}, []string{"Its record"}},
		{"all of it, and nothing is there", 0, nil, plan.Wish{Kind: plan.Delete}, nil},
	} {
		i := wellOff(tc.n)
		if tc.but != nil {
			tc.but(&i)
		}
		tc.wish.Zones, tc.wish.Prefix, tc.wish.Suffixes = zones, "prod-1", []string{"x1"}
		w, err := plan.Resolve(tc.wish, i)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		p, err := plan.Make(w, i)
		if err != nil || !slices.EqualFunc(p.Warnings, tc.want, strings.HasPrefix) {
			t.Errorf("%s: %v, warns %q", tc.name, err, p.Warnings)
		}
	}
}

// A removal that meant a disk alone takes nobody who has come to it: neither by order, nor the VM, nor the disk.
func TestADiskAloneIsLeftToWhoHasComeToIt(t *testing.T) {
	i := wellOff(3)
	begunDisk("prod-1-zz", zones[1])(&i)
	w, err := plan.Resolve(plan.Wish{Kind: plan.Remove, Name: "prod-1-zz", DropDisk: true}, i)
	if err != nil {
		t.Fatal(err)
	}
	at := replica.Place{Zone: zones[1], Name: "prod-1-zz"}
	for name, comes := range map[string]func(*plan.Inventory){
		"a VM": func(i *plan.Inventory) { i.VMs = append(i.VMs, plan.VM{Place: at, InstanceID: "190"}) },
		"an agent": func(i *plan.Inventory) {
			i.Record.Replicas = append(i.Record.Replicas, plan.Incarnation{Place: at})
		},
		"a member away": func(i *plan.Inventory) { i.Members.List = append(i.Members.List, plan.Member{Place: at}) },
	} {
		i := wellOff(3)
		begunDisk("prod-1-zz", zones[1])(&i)
		comes(&i)
		p, err := plan.Make(w, i)
		var r *plan.Refusal
		if !errors.As(err, &r) || r.Name != plan.AnotherUnderWay {
			t.Errorf("%s: planned %+v, %v", name, p.Steps, err)
		}
	}
}

// risks are what the steps of a plan leave, as members, voters and how many more may fail.
func risks(t *testing.T, w plan.Wish, i plan.Inventory) string {
	t.Helper()
	w.Zones, w.Prefix, w.Suffixes, w.DropDisk = zones, "prod-1", []string{"x1"}, true
	w, err := plan.Resolve(w, i)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(w, i)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range p.Steps {
		out = append(out, fmt.Sprintf("%s %d %d %d", s.Act, s.Risk.Members, s.Risk.Voters, s.Risk.Survives))
	}
	return strings.Join(out, "; ")
}

func TestStepsCountWhoIsLeft(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		n          int
		wish       plan.Wish
	}{
		{"a second does not vote", "order-replicas 1 1 0; create-disk 1 1 0; create-vm 1 1 0; await-joined 2 1 0", 1,
			plan.Wish{Kind: plan.Add}},
		{"a fourth votes", "order-replicas 3 3 1; create-disk 3 3 1; create-vm 3 3 1; await-joined 4 4 1", 3,
			plan.Wish{Kind: plan.Add}},
		{"the voter of a pair hands over", "order-leave 2 1 0; await-left 1 1 0; order-replicas 1 1 0; " +
			"delete-vm 1 1 0; delete-disk 1 1 0", 2, plan.Wish{Kind: plan.Remove, Name: "master-a"}},
		{"one of three is made anew", "delete-vm 3 3 0; create-vm 3 3 0; await-joined 3 3 1", 3,
			plan.Wish{Kind: plan.Replace, Name: "master-b", InPlace: true}},
		{"all of it goes", "delete-vm 2 2 0; delete-vm 1 1 0; delete-vm 0 0 -1; delete-disk 0 0 -1; " +
			"delete-disk 0 0 -1; delete-disk 0 0 -1", 3, plan.Wish{Kind: plan.Delete}},
	} {
		if got := risks(t, tc.wish, wellOff(tc.n)); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.name, got, tc.want)
		}
	}
}
