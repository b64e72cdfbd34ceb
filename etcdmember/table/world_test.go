package table

import (
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The world of the tests: three places a, b, c with instances 101, 102, 103 on disks d1, d2, d3. "I" am a. Member ids
// are 0xa1 and so on: the letter of the place and the number of the incarnation. Epoch 1 has token t1 and etcd cluster
// 0xc1.
var (
	t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}
)

const testCluster = "demo"

// outOfRange is what raft says of a log that lacks what it has acknowledged.
const outOfRange = "tocommit(120) is out of range [lastIndex(100)]. Was the raft log corrupted, truncated, or lost?"

func addressOf(p replica.Place) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, p.Name[2]})
}

func instances(ids ...string) []Instance {
	var out []Instance
	for _, id := range ids {
		p := map[byte]replica.Place{'1': pa, '2': pb, '3': pc}[id[len(id)-1]]
		out = append(out, Instance{Place: p, InstanceID: id, Status: "RUNNING"})
	}
	return out
}

// lists sets both listings of the Compute API, 10 s apart.
func (f *Facts) lists(ids ...string) {
	f.Compute.First = Listing{Time: t0.Add(-12 * time.Second), Instances: instances(ids...),
		Disks: []string{"d1", "d2", "d3"}}
	f.Compute.Second = Listing{Time: t0.Add(-2 * time.Second), Instances: instances(ids...),
		Disks: []string{"d1", "d2", "d3"}}
	f.Compute.Runs = map[string]Run{}
	for _, id := range []string{"101", "102", "103", "201", "202", "203"} {
		if !slices.Contains(ids, id) {
			f.Compute.Runs[id] = Run{RunAbsent, t0.Add(-time.Hour)}
		}
	}
}

// status makes both lists call an instance something, for an hour.
func (f *Facts) status(id, status string) {
	for _, l := range []*Listing{&f.Compute.First, &f.Compute.Second} {
		l.ServerTime = l.Time
		for i := range l.Instances {
			if l.Instances[i].InstanceID == id {
				l.Instances[i].Status, l.Instances[i].LastStop = status, t0.Add(-time.Hour)
			}
		}
	}
	delete(f.Compute.Runs, id)
	if kind := RunKindOf(status); kind != "" {
		f.Compute.Runs[id] = Run{kind, t0.Add(-time.Hour)}
	}
}

// blank is a first boot: an inception, an empty disk, nobody else.
func blank() Facts {
	f := Facts{
		Now: t0, Cluster: testCluster, DiskID: "d1", Disk: DiskFacts{Wanted: "data", Mounted: true},
		Me:     replica.Identity{Place: pa, InstanceID: "101", BootID: "boot1", ProjectNumber: "7"},
		Policy: Policy{Replicas: 3},
	}
	f.Record.Inception = &record.Inception{UID: "uid", Name: testCluster, ProjectNumber: "7", Region: "us-central1",
		Time: t0.Add(-time.Hour)}
	f.Record.Replicas = map[replica.Place][]record.Incarnation{}
	f.Record.Marks = map[record.MemberID]record.Mark{}
	f.lists("101", "102", "103")
	return f
}

func (f *Facts) claim(e uint64, token string, p replica.Place, instance string, source record.Source) {
	if source.Kind == "" {
		source.Kind = record.SourceEmpty
	}
	f.Record.Epochs = append(f.Record.Epochs, record.Epoch{Number: e, Claim: &record.Claim{Token: token, MaxLearners: 4,
		Seeder: record.Seeder{Place: p, InstanceID: instance}, Source: source}})
}

func (f *Facts) last() *record.Epoch { return &f.Record.Epochs[len(f.Record.Epochs)-1] }

func (f *Facts) form(cluster, member record.MemberID) {
	f.last().Outcome = &record.Outcome{Formed: &record.Formed{ClusterID: cluster, MemberID: member}}
}

func (f *Facts) abandon() {
	f.last().Outcome = &record.Outcome{Abandoned: &record.Abandoned{By: "x", Why: "y"}}
}

