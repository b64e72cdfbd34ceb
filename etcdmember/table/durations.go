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

// The purge of archives.

const (
	// ArchiveAge is how much younger than this replica's incarnation a snapshot must be. It is many times what a saving
	// takes, and the day in which a person can examine what was put away.
	ArchiveAge = 24 * time.Hour
	// observationAge is how old the observation may be that nothing is amiss: a running replica makes one each 8 s.
	observationAge = time.Minute
)
