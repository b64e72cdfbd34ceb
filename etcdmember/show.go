package etcdmember

import (
	"time"

	"github.com/quorate/quorate/internal/record"
)

// note keeps what the status shows of the record. It is also how a preflight learns whose cluster this is.
func (m *Membership) note(v record.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Inception == nil {
		return
	}
	m.shown.ClusterUID = v.Inception.UID
	m.shown.Epoch = number(v.Newest())
	if f := v.NewestFormed().Formed(); f != nil {
		m.shown.ClusterID = f.ClusterID
	}
}

// show brings the waits that the status shows up to date. A wait keeps its beginning as long as its row and name
// stay; one for room as long as it is one, whatever the disk is too full for.
func (m *Membership) show(f Facts, plan Plan) {
	m.mu.Lock()
	before := m.shown.Blocked
	m.shown.Incarnation = m.agent.Incarnation
	m.shown.Blocked = follow(before, plan.Blocked, f.Now)
	m.mu.Unlock()
	m.logWait(before, plan.Blocked)
}

// follow is what is shown after one wait, or none, when there is another, or none.
func follow(before []BlockedSince, now *Blocked, at time.Time) []BlockedSince {
	switch {
	case now == nil:
		return nil
	case goesOn(before, now):
		at = before[0].Since
	}
	return []BlockedSince{{Blocked: *now, Since: at}}
}

func goesOn(before []BlockedSince, now *Blocked) bool {
	return len(before) > 0 && before[0].Name == now.Name && (before[0].Row == now.Row || now.Name == NoRoom)
}

// logWait logs the beginning and the end of a wait. The lock that Shown takes is not held: the watchdog asks by Shown.
func (m *Membership) logWait(before []BlockedSince, now *Blocked) {
	switch {
	case now == nil && len(before) > 0:
		m.cfg.Log.Info("no longer blocked", "row", before[0].Row.String(), "name", before[0].Name)
	case now != nil && !goesOn(before, now):
		m.cfg.Log.Warn("blocked", "row", now.Row.String(), "name", now.Name, "reason", now.Reason, "next", now.Next)
	}
}
