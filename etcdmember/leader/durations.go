package leader

import "time"

// This page has the durations by which the rows of the leader loop decide.

const (
	// PollGap and pollStale bound the time between the two polls that a promotion needs: what two ticks of 250 ms are,
	// less what a ticker may be early, and never a poll from long ago.
	PollGap   = 200 * time.Millisecond
	pollStale = 5 * time.Second
	// startTime is how long a learner may take from its confirmed incarnation to be heard of; stallTime how long it may
	// be behind without moving, and how long an entry without a confirmed incarnation may stand.
	startTime = 2 * time.Minute
	stallTime = 5 * time.Minute
	// unheardTime is how long the leader itself must not have heard of a learner that is taken for never started. One
	// that starts is heard of within seconds, before it has the state; what its VM's clock said may be an hour wrong.
	unheardTime = 30 * time.Second
)

const (
	// DeadAfter is how long a voter is unreachable before its proven death is acted on: a proof can be about a VM that
	// is being recreated.
	DeadAfter = time.Minute
	// diskWait is how long the disk of a dead voter may take to come back: attached again, it needs a second instead of
	// a copy.
	diskWait = 10 * time.Minute
)

const (
	// SnapshotYoung is the age up to which a snapshot counts as taken before a planned change.
	SnapshotYoung = 15 * time.Minute
	// leavePatience is how long an order to leave waits for a snapshot: no snapshot may hold back what an operator
	// wants for longer. A voter sees the order within 10 s, and a small database is saved within one.
	leavePatience = time.Minute
	// drainPatience is how long an order waits until the replica whose member it removes serves nobody any more: it
	// reads the order within 10 s, leaves the load balancer within 60 s and settles, and its apiserver stops within
	// 30 s.
	drainPatience = 2 * time.Minute
)

// StaysDrained is how long a replica that serves nobody any more, because it is ordered to leave, goes on with that
// while too few other voters answer for it to be removed. Coming back it starts again.
const StaysDrained = time.Minute

// defragPause and defragAgain are how long after a defragmentation the next may follow, where a compaction has freed
// that much since, and where it has not. One that failed lets the others go first.
const (
	defragPause = 10 * time.Second
	defragAgain = 10 * time.Minute
)

// A learner that is full is defragmented by its agent learnerPause after that is known, where there is something to
// give back: a leader that still sends it the state has begun by then, and that goes first. After learnerPatience it is
// tried without: a compaction is done within seconds, and may not be counted yet.
const (
	learnerPause    = 3 * time.Second
	learnerPatience = 30 * time.Second
)