// incarnation adds a confirmed incarnation; member 0: a pending one.
func (f *Facts) incarnation(p replica.Place, k uint64, instance, disk string, epoch uint64, member record.MemberID) {
	i := record.Incarnation{Place: p, Number: k, InstanceID: instance, BootID: "boot1", Epoch: epoch, MemberID: member,
		DiskID:    disk,
		Addresses: []netip.Addr{addressOf(p)}}
	if member != 0 {
		i.Started = &record.Started{Epoch: epoch, MemberID: member, DiskID: disk, Time: t0.Add(-time.Hour)}
	}
	f.Record.Replicas[p] = append(f.Record.Replicas[p], i)
}

func (f *Facts) order(o record.Order) {
	o.Number = uint64(len(f.Record.Orders) + 1)
	f.Record.Orders = append(f.Record.Orders, o)
}

func (f *Facts) restoreOrder(ends uint64, p replica.Place, from record.Source) {
	f.order(record.Order{Kind: record.OrderRestore, By: "op", Restore: &record.RestoreOrder{Ends: ends, Replica: p,
		From: from}, Accepted: &record.Accepted{By: "r"}})
}

func (f *Facts) stopped(p replica.Place, k uint64, id record.MemberID, index uint64) {
	e := &f.Record.Epochs[0]
	s := record.Stopped{Place: p, Incarnation: k, MemberID: id, LastIndex: index}
	if index > 0 {
		s.Term, s.Voters = 3, []record.MemberID{0xa1, 0xb1}
	}
	e.Stopped = append(e.Stopped, s)
}

// three is the cluster of three in epoch 1, seeded by b; I rebooted nothing: my disk is valid, etcd ran on it in this
// boot.
func three() Facts {
	f := blank()
	f.claim(1, "t1", pb, "102", record.Source{})
	f.form(0xc1, 0xb1)
	f.incarnation(pa, 1, "101", "d1", 1, 0xa1)
	f.incarnation(pb, 1, "102", "d2", 1, 0xb1)
	f.incarnation(pc, 1, "103", "d3", 1, 0xc3)
	f.disk(1, "t1", 1, 0xa1, PhaseStarted)
	return f
}

// disk gives me a valid directory.
func (f *Facts) disk(epoch uint64, token string, k uint64, member record.MemberID, phase Phase) {
	f.Agent = AgentFile{ClusterUID: "uid", Epoch: epoch, Token: token, Replica: pa, InstanceID: "101", BootID: "boot1",
		Incarnation: k,
		MemberID:    member, NewestEpoch: epoch, Phase: phase}
	f.Directory = Directory{Exists: true, Marker: phase == PhaseSeeding, MemberID: member, ClusterID: 0xc1, Term: 3,
		LastTerm: 3, LastIndex: 100, Commit: 100,
		Voters: []record.MemberID{0xa1, 0xb1, 0xc3}}
}

// wipe takes the data disk's content.
func (f *Facts) wipe() { f.Agent, f.Directory = AgentFile{}, Directory{} }

// recreate makes me a new VM in my place; the disk is what it was, or another one.
func (f *Facts) recreate(disk string) {
	f.Me.InstanceID, f.Me.BootID, f.DiskID = "201", "boot2", disk
	f.lists("201", "102", "103")
}

func entry(p replica.Place, instance string, id record.MemberID) Member {
	return Member{ID: id, Name: p.String() + "." + instance, PeerURLs: []string{PeerURL(p.DNSName(testCluster))}}
}

// quorum lets b answer through a quorum, with a list of all three or the given ones.
func (f *Facts) quorum(list ...Member) {
	if list == nil {
		list = []Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1), entry(pc, "103", 0xc3)}
	}
	f.Answers = []Answer{{Place: pb, InstanceID: "102", Reach: ReachLinearizable, ClusterID: 0xc1, Members: list}}
}

// answers lets b answer without a quorum.
func (f *Facts) answers(r Reach) {
	f.Answers = []Answer{{Place: pb, InstanceID: "102", Reach: r}}
}
