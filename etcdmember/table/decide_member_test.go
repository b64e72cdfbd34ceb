package table

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// joining puts me at some step of a join: my place's former member 0xa1 is gone, incarnation 2 is this VM's.
func joining(phase Phase, id record.MemberID, confirmed bool) func(*Facts) {
	return func(f *Facts) {
		f.wipe()
		f.recreate("d9")
		i := record.Incarnation{Place: pa, Number: 2, InstanceID: "201", BootID: "boot2", Epoch: 1, DiskID: "d9"}
		if confirmed {
			i.Started = &record.Started{Epoch: 1, MemberID: id, DiskID: "d9"}
		}
		f.Record.Replicas[pa] = append(f.Record.Replicas[pa], i)
		f.Agent = AgentFile{ClusterUID: "uid", Epoch: 1, Token: "t1", Replica: pa, InstanceID: "201", BootID: "boot2",
			Incarnation: 2, MemberID: id, NewestEpoch: 1, Phase: phase}
		f.quorum(entry(pb, "102", 0xb1), entry(pc, "103", 0xc3))
	}
}

// added is the unstarted learner of my place.
func added(id record.MemberID) Member {
	return Member{ID: id, PeerURLs: []string{PeerURL(pa.DNSName(testCluster))}, Learner: true}
}

// namedLearner is the same once it has started and published its name.
func namedLearner() Member {
	m := entry(pa, "201", 0xa2)
	m.Learner = true
	return m
}

func alsoListed(m Member) func(*Facts) {
	return func(f *Facts) { f.Answers[0].Members = append(f.Answers[0].Members, m) }
}

func oneWanted(f *Facts) {
	f.Policy.Replicas = 1
	f.Policy.Snapshot = &SnapshotRef{Name: "s", Epoch: 1, Time: t0}
	f.Record.Replicas[pb], f.Record.Replicas[pc] = f.Record.Replicas[pb][:0:0], f.Record.Replicas[pc][:0:0]
	delete(f.Record.Replicas, pb)
	delete(f.Record.Replicas, pc)
}

// pair: b is the only voter, I am its learner.
func pair(f *Facts) {
	f.Directory.Voters, f.Directory.Learners = []record.MemberID{0xb1}, []record.MemberID{0xa1}
	delete(f.Record.Replicas, pc)
}

// bGone: b's VM is proven gone, with its disk.
func bGone(f *Facts) {
	f.lists("101", "103")
	for _, l := range []*Listing{&f.Compute.First, &f.Compute.Second} {
		l.Disks = []string{"d1", "d3"}
	}
}

// tookEmpty: this boot has taken an incarnation on the empty disk.
func tookEmpty(f *Facts) {
	f.incarnation(pa, 2, "101", "d1", 1, 0)
	f.Record.Replicas[pa][1].EmptyDisk = true
	f.Agent.ClusterUID, f.Agent.Replica, f.Agent.InstanceID, f.Agent.BootID, f.Agent.Incarnation = "uid", pa, "101",
		"boot1", 2
}

// endedByNoOrder: agent.json says stopped, as an earlier version wrote it, and neither an order nor the record shows
// why.
func endedByNoOrder(f *Facts) { f.Agent.Phase = PhaseStopped }

// successorListed: the list has a voter of this place whose instance the record does not know.
func successorListed(f *Facts) {
	f.quorum(entry(pb, "102", 0xb1), entry(pc, "103", 0xc3), entry(pa, "201", 0xa9))
}

// twoVoters by accident.
func twoVoters(f *Facts) {
	f.Directory.Voters = []record.MemberID{0xa1, 0xb1}
	delete(f.Record.Replicas, pc)
}

// room is a data disk of 20 GiB, and the size of the database of whoever answers.
func room(free, database int64) func(*Facts) {
	return func(f *Facts) {
		f.Room = Room{Free: free, Total: 20 << 30}
		for i := range f.Answers {
			f.Answers[i].Database = database
		}
	}
}

func leaveMe(f *Facts)   { f.order(record.Order{Kind: record.OrderLeave, Place: &pa}) }
func removedMe(f *Facts) { f.quorum(entry(pb, "102", 0xb1), entry(pc, "103", 0xc3)) }
func pause(f *Facts)     { f.order(record.Order{Kind: record.OrderPause}) }

