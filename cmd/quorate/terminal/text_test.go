package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestAgeHasItsTwoLargestUnits(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m0s",
		3599 * time.Second: "59m59s",
		time.Hour:          "1h0m", 25*time.Hour + 59*time.Minute: "1d1h", 400 * 24 * time.Hour: "400d0h",
	} {
		if got := Age(now, now.Add(-d)); got != want {
			t.Errorf("age of %s: %q, want %q", d, got, want)
		}
	}
}

func TestLongTextIsBroken(t *testing.T) {
	var b strings.Builder
	PrintText(&b, "  ", strings.Repeat("word ", 60)+"\n"+strings.Repeat("x", 2*LineWidth)+"\n\n")
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 5 || strings.Join(strings.Fields(b.String()), " ") != strings.TrimSpace(strings.Repeat("word ",
		60))+" "+strings.Repeat("x", 2*LineWidth) {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for _, l := range lines[:4] {
		if len(l) > LineWidth || !strings.HasPrefix(l, "  word") {
			t.Errorf("line %q", l)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	var b strings.Builder
	PrintTable(&b, []string{"A", "LONGER", "C"}, []Row{{Cells: []string{"wide cell", "x", "y"}, Below: "why"},
		{Cells: []string{"ü", "x", "y"}}})
	want := "A          LONGER  C\nwide cell  x       y\n    why\nü          x       y\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	PrintTable(&b, []string{"A"}, nil)
	PrintTableBelow(&b, []string{"A"}, nil)
	if b.String() != "" {
		t.Errorf("an empty table prints %q", b.String())
	}
}

func TestParagraphsAreBrokenAnew(t *testing.T) {
	const text = "one\ntwo.\n\n  a command as it is\n  and another\n\nthree"
	if got, want := Reflowed(text), "one two.\n\n  a command as it is\n  and another\n\nthree"; got != want {
		t.Errorf("reflowed as %q, want %q", got, want)
	}
}
