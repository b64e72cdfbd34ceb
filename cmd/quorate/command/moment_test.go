package command

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// span is what a command line says.
func span(args ...string) (*Span, error) {
	var s Span
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return s.Check(noon) },
		SilenceErrors: true, SilenceUsage: true}
	cmd.SetFlagErrorFunc(FlagFault)
	s.Add(cmd, "24h")
	cmd.SetArgs(append([]string{}, args...))
	return &s, cmd.Execute()
}

func TestAMomentIsHowLongAgoOrWhen(t *testing.T) {
	for text, want := range map[string]string{
		"8h": "2026-11-28T04:00:00Z", "7d": "2026-11-21T12:00:00Z", "1d12h": "2026-11-27T00:00:00Z",
		"1d1h30m": "2026-11-27T10:30:00Z", "1.5h": "2026-11-28T10:30:00Z",
		"2026-11-27T20:30:00Z": "2026-11-27T20:30:00Z", "2026-11-27T20:30:00+02:00": "2026-11-27T18:30:00Z",
		"2026-11-27 20:30": "2026-11-27T20:30:00Z", "2026-11-27 20:30:05": "2026-11-27T20:30:05Z",
		"2026-11-27 20:30:05 UTC": "2026-11-27T20:30:05Z", // as it is printed
		"2026-11-27":              "2026-11-27T00:00:00Z",
	} {
		s, err := span("--since", text)
		if err != nil || s.Since.At(noon).UTC().Format(time.RFC3339) != want {
			t.Errorf("--since %s: %s, %v; want %s", text, s.Since.At(noon), err, want)
		}
	}
}

func TestWhatIsNoMomentIsRefused(t *testing.T) {
	for _, text := range []string{"", "1w", "d", "0s", "0d", "-1h", "-1d", "1d-2h", "12h1d", "1d1d", "yesterday",
		"2026-13-27", "2026-13-27 20:30", "99999d999999h", "999999d", "20:30"} {
		var usage *fault.UsageError
		for flag, ago := range map[string]string{"since": "how far back", "until": "how long ago"} {
			_, err := span("--"+flag, text)
			want := "--" + flag + ` "` + text + `": want ` + ago + ", such as 8h or 7d, or a time such as " +
				"2026-11-27 or 2026-11-27T20:30:00Z"
			if !errors.As(err, &usage) || err.Error() != want {
				t.Errorf("--%s %q: %v; want %s", flag, text, err, want)
			}
		}
	}
}

func TestASpanEndsAfterItsBeginning(t *testing.T) {
	for _, c := range []struct {
		args []string
		text string // empty: it is refused
	}{
		{nil, "in the last 24h"},
		{[]string{"--since", "7d"}, "in the last 7d"},
		{[]string{"--since", "7d", "--until", "6d"}, "since 7d ago until 6d ago"},
		{[]string{"--since", "2026-11-27T20:30:00+01:00"}, "since 2026-11-27 19:30:00 UTC"},
		{[]string{"--since", "7d", "--until", "8d"}, ""},
		{[]string{"--until", "2026-11-27 11:59"}, ""},
		{[]string{"--since", "2026-11-28 12:09"}, "since 2026-11-28 12:09:00 UTC"}, // a replica's clock is ahead
		{[]string{"--since", "2026-11-28 12:11"}, ""},
	} {
		s, err := span(c.args...)
		var usage *fault.UsageError
		if refused := errors.As(err, &usage); refused != (c.text == "") || !refused && s.String() != c.text {
			t.Errorf("%v: %q, %v; want %q", c.args, s, err, c.text)
		}
	}
}

func TestASpanHasItsLastSecond(t *testing.T) {
	end := time.Date(2026, 11, 28, 11, 0, 5, 0, time.UTC)
	s, err := span("--until", "2026-11-28 11:00:05")
	if err != nil || s.IsAfter(end.Add(999*time.Millisecond), noon) || !s.IsAfter(end.Add(time.Second), noon) {
		t.Errorf("%v, %v", s, err)
	}
	day, err := span("--since", "2026-11-27", "--until", "2026-11-27")
	if midnight := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC); err != nil ||
		day.IsAfter(midnight.Add(-1), noon) || !day.IsAfter(midnight, noon) {
		t.Errorf("a day has its evening: %v, %v", day, err)
	}
	if open, err := span(); err != nil || open.IsAfter(noon.Add(time.Hour), noon) {
		t.Errorf("without --until nothing is too late: %v, %v", open, err)
	}
}