var memberCases = []rowCase{
	{"a snapshot is left: one wanted, empty, nobody answers", from(three, wiped, oneWanted, tookEmpty), 24, ActWait,
		"restore-offered"},
	{"a snapshot is left: one wanted and corrupt", from(three, corrupted, oneWanted), 30, ActWait, "restore-offered"},
	// Three replicas, `replicas 1` is ordered, and all three VMs fail before two have left: the first that returns has
	// an empty disk, and two disks hold everything.
	{"a snapshot is left, but another replica of the epoch could hold newer data",
		from(three, wiped, oneWanted, tookEmpty, func(f *Facts) { f.incarnation(pb, 1, "102", "d2", 1, 0xb1) }), 24,
		ActWait, "no-quorum-empty-disk"},
	{"a snapshot is left, and the own disk that held everything is, detached", from(three, wiped, oneWanted,
		func(f *Facts) { f.recreate("d9"); f.lists("201") }), 24, ActTakeIncarnation, ""},
	{"a snapshot is left, but only agent.json is lost: the directory holds more",
		from(three, oneWanted, func(f *Facts) { f.Agent = AgentFile{} }), 30, ActWait, "needed-but-broken"},
	{"a warm copy is left: the voter is gone with its disk, and the learner starts and offers",
		from(three, pair, bGone), 28, ActStart, "restore-offered"},
	{"a warm copy is left, but the log says that another voter was promoted", from(three, pair, bGone, func(f *Facts) {
		f.Directory.Changes = []record.ConfigChange{{Index: 90, Type: "add-voter", MemberID: 0xc3}}
	}), 28, ActStart, "survivors-not-enough"},
	{"a warm copy is left: a young cluster's log begins without a configuration, and the changes in it tell",
		from(three, pair, bGone, func(f *Facts) {
			f.Directory.Voters, f.Directory.Learners = nil, nil
			f.Directory.Changes = []record.ConfigChange{{Index: 1, Type: "add-voter", MemberID: 0xb1},
				{Index: 5, Type: "add-learner", MemberID: 0xa1}}
		}), 28, ActStart, "restore-offered"},
	{"a warm copy is left, but the voter's disk exists", from(three, pair, func(f *Facts) { f.lists("101") }), 28,
		ActStart, "survivor-waits-for-disk"},
	{"22: of two voters one is gone with its disk: the other holds everything",
		from(three, twoVoters, bGone, func(f *Facts) { f.Policy.Survivors = true }), 22, ActOrderRestore, ""},
	{"22: not turned on: it starts and offers", from(three, twoVoters, bGone), 28, ActStart, "restore-offered"},
	{"22: not while the gone voter's disk exists: it starts and waits", from(three, twoVoters,
		func(f *Facts) { f.Policy.Survivors = true; f.lists("101") }), 28, ActStart, "survivor-waits-for-disk"},
	{"22: not with one of three: two acknowledged without it", from(three, bGone, func(f *Facts) {
		f.Policy.Survivors = true
		f.lists("101")
		f.Compute.First.Disks, f.Compute.Second.Disks = []string{"d1"}, []string{"d1"}
	}), 28, ActStart, "survivors-not-enough"},
	{"22: the same while it runs: it stops first, and then knows which changes its log holds", from(three, twoVoters,
		bGone, func(f *Facts) { f.Policy.Survivors = true; f.Directory.Running = true }), 22, ActStop, ""},
	{"22: not right after a change: what follows it can have been acknowledged by a quorum of the configuration before",
		from(three, bGone, func(f *Facts) {
			f.Policy.Survivors = true
			f.lists("101", "103")
			f.Compute.First.Disks, f.Compute.Second.Disks = []string{"d1", "d3"}, []string{"d1", "d3"}
			f.stopped(pc, 1, 0xc3, 0)
			f.Directory.Changes = []record.ConfigChange{{Index: 100, Type: "remove", MemberID: 0xc3}}
		}), 28, ActStart, "survivors-not-enough"},
	{"22: changes of long ago are no configuration any more", from(three, bGone, func(f *Facts) {
		f.Policy.Survivors = true
		f.Directory.Voters = []record.MemberID{0xc3}
		f.stopped(pc, 1, 0xc3, 0)
		f.Directory.Changes = []record.ConfigChange{{Index: 1, Type: "add-voter", MemberID: 0xa1},
			{Index: 2, Type: "add-voter", MemberID: 0xb1},
			{Index: 3, Type: "remove", MemberID: 0xc3}, {Index: 4, Type: "add-learner", MemberID: 0xd1},
			{Index: 5, Type: "remove", MemberID: 0xd1}}
	}), 22, ActOrderRestore, ""},
	{"22: not when a promotion in my log may have committed without me", from(three, twoVoters, bGone, func(f *Facts) {
		f.Policy.Survivors = true
		f.incarnation(pc, 1, "103", "d3", 1, 0xc3)
		f.Directory.Commit = 99
		f.Directory.Changes = []record.ConfigChange{{Index: 100, Type: "add-voter", MemberID: 0xc3}}
	}), 28, ActStart, "survivors-not-enough"},

	{"left: an empty disk with a quorum stays out", from(three, wiped, withQuorum, leaveMe), RowLeft, ActWait, "left"},
	{"left: a first boot that is ordered to leave does not seed", from(blank, leaveMe), RowLeft, ActWait, "left"},
	{"paused: a join waits", from(three, wiped, withQuorum, pause), RowPaused, ActWait, "paused"},
	{"paused: a pause that ran out holds nothing back", from(three, wiped, withQuorum, func(f *Facts) {
		until := t0.Add(-time.Second)
		f.order(record.Order{Kind: record.OrderPause, Until: &until})
	}), 23, ActTakeIncarnation, ""},
	{"paused: without that order it waits", from(three, removedMe, pause), RowPaused, ActWait, "paused"},
	{"paused: what was removed by order is put away all the same", from(three, removedMe, leaveMe, pause), 26,
		ActArchive, ""},
	{"paused: then it stays out", from(three, wiped, withQuorum, leaveMe, pause), RowLeft, ActWait, "left"},
	{"paused: a start does not wait", from(three, withQuorum, pause), 25, ActStart, ""},

	{"23: join step 1, a new VM takes an incarnation", from(three, wiped, withQuorum,
		func(f *Facts) { f.recreate("d9") }), 23, ActTakeIncarnation, ""},
	{"23: join step 1, a disk emptied in place on the same VM takes a new one", from(three, wiped, withQuorum), 23,
		ActTakeIncarnation, ""},
	{"23: join step 2, the former member of my place is removed", from(three, joining("", 0, false),
		alsoListed(entry(pa, "101", 0xa1))), 23, ActRemoveMember, ""},
	{"23: join step 2, an entry whose add was not answered is removed", from(three, joining(PhaseAdding, 0, false),
		alsoListed(added(0xa2))), 23, ActRemoveMember, ""},
	{"23: join step 2, an added entry that has a name has started: removed",
		from(three, joining(PhaseAdded, 0xa2, false), alsoListed(namedLearner())), 23, ActRemoveMember, ""},
	{"23: join step 2, an incarnation that has ended is not used for the entry that it added",
		from(three, joining(PhaseAdded, 0xa2, false), alsoListed(added(0xa2)),
			func(f *Facts) { f.stopped(pa, 2, 0xa2, 0) }), 23, ActTakeIncarnation, ""},
	{"23: join step 3", from(three, joining("", 0, false)), 23, ActMarkAdding, ""},
	{"23: join step 3, a phase of another epoch says nothing", from(three, joining(PhaseAdding, 0, false),
		func(f *Facts) { f.Agent.Epoch = 0 }), 23, ActMarkAdding, ""},
	{"23: join step 4", from(three, joining(PhaseAdding, 0, false)), 23, ActAddLearner, ""},
	{"23: join step 3, not where a copy of the state does not fit", from(three, joining("", 0, false),
		room(1<<30, 20<<30)), 23, ActWait, "no-room"},
	{"23: join step 4, nor there", from(three, joining(PhaseAdding, 0, false), room(1<<30, 20<<30)), 23, ActWait,
		"no-room"},
	{"23: join step 4, the leader's database counts", from(three, joining(PhaseAdding, 0, false), room(1<<30, 20<<30),
		func(f *Facts) {
			f.Answers = append(f.Answers, Answer{Place: pc, Reach: ReachAnswers, ClusterID: 0xc1, Database: 512 << 20,
				Leads: true})
		}), 23, ActAddLearner, ""},
	{"23: join step 4, without the leader's the smallest", from(three, joining(PhaseAdding, 0, false),
		room(1<<30, 20<<30), func(f *Facts) {
			f.Answers = append(f.Answers, Answer{Place: pc, Reach: ReachAnswers, ClusterID: 0xc1, Database: 512 << 20})
		}), 23, ActAddLearner, ""},
	{"23: join step 4, what a member of another cluster has says nothing", from(three, joining(PhaseAdding, 0, false),
		room(1<<30, 0), func(f *Facts) {
			f.Answers = append(f.Answers, Answer{Place: pc, Reach: ReachAnswers, ClusterID: 0xc9, Database: 20 << 30,
				Leads: true})
		}), 23, ActAddLearner, ""},
	{"23: join step 4, where it fits", from(three, joining(PhaseAdding, 0, false), room(1<<30, 1<<30-JoinSpare)), 23,
		ActAddLearner, ""},
	{"23: join step 4, where it does not by a byte", from(three, joining(PhaseAdding, 0, false),
		room(1<<30, 1<<30-JoinSpare+1)), 23, ActWait, "no-room"},
	{"23: join step 4, where the disk's room is not known", from(three, joining(PhaseAdding, 0, false), room(0, 20<<30),
		func(f *Facts) { f.Room = Room{} }), 23, ActAddLearner, ""},
	{"23: join step 2, a former member is removed all the same", from(three, joining("", 0, false),
		alsoListed(entry(pa, "101", 0xa1)), room(1<<30, 20<<30)), 23, ActRemoveMember, ""},
	{"23: join step 7, one that was added goes on", from(three, joining(PhaseAdded, 0xa2, false),
		alsoListed(added(0xa2)), room(1<<30, 20<<30)), 23, ActConfirmIncarnation, ""},
	{"23: join step 6, another member does not list it yet", from(three, joining(PhaseAdded, 0xa2, false),
		alsoListed(added(0xa2)), func(f *Facts) {
			f.Answers = append(f.Answers, Answer{Place: pc, InstanceID: "103", Reach: ReachAnswers, ClusterID: 0xc1,
				Members: []Member{entry(pb, "102", 0xb1)}})
		}), 23, ActWait, "join-not-seen-by-all"},
	{"23: join step 7", from(three, joining(PhaseAdded, 0xa2, false), alsoListed(added(0xa2))), 23,
		ActConfirmIncarnation, ""},
	{"23: join step 8", from(three, joining(PhaseAdded, 0xa2, true), alsoListed(added(0xa2))), 23, ActStartJoined, ""},
	{"23: join step 8, not under an incarnation that was confirmed for another member",
		from(three, joining(PhaseAdded, 0xa2, true), alsoListed(added(0xa2)),
			func(f *Facts) { f.Record.Replicas[pa][1].Started.MemberID = 0xa9 }), 23, ActTakeIncarnation, ""},
	{"23: a crash after step 8 before etcd wrote: the incarnation was confirmed for that member, the next member " +
		"takes the next",
		from(three, joining(PhaseStarted, 0xa2, true), alsoListed(added(0xa2))), 23, ActTakeIncarnation, ""},

	{"23: an entry of this place that the record does not know yet is its successor's, and stays",
		from(three, wiped, successorListed), 23, ActWait, "list-newer-than-record"},
	{"23: the same once a list was read before the record: it is of the past", from(three, wiped, successorListed,
		func(f *Facts) {
			f.ListedBefore = map[record.MemberID]string{0xa9: pa.String() + ".201"}
		}), 23, ActTakeIncarnation, ""},
	{"29: nor does a broken disk remove what runs under its id on another", from(three, corrupted, func(f *Facts) {
		f.quorum(entry(pa, "201", 0xa1), entry(pb, "102", 0xb1), entry(pc, "103", 0xc3))
	}), 29, ActWait, "list-newer-than-record"},
	{"24: empty, no quorum: an incarnation shows who stands here, and nothing is said of the member",
		from(three, wiped), 24, ActTakeIncarnation, ""},
	{"24: then wait", from(three, wiped, tookEmpty), 24, ActWait, "no-quorum-empty-disk"},
	{"24: empty, members answer without a quorum: never seed", from(three, wiped, tookEmpty,
		func(f *Facts) { f.answers(ReachAnswers) }), 24, ActWait, "no-quorum-empty-disk"},
	{"24: none is taken before the former VM is silent: it would stop, and may be needed",
		from(three, wiped, func(f *Facts) { f.recreate("d9"); f.lists("101", "201", "102", "103") }), 24, ActWait,
		"no-quorum-empty-disk"},
	{"24: the disk that comes back after that goes on", from(three, tookEmpty, func(f *Facts) {
		f.Agent.Incarnation, f.Me.BootID = 1, "boot3"
	}), 28, ActTakeIncarnation, ""},
	{"stopped-id: with a quorum it is removed", from(three, withQuorum, endedByNoOrder), RowStoppedID, ActRemoveMember,
		""},
	{"stopped-id: without one it waits", from(three, endedByNoOrder), RowStoppedID, ActWait, "stopped-id"},
	{"stopped-id: what an earlier version said, and the record has, is shown: it goes on",
		from(three, endedByNoOrder, func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }), 28, ActTakeIncarnation, ""},
	{"stopped-id: a successor's word, by an earlier version, is none", from(three, func(f *Facts) {
		f.stopped(pa, 1, 0xa1, 0)
		f.last().Stopped[0].InstanceID = "201"
	}), 28, ActStart, ""},

	{"25: valid and listed, the agent restarted: start", from(three, withQuorum), 25, ActStart, ""},
	{"25: after a reboot: a new incarnation first", from(three, withQuorum, reboot), 25, ActTakeIncarnation, ""},
	{"25: taken: confirm", from(three, withQuorum, reboot, func(f *Facts) {
		f.Record.Replicas[pa] = append(f.Record.Replicas[pa], record.Incarnation{Place: pa, Number: 2,
			InstanceID: "101", BootID: "boot2", Epoch: 1, DiskID: "d1"})
		f.Agent.Incarnation = 2
	}), 25, ActConfirmIncarnation, ""},
	{"25: a new VM on the same disk keeps the member", from(three, withQuorum, func(f *Facts) { f.recreate("d1") }), 25,
		ActTakeIncarnation, ""},
	{"25: in a cluster of the minor version before, which is how members are upgraded",
		from(three, withQuorum, func(f *Facts) {
			f.EtcdVersion, f.ClusterVersion, f.MemberVersion = "3.7.3", "3.6.0", "3.6.16"
		}), 25, ActStart, ""},
	{"26: removed while away: archive", from(three, removedMe), 26, ActArchive, ""},
	// Two voters, one is ordered to leave; the leader commits that, tells the other, and loses its power before its own
	// disk has the commit index. Started, etcd would read its own removal and exit, for ever.
	{"27: its own log says that its removal was committed: wait", from(three, func(f *Facts) {
		f.answers(ReachAnswers)
		f.Directory.Changes = []record.ConfigChange{{Index: f.Directory.Commit, Type: "remove",
			MemberID: f.Directory.MemberID}}
	}), 27, ActWait, "removed"},
	{"28: a removal of it that may not have been committed, or of another, says nothing", from(three, func(f *Facts) {
		f.answers(ReachAnswers)
		f.Directory.Changes = []record.ConfigChange{{Index: f.Directory.Commit, Type: "remove", MemberID: 0xb1},
			{Index: f.Directory.Commit + 1, Type: "remove", MemberID: f.Directory.MemberID}}
	}), 28, ActStart, ""},
	{"27: a peer says removed and there is no quorum: wait",
		from(three, func(f *Facts) { f.answers(ReachAnswers); f.Answers[0].Removed = true }), 27, ActWait, "removed"},
	{"28: valid and nobody answers: start, it is needed", three, 28, ActStart, ""},
	{"28: valid, peers without quorum: start, it is needed", from(three, func(f *Facts) { f.answers(ReachTCP) }), 28,
		ActStart, ""},
	// The marker may be lost later, as by a repair of the file system: a needed member must not look half-made for it.
	{"28: seeded and formed, and the agent died before it wrote started",
		from(three, func(f *Facts) { f.Agent.Phase = PhaseSeeding; f.Directory.Marker = false }), 28, ActStart, ""},
	{"29: corrupt, with a quorum: remove the own id", from(three, corrupted, withQuorum), 29, ActRemoveMember, ""},
	{"29: then archive", from(three, corrupted, func(f *Facts) { f.quorum(entry(pb, "102", 0xb1)) }), 29, ActArchive,
		""},
	{"29: an entry of another place is never removed",
		from(three, corrupted, func(f *Facts) { f.quorum(entry(pb, "102", 0xa1)) }), 29, ActArchive, ""},
	{"29: rolled back, with a quorum",
		from(three, withQuorum, func(f *Facts) { f.Record.Marks[0xa1] = record.Mark{Epoch: 1, Term: 3, Applied: 101} }),
		29, ActRemoveMember, ""},
	{"29: the leader has its word for more than it holds", from(three, withQuorum, acknowledged(101)), 29,
		ActRemoveMember, ""},
	{"26: then it is not listed, and no leader knows anything of it",
		from(three, func(f *Facts) { f.quorum(entry(pb, "102", 0xb1)) }), 26, ActArchive, ""},
	{"29: etcd has said three times that it cannot run on it", from(three, withQuorum, ended(3, outOfRange)), 29,
		ActRemoveMember, ""},
	{"25: twice is not enough", from(three, withQuorum, ended(2, outOfRange)), 25, ActStart, ""},
	{"25: a port that is taken is not the directory's fault", from(three, withQuorum,
		ended(9, "start etcd: listen tcp 10.0.0.1:2380: bind: address already in use")), 25, ActStart, ""},
	{"25: a full disk is not", from(three, withQuorum, ended(9, "failed to save raft entries: write 0.wal: no space "+
		"left on device")), 25, ActStart, ""},
	{"25: a bad certificate is not", from(three, withQuorum, ended(9, "start etcd: open peer.pem: no such file or "+
		"directory")), 25, ActStart, ""},
	{"28: without a quorum it is started again: it may be needed", from(three, ended(9, outOfRange)), 28, ActStart, ""},
	{"29: an entry of another place is not removed for it", from(three, ended(3, outOfRange),
		func(f *Facts) { f.quorum(entry(pb, "102", 0xa1)) }), 29, ActArchive, ""},
	{"29: not while it is paused", from(three, withQuorum, ended(3, outOfRange),
		func(f *Facts) { f.order(record.Order{Kind: record.OrderPause}) }), RowPaused, ActWait, "paused"},
	{"30: corrupt and no quorum: keep the bytes, say nothing of the member, and wait", from(three, corrupted), 30,
		ActWait, "needed-but-broken"},
	{"30: a directory without agent.json is kept",
		from(three, func(f *Facts) { f.Agent = AgentFile{}; f.stopped(pa, 1, 0xa1, 0) }), 30, ActWait,
		"needed-but-broken"},

	{"running: nothing stops it", from(three, running), RowRunning, ActKeep, ""},
	{"running without a quorum, and it may be an election", from(three, running, func(f *Facts) {
		f.Answers, f.Alone = nil, QuorumPatience-1
	}), RowRunning, ActKeep, ""},
	{"running without a quorum for longer", from(three, running, func(f *Facts) {
		f.Answers, f.Alone = nil, QuorumPatience
	}), RowRunning, ActKeep, "no-quorum"},
	{"running, and nobody can know of a quorum while it opens its database", from(three, running, func(f *Facts) {
		f.Answers, f.Alone, f.Directory.Silent = nil, QuorumPatience, true
	}), RowRunning, ActKeep, "etcd-starts"},
	{"running, and silent beside a quorum", from(three, running, func(f *Facts) { f.Directory.Silent = true }), RowRunning,
		ActKeep, ""},
	{"running beside a quorum, and it may be an election", from(three, running, func(f *Facts) {
		f.Directory.Leaderless, f.Unheard = true, QuorumPatience-1
	}), RowRunning, ActKeep, ""},
	{"running beside a quorum without a leader for longer", from(three, running, func(f *Facts) {
		f.Directory.Leaderless, f.Unheard = true, QuorumPatience
	}), RowRunning, ActKeep, "peers-do-not-connect"},
	{"running: a peer that cannot be read does not matter", from(three, func(f *Facts) { f.Directory.Running = true }),
		RowRunning, ActKeep, ""},
}

