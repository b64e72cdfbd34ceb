package etcdmember

import (
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
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

// show says what this replica waits for, for the status; nil: nothing.
func (m *Membership) show(now time.Time, wait *replica.Wait) {
	m.mu.Lock()
	m.shown.incarnation = m.agent.File.Incarnation
	m.mu.Unlock()
	m.waits.Only(wait, now)
}
