package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Damage is one thing by which a record shows that objects of it are lost, or contradict one another. Agents and
// `quorate record check` judge by the same list. What only a listing shows (gaps in numbers), or only a disk, they add.
type Damage struct {
	Finding
	// Stops: agents decide nothing by such a record. They only go on with what runs: row R- of the membership's table.
	Stops bool
	// Outcome is the epoch of which the outcome is lost and nothing else; 0: another object is.
	Outcome uint64
}

// String is the damage as a sentence without its end.
func (d Damage) String() string { return d.Subject + ": " + d.What }

// Damages lists what is lost, first what stops the agents, so that the first one tells them all. What is lost below the
// newest formed epoch stops nobody and is a warning: nothing is decided by it any more.
func (v View) Damages() []Damage {
	out := slices.Concat(v.inceptionDamage(), v.epochDamages(), v.mentionDamages())
	slices.SortStableFunc(out, func(a, b Damage) int {
		switch {
		case a.Stops == b.Stops:
			return 0
		case a.Stops:
			return -1
		}
		return 1
	})
	return out
}

// LostInception reports that there is no inception, though there are objects that are only written after it.
func (v View) LostInception() bool {
	others := len(v.Epochs) + len(v.Replicas) + len(v.Marks) + len(v.Orders) + len(v.Snapshots)
	return v.Inception == nil && (others > 0 || v.Bundle > 0)
}

// inceptionDamage also stops where there is nothing at all: an agent cannot know whether something was.
func (v View) inceptionDamage() []Damage {
	f := Finding{Level: Warn, Subject: InceptionKey,
		What: "no cluster was ever created here: quorate record init does it"}
	switch {
	case v.Inception != nil:
		return nil
	case v.LostInception():
		f = Finding{Level: Fail, Subject: InceptionKey,
			What: "it is lost, though the record has other objects: quorate record rebuild"}
	}
	return []Damage{{Finding: f, Stops: true}}
}

// formedNumber is the number of the newest formed epoch; 0: none was.
func (v View) formedNumber() uint64 {
	if e := v.NewestFormed(); e != nil {
		return e.Number
	}
	return 0
}

// damaged is damage to what decides by an epoch: a failure, or, below the newest formed one, a warning.
func (v View) damaged(epoch uint64, subject string, stops bool, format string, args ...any) Damage {
	what := fmt.Sprintf(format, args...)
	if epoch < v.formedNumber() {
		return Damage{Finding: Finding{Level: Warn, Subject: subject,
			What: what + "; nothing is decided by it any more"}}
	}
	return Damage{Finding: Finding{Level: Fail, Subject: subject, What: what}, Stops: stops}
}

// epochDamages judges each epoch by itself and with its successor.
func (v View) epochDamages() (out []Damage) {
	last := uint64(0)
	for n := range v.Epochs {
		e := &v.Epochs[n]
		if e.Number != last+1 {
			out = append(out, v.damaged(last+1, EpochFolder(last+1), true, "lost, up to and with epochs/%d",
				e.Number-1))
		}
		last = e.Number
		if e.Claim == nil {
			out = append(out, v.damaged(last, EpochFolder(last), true, "claim.json is lost"))
		} else if o := e.Claim.Source.Order; o != 0 && !v.hasOrder(o) {
			out = append(out, v.damaged(last, EpochFolder(last), false,
				"its claim follows orders/%d.json, which is lost",
				o))
		}
		out = append(out, v.endDamages(e, n == len(v.Epochs)-1)...)
	}
	if n := v.formedNumber(); n > 0 && v.Bundle == 0 {
		out = append(out, v.damaged(n, EpochFolder(n), false, "it is formed, but bundle/ has no generation"))
	}
	return out
}

// EpochFolder is epochs/<e>, the folder of what the record holds of an epoch.
func EpochFolder(n uint64) string { return fmt.Sprintf("epochs/%d", n) }