func TestFaultsComeBeforeAnyRow(t *testing.T) {
	cases := map[string]func(*Facts){
		"the data disk is not mounted":   func(f *Facts) { f.Disk.Mounted = false },
		"a disk of another cluster":      func(f *Facts) { f.Agent.ClusterUID = "other" },
		"an instance of another project": func(f *Facts) { f.Me.ProjectNumber = "8" },
		"an instance of another region":  func(f *Facts) { f.Me.Zone = "europe-west1-b" },
		"a clock before the inception":   func(f *Facts) { f.Now = t0.Add(-2 * time.Hour) },
		"a joiner of a newer minor version than the cluster": func(f *Facts) {
			wiped(f)
			f.EtcdVersion, f.ClusterVersion, f.MemberVersion = "3.7.3", "3.6.0", "3.6.16"
		},
		"a joiner of an older minor version than the members, whose cluster has not agreed on theirs yet": func(
			f *Facts) {
			wiped(f)
			f.EtcdVersion, f.ClusterVersion, f.MemberVersion = "3.6.16", "3.0.0", "3.7.3"
		},
		"an epoch for another number of learners": func(f *Facts) { f.Record.Epochs[0].Claim.MaxLearners = 5 },
		"a claim for another number of learners": func(f *Facts) {
			f.Record.Epochs[0].Closed = &record.Closed{}
			f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceSnapshot, Order: 1})
			f.last().Claim.MaxLearners = 3
		},
		"an etcd below the cluster's version": func(f *Facts) {
			f.EtcdVersion, f.ClusterVersion = "3.6.14",
				"3.7.3"
		},
		"an etcd directory that cannot be read at": func(f *Facts) {
			f.Directory.ReadErr = errors.New(
				"input/output error")
		},
	}
	for name, change := range cases {
		f := from(three, change)()
		p := Decide(f.Now, Classify(f))
		if p.Row != RowFault || p.Act != ActHalt || p.Blocked == nil || p.Blocked.Reason == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// What proves no fault: a record that was not read, and members of a version that their cluster has not agreed on yet.
func TestWhatIsNoFault(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"a disk of another cluster, by a record that cannot be read": func(f *Facts) {
			unreadable(f)
			f.Agent.ClusterUID = "other"
		},
		"a directory with an etcd of the cluster's version, below that of the members": func(f *Facts) {
			f.EtcdVersion, f.ClusterVersion, f.MemberVersion = "3.6.16", "3.6.0", "3.7.3"
		},
	} {
		if o := Classify(from(three, change)()); o.Fault != "" {
			t.Errorf("%s: %s", name, o.Fault)
		}
	}
}

