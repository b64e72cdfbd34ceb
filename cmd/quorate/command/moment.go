package command

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
)

// Moment is the value of a flag that names a moment: how long ago it was, in days and less, or when.
type Moment struct {
	text string        // as it was given; empty: it was not
	ago  time.Duration // where it counts from now
	at   time.Time     // else
	day  bool          // it was given as a day
	flag string
	want string // what is allowed
}

// momentError is a value that is no moment. It says what is allowed, in place of what package pflag says.
type momentError struct{ flag, text, want string }

func (e momentError) Error() string { return fmt.Sprintf("--%s %q: want %s", e.flag, e.text, e.want) }

// AddMoment adds a flag that names a moment. fallback is what counts where it is not given; empty: nothing does. A
// value that is no moment is refused before anything is done.
func AddMoment(cmd *cobra.Command, m *Moment, flag, fallback, usage string) {
	*m = Moment{flag: flag, want: "how long ago, such as 8h or 7d, or a time such as 2026-11-27 or " +
		"2026-11-27T20:30:00Z"}
	if fallback != "" {
		m.want = strings.Replace(m.want, "how long ago", "how far back", 1)
		cobra.CheckErr(m.Set(fallback))
	}
	cmd.Flags().Var(m, flag, usage)
}

// String is the value as it was given.
func (m *Moment) String() string { return m.text }

// Type is what the help calls such a value.
func (m *Moment) Type() string { return "time" }

// Set takes a value.
func (m *Moment) Set(text string) error {
	set := Moment{text: strings.TrimSpace(text), flag: m.flag, want: m.want}
	var ok bool
	if set.ago, ok = parseAgo(set.text); !ok {
		set.at, set.day, ok = parseTime(set.text)
	}
	if !ok {
		return momentError{m.flag, text, m.want}
	}
	*m = set
	return nil
}

// Given reports whether there is a moment at all.
func (m *Moment) Given() bool { return m.text != "" }

// At is the moment as a time.
func (m *Moment) At(now time.Time) time.Time {
	if m.at.IsZero() {
		return now.Add(-m.ago)
	}
	return m.at
}

// CheckPast refuses a moment that is yet to come.
func (m *Moment) CheckPast(now time.Time) error {
	if m.At(now).After(now.Add(clocksDiffer)) {
		return fault.Usage("--%s %q: this is in the future; it is %s UTC now", m.flag, m.text,
			now.UTC().Format(time.DateTime))
	}
	return nil
}

// clocksDiffer is by how much the clock here may be behind a replica's, whose time a person has copied.
const clocksDiffer = 10 * time.Minute

// agoForm is a number of days, and what Go takes for a duration.
var agoForm = regexp.MustCompile(`^(?:([0-9]{1,5})d)?((?:[0-9.]+[a-zµ]+)*)$`)

// parseAgo reads a duration above 0, such as 7d, 1d12h or 8h.
func parseAgo(text string) (time.Duration, bool) {
	parts := agoForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	var ago time.Duration
	if parts[1] != "" {
		days, _ := strconv.Atoi(parts[1]) // the form has digits alone
		ago = time.Duration(days) * 24 * time.Hour
	}
	if parts[2] != "" {
		rest, err := time.ParseDuration(parts[2])
		if err != nil {
			return 0, false
		}
		ago += rest
	}
	return ago, ago > 0 // below: the sum was too long
}

// timeForms are the ways to write a time. All but the first are in UTC, as quorate prints times.
var timeForms = []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02 15:04:05", time.DateOnly}

// parseTime reads a time, which may be a day. One that was copied from a list of events has UTC behind it.
func parseTime(text string) (at time.Time, day, ok bool) {
	for _, form := range timeForms {
		if at, err := time.Parse(form, strings.TrimSuffix(text, " UTC")); err == nil && at.Year() > 1 {
			return at, form == time.DateOnly, true
		}
	}
	return time.Time{}, false, false
}

// Span is the time that a command is about: flags --since and --until.
type Span struct{ Since, Until Moment }

// Add adds the flags; fallback is how far back it goes where --since is not given.
func (s *Span) Add(cmd *cobra.Command, fallback string) {
	AddMoment(cmd, &s.Since, "since", fallback, "how far back, such as 8h or 7d, or since when, such as "+
		`"2026-11-27 20:30" in UTC; events are kept for 30 days`)
	AddMoment(cmd, &s.Until, "until", "", "leave out what began later, in the same forms")
}

// Check refuses a span that ends before it begins, and one that is yet to come.
func (s *Span) Check(now time.Time) error {
	if err := s.Since.CheckPast(now); err != nil {
		return err
	}
	if s.Until.Given() && s.end(now).Before(s.Since.At(now)) {
		return fault.Usage("--until %q: this is before --since %q", &s.Until, &s.Since)
	}
	return nil
}

// end is the last second of the span, which may be that of a day.
func (s *Span) end(now time.Time) time.Time {
	if s.Until.day {
		return s.Until.at.AddDate(0, 0, 1).Add(-time.Second)
	}
	return s.Until.At(now)
}

// IsAfter reports whether a time is later than the span. Times are printed in seconds: one that is printed as the end
// is within it.
func (s *Span) IsAfter(at, now time.Time) bool {
	return s.Until.Given() && at.Truncate(time.Second).After(s.end(now))
}

// String is the span for a sentence: "in the last 24h", or "since …" and "until …".
func (s *Span) String() string {
	text := "since " + sentence(s.Since)
	switch {
	case s.Since.at.IsZero() && !s.Until.Given():
		return "in the last " + s.Since.text
	case s.Until.Given():
		text += " until " + sentence(s.Until)
	}
	return text
}

// sentence is a moment in a sentence.
func sentence(m Moment) string {
	if m.at.IsZero() {
		return m.text + " ago"
	}
	return fmt.Sprint(m.at.UTC().Format(time.DateTime), " UTC")
}
