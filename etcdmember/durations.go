package etcdmember

import (
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
)

// This page has the durations that the membership names, in the order of a replica's life. Those that decide are
// with the rows (package table).

// The boot.

// The pauses of the loop. Boot is a sequence of peers that come up within seconds, so it polls often; listing a bucket
// ten times a second for longer would cost money, so a long wait polls at the pace of the running replica.
const (
	bootPause  = 100 * time.Millisecond
	longPause  = 2 * time.Second
	keepPause  = 8 * time.Second // orders are followed within 10 s: what is read has to be acted on, too
	bootWindow = 15 * time.Second
	errorPause = 500 * time.Millisecond
	// restorePause is the longest pause after a restore whose directory could not be built.
	restorePause = 30 * time.Second
)

// RestartPatience is how long a restart of the agent waits for what this boot of the VM has heard before: the metadata
// server, and the record for row 1. Where they answer, that takes some 0.1 s. The member is down meanwhile. What they
// might have said is made up for: the running replica polls the record, and a new document counts from the next start.
const RestartPatience = 1500 * time.Millisecond

// WaitVoter asks at voterPause while a boot is young, because a promotion takes two polls of 250 ms, and at
// lateVoterPause after that.
const voterPause, lateVoterPause = 50 * time.Millisecond, time.Second

const (
	// serveTimeout bounds a member's way from its start to a linearizable read, servePause is the time between two
	// questions whether it serves.
	serveTimeout = time.Minute
	servePause   = 20 * time.Millisecond
)

// With a quorum, a failed try to accept a restore rests for acceptRest times as long as it took, and for
// mostAcceptRest at most. That a snapshot is damaged is found out by reading all of it: without a rest the replica
// would do nothing else, and with it the leader loop, which waits for that.
const (
	acceptRest     = 10
	mostAcceptRest = 5 * time.Minute
)

// Questions to others.

const (
	// askTimeout is how long one address may take to answer; docs/membership.md.
	askTimeout = 2 * time.Second
	// handshakeTimeout is how long a member that accepts connections may take until TLS and gRPC are agreed on. It
	// takes some 5 ms.
	handshakeTimeout = 700 * time.Millisecond
	// enoughGrace is how long the others may still take once one has answered through quorum. What they say after it is
	// only shown, or, in a join, found out once more by the joining member itself (refreshCluster).
	enoughGrace = 150 * time.Millisecond
)

// A running replica asks each keepPause, by the connections of the time before (lines.go).
const (
	// lineTimeout is a third of the enoughGrace: the rest of it is left to a question over a new connection.
	lineTimeout = 50 * time.Millisecond
	// lineIdle is some keepPauses, lineLife so long that what it costs to connect anew does not count.
	lineIdle = 30 * time.Second
	lineLife = 10 * time.Minute
)

// peerTimeout bounds one question to a peer's port. It answers from memory, also where there is no quorum. Where none
// has answered in time the next question has twice as long, up to mostPeerTimeout: a join waits for an answer, and etcd
// itself waits that long for one.
const (
	peerTimeout     = time.Second
	mostPeerTimeout = 8 * time.Second
)

const (
	// listPeriod is the time between two lists of the Compute API that prove a death.
	listPeriod = 10 * time.Second
	// slowListPeriod is the time between two lists once a voter has been out of reach for longer than the
	// troubleWindow.
	slowListPeriod = time.Minute
	// listTimeout bounds one list: three questions after each other, of which each takes GCE up to some seconds.
	listTimeout = 20 * time.Second
	// listPatience is how long a poll waits for it: while nothing is formed there is nothing else to do.
	listPatience = 5 * time.Second
	// listKept is how old the newest list may be while another is made, and one that nobody has taken yet.
	listKept = 3 * listPeriod
	// listAfter is how long a voter is out of reach before the Compute API is asked whether its VM exists: two lists
	// are there when the minute is over, and a reboot asks nobody.
	listAfter = leader.DeadAfter - 3*listPeriod
)

// Changes of the member list.

const (
	// callTimeout bounds one change of the membership. A change that is not answered may have happened: list again.
	callTimeout = 5 * time.Second
	// firstAddTimeout is for the first try to add this replica. Raft drops a change without a word while another is
	// being applied ("ignoring conf change", raft.go), and replicas that boot together add themselves in the same
	// milliseconds: waiting for the whole callTimeout made such a boot 5.5 s longer. Later tries have all of it,
	// because what takes longer here is a slow cluster.
	firstAddTimeout = time.Second
	// removedIDPause is how long to wait after etcd refused an id as removed: an added member's id is a hash of its
	// URLs and the time in seconds, so removing and adding within one second gives the same id.
	removedIDPause = time.Second
	// Where there are too many learners, or too few voters are connected, several replicas may want the same at once:
	// they spread themselves over the time from firstSpread to lastSpread.
	firstSpread, lastSpread = time.Second, 5 * time.Second
)

// The leader loop.

const (
	// tickPeriod is the tick of noticing everywhere: a new peer, a learner, a member without a leader.
	tickPeriod = 250 * time.Millisecond
	// calmPeriod is the tick of a member of a whole cluster, once it has settled, while there is no news.
	calmPeriod = time.Second
	// toldLately is for how long what a tick was told is good enough to be shown, and for whose turn a snapshot is.
	toldLately = calmPeriod + tickPeriod
	// learnerPeriod is the tick of the leader loop while a learner is on its way. Each asks the child on this machine,
	// and nobody else: the observation follows once the learner has caught up.
	learnerPeriod = 50 * time.Millisecond
	// slowPeriod is the tick while a learner takes longer than bootWindow, or stays one: each observation lists the
	// record. It is below the age that a promotion allows the observation before it (pollStale).
	slowPeriod = 2 * time.Second
	// troubleWindow is how long alarms that stand and voters that are out of reach are observed every slowPeriod; later
	// with the record, at the pace of the running replica. It covers the minute after which a proven death is acted on.
	troubleWindow = 2 * time.Minute
	// leaderPatience is how long a wait of the leader loop must last before it is shown: each join passes through some
	// of them.
	leaderPatience = 3 * time.Second
)

const (
	// historyWindow is the history that a compaction leaves. The apiserver keeps five minutes, for lists that go on
	// page by page and for watches that fell behind; but here writes are refused until there is room, so nothing falls
	// further behind, and a list that has to begin again costs less than minutes without a write. What filled the
	// database in the last seconds is given up by the second compaction.
	historyWindow = 30 * time.Second
	// revisionShare is the part of the window after which another sample is taken.
	revisionShare = 10
	// compactShare is the part of the window for which one compaction counts. As time passes more of the history
	// becomes old.
	compactShare = 5
)

const (
	// taskTimeout bounds a compaction, a defragmentation, or the hashes of all members: 8 GB take half a minute on a
	// slow disk.
	taskTimeout = 5 * time.Minute
	// hashCounts is how long the members' hashes count.
	hashCounts = time.Minute
	// hashAgain is after how long they are asked again where one of those that are heard of has not told a hash that
	// can be compared.
	hashAgain = 10 * time.Second
	// sizeTimeout bounds the question for one member's size.
	sizeTimeout = time.Second
)