// An etcd that can neither run nor join here is told the first.
func TestAFaultOfVersionsSaysWhatIsTooOld(t *testing.T) {
	f := from(three, wiped, func(f *Facts) {
		f.EtcdVersion, f.ClusterVersion, f.MemberVersion = "3.6.16", "3.7.0", "3.7.3"
	})()
	if o := Classify(f); !strings.HasSuffix(o.Fault, "the cluster's version is 3.7.0: this image is too old") {
		t.Error(o.Fault)
	}
}

// A stopped/ object that carries the end of a log is a survivor to row 22; only a valid directory may speak.
func TestOnlyAValidDirectoryWritesItsLogIntoStopped(t *testing.T) {
	if p := decided(from(three, isClosed)()); p.Act != ActWriteStopped || !p.WithLog || p.MemberID != 0xa1 {
		t.Errorf("valid directory: %+v", p)
	}
	if p := decided(from(three, isClosed, corrupted)()); p.Act != ActWriteStopped || p.WithLog || p.MemberID != 0 {
		t.Errorf("corrupt directory: %+v", p)
	}
	if p := decided(from(three, isClosed, wiped, tookEmpty)()); p.Act != ActWriteStopped || p.WithLog ||
		p.MemberID != 0 || p.Incarnation != 2 {
		t.Errorf("empty disk: %+v", p)
	}
}

