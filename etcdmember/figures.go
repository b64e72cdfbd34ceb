package etcdmember

import (
	"maps"
	"time"
)

// Figures are what the agent's metrics show of the membership, beside Shown.
type Figures struct {
	// Row is what the last look decided by, LeaderRow what it did beside the leader; each nil where there was no such
	// look.
	Row, LeaderRow *Row
	// RecordRead is when the record was last read; zero: not yet.
	RecordRead time.Time
	// Steps counts the acts that this process took.
	Steps map[StepOutcome]uint64
}

// StepOutcome is an act and whether it went well.
type StepOutcome struct {
	Act Act
	// Failed says that it ended with an error; a time-out may have taken effect all the same.
	Failed bool
}

// Figures returns the figures of now. It may be called at any time.
func (m *Membership) Figures() Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := Figures{RecordRead: m.recordRead, Steps: maps.Clone(m.steps)}
	if !m.told.at.IsZero() {
		f.Row = new(m.told.plan.Row)
	}
	if !m.told.besideAt.IsZero() {
		f.LeaderRow = new(m.told.besidePlan.Row)
	}
	return f
}

// count counts an act that was taken.
func (m *Membership) count(act Act, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps == nil {
		m.steps = map[StepOutcome]uint64{}
	}
	m.steps[StepOutcome{act, err != nil}]++
}
