package agent

import (
	"slices"
	"time"
)

// waitFor shows what the agent itself waits for, in the phase that it is in, and logs it once. Its beginning stays as long as the
// name does.
func (a *Agent) waitFor(name, reason, next string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := Blocked{Row: string(a.phase), Name: name, Reason: reason, Since: time.Now(), Next: next}
	if i := a.waitIndex(name); i >= 0 {
		b.Row, b.Since = a.waits[i].Row, a.waits[i].Since
		a.waits[i] = b
		return
	}
	a.waits = append(a.waits, b)
	a.cfg.Log.Warn("blocked", "row", b.Row, "name", name, "reason", reason, "next", next)
}

// goOn ends such a wait, if there is one.
func (a *Agent) goOn(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.waitIndex(name); i >= 0 {
		a.cfg.Log.Info("no longer blocked", "row", a.waits[i].Row, "name", name)
		a.waits = slices.Delete(a.waits, i, i+1)
	}
}

// waitIndex finds a wait; -1: there is none. mu is held.
func (a *Agent) waitIndex(name string) int {
	return slices.IndexFunc(a.waits, func(b Blocked) bool { return b.Name == name })
}
