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
	for _, e := range v.Epochs {
		m.shown.Epoch = e.Number
		if e.Outcome != nil && e.Outcome.Formed != nil {
			m.shown.ClusterID = e.Outcome.Formed.ClusterID
		}
	}
}

// show brings the waits that the status shows up to date. A wait keeps its beginning as long as its row and name
// stay; one for room as long as it is one, whatever the disk is too full for.
func (m *Membership) show(f Facts, plan Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown.Incarnation = m.agent.Incarnation
	m.shown.Blocked = m.follow(m.shown.Blocked, plan.Blocked, f.Now)
}

func (m *Membership) follow(before []BlockedSince, now *Blocked, at time.Time) []BlockedSince {
	if now == nil {
		if len(before) > 0 {
			m.cfg.Log.Info("no longer blocked", "row", before[0].Row.String(), "name", before[0].Name)
		}
		return nil
	}
	if len(before) > 0 && before[0].Name == now.Name && (before[0].Row == now.Row || now.Name == NoRoom) {
		return []BlockedSince{{Blocked: *now, Since: before[0].Since}}
	}
	m.cfg.Log.Warn("blocked", "row", now.Row.String(), "name", now.Name, "reason", now.Reason, "next", now.Next)
	return []BlockedSince{{Blocked: *now, Since: at}}
}
