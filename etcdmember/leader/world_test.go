package leader

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The world of the tests is that of the table's: three places a, b, c with instances 101, 102, 103 on disks d1, d2, d3.
// "I" am a, and lead. Member ids are 0xa1 and so on: the letter of the place and the number of the incarnation. Epoch 1
// has token t1 and etcd cluster 0xc1.
var (
	t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}
	me = replica.Identity{Place: pa, InstanceID: "101", BootID: "boot1", ProjectNumber: "7"}
)

const testCluster = "demo"

func instances(ids ...string) []table.Instance {
	var out []table.Instance
	for _, id := range ids {
		p := map[byte]replica.Place{'1': pa, '2': pb, '3': pc}[id[len(id)-1]]
		out = append(out, table.Instance{Place: p, InstanceID: id, Status: "RUNNING"})
	}
	return out
}

// listed is what both listings of the Compute API say, 10 s apart: all three VMs run.
func listed() table.Compute {
	list := func(ago time.Duration) table.Listing {
		return table.Listing{Time: t0.Add(-ago), Instances: instances("101", "102", "103"), Disks: []string{"d1", "d2",
			"d3"}}
	}
	c := table.Compute{First: list(12 * time.Second), Second: list(2 * time.Second), Runs: map[string]table.Run{}}
	for _, id := range []string{"201", "202", "203"} {
		c.Runs[id] = table.Run{Kind: table.RunAbsent, Since: t0.Add(-time.Hour)}
	}
	return c
}

// unformed is the record of a first boot: an inception, and nothing else.
func unformed() record.View {
	return record.View{
		Inception: &record.Inception{UID: "uid", Name: testCluster, ProjectNumber: "7", Region: "us-central1",
			Time: t0.Add(-time.Hour)},
		Replicas: map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{},
	}
}

// ofThree is the record of the cluster of three in epoch 1, seeded by b.
func ofThree() record.View {
	v := unformed()
	claim(&v, 1, pb, "102", record.Source{Kind: record.SourceEmpty})
	v.Epochs[0].Outcome = &record.Outcome{Formed: &record.Formed{ClusterID: 0xc1, MemberID: 0xb1}}
	for _, x := range []struct {
		p              replica.Place
		instance, disk string
		id             record.MemberID
	}{{pa, "101", "d1", 0xa1}, {pb, "102", "d2", 0xb1}, {pc, "103", "d3", 0xc3}} {
		v.Replicas[x.p] = []record.Incarnation{{Place: x.p, Number: 1, InstanceID: x.instance, BootID: "boot1",
			Epoch:    1,
			MemberID: x.id, DiskID: x.disk, Started: &record.Started{Epoch: 1, MemberID: x.id, DiskID: x.disk,
				Time: t0.Add(-time.Hour)}}}
	}
	return v
}

func claim(v *record.View, epoch uint64, p replica.Place, instance string, source record.Source) {
	v.Epochs = append(slices.Clone(v.Epochs), record.Epoch{Number: epoch, Claim: &record.Claim{
		Token: "t" + string(rune('0'+epoch)), MaxLearners: 4,
		Seeder: record.Seeder{Place: p, InstanceID: instance}, Source: source}})
}

func claimRestore(v *record.View) {
	claim(v, 2, pa, "101", record.Source{Kind: record.SourceDirectory, Order: 1, MemberID: 0xa1, DiskID: "d1"})
}
func isClosed(v *record.View) { v.Epochs[len(v.Epochs)-1].Closed = &record.Closed{} }
func abandoned(v *record.View) {
	v.Epochs[len(v.Epochs)-1].Outcome = &record.Outcome{Abandoned: &record.Abandoned{By: "x", Why: "y"}}
}

func entry(p replica.Place, instance string, id record.MemberID) table.Member {
	return table.Member{ID: id, Name: p.String() + "." + instance,
		PeerURLs: []string{table.PeerURL(p.DNSName(testCluster))}}
}
