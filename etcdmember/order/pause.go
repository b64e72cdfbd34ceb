package order

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// CheckPause checks a pause, which lasts until a time such as 2026-12-01T06:00:00Z, or for so long, such as 2h30m;
// empty: until it is ended.
func (l Log) CheckPause(until, reason string) (Draft, error) {
	d := Draft{Order: record.Order{Kind: record.OrderPause, Reason: reason}, Back: "quorate resume",
		Means: "From then on nobody joins, is promoted, removed or replaced; what runs goes on."}
	if until != "" {
		end, err := parseUntil(until, l.now)
		if err != nil {
			return d, err
		}
		d.Order.Until = &end
	}
	if o, ok := table.PauseInForce(l.Orders, l.states); ok && sameTime(o.Until, d.Order.Until) {
		d.Already = fmt.Sprintf("The membership is paused by order %d already, %s.", o.Number, given(o))
	}
	return d, nil
}

func sameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// parseUntil reads a time, or how long from now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	end, err := time.Parse(time.RFC3339, text)
	if d, derr := time.ParseDuration(text); derr == nil {
		end, err = now.Add(d), nil
	}
	if err != nil {
		return end, Refuse("--until %q: a time such as %s, or a duration such as 2h30m, is needed",
			text, now.Add(2*time.Hour).UTC().Truncate(time.Minute).Format(time.RFC3339))
	}
	end = end.UTC().Truncate(time.Second)
	if end.Year() > 9999 {
		return end, Refuse("--until %s: in UTC that is after the year 9999, which cannot be written down; for a "+
			"pause until 'quorate resume' leave it out", text)
	}
	if !end.After(now) {
		return end, Refuse("--until %s: that is %s, which has passed: it is %s now", text, when(end), when(now))
	}
	if end.Sub(now) < shortestPause {
		return end, Refuse("--until %s: that is in %s; a pause of at least %s is needed: the agents read it within 10s",
			text, end.Sub(now).Round(time.Second), shortestPause)
	}
	return end, nil
}

// shortestPause is well above the time in which every agent has read the order.
const shortestPause = time.Minute

// CheckResume checks the end of a pause.
func (l Log) CheckResume(reason string) (Draft, error) {
	d := Draft{Order: record.Order{Kind: record.OrderResume, Reason: reason}, Back: "quorate pause",
		Means: "What the pause held back goes on by itself."}
	if _, ok := table.PauseInForce(l.Orders, l.states); !ok {
		d.Already = "The membership is not paused."
	}
	return d, nil
}
