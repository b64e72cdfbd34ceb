package etcdmember

import "time"

// revisions are samples of how far the history had come, oldest first, over a little more than the window.
type revisions struct {
	window  time.Duration
	samples []revisionAt
}

type revisionAt struct {
	at       time.Time
	revision int64
}

// note takes a sample, if it is time for one.
func (r *revisions) note(now time.Time, revision int64) {
	n := len(r.samples)
	if revision == 0 || n > 0 && now.Sub(r.samples[n-1].at) < r.window/revisionShare {
		return
	}
	r.samples = append(r.samples, revisionAt{now, revision})
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= r.window {
		r.samples = r.samples[1:]
	}
}

// old is the newest revision that is known to be older than the window. Where this agent has not run for so long it is
// the oldest that it knows: a NOSPACE alarm refuses writes, so whoever watches has seen them all by then. 0: none is
// known.
func (r *revisions) old() int64 {
	if len(r.samples) == 0 {
		return 0
	}
	return r.samples[0].revision
}
