package order

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

func TestTheSourceOfARestoreIsChosen(t *testing.T) {
	for _, tc := range []struct {
		name string
		wish Wish
		say  func(*Restore)
		want string // the source and the replica, or what is refused
	}{
		{"of nobody it is known whether his disk survives: a person must say", Wish{}, nil,
			"--from directory=us-central1-c.master-c, --from directory=us-central1-b.master-b"},
		{"one has said that its disk is whole", Wish{}, func(r *Restore) { r.stop(placeB, 3, 1015, 0) },
			"directory b1 d2 us-central1-b.master-b 3/1015 newest"},
		{"of two that are whole the longer log", Wish{},
			func(r *Restore) { r.stop(placeB, 3, 1015, 0); r.stop(placeA, 4, 900, 0) },
			"directory a1 d1 us-central1-a.master-a 4/900 newest"},
		{"two have lost their disks: the third is what is left", Wish{},
			func(r *Restore) { r.empty(placeA, 0); r.empty(placeB, 0) },
			"directory c1 d3 us-central1-c.master-c 3/1020 newest"},
		{"all have lost their disks: the newest snapshot, by whoever spoke last", Wish{},
			func(r *Restore) { r.empty(placeC, time.Minute); r.empty(placeA, 0); r.empty(placeB, 0) },
			"snapshot 1/77-x us-central1-c.master-c"},
		{"the newest snapshot by its revision: the VM that saved it was an hour behind", Wish{},
			func(r *Restore) {
				r.empty(placeC, time.Minute)
				r.empty(placeA, 0)
				r.empty(placeB, 0)
				behind := r.Snapshots[0]
				behind.Name, behind.Revision, behind.Time = "1/90-x", 90, behind.Time.Add(-time.Hour)
				r.Snapshots = append([]record.Snapshot{behind}, r.Snapshots...)
			}, "snapshot 1/90-x us-central1-c.master-c"},
		{"nothing is left", Wish{}, func(r *Restore) {
			r.empty(placeA, 0)
			r.empty(placeB, 0)
			r.empty(placeC, 0)
			r.Snapshots = nil
		}, "nothing to restore from"},
		{"a named directory", Wish{From: "directory=master-a", Exact: true}, nil,
			"directory a1 d1 us-central1-a.master-a 3/1000"},
		{"a learner's directory", Wish{From: "directory=master-b"}, nil,
			"directory b1 d2 us-central1-b.master-b 3/1010 newest"},
		{"a directory whose place stands on an empty disk, by name", Wish{From: "directory=master-a"},
			func(r *Restore) { r.empty(placeA, 0) }, "directory a1 d1 us-central1-a.master-a 3/1000 newest"},
		{"one that was whole, and whose disk is another now", Wish{},
			func(r *Restore) { r.stop(placeB, 3, 1015, 0); r.stop(placeC, 3, 1010, 0); r.empty(placeB, 0) },
			"directory c1 d3 us-central1-c.master-c 3/1010 newest"},
		{"one that stopped and went on under a later incarnation", Wish{}, func(r *Restore) {
			r.stop(placeB, 3, 1015, 0)
			later := r.Record.Replicas[placeB][0]
			later.Number = 2
			r.Record.Replicas[placeB] = append(r.Record.Replicas[placeB], later)
		}, "the record does not say whose disks survive"},
		{"another wrote its object for it", Wish{}, func(r *Restore) {
			r.stop(placeB, 3, 1015, 0)
			r.Ends.Stopped[0].InstanceID = "999"
		}, "the record does not say whose disks survive"},
		{"one has stopped without a log, which says nothing of its disk", Wish{},
			func(r *Restore) { r.stop(placeB, 0, 0, 0); r.empty(placeA, 0); r.empty(placeC, 0) },
			"directory b1 d2 us-central1-b.master-b 3/1010 newest"},
		{"a snapshot, and nobody who has spoken", Wish{From: "snapshot"}, nil, "--on is needed"},
		{"a snapshot on a named replica", Wish{From: "snapshot=1/77-x", On: "master-b"}, nil,
			"snapshot 1/77-x us-central1-b.master-b"},
		{"a snapshot that is not there", Wish{From: "snapshot=1/78-x", On: "master-b"}, nil,
			"there is no snapshot 1/78-x"},
		{"a directory is the best, and a replica is named for a snapshot", Wish{On: "master-c"},
			func(r *Restore) { r.stop(placeB, 3, 1015, 0) },
			"--on master-c: the best there is to restore from is the directory of us-central1-b.master-b, and a " +
				"directory is restored by the replica whose it is: " +
				"for that leave --on out or say --from directory=us-central1-b.master-b; for a snapshot say --from " +
				"snapshot, too"},
		{"the only disk that may be whole, and a replica is named for a snapshot", Wish{On: "master-c"},
			func(r *Restore) { r.empty(placeA, 0); r.empty(placeB, 0) },
			"or say --from directory=us-central1-c.master-c;"},
		{"no snapshot, and disks of which nothing bad is known", Wish{From: "snapshot", On: "master-a"},
			func(r *Restore) { r.empty(placeC, 0); r.Snapshots = nil },
			"no snapshot of epoch 1, but disks that are not known to be lost: name one that survives (--from " +
				"directory=us-central1-b.master-b, --from directory=us-central1-a.master-a)"},
		{"no disk, and the newest snapshot is of an older epoch", Wish{}, func(r *Restore) {
			r.Ends.Number = 3
			r.Snapshots = append(r.Snapshots, record.Snapshot{Name: "2/9-x", Epoch: 2, Revision: 9},
				record.Snapshot{Name: "2/8-x", Epoch: 2, Revision: 8})
		}, "The newest snapshot of an older epoch is --from snapshot=2/9-x: all of epoch 3 is lost with it"},
		{"this very directory, and a snapshot", Wish{From: "snapshot", Exact: true}, nil,
			"--exact: it is about the directories of the others"},
		{"this very directory, and none is left", Wish{Exact: true},
			func(r *Restore) { r.empty(placeA, 0); r.empty(placeB, 0); r.empty(placeC, 0) },
			"--exact: no disk of epoch 1 is known to survive"},
		{"a directory on another replica", Wish{From: "directory=master-a", On: "master-b"}, nil,
			"by the replica whose it is"},
		{"no replica", Wish{From: "directory"}, nil, "which replica's?"},
		{"another kind", Wish{From: "tape"}, nil, "want snapshot, snapshot=NAME"},
		{"a learner", Wish{From: "learner=master-b"}, nil, "want snapshot, snapshot=NAME or directory="},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := lostQuorum()
			if tc.say != nil {
				tc.say(&r)
			}
			var c Choice
			err := tc.wish.Check()
			if err == nil {
				c, err = r.Choose(tc.wish)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "nothing was written") {
					t.Errorf("refused: %v, want %s", err, tc.want)
				}
				return
			}
			o := c.Order
			got := "snapshot " + o.From.Snapshot + " " + o.Replica.String()
			if o.From.Kind == record.SourceDirectory {
				got = "directory " + o.From.MemberID.String() + " " + o.From.DiskID + " " + o.Replica.String() + " " +
					position(o)
			}
			if got != tc.want || o.Ends != 1 || (c.Directory == nil) == (c.Snapshot == nil) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func position(o record.RestoreOrder) string {
	text := fmt.Sprint(o.Term) + "/" + fmt.Sprint(o.Commit)
	if o.Newest {
		text += " newest"
	}
	return text
}
