package etcdmember

import (
	"fmt"

	"github.com/quorate/quorate/internal/record"
)

// classifyRecord finds the record's class. Damage is looked for from the newest formed epoch upwards: what is lost
// below it can decide nothing any more, and a cluster must not be held up by it.
func (h history) classifyRecord(o *Observation) {
	o.Names.NewestEpoch, o.Names.FormedEpoch = number(h.newest), number(h.formed)
	if h.RecordErr != nil {
		o.Record, o.Names.RecordErr = RUnreadable, h.RecordErr.Error()
		return
	}
	if d := h.damages(); len(d) > 0 {
		o.Record, o.Names.Damage = RLost, d[0].what
		o.OnlyOutcomeMissing = h.onlyOutcome(d)
		return
	}
	switch {
	case h.newest != nil && h.newest.Outcome == nil:
		o.Record = Rs
	case h.formed == nil:
		o.Record = R0
	case h.formed.Closed != nil:
		o.Record = Rc
	default:
		o.Record = Rf
	}
}

// damage is one proof that objects of the record are lost. outcome is the epoch whose outcome alone is missing, or 0.
type damage struct {
	what    string
	outcome uint64
}

// Damage is the most telling proof that objects of the record are lost, as a sentence; empty: there is none.
func Damage(v record.View) string {
	if d := historyOf(Facts{Record: v}).damages(); len(d) > 0 {
		return d[0].what
	}
	return ""
}

// damages lists every proof, the most telling first.
func (h history) damages() []damage {
	if h.Record.Inception == nil {
		return []damage{{what: "it has no inception.json"}}
	}
	var out []damage
	out = append(out, h.gaps()...)
	out = append(out, h.unknownEpochs()...)
	for i := range h.Record.Epochs {
		e := &h.Record.Epochs[i]
		if e.Number <= number(h.formed) {
			continue
		}
		if proof := h.wasFormed(e); proof != "" {
			d := damage{what: fmt.Sprintf("epoch %d was formed (%s), but epochs/%d/outcome.json does not say so",
				e.Number, proof, e.Number)}
			if e.Outcome == nil {
				d.outcome = e.Number
			}
			out = append(out, d)
		}
	}
	return out
}

// gaps finds epochs, claims and outcomes that must exist because a later one does.
func (h history) gaps() []damage {
	var out []damage
	last := number(h.newest)
	for n := max(number(h.formed), 1); n <= last; n++ {
		e := h.Record.Epoch(n)
		switch {
		case e == nil:
			out = append(out, damage{what: fmt.Sprintf("epoch %d exists, but epochs/%d is missing", last, n)})
		case e.Claim == nil:
			out = append(out, damage{what: fmt.Sprintf("epochs/%d/claim.json is missing", n)})
		case e.Outcome == nil && n < last:
			out = append(out, damage{what: fmt.Sprintf("epoch %d was claimed, but epochs/%d/outcome.json is missing",
				last, n)})
		}
	}
	return out
}

// unknownEpochs finds objects that name an epoch above all that epochs/ holds.
func (h history) unknownEpochs() []damage {
	var out []damage
	last := number(h.newest)
	for n, object := range h.namedEpochs() {
		if n > last {
			out = append(out, damage{what: fmt.Sprintf("%s names epoch %d, which epochs/ lacks", object, n)})
		}
	}
	return out
}

// namedEpochs are the epochs that objects outside of epochs/ name, each with one that does.
func (h history) namedEpochs() map[uint64]string {
	out := map[uint64]string{}
	for place, incarnations := range h.Record.Replicas {
		for _, i := range incarnations {
			out[i.Epoch] = fmt.Sprintf("replicas/%s/%d.json", place, i.Number)
			if i.Started != nil {
				out[i.Started.Epoch] = fmt.Sprintf("replicas/%s/%d.started.json", place, i.Number)
			}
		}
	}
	for id, m := range h.Record.Marks {
		out[m.Epoch] = fmt.Sprintf("marks/%s.json", id)
	}
	for _, n := range h.Record.Snapshots {
		out[n] = fmt.Sprintf("snapshots/%d", n)
	}
	for _, order := range h.Record.Orders {
		if order.Restore != nil {
			out[order.Restore.Ends] = fmt.Sprintf("orders/%d.json", order.Number)
		}
	}
	return out
}

// wasFormed is the proof that an epoch without `formed` was formed; empty: there is none.
func (h history) wasFormed(e *record.Epoch) string {
	switch {
	case h.Agent.Epoch == e.Number && h.Agent.Phase == PhaseStarted:
		return "agent.json on this disk says started"
	case e.Closed != nil:
		return "it was closed"
	case e.Claim != nil && e.Claim.Source.Kind == record.SourceRebuilt:
		return "its claim was rebuilt, which comes after the outcome"
	case len(e.Stopped) > 0:
		return "stopped/ names " + e.Stopped[0].Place.String()
	}
	for id, m := range h.Record.Marks {
		if m.Epoch == e.Number {
			return "a mark of member " + id.String()
		}
	}
	for _, n := range h.Record.Snapshots {
		if n == e.Number {
			return "a snapshot of it"
		}
	}
	return h.startedElsewhere(e)
}

// startedElsewhere finds a confirmed incarnation of a place other than the seeder's: it joined, so there was a cluster.
// The seeder confirms its own before the directory is made, which proves nothing.
func (h history) startedElsewhere(e *record.Epoch) string {
	for place, incarnations := range h.Record.Replicas {
		for _, i := range incarnations {
			other := e.Claim == nil || e.Claim.Seeder.Place != place
			if other && i.Started != nil && i.Started.Epoch == e.Number {
				return fmt.Sprintf("replicas/%s/%d.started.json", place, i.Number)
			}
		}
	}
	return ""
}

// onlyOutcome says that nothing is lost but the outcome of the disk's own epoch, whose token the disk holds.
func (h history) onlyOutcome(found []damage) bool {
	for _, d := range found {
		if d.outcome == 0 || d.outcome != h.Agent.Epoch {
			return false
		}
	}
	e := h.Record.Epoch(h.Agent.Epoch)
	return e != nil && e.Claim != nil && h.Agent.Token != "" && e.Claim.Token == h.Agent.Token
}
