package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Version orders sets: whole numbers joined by dots, compared one by one, so that 2026.11.9 comes before 2026.11.10.
// Empty is the version of no set.
type Version string

// VersionRule is what ParseVersion wants, for people.
const VersionRule = "whole numbers joined by dots, such as 12 or 2026.11.23"

// longestNumber and mostNumbers bound a version: each number fits into 64 bits.
const longestNumber, mostNumbers = 18, 8

// ParseVersion reads the text of a version.
func ParseVersion(text string) (Version, error) {
	text = strings.TrimSpace(text)
	numbers := strings.Split(text, ".")
	wrong := func(n string) bool { return n == "" || len(n) > longestNumber || strings.Trim(n, "0123456789") != "" }
	if len(numbers) > mostNumbers || slices.ContainsFunc(numbers, wrong) {
		return "", fmt.Errorf("found %.40q; allowed: %s", text, VersionRule)
	}
	return Version(text), nil
}

// Compare is negative where v comes before w, and 0 where neither does: a number that is not there counts as 0.
func (v Version) Compare(w Version) int {
	a, b := v.numbers(), w.numbers()
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(at(a, i), at(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

// numbers are those of a version that has been parsed; each fits.
func (v Version) numbers() (out []uint64) {
	for part := range strings.SplitSeq(string(v), ".") {
		n, _ := strconv.ParseUint(part, 10, 64) // only the empty version has a part that is no number
		out = append(out, n)
	}
	return out
}

func at(numbers []uint64, i int) uint64 {
	if i < len(numbers) {
		return numbers[i]
	}
	return 0
}