func TestRow22NamesTheNewestLog(t *testing.T) {
	f := from(three, bGone, func(f *Facts) {
		f.Policy.Survivors = true
		f.Directory.Voters = []record.MemberID{0xa1, 0xb1, 0xc3, 0xd1}
		f.incarnation(pb, 2, "102", "d2", 1, 0xb1)
		f.incarnation(pb, 9, "109", "d9", 1, 0xd1)
		f.Record.Epochs[0].Stopped = []record.Stopped{
			{Place: pc, Incarnation: 1, MemberID: 0xc3, Term: 4, LastIndex: 50, Voters: f.Directory.Voters},
			{Place: pb, Incarnation: 9, MemberID: 0xd1, InstanceID: "109"},
		}
	})()
	p := decided(f)
	if p.Row != 22 || p.Order.Replica != pc || p.Order.Term != 4 || p.Order.Commit != 50 ||
		p.Order.From.MemberID != 0xc3 {
		t.Errorf("%+v %+v", p, p.Order)
	}
}

// A member that nobody votes for raises its term with each try, and does not hold more by that.
func TestRow22DoesNotTakeAHigherTermForALongerLog(t *testing.T) {
	f := from(three, bGone, func(f *Facts) {
		f.Policy.Survivors = true
		f.Directory.Term, f.Directory.Voters = 9, []record.MemberID{0xa1, 0xb1, 0xc3, 0xd1}
		f.incarnation(pb, 9, "109", "d9", 1, 0xd1)
		f.Record.Epochs[0].Stopped = []record.Stopped{
			{Place: pc, Incarnation: 1, MemberID: 0xc3, Term: 3, LastIndex: 101, Voters: f.Directory.Voters},
			{Place: pb, Incarnation: 9, MemberID: 0xd1, InstanceID: "109"},
		}
	})()
	if p := decided(f); p.Row != 22 || p.Order.Replica != pc || p.Order.Term != 3 || p.Order.Commit != 101 {
		t.Errorf("%+v %+v", p, p.Order)
	}
}