// endDamages judges what became of an epoch.
func (v View) endDamages(e *Epoch, newest bool) []Damage {
	found := func(stops bool, format string, args ...any) []Damage {
		return []Damage{v.damaged(e.Number, EpochFolder(e.Number), stops, format, args...)}
	}
	if e.Formed() != nil {
		if !newest && e.Closed == nil {
			return found(false, "closed.json is lost: a newer epoch exists")
		}
		return nil
	}
	switch proof := v.WasFormed(e); {
	case e.Outcome == nil && !newest:
		return found(true, "outcome.json is lost: a newer epoch exists")
	case e.Outcome == nil && proof != "":
		lost := found(true, "outcome.json is lost: the epoch was formed (%s)", proof)
		lost[0].Outcome = e.Number
		return lost
	case e.Closed != nil:
		return found(true, "it is closed but was not formed")
	case proof != "":
		return found(true, "outcome.json says that it was given up, and it was formed (%s)", proof)
	}
	return nil
}

func (v View) hasOrder(n uint64) bool {
	return slices.ContainsFunc(v.Orders, func(o Order) bool { return o.Number == n })
}

// WasFormed is what but its outcome proves that an epoch was formed; empty: nothing does.
func (v View) WasFormed(e *Epoch) string {
	switch {
	case e.Closed != nil:
		return "it was closed"
	case e.Claim != nil && e.Claim.Source.Kind == SourceRebuilt:
		return "its claim was rebuilt, which comes after the outcome"
	case len(e.Stopped) > 0:
		return "stopped/ names " + e.Stopped[0].Place.String()
	case slices.Contains(v.Snapshots, e.Number):
		return "a snapshot of it"
	}
	for _, id := range slices.Sorted(maps.Keys(v.Marks)) {
		if v.Marks[id].Epoch == e.Number {
			return "a mark of member " + id.String()
		}
	}
	return v.startedElsewhere(e)
}

// startedElsewhere finds a confirmed incarnation of a place other than the seeder's: it joined, so there was a cluster.
// The seeder confirms its own before the directory is made, which proves nothing.
func (v View) startedElsewhere(e *Epoch) string {
	for _, place := range v.Places() {
		other := e.Claim == nil || e.Claim.Seeder.Place != place
		for _, i := range v.Replicas[place] {
			if other && i.Started != nil && i.Started.Epoch == e.Number {
				return StartedKey(place, i.Number)
			}
		}
	}
	return ""
}

// Mention is an object outside of epochs/ that names an epoch.
type Mention struct {
	Key   string
	Epoch uint64
}

// Mentions are those of the epochs of which is holds, sorted by their keys. Epoch 0 is none.
func (v View) Mentions(is func(epoch uint64) bool) (out []Mention) {
	add := func(epoch uint64, key func() string) {
		if epoch != 0 && is(epoch) {
			out = append(out, Mention{key(), epoch})
		}
	}
	for p, all := range v.Replicas {
		for _, i := range all {
			add(i.Epoch, func() string { return IncarnationKey(p, i.Number) })
			if i.Started != nil {
				add(i.Started.Epoch, func() string { return StartedKey(p, i.Number) })
			}
		}
	}
	for id, m := range v.Marks {
		add(m.Epoch, func() string { return MarkKey(id) })
	}
	for _, n := range v.Snapshots {
		add(n, func() string { return fmt.Sprintf("snapshots/%d/", n) })
	}
	for _, o := range v.Orders {
		if o.Restore != nil {
			add(o.Restore.Ends, func() string { return OrderKey(o.Number) })
		}
	}
	slices.SortFunc(out, func(a, b Mention) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// mentionDamages finds epochs that other objects name and that epochs/ lacks.
func (v View) mentionDamages() (out []Damage) {
	for _, m := range v.Mentions(func(n uint64) bool { return v.Epoch(n) == nil }) {
		out = append(out, v.damaged(m.Epoch, m.Key, true, "it names epoch %d, which epochs/ lacks: lost, or the wrong "+
			"bucket", m.Epoch))
	}
	return out
}
