package snapshot

import "time"

// This page has the durations that saving and keeping snapshots name.

// Whose turn it is.

const (
	// firstSnapshot is how long after its epoch was formed the first snapshot is taken, where the interval is not
	// shorter still.
	firstSnapshot = 10 * time.Minute
	// scheduleStep is how long each further replica waits for those whose turn comes before its own: longer than a
	// saving takes.
	scheduleStep = 10 * time.Minute
	// orderStep is the same where a planned change waits for the snapshot.
	orderStep = time.Minute
)

const (
	// clockSkew is how far a saver's clock may be ahead of this one's.
	clockSkew = 5 * time.Minute
	// clockSlack is how far ahead of the store's clock a saver's may be and is still believed.
	clockSlack = 5 * time.Minute
)

// The saving.

const (
	// snapshotAskTimeout bounds the questions before the database is sent.
	snapshotAskTimeout = 5 * time.Second
	// sendStall ends a sending of which nothing came.
	sendStall = time.Minute
)

// The retention.

// sweepAge is how old an incomplete snapshot must be for its saver to have died. The slowest saving takes an hour.
const sweepAge = 24 * time.Hour
