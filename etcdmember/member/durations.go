package member

import "time"

// This page has the durations that a member's process and its callers name.

// The start.

const (
	// turnPatience is how long a joining member waits for others that go first. They take 0.1 to 0.3 s; one that was
	// added and never came costs every later joiner this much.
	turnPatience = 2 * time.Second
	// turnPeriod is the time between two polls whether they have started, turnTimeout how long one may take.
	turnPeriod  = 20 * time.Millisecond
	turnTimeout = 200 * time.Millisecond
)

const (
	// alonePeriod is the time between two polls of a member that starts.
	alonePeriod = 5 * time.Millisecond
	// alonePatience bounds them: a member that has nobody to wait for has applied its log by then, and if not, raft's
	// own timer is the way that it leads.
	alonePatience = 500 * time.Millisecond
)

const (
	// firstStallPatience is how long a member may have a leader and all committed entries without serving, the first
	// time.
	firstStallPatience = 400 * time.Millisecond
	// publishedPatience is the same of one whose publication is in what it has applied: etcd says that it serves within
	// a millisecond of that, or not before its second try.
	publishedPatience = 75 * time.Millisecond
	// statusPeriod is the tick at which the child examines itself for a stall; the status itself is computed when
	// asked.
	statusPeriod = 50 * time.Millisecond
)

// The life.

const (
	// storageAnswers is how long a status waits for the storage. It is asked several times a second.
	storageAnswers = 100 * time.Millisecond
	// storagePatience is after how long without an answer the storage counts as stuck for good, where only another
	// start could help. What a slow disk takes lies far below, and ending a member for it makes it slower: it reads its
	// whole database again. 8 GB that caught up from the log on a busy disk left questions unanswered for more than 20
	// s, again and again.
	storagePatience = 2 * time.Minute
)

const (
	// clientHandshakeTimeout is how long a client may take from connecting to speaking gRPC. It is etcd's own for a
	// TLS listener.
	clientHandshakeTimeout = 10 * time.Second
	// formerPatience is how long a client of the release before this one may take for its request.
	formerPatience = 2 * time.Second
)

// peersPeriod is how often the connections to peers are examined, so that a new one is asked after soon, and that one
// which waits for an answer is spared before promptly has passed.
const peersPeriod = 2 * time.Second

// unconfirmed is how long what was sent to a peer may stay unconfirmed by its kernel. Four tries of TCP fit into it,
// and it is less than the 5 s for which a write to a full socket blocks.
const unconfirmed = 3 * time.Second

// progressInterval is etcd's for progress notifications: Kubernetes' consistent reads from its watch cache wait for
// one.
const progressInterval = 5 * time.Second

// dataCheck is the time between two comparisons of the members' whole data: each reads every member's database once.
// The check with each compaction finds nearly all, and this one what changed in a cluster that nobody compacts.
const dataCheck = 8 * time.Hour

// Questions to the member.

// statusTimeout bounds the question for the status. The child is on this machine: one second is a hang.
const statusTimeout = time.Second

// lookPeriod is the time between two looks for news. It is short because of the joins and the failovers that wait for
// their agents, and a look costs some microseconds.
const lookPeriod = 250 * time.Millisecond

// A leader that is to hand over looks successorLooks times, successorPause apart, for whom to: a few heartbeats.
const (
	successorLooks = 10
	successorPause = 50 * time.Millisecond
)

// HandOverTimeout bounds the attempt to give leadership away before a stop. Without it the others elect after a second
// or two.
const HandOverTimeout = 2 * time.Second
