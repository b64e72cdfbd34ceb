package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestACountdownIsOneLineOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	k := newTerminal(t)
	c := &Countdown{Out: &VisibleWriter{To: k.terminal}}
	for n := 3; n > 0; n-- {
		c.Show(noon, fmt.Sprintf("another %d s\x1b[31m", n))
	}
	c.End()
	c.End()
	fmt.Fprintln(k.terminal, "next")
	var got strings.Builder
	for b := make([]byte, 1024); !strings.Contains(got.String(), "next\r\n"); {
		n, err := k.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(b[:n])
	}
	const line = "\r\x1b[Kanother %d s\\u001b[31m"
	want := fmt.Sprintf(line+line+line, 3, 2, 1) + "\r\nnext\r\n"
	if got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
}

func TestATerminalThatCannotMoveTheCursorHasLines(t *testing.T) {
	t.Setenv("TERM", "dumb")
	if v := (&VisibleWriter{To: newTerminal(t).terminal}); v.overwrite("3 s") {
		t.Error("it was written over")
	}
}

func TestACountdownIsALineEachTenSecondsElsewhere(t *testing.T) {
	var out strings.Builder
	c := &Countdown{Out: &VisibleWriter{To: &out}}
	for n := range 25 {
		c.Show(noon.Add(time.Duration(n)*time.Second), fmt.Sprint(n))
	}
	c.End()
	if out.String() != "0\n10\n20\n" {
		t.Errorf("%q", out.String())
	}
}
