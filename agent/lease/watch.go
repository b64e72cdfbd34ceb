package lease

import "time"

// gapLimit is the longest time between two observations that count as one piece. While the apiserver did not answer,
// nobody could renew either.
const gapLimit = 10 * time.Second

// Watch observes one lease. Times are by a clock of this machine that nobody sets, so neither a wrong clock of the
// holder nor a step of one's own makes a lease old.
type Watch struct {
	last Seen
	// changed is when the lease was first seen as it is now, or when the observation began anew after a gap. seen is
	// the newest observation.
	changed, seen time.Duration
	known         bool
	lost          Loss
}

// Loss is the end of a former holder's time.
type Loss struct {
	// By is who held the lease; empty: no change of the holder was seen.
	By string
	// At is when the change was seen, Renewed when the former holder was last seen to renew.
	At, Renewed time.Duration
}

// Note takes an observation.
func (w *Watch) Note(now time.Duration, s Seen) {
	gap := w.known && now-w.seen > gapLimit
	switch {
	case !w.known:
		w.changed = now
	case s.Holder != w.last.Holder:
		w.lost = Loss{w.last.Holder, now, w.changed}
		w.changed = now
	case gap, !s.Renewed.Equal(w.last.Renewed):
		w.changed = now
	}
	w.last, w.seen, w.known = s, now, true
}

// Seen is the newest observation; false: there is none.
func (w *Watch) Seen() (Seen, bool) { return w.last, w.known }

// Unchanged is how long the lease was not renewed while it was observed without a gap.
func (w *Watch) Unchanged() time.Duration { return w.seen - w.changed }

// Age is how long ago the lease was last seen to change.
func (w *Watch) Age(now time.Duration) time.Duration { return now - w.changed }

// Lost is the newest change of the holder.
func (w *Watch) Lost() Loss { return w.lost }
