package asynclog

import (
	"strings"
	"testing"
)

func TestTheJournalGetsEachLineWithThePriorityThatItSays(t *testing.T) {
	for line, want := range map[string]string{
		"I1123 06:21:51.000001       1 server.go:1] up":            "6",
		"W1123 06:21:51.000001       1 server.go:1] slow":          "4",
		"E1123 06:21:51.000001       1 server.go:1] failed":        "3",
		"F1123 06:21:51.000001       1 server.go:1] cannot go on":  "2",
		"Error: unknown flag: --nosuch":                            "6",
		"E11 is no header of klog's":                               "6",
		"E1123 06-21 neither":                                      "6",
		`{"level":"debug","ts":"2026-11-23T06:21:51Z","msg":"a"}`:  "7",
		`{"level":"info","ts":"2026-11-23T06:21:51Z","msg":"a"}`:   "6",
		`{"level":"warn","ts":"2026-11-23T06:21:51Z","msg":"a"}`:   "4",
		`{"level":"error","ts":"2026-11-23T06:21:51Z","msg":"a"}`:  "3",
		`{"level":"fatal","ts":"2026-11-23T06:21:51Z","msg":"a"}`:  "2",
		`{"time":"2026-11-23T06:21:51Z","level":"WARN","msg":"a"}`: "4",
		`{"level":"info"`: "6",
		`{"level":7}`:     "6",
		"time=2026-11-23T06:21:51Z level=ERROR msg=a err=b":  "3",
		"time=2026-11-23T06:21:51Z level=DEBUG msg=a":        "7",
		"time=2026-11-23T06:21:51Z level=ERROR+2 msg=a":      "6",
		"it says level=ERROR somewhere":                      "6",
		"panic: runtime error: index out of range":           "2",
		"fatal error: all goroutines are asleep - deadlock!": "2",
		"": "6",
	} {
		if got, want := string(new(Leveler).Add([]byte(line+"\n"))), "<"+want+">"+line+"\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := string(new(Leveler).Add([]byte("<5>a program that knows the journal\n"))); got[:4] != "<5>a" {
		t.Errorf("a priority that the program gives itself: %q", got)
	}
}

// All lines of a stack belong to the crash; the next run's do not.
func TestAStackHasThePriorityOfItsCrash(t *testing.T) {
	var l Leveler
	got := string(l.Add([]byte("panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:3 +0x1\n" +
		"I1123 06:21:51.000001       1 a.go:1] a new run\nplain\n")))
	var priorities string
	for line := range strings.Lines(got) {
		priorities += line[1:2]
	}
	if priorities != "2222266" {
		t.Errorf("%s of %s", priorities, got)
	}
}

// A run ends within its crash, and the next says nothing of its lines' priority.
func TestTheNextRunIsNoPartOfACrash(t *testing.T) {
	var l Leveler
	got := string(l.Add([]byte("panic: no\n\ngoroutine 1 [running]:\nexit st"))) + string(l.Last()) +
		string(l.Add([]byte("plain\n")))
	if want := "<2>panic: no\n<2>\n<2>goroutine 1 [running]:\n<2>exit st\n<6>plain\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.Add([]byte("panic: no\n"))
	l.Last()
	if got := string(l.Add([]byte("plain\n"))); got != "<6>plain\n" {
		t.Errorf("after a crash that ended with a line: %q", got)
	}
}

func TestPiecesBecomeWholeLines(t *testing.T) {
	var l Leveler
	for _, c := range []struct{ piece, want string }{
		{"E1123 06:2", ""},
		{"1:51.1 1 a.go:1] fai", ""},
		{"led\nplain\nhal", "<3>E1123 06:21:51.1 1 a.go:1] failed\n<6>plain\n"},
		{"f\n", "<6>half\n"},
	} {
		if got := string(l.Add([]byte(c.piece))); got != c.want {
			t.Errorf("after %q: %q, want %q", c.piece, got, c.want)
		}
	}
	if l.Add([]byte("no end")); string(l.Last()) != "<6>no end\n" || l.Last() != nil {
		t.Error("the last line is lost, or comes twice")
	}
	if got := l.Add([]byte(strings.Repeat("x", longestLine))); len(got) != longestLine+3 || len(l.rest) != 0 {
		t.Errorf("a line without an end is kept: %d bytes handed on, %d held", len(got), len(l.rest))
	}
}

func TestTheAgentsOwnLinesHaveTheirPriorities(t *testing.T) {
	var to strings.Builder
	l := New(Prioritized(&to))
	l.Warn("a wait began", "name", "record-unreadable")
	l.Info("ready")
	l.Close()
	lines := strings.Split(to.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "<4>time=") || !strings.HasPrefix(lines[1], "<6>time=") {
		t.Errorf("%q", lines)
	}
}
