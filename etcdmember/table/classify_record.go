package table

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// classifyRecord finds the record's class.
func (h History) classifyRecord(o *Observation) {
	o.Names.NewestEpoch, o.Names.FormedEpoch = record.NumberOf(h.newest), record.NumberOf(h.Formed)
	if h.RecordErr != nil {
		o.Record, o.Names.RecordErr = RUnreadable, h.RecordErr.Error()
		return
	}
	if d := h.Damages(); len(d) > 0 {
		o.Record, o.Names.Damage = RLost, d[0].String()
		o.OnlyOutcomeMissing = h.onlyOutcome(d)
		return
	}
	switch {
	case h.newest != nil && h.newest.Outcome == nil:
		o.Record = Rs
	case h.Formed == nil:
		o.Record = R0
	case h.Formed.Closed != nil:
		o.Record = Rc
	default:
		o.Record = Rf
	}
}

// Damages are those of the record that stop its agents, and what only this disk proves: that its epoch was formed.
func (h History) Damages() []record.Damage {
	out := slices.DeleteFunc(h.Record.Damages(), func(d record.Damage) bool { return !d.Stops })
	e := h.Record.Epoch(h.Agent.Epoch)
	if h.Agent.Phase != PhaseStarted || e == nil || e.Number <= record.NumberOf(h.Formed) {
		return out
	}
	d := record.Damage{Stops: true, Finding: record.Finding{Level: record.Fail,
		Subject: fmt.Sprintf("epochs/%d", e.Number),
		What:    "outcome.json does not say that it was formed, and agent.json on this disk says started"}}
	if e.Outcome == nil {
		d.Outcome = e.Number
	}
	return append(out, d)
}

// onlyOutcome says that nothing is lost but the outcome of the disk's own epoch, whose token the disk holds.
func (h History) onlyOutcome(found []record.Damage) bool {
	for _, d := range found {
		if d.Outcome == 0 || d.Outcome != h.Agent.Epoch {
			return false
		}
	}
	e := h.Record.Epoch(h.Agent.Epoch)
	return e != nil && e.Claim != nil && h.Agent.Token != "" && e.Claim.Token == h.Agent.Token
}
