package agent

// nudge asks somebody to do something again: one that is outstanding is enough.
type nudge chan struct{}

func newNudge() nudge { return make(nudge, 1) }

// give returns at once.
func (n nudge) give() {
	select {
	case n <- struct{}{}:
	default: // one is outstanding
	}
}
