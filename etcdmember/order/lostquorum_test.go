package order

import (
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

var (
	placeA = replica.Place{Zone: "us-central1-a", Name: "master-a"}
	placeB = replica.Place{Zone: "us-central1-b", Name: "master-b"}
	placeC = replica.Place{Zone: "us-central1-c", Name: "master-c"}
	now    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// lostQuorum is a cluster of three that went silent ten minutes ago, with a snapshot an hour old.
func lostQuorum() Restore {
	r := Restore{Now: now, Record: record.View{Inception: &record.Inception{Name: "demo"},
		Replicas: map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{}}}
	r.Ends = record.Epoch{Number: 1, Claim: &record.Claim{Token: "t"},
		Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc1, MemberID: 0xa1},
			Time: now.Add(-24 * time.Hour)}}
	for i, p := range []replica.Place{placeA, placeB, placeC} {
		id := record.MemberID(0xa1 + 0x10*i)
		r.Record.Replicas[p] = []record.Incarnation{{Place: p, Number: 1, InstanceID: "10" + string(rune('1'+i)),
			Epoch:    1,
			MemberID: id, DiskID: "d" + string(rune('1'+i)),
			Started: &record.Started{Epoch: 1, MemberID: id}}}
		r.Record.Marks[id] = record.Mark{MemberID: id, Epoch: 1, Term: 3, Applied: uint64(1000 + 10*i),
			Time: now.Add(-10 * time.Minute)}
	}
	r.Snapshots = []record.Snapshot{{Name: "1/77-x", Epoch: 1, Revision: 77, Index: 400,
		Time: now.Add(-70 * time.Minute)}}
	return r
}

func (r *Restore) stop(p replica.Place, term, index uint64, at time.Duration) {
	i := r.Record.Replicas[p][0]
	r.Ends.Stopped = append(r.Ends.Stopped, record.Stopped{Place: p, Incarnation: 1, MemberID: i.MemberID, Term: term,
		LastIndex: index, Time: now.Add(at)})
}

// empty gives a place another VM, on an empty disk.
func (r *Restore) empty(p replica.Place, at time.Duration) {
	r.Record.Replicas[p] = append(r.Record.Replicas[p], record.Incarnation{Place: p, Number: 2,
		InstanceID: "2" + r.Record.Replicas[p][0].InstanceID, Epoch: 1, DiskID: "e", EmptyDisk: true,
		Time: now.Add(at)})
}

// mark lets a member have come further some time ago.
func (r *Restore) mark(id record.MemberID, ago time.Duration) {
	m := r.Record.Marks[id]
	m.Time = now.Add(-ago)
	r.Record.Marks[id] = m
}
