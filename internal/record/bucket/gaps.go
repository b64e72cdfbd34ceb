package bucket

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/record"
)

// compareFindings orders findings by their subject, so that two checks of one record read alike.
func compareFindings(a, b record.Finding) int { return strings.Compare(a.Subject, b.Subject) }

// checkNumbers finds gaps in what is numbered without one.
func checkNumbers(v record.View, entries []entry) []record.Finding {
	orders, bundles, said := map[uint64]bool{}, map[uint64]bool{}, map[string]uint64{}
	for _, e := range entries {
		switch k := record.ParseKey(e.key); k.Kind {
		case record.OrderObject:
			orders[k.Number] = true
		case record.DoneObject, record.AcceptedObject, record.VerdictObject, record.VMStopObject:
			said[e.key] = k.Number
		case record.SealedObject:
			bundles[k.Number] = true
		}
	}
	out := slices.Concat(gaps(record.Fail, "order", orders, record.OrderKey),
		gaps(record.Warn, "bundle generation", bundles, record.SealedKey))
	for key, n := range said {
		if !orders[n] {
			out = append(out, record.Finding{Level: record.Fail, Subject: key,
				What: "the order that it speaks of is lost"})
		}
	}
	for place, incarnations := range v.Replicas {
		numbers := map[uint64]bool{}
		for _, i := range incarnations {
			numbers[i.Number] = true
		}
		out = append(out, gaps(record.Warn, "incarnation", numbers,
			func(k uint64) string { return record.IncarnationKey(place, k) })...)
	}
	slices.SortFunc(out, compareFindings)
	return out
}

// gaps names the first of the numbers from 1 to the newest that are not there.
func gaps(level record.Level, what string, numbers map[uint64]bool, key func(uint64) string) []record.Finding {
	newest := slices.Max(append(slices.Collect(maps.Keys(numbers)), 0))
	missing := newest - uint64(len(numbers))
	if missing == 0 {
		return nil
	}
	first := uint64(1)
	for numbers[first] {
		first++
	}
	return []record.Finding{{Level: level, Subject: key(first),
		What: fmt.Sprintf("%s %d is lost (%d lost below %d)", what, first, missing, newest)}}
}
