package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// listed are the mutants that decide the same as the original, by name, with the reason.
type listed map[string]string

//go:embed equivalent.txt
var equivalent string

// parseListed reads a list. Names stand at the beginning of a line. The reason for those above it is indented.
func parseListed(text string) (listed, error) {
	out := listed{}
	var names []string
	reasoned := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch reason, indented := strings.CutPrefix(line, "\t"); {
		case line == "" || strings.HasPrefix(line, "#"):
		case indented:
			for _, name := range names {
				out[name] = strings.TrimSpace(out[name] + " " + reason)
			}
			reasoned = true
		default:
			if reasoned {
				names, reasoned = nil, false
			}
			if _, twice := out[line]; twice || slices.Contains(names, line) {
				return nil, fmt.Errorf("%s is listed twice", line)
			}
			names = append(names, line)
		}
	}
	if !reasoned {
		return nil, fmt.Errorf("%s is listed without a reason", names[0])
	}
	return out, nil
}

// unknown are the listed names that no mutant has: the code has changed, and the reason may not hold any more.
func (l listed) unknown(all []mutant) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.name == name }) {
			faults = append(faults, fmt.Errorf("listed as equivalent, and there is no such mutant: %s", name))
		}
	}
	return faults
}

// choose takes n mutants. A mutant's name and the seed decide whether it is among them, so a change of the table leaves
// most of the choice as it was.
func choose(all []mutant, f flags) []mutant {
	chosen := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !f.only.MatchString(m.name) })
	if f.n == 0 || f.n >= len(chosen) {
		return chosen
	}
	lot := func(m mutant) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", f.seed, m.name))
		return hex.EncodeToString(sum[:])
	}
	slices.SortFunc(chosen, func(a, b mutant) int { return strings.Compare(lot(a), lot(b)) })
	chosen = chosen[:f.n]
	slices.SortFunc(chosen, func(a, b mutant) int { return a.number - b.number })
	return chosen
}

// report is what came of the mutants that were tried.
type report struct {
	kills      []kill
	equivalent int
}

// kill is a mutant's end: by which killer, and what that says of it.
type kill struct {
	mutant
	by, how string
}

// killed counts the kills of each killer.
func (r *report) killed() string {
	var names []string
	count := map[string]int{}
	for _, k := range r.kills {
		if count[k.by]++; count[k.by] == 1 {
			names = append(names, k.by)
		}
	}
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%d killed by %s", count[name], name))
	}
	if out == nil {
		return "none killed"
	}
	return strings.Join(out, ", ")
}

// judge finds who survives without a reason, and who has one and is killed all the same.
func (r *report) judge(survivors []mutant, l listed) (faults []error) {
	for _, m := range survivors {
		if _, ok := l[m.name]; ok {
			r.equivalent++
			continue
		}
		faults = append(faults, fmt.Errorf("survives: %s", m))
	}
	for _, k := range r.kills {
		if _, ok := l[k.name]; ok {
			faults = append(faults, errors.New("listed as equivalent, and "+k.how+" kills it: "+k.String()))
		}
	}
	return faults
}
