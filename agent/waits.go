package agent

import (
	"slices"
	"sync"
	"time"
)

// waits are what this replica waits for beside the rows of the membership's table, in the order in which they began.
type waits struct {
	mu   sync.Mutex
	list []Blocked
}

// begin notes a wait, or a new reason of one, and reports whether that is news. A wait keeps its beginning and its row.
func (w *waits) begin(b Blocked) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.index(b.Name)
	if i < 0 {
		w.list = append(w.list, b)
		return true
	}
	news = w.list[i].Reason != b.Reason
	b.Row, b.Since = w.list[i].Row, w.list[i].Since
	w.list[i] = b
	return news
}

// end forgets a wait, and reports whether there was one.
func (w *waits) end(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.index(name)
	if i >= 0 {
		w.list = slices.Delete(w.list, i, i+1)
	}
	return i >= 0
}

func (w *waits) all() []Blocked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

func (w *waits) index(name string) int {
	return slices.IndexFunc(w.list, func(b Blocked) bool { return b.Name == name })
}

// hold says what is waited for, until release is called. Its row is the phase in which the wait began.
func (a *Agent) hold(name string, cause error, next string) {
	a.mu.Lock()
	phase := a.phase
	a.mu.Unlock()
	a.holdWait(Blocked{Row: string(phase), Name: name, Reason: cause.Error(), Since: time.Now(), Next: next})
}

// holdWait is hold for a wait whose row and beginning are known. The log hears each reason once, and no line is written under a lock.
func (a *Agent) holdWait(b Blocked) {
	if a.waits.begin(b) {
		a.cfg.Log.Warn("blocked", "phase", b.Row, "name", b.Name, "reason", b.Reason, "next", b.Next)
	}
}

// release ends a wait, if there is one of that name.
func (a *Agent) release(name string) {
	if a.waits.end(name) {
		a.cfg.Log.Info("no longer blocked", "name", name)
	}
}

// blocked is a wait of no phase.
func blocked(name, reason, next string, since time.Time) *Blocked {
	return &Blocked{Name: name, Reason: reason, Next: next, Since: since}
}
