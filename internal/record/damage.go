package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The functions below find what a whole record would not lack. They only report: what an agent does about damage is
// decided by etcdmember, from the same View.

func checkInception(cluster string, v View) []Finding {
	switch {
	case v.LostInception():
		return []Finding{{Fail, inceptionKey, "it is lost, though the record has other objects: quorate record " +
			"rebuild"}}
	case v.Inception == nil:
		return []Finding{{Warn, inceptionKey, "no cluster was ever created here: quorate record init does it"}}
	case v.Inception.Name != cluster:
		return []Finding{{Fail, inceptionKey, fmt.Sprintf("it names cluster %q, the record is of %q", v.Inception.Name,
			cluster)}}
	}
	return nil
}

// newestFormed is the number of the newest epoch that was formed; 0: none was. What is lost below it decides nothing
// any more: a rebuilt record has nothing there, and etcdmember does not look.
func newestFormed(v View) uint64 {
	if e := v.NewestFormed(); e != nil {
		return e.Number
	}
	return 0
}

// checkEpochs looks at each epoch by itself and at its successor.
func checkEpochs(v View) []Finding {
	var out []Finding
	decides := newestFormed(v)
	add := func(level Level, epoch uint64, format string, args ...any) {
		if level == Fail && epoch < decides {
			level = Warn
			format += "; nothing is decided by it any more"
		}
		out = append(out, Finding{level, fmt.Sprintf("epochs/%d", epoch), fmt.Sprintf(format, args...)})
	}
	last := uint64(0)
	for n, e := range v.Epochs {
		if e.Number != last+1 {
			add(Fail, last+1, "lost, up to and with epochs/%d", e.Number-1)
		}
		last = e.Number
		newest := n == len(v.Epochs)-1
		formed := e.Formed() != nil
		if e.Claim == nil {
			add(Fail, e.Number, "claim.json is lost")
		} else if e.Claim.Source.Order != 0 && !hasOrder(v, e.Claim.Source.Order) {
			add(Fail, e.Number, "its claim follows orders/%d.json, which is lost", e.Claim.Source.Order)
		}
		switch {
		case e.Outcome == nil && (!newest || provedFormed(v, e)):
			add(Fail, e.Number, "outcome.json is lost: other objects prove that the epoch was formed or given up")
		case e.Outcome == nil && e.Claim != nil:
			add(Warn, e.Number, "claimed by %s at %s, no outcome yet", e.Claim.Seeder.Place,
				e.Claim.Time.Format("2006-01-02 15:04:05Z07:00"))
		case formed && !newest && e.Closed == nil:
			add(Fail, e.Number, "closed.json is lost: a newer epoch exists")
		case e.Closed != nil && !formed:
			add(Fail, e.Number, "it is closed but was not formed")
		case formed && newest && v.Bundle == 0:
			add(Fail, e.Number, "it is formed, but bundle/ has no generation")
		}
	}
	return out
}

func hasOrder(v View, n uint64) bool {
	return slices.ContainsFunc(v.Orders, func(o Order) bool { return o.Number == n })
}

// provedFormed reports whether something but its outcome proves that the epoch was formed. The seeder's own
// started.json does not: it is written before.
func provedFormed(v View, e Epoch) bool {
	rebuilt := e.Claim != nil && e.Claim.Source.Kind == SourceRebuilt // written after the outcome
	if e.Closed != nil || rebuilt || len(e.Stopped) > 0 || slices.Contains(v.Snapshots, e.Number) {
		return true
	}
	for _, m := range v.Marks {
		if m.Epoch == e.Number {
			return true
		}
	}
	for place, incarnations := range v.Replicas {
		for _, i := range incarnations {
			if i.Started != nil && i.Started.Epoch == e.Number && (e.Claim == nil || place != e.Claim.Seeder.Place) {
				return true
			}
		}
	}
	return false
}

// checkMentions finds epochs that other objects name and that epochs/ lacks.
func checkMentions(v View) []Finding {
	known := map[uint64]bool{0: true} // an incarnation may be taken before there is an epoch
	for _, e := range v.Epochs {
		known[e.Number] = true
	}
	var out []Finding
	decides := newestFormed(v)
	mention := func(key string, epoch uint64) {
		switch {
		case known[epoch]:
		case epoch < decides:
			out = append(out, Finding{Warn, key, fmt.Sprintf("it names epoch %d, which epochs/ lacks; nothing is "+
				"decided by it any more", epoch)})
		default:
			out = append(out, Finding{Fail, key, fmt.Sprintf("it names epoch %d, which epochs/ lacks: lost, or the "+
				"wrong bucket", epoch)})
		}
	}
	for _, incarnations := range v.Replicas {
		for _, i := range incarnations {
			mention(incarnationKey(i.Place, i.Number), i.Epoch)
			if i.Started != nil {
				mention(startedKey(i.Place, i.Number), i.Started.Epoch)
			}
		}
	}
	for id, m := range v.Marks {
		mention(markKey(id), m.Epoch)
	}
	for _, e := range v.Snapshots {
		mention(fmt.Sprintf("snapshots/%d/", e), e)
	}
	for _, o := range v.Orders {
		if o.Restore != nil {
			mention(orderKey(o.Number), o.Restore.Ends)
		}
	}
	slices.SortFunc(out, compareFindings)
	return out
}

// compareFindings orders findings by their subject, so that two checks of one record read alike.
func compareFindings(a, b Finding) int { return strings.Compare(a.Subject, b.Subject) }

// checkNumbers finds gaps in what is numbered without one.
func checkNumbers(v View, entries []entry) []Finding {
	orders, bundles, said := map[uint64]bool{}, map[uint64]bool{}, map[string]uint64{}
	for _, e := range entries {
		switch k := parseKey(e.key); k.kind {
		case orderObject:
			orders[k.number] = true
		case doneObject, acceptedObject, verdictObject, vmStopObject:
			said[e.key] = k.number
		case sealedObject:
			bundles[k.number] = true
		}
	}
	out := slices.Concat(gaps(Fail, "order", orders, orderKey), gaps(Warn, "bundle generation", bundles, sealedKey))
	for key, n := range said {
		if !orders[n] {
			out = append(out, Finding{Fail, key, "the order that it speaks of is lost"})
		}
	}
	for place, incarnations := range v.Replicas {
		numbers := map[uint64]bool{}
		for _, i := range incarnations {
			numbers[i.Number] = true
		}
		out = append(out, gaps(Warn, "incarnation", numbers,
			func(k uint64) string { return incarnationKey(place, k) })...)
	}
	slices.SortFunc(out, compareFindings)
	return out
}

// gaps names the first of the numbers from 1 to the newest that are not there.
func gaps(level Level, what string, numbers map[uint64]bool, key func(uint64) string) []Finding {
	newest := slices.Max(append(slices.Collect(maps.Keys(numbers)), 0))
	missing := newest - uint64(len(numbers))
	if missing == 0 {
		return nil
	}
	first := uint64(1)
	for numbers[first] {
		first++
	}
	return []Finding{{level, key(first), fmt.Sprintf("%s %d is lost (%d lost below %d)", what, first, missing, newest)}}
}
