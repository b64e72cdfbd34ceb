package etcdmember

import (
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// note keeps what the status shows of the record. It is also how a preflight learns whose cluster this is.
func (m *Membership) note(v record.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Inception == nil {
		return
	}
	m.shown.clusterUID = v.Inception.UID
	m.shown.epoch = record.NumberOf(v.Newest())
	if f := v.NewestFormed().Formed(); f != nil {
		m.shown.clusterID = f.ClusterID
	}
}

// show brings the waits that the status shows up to date. A wait keeps its beginning as long as its row and name
// stay; one for room as long as it is one, whatever the disk is too full for.
func (m *Membership) show(now time.Time, wait *table.Blocked) {
	wait = m.waiting.lasting(wait, 0, now)
	m.mu.Lock()
	before := m.shown.blocked
	m.shown.incarnation = m.agent.File.Incarnation
	m.shown.blocked = follow(before, wait, now)
	m.mu.Unlock()
	m.logWait(before, wait)
}

// waiting is a wait as it was first found, also before it is told; zero: there is none.
type waiting struct{ Wait }

// lasting is the wait that was found now, if it has lasted for as long as it must to be told; else nil.
func (w *waiting) lasting(now *table.Blocked, patience time.Duration, at time.Time) *table.Blocked {
	if now == nil {
		*w = waiting{}
		return nil
	}
	if w.Row != now.Row.String() || w.Name != now.Name {
		w.Wait = since(*now, at)
	}
	if at.Sub(w.Since) < max(patience, now.Patience) {
		return nil
	}
	return now
}

// follow is what is shown after one wait, or none, when there is another, or none.
func follow(before []Wait, now *table.Blocked, at time.Time) []Wait {
	switch {
	case now == nil:
		return nil
	case goesOn(before, now):
		at = before[0].Since
	}
	return []Wait{since(*now, at)}
}

func goesOn(before []Wait, now *table.Blocked) bool {
	return len(before) > 0 && before[0].Name == now.Name && (before[0].Row == now.Row.String() ||
		now.Name == table.WaitNoRoom)
}

// logWait logs the beginning and the end of a wait. The lock that Waits takes is not held: the watchdog asks by Waits.
func (m *Membership) logWait(before []Wait, now *table.Blocked) {
	switch {
	case now == nil && len(before) > 0:
		m.cfg.Log.Info("no longer blocked", "row", before[0].Row, "name", before[0].Name)
	case now != nil && !goesOn(before, now):
		m.cfg.Log.Warn("blocked", "row", now.Row.String(), "name", now.Name, "reason", now.Reason, "next", now.Next)
	}
}
