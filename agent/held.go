package agent

import "time"

// hold says in the status what the phase waits for, beside what the membership waits for; the log hears each reason once. The
// end of the phase is the end of the wait.
func (a *Agent) hold(name string, cause error, next string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, known := time.Now(), false
	if a.held != nil && a.held.Name == name {
		since, known = a.held.Since, a.held.Reason == cause.Error()
	}
	a.held = &Blocked{Row: string(a.phase), Name: name, Reason: cause.Error(), Since: since, Next: next}
	if !known {
		a.cfg.Log.Warn("blocked", "phase", string(a.phase), "name", name, "reason", cause.Error(), "next", next)
	}
}

// release ends such a wait where the phase goes on after it.
func (a *Agent) release(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held != nil && a.held.Name == name {
		a.cfg.Log.Info("no longer blocked", "phase", string(a.phase), "name", name)
		a.held = nil
	}
}