// A running member whose log, as it was read before the start, says that survivors are not enough is not stopped to
// find that out again.
func TestRow22RemembersWhatWasReadOfARunningMember(t *testing.T) {
	f := from(three, twoVoters, bGone, func(f *Facts) {
		f.Policy.Survivors = true
		f.incarnation(pc, 1, "103", "d3", 1, 0xc3)
	})()
	stopped := f.Directory
	stopped.Commit, stopped.Changes = 99, []record.ConfigChange{{Index: 100, Type: "add-voter", MemberID: 0xc3}}
	says := Directory{Running: true, Exists: true, MemberID: stopped.MemberID, ClusterID: stopped.ClusterID, Term: 3,
		Commit: 99, Voters: stopped.Voters}
	f.Directory = says
	if p := decided(f); p.Act != ActStop {
		t.Errorf("nothing was read: %+v", p)
	}
	f.Directory = says.AsRead(stopped)
	if p := decided(f); p.Act != ActKeep || p.Blocked == nil || p.Blocked.Name != "survivors-not-enough" {
		t.Errorf("read: %+v", p)
	}
	says.Voters = append(says.Voters, 0xd1) // what it applied since is not in what was read
	if d := says.AsRead(stopped); d.Changes != nil {
		t.Errorf("%+v", d)
	}
}

func decided(f Facts) Plan { return Decide(f.Now, Classify(f)) }

// A lone voter has no others that could be started or lost.
func TestTheOnlyVoterIsNotToldOfOthers(t *testing.T) {
	f := three()
	running(&f)
	f.Answers, f.Alone = nil, QuorumPatience
	f.Directory.MemberID, f.Directory.Voters = 0xa1, []record.MemberID{0xa1}
	p := Decide(f.Now, Classify(f))
	if p.Blocked == nil || p.Blocked.Name != WaitNoQuorum || !strings.Contains(p.Blocked.Reason, "only voter") ||
		strings.Contains(p.Blocked.Reason+p.Blocked.Next, "replica") {
		t.Errorf("it waits for %+v", p.Blocked)
	}
}
