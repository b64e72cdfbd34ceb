package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

type row struct{ n int }

var rows = []row{{1}, {2}}

func Decide(a, b bool, n int) int {
	if a && b {
		return 0
	}
	switch {
	case n < 3:
		return next(n)
	case b:
		return len(rows)
	}
	return 9
}

func next(n int) int { return n + 1 }

func unused(a bool) bool { return a }
`

// mutantsOf makes the mutants of a source of one file.
func mutantsOf(t *testing.T, text string) (*schemata, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sample.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := check(dir, []string{"sample.go"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := schemataOf(src, src.reachable([]string{"Decide"}), "", 0)
	return s, string(apply(src.text["sample.go"], s.edits["sample.go"]))
}

// Each operator makes its mutants of what the deciders reach, and of nothing else.
func TestMutantsOfASample(t *testing.T) {
	s, _ := mutantsOf(t, sample)
	var got []string
	for _, m := range s.mutants {
		got = append(got, m.name)
	}
	want := []string{
		"rows: drop row `{1}`",
		"rows: drop row `{2}`",
		"rows: swap rows `{1}` and `{2}`",
		"Decide: drop guard `a && b`",
		"Decide: negate guard `a && b`",
		"Decide: drop operand `a`",
		"Decide: drop operand `b`",
		"Decide: drop guard `n < 3`",
		"Decide: negate guard `n < 3`",
		"Decide: drop guard `b`",
		"Decide: negate guard `b`",
		"Decide: swap cases `n < 3` and `b`",
		"Decide: off by one `n < 3`",
		"next: off by one `n + 1`",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Of two faults at one expression one encloses the other, and nothing else of the source changes.
func TestMutantsSleepInTheSource(t *testing.T) {
	_, text := mutantsOf(t, sample)
	for _, want := range []string{
		"var rows = mutantRows(1, []row{{1}, {2}})",
		"if (isMutant(5) != ((!isMutant(4) && ((isMutant(6) || (a)) && (isMutant(7) || (b)))))) {",
		"case (((((isMutant(9) != ((!isMutant(8) && (n < 3))))) && !(isMutant(12) && ((b))))) || " +
			"isMutant(13) && (n) == (3)):",
		"return ((n + 1) - int(mutantOne(14)))",
		"func unused(a bool) bool { return a }",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

// The same seed chooses the same mutants, in their order; a mutant that comes anew moves none of the others.
func TestAChoiceStays(t *testing.T) {
	s, _ := mutantsOf(t, sample)
	f := flags{n: 5, seed: 1, only: regexp.MustCompile("")}
	chosen := choose(s.mutants, f)
	if len(chosen) != 5 || !slices.IsSortedFunc(chosen, func(a, b mutant) int { return a.number - b.number }) {
		t.Fatalf("%v", chosen)
	}
	more := choose(append(slices.Clone(s.mutants), mutant{number: 99, name: "anew"}), f)
	kept := 0
	for _, m := range more {
		if slices.Contains(chosen, m) {
			kept++
		}
	}
	if kept < 4 {
		t.Errorf("of 5 only %d stayed", kept)
	}
	f.only = regexp.MustCompile("^next:")
	if got := choose(s.mutants, f); len(got) != 1 {
		t.Errorf("of one function: %v", got)
	}
}

func TestTheListOfEquivalents(t *testing.T) {
	l, err := parseListed("# why\n\none\ntwo\n\tbecause\n\tof it\nthree\n\tno\n")
	if err != nil || len(l) != 3 || l["one"] != "because of it" || l["two"] != "because of it" || l["three"] != "no" {
		t.Errorf("%v, %v", l, err)
	}
	for name, text := range map[string]string{
		"without a reason": "one\n",
		"twice":            "one\n\tbecause\none\n\tbecause\n",
		"twice in a block": "one\none\n\tbecause\n",
	} {
		if _, err := parseListed(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	one, two := mutant{number: 1, name: "one"}, mutant{number: 2, name: "two"}
	if faults := l.unknown([]mutant{one, two}); len(faults) != 1 || !strings.Contains(faults[0].Error(), "three") {
		t.Errorf("what is listed and is no mutant: %v", faults)
	}
	r := report{kills: []kill{{two, "a test", "TestTwo"}}}
	faults := r.judge([]mutant{one, {number: 4, name: "four"}}, l)
	if r.equivalent != 1 || len(faults) != 2 || !strings.Contains(faults[0].Error(), "survives: :0: four") ||
		!strings.Contains(faults[1].Error(), "TestTwo kills it") {
		t.Errorf("%d equivalent, %v", r.equivalent, faults)
	}
}

// What is listed as equivalent is a mutant of the deciders as they are now. So a new name of a decider is noticed here,
// and not by the next long run.
func TestWhatIsListedIsAMutant(t *testing.T) {
	t.Chdir("../..") // where the mutants are made
	table, leader, err := deciders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseListed(equivalent)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range l.unknown(slices.Concat(table.mutants, leader.mutants)) {
		t.Error(fault)
	}
}
