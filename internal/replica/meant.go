package replica

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// mostMeant is how many fields a hint names.
const mostMeant = 3

// meantField finds the fields that an unknown one in a mapping of type t may stand for: one with nearly its name
// there, or one with its name at another level, first below the mapping and then anywhere.
func meantField(path, name string, t reflect.Type) []string {
	if near := Near(name, fieldNames(t)); len(near) > 0 {
		return []string{join(path, near[0])}
	}
	found := fieldsNamed(t, path, name)
	if len(found) == 0 {
		found = fieldsNamed(clusterType, "", name)
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return found[:min(len(found), mostMeant)]
}

// didYouMean is a hint for the end of what was found; empty where nothing comes near.
func didYouMean(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(meant, " or ") + "?)"
}

// fieldsNamed are the paths of all fields below a type that have a name, whatever its case.
func fieldsNamed(t reflect.Type, path, name string) (found []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Map:
		return fieldsNamed(t.Elem(), join(path, "NAME"), name)
	case reflect.Slice:
		return fieldsNamed(t.Elem(), path+"[N]", name)
	case reflect.Struct:
		for f := range t.Fields() {
			tag := fieldName(f)
			if strings.EqualFold(tag, name) {
				found = append(found, join(path, tag))
			}
			found = append(found, fieldsNamed(f.Type, join(path, tag), name)...)
		}
	}
	return found
}

// Near are the words that a misspelt one may stand for, all equally near: at most two letters differ, and less than
// half of them.
func Near(word string, words []string) (best []string) {
	least := 3
	for _, w := range words {
		d := distance(strings.ToLower(word), strings.ToLower(w))
		if d > least || d > 2 || 2*d >= len(word) {
			continue
		}
		if d < least {
			best, least = nil, d
		}
		best = append(best, w)
	}
	return best
}

// distance is how many letters have to be added, dropped, changed or swapped with the next to make one word the other.
func distance(a, b string) int {
	former, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], former[j-2]+1)
			}
		}
		former, last = last, row
	}
	return last[len(b)]
}
