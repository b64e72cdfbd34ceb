package table

import "time"

// This page has the durations by which the table decides, in the order of its rows.

// Seeding and joining.

// strangerGap is how long somebody must be seen to answer, with the record read again, before it is not a race with a
// seeder whose claim or outcome was only just written.
const strangerGap = 5 * time.Second

// portPatience is how long no peer's port may have answered before a joining replica says so: a member that is started
// again listens within two or three seconds, and a person must not be sent to the firewall for that.
const portPatience = 5 * time.Second

// The distance between two starts of a member that does not stay up while the boot still decides on it: the first one
// again is at once, then it doubles. Once the boot is done the supervisor has its own.
const (
	firstDistance = time.Second
	mostDistance  = 30 * time.Second
	// mostJoinDistance is for joins: each try takes an incarnation, which stays in the record for ever, and an entry in
	// the list of members.
	mostJoinDistance = 10 * time.Minute
	// stayedUp is how long a member has to have run for its next end not to count with the ones before.
	stayedUp = time.Minute
	// soonAfter is the longest time between two ends of one crash streak: the pauses before a start go up to a minute.
	soonAfter = 3 * time.Minute
)

// The running member.

// QuorumPatience is longer than any election.
const QuorumPatience = 5 * time.Second

// What proves that somebody is gone or silent.

const (
	// MarkPeriod is the time between two marks of how far this member has certainly come; docs/membership.md.
	MarkPeriod = 30 * time.Second
	// MarkSilence is how long no mark of a member may have been written before it counts as silent: four that were due.
	MarkSilence = 4 * MarkPeriod
	// StopSilence is how long ago the API must say that a VM was stopped, where not we have stopped it. It is longer
	// than the time in which GCE notices that a host is gone (90 to 330 s) and the two minutes that a guest has to shut
	// down.
	StopSilence = 450 * time.Second
	// listingGap is the least time between the two listings that prove that an instance is gone: one that is being made
	// again under the same name can be missing from one of them.
	listingGap = 10 * time.Second
)

// The leader's rows.

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
)

// defragPause and defragAgain are how long after a defragmentation the next may follow, where a compaction has freed
// that much since, and where it has not. One that failed lets the others go first.
const (
	defragPause = 10 * time.Second
	defragAgain = 10 * time.Minute
)

// The purge of archives.

const (
	// ArchiveAge is how much younger than this replica's incarnation a snapshot must be. It is many times what a saving
	// takes, and the day in which a person can examine what was put away.
	ArchiveAge = 24 * time.Hour
	// observationAge is how old the observation may be that nothing is amiss: a running replica makes one each 8 s.
	observationAge = time.Minute
)
