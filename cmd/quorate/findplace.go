package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// findPlace finds the one place that a person names: by its name, with its zone, or by the number of an instance that
// was in it, which events and why print.
func findPlace(name string, batches []report.Batch, v record.View) (found replica.Place, err error) {
	known := knownPlaces(batches, v)
	var fits []replica.Place
	for _, p := range known {
		if strings.EqualFold(p.Name, name) || strings.EqualFold(p.String(), name) || wasIn(name, p, batches, v) {
			fits = append(fits, p)
		}
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		return found, fault.Usage("replica %q: neither the record nor an event has it%s", name,
			othersThan(name, known))
	}
	return found, fault.Usage("replica %q: several are called that: name one of %s", name,
		inWords(replica.PlaceNames(fits), "or"))
}

// knownPlaces are those that the record or an event has.
func knownPlaces(batches []report.Batch, v record.View) []replica.Place {
	known := v.Places()
	for _, b := range batches {
		known = append(known, b.Place)
	}
	slices.SortFunc(known, replica.ComparePlaces)
	return slices.Compact(known)
}

// wasIn reports whether an instance was in a place.
func wasIn(instance string, p replica.Place, batches []report.Batch, v record.View) bool {
	return slices.ContainsFunc(v.Replicas[p], func(i record.Incarnation) bool { return i.InstanceID == instance }) ||
		slices.ContainsFunc(batches, func(b report.Batch) bool { return b.Place == p && b.InstanceID == instance })
}

// othersThan says which replicas there are in place of one that is not known, and which of them may be meant.
func othersThan(name string, known []replica.Place) (text string) {
	names := shortNames(known)
	if near := replica.Near(name, names); len(near) == 1 {
		text = fmt.Sprintf(" (did you mean %s?)", near[0])
	}
	switch len(names) {
	case 0:
		return text + "; no replica is known yet"
	case 1:
		return text + "; known is " + names[0]
	}
	return text + "; known are " + inWords(names, "and")
}

// shortNames are the names of replicas, with the zone where two have one name.
func shortNames(list []replica.Place) (out []string) {
	times := map[string]int{}
	for _, p := range list {
		times[p.Name]++
	}
	for _, p := range list {
		if times[p.Name] > 1 {
			out = append(out, p.String())
		} else {
			out = append(out, p.Name)
		}
	}
	return out
}

// inWords lists names as a sentence does.
func inWords(names []string, before string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + before + " " + names[last]
}
