package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func newPause() *cobra.Command {
	var f orderFlags
	var until, reason string
	cmd := &cobra.Command{Use: "pause", Short: "Hold back all changes of the etcd membership", Args: noArguments,
		Long: `Hold back all changes of the etcd membership: nobody joins, is promoted, removed or replaced until "quorate resume", or until
the time that --until gives. What runs goes on, members start and restart, and orders to leave and to restore are still followed.`,
		Example: `  quorate pause --until 2h --reason "network maintenance"
  quorate pause --until 2026-12-01T06:00:00Z`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.emptied("until") {
				return refused("--until is empty: a time or how long is needed; for a pause until 'quorate resume' " +
					"leave it out")
			}
			return give(cmd, &f, func(b book) (draft, error) { return checkPause(b, until, reason) })
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&until, "until", "", "when it ends by itself: a time such as 2026-12-01T06:00:00Z, or how "+
		"long, such as 2h30m")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the orders later")
	return cmd
}

func checkPause(b book, until, reason string) (draft, error) {
	d := draft{order: record.Order{Kind: record.OrderPause, Reason: reason}, back: "quorate resume",
		means: "From then on nobody joins, is promoted, removed or replaced; what runs goes on."}
	if until != "" {
		end, err := parseUntil(until, b.now)
		if err != nil {
			return d, err
		}
		d.order.Until = &end
	}
	if o, ok := pausedBy(b); ok && sameTime(o.Until, d.order.Until) {
		d.already = fmt.Sprintf("The membership is paused by order %d already, given by %s at %s.", o.Number, o.By,
			when(o.Time))
	}
	return d, nil
}

// pausedBy is the pause that lasts.
func pausedBy(b book) (record.Order, bool) {
	o, ok := b.inForce(kindIs(record.OrderPause))
	return o, ok && b.states[o.Number].State == table.OrderInForce
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
		return end, refused("--until %q: a time such as %s, or a duration such as 2h30m, is needed",
			text, now.Add(2*time.Hour).UTC().Truncate(time.Minute).Format(time.RFC3339))
	}
	end = end.UTC().Truncate(time.Second)
	if end.Year() > 9999 {
		return end, refused("--until %s: in UTC that is after the year 9999, which cannot be written down; for a "+
			"pause until 'quorate resume' leave it out", text)
	}
	if !end.After(now) {
		return end, refused("--until %s: that is %s, which has passed: it is %s now", text, when(end), when(now))
	}
	return end, nil
}

func newResume() *cobra.Command {
	var f orderFlags
	var reason string
	cmd := &cobra.Command{Use: "resume", Short: "End a pause", Args: noArguments,
		Long: `End a pause: what it held back goes on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return give(cmd, &f, func(b book) (draft, error) { return checkResume(b, reason) })
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the orders later")
	return cmd
}

func checkResume(b book, reason string) (draft, error) {
	d := draft{order: record.Order{Kind: record.OrderResume, Reason: reason}, back: "quorate pause",
		means: "What the pause held back goes on by itself."}
	if _, ok := pausedBy(b); !ok {
		d.already = "The membership is not paused."
	}
	return d, nil
}
