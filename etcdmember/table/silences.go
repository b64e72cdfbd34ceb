package table

import "time"

// Silences is since when a running member has lacked what counts only once it has been lacking for a while, at each
// observation. Zero: it did not at the last one.
type Silences struct {
	// Alone: it has no quorum. Unheard: it hears of no leader, while there is a quorum.
	Alone, Unheard time.Time
}

// Note takes one more observation in, and says in it how long it has been so.
func (s *Silences) Note(f *Facts) {
	quorum := AnswersQuorum(*f)
	f.Alone = lasts(&s.Alone, f.Directory.Running && !quorum, f.Now)
	f.Unheard = lasts(&s.Unheard, f.Directory.Leaderless && quorum, f.Now)
}

// lasts is how long something has been so at each observation. since is when it was first observed.
func lasts(since *time.Time, so bool, now time.Time) time.Duration {
	if !so {
		*since = time.Time{}
		return 0
	}
	if since.IsZero() {
		*since = now
	}
	return now.Sub(*since)
}
