package etcdmember

import (
	"errors"
	"net/netip"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// What the tests of this package begin with: three places a, b, c with instances 101, 102, 103 on disks d1, d2, d3.
// Member ids are 0xa1 and so on: the letter of the place and the number of the incarnation. Epoch 1 has token t1 and
// etcd cluster 0xc1. The table's own tests have a world of their own, with more in it.
var (
	t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}

	clocks = map[string]time.Duration{"an hour behind": -time.Hour, "right": 0, "an hour ahead": time.Hour}
)

const testCluster = "demo"

// errPasses is any error that passes.
var errPasses = errors.New("not now")

func addresses(of ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range of {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func instances(ids ...string) []table.Instance {
	var out []table.Instance
	for _, id := range ids {
		p := map[byte]replica.Place{'1': pa, '2': pb, '3': pc}[id[len(id)-1]]
		out = append(out, table.Instance{Place: p, InstanceID: id, Status: "RUNNING"})
	}
	return out
}

func entry(p replica.Place, instance string, id record.MemberID) table.Member {
	return table.Member{ID: id, Name: p.String() + "." + instance,
		PeerURLs: []string{table.PeerURL(p.DNSName(testCluster))}}
}

// blank is a first boot: an inception, an empty disk, nobody else.
func blank() table.Facts {
	f := table.Facts{
		Now: t0, Cluster: testCluster, DiskID: "d1", Disk: table.DiskFacts{Wanted: "data", Mounted: true},
		Me:     replica.Identity{Place: pa, InstanceID: "101", BootID: "boot1", ProjectNumber: "7"},
		Policy: table.Policy{Replicas: 3},
	}
	f.Record.Inception = &record.Inception{UID: "uid", Name: testCluster, ProjectNumber: "7", Region: "us-central1",
		Time: t0.Add(-time.Hour)}
	f.Record.Replicas = map[replica.Place][]record.Incarnation{}
	f.Record.Marks = map[record.MemberID]record.Mark{}
	for _, l := range []*table.Listing{&f.Compute.First, &f.Compute.Second} {
		*l = table.Listing{Instances: instances("101", "102", "103"), Disks: []string{"d1", "d2", "d3"}}
	}
	f.Compute.First.Time, f.Compute.Second.Time = t0.Add(-12*time.Second), t0.Add(-2*time.Second)
	f.Compute.Runs = map[string]table.Run{}
	for _, id := range []string{"201", "202", "203"} {
		f.Compute.Runs[id] = table.Run{Kind: table.RunAbsent, Since: t0.Add(-time.Hour)}
	}
	return f
}

// three is the cluster of three in epoch 1, seeded by b; I am a, and my disk is valid.
func three() table.Facts {
	f := blank()
	claim(&f, 1, "t1", pb, "102", record.Source{})
	form(&f, 0xc1, 0xb1)
	for n, p := range []replica.Place{pa, pb, pc} {
		id, instance := []record.MemberID{0xa1, 0xb1, 0xc3}[n], []string{"101", "102", "103"}[n]
		disk := []string{"d1", "d2", "d3"}[n]
		f.Record.Replicas[p] = []record.Incarnation{{Place: p, Number: 1, InstanceID: instance, BootID: "boot1",
			Epoch:    1,
			MemberID: id, DiskID: disk, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, p.Name[2]})},
			Started: &record.Started{Epoch: 1, MemberID: id, DiskID: disk, Time: t0.Add(-time.Hour)}}}
	}
	f.Agent = table.AgentFile{ClusterUID: "uid", Epoch: 1, Token: "t1", Replica: pa, InstanceID: "101", BootID: "boot1",
		Incarnation: 1, MemberID: 0xa1, NewestEpoch: 1, Phase: table.PhaseStarted}
	f.Directory = table.Directory{Exists: true, MemberID: 0xa1, ClusterID: 0xc1, Term: 3, LastTerm: 3, LastIndex: 100,
		Commit: 100, Voters: []record.MemberID{0xa1, 0xb1, 0xc3}}
	return f
}

func running(f *table.Facts) { f.Directory.Running = true; answerThrough(f) }

func claim(f *table.Facts, e uint64, token string, p replica.Place, instance string, source record.Source) {
	if source.Kind == "" {
		source.Kind = record.SourceEmpty
	}
	f.Record.Epochs = append(f.Record.Epochs, record.Epoch{Number: e, Claim: &record.Claim{Token: token, MaxLearners: 4,
		Seeder: record.Seeder{Place: p, InstanceID: instance}, Source: source}})
}

func last(f *table.Facts) *record.Epoch { return &f.Record.Epochs[len(f.Record.Epochs)-1] }

func form(f *table.Facts, cluster, member record.MemberID) {
	last(f).Outcome = &record.Outcome{Formed: &record.Formed{ClusterID: cluster, MemberID: member}}
}

// answerThrough lets b answer through a quorum, with a list of all three or the given ones.
func answerThrough(f *table.Facts, list ...table.Member) {
	if list == nil {
		list = []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1), entry(pc, "103", 0xc3)}
	}
	f.Answers = []table.Answer{{Place: pb, InstanceID: "102", Reach: table.ReachLinearizable, ClusterID: 0xc1,
		Members: list}}
}

// ringOf is the three as their leader, a, sees them: voters first, then learners, all reachable and caught up.
func ringOf(voters, learners []leader.RingMember) leader.Ring {
	f := three()
	r := leader.Ring{At: t0, Me: f.Me, Cluster: testCluster, Leader: 0xa1, LastIndex: 5000, Record: f.Record,
		Compute: f.Compute, Policy: table.Policy{Replicas: 3}, ClusterVersion: "3.7.0"}
	r.Members = append(append(r.Members, voters...), learners...)
	return r
}

func voter(p replica.Place, instance string, id record.MemberID) leader.RingMember {
	return leader.RingMember{Member: entry(p, instance, id), Match: 5000, State: leader.ProgressReplicate,
		RecentActive: true, StreamsActive: true, MovedAt: t0}
}

func learner(p replica.Place, instance string, id record.MemberID) leader.RingMember {
	m := voter(p, instance, id)
	m.Learner, m.Version = true, "3.7.3"
	return m
}

func threeVoters() leader.Ring {
	return ringOf([]leader.RingMember{voter(pa, "101", 0xa1), voter(pb, "102", 0xb1), voter(pc, "103", 0xc3)}, nil)
}
