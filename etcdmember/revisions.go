package etcdmember

import "time"

const (
	// historyWindow is the history that a compaction leaves: the apiserver itself keeps the last five minutes for lists that go on page
	// by page and for watches that fell behind.
	historyWindow = 5 * time.Minute
	// revisionPeriod is the time between two samples of the history's revision.
	revisionPeriod = 30 * time.Second
)

// revisions are samples of how far the history had come, oldest first, over a little more than the historyWindow.
type revisions []revisionAt

type revisionAt struct {
	at       time.Time
	revision int64
}

// note takes a sample, if it is time for one.
func (r *revisions) note(now time.Time, revision int64) {
	n := len(*r)
	if revision == 0 || n > 0 && now.Sub((*r)[n-1].at) < revisionPeriod {
		return
	}
	*r = append(*r, revisionAt{now, revision})
	for len(*r) > 1 && now.Sub((*r)[1].at) >= historyWindow {
		*r = (*r)[1:]
	}
}

// old is the newest revision that is known to be older than the historyWindow. Where this agent has not run for so long it is the oldest that
// it knows: a NOSPACE alarm refuses writes, so whoever watches has seen them all by then. 0: none is known.
func (r revisions) old() int64 {
	if len(r) == 0 {
		return 0
	}
	return r[0].revision
}
