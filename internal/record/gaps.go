package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
