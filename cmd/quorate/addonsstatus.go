package main

import (
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// mostAddons is how many objects a status shows; the JSON has all.
const mostAddons = 10

// showAddonObjects lists the objects of the add-ons of which there is something to say, each with its reason.
func showAddonObjects(w io.Writer, s *plan.Status, now time.Time) {
	var rows []terminal.Row
	for _, group := range []struct {
		state   string
		objects []plan.ObjectStatus
	}{{"failing", s.Failing}, {"contested", s.Contested}, {"not ready", s.NotReady}} {
		for _, o := range group.objects {
			rows = append(rows, terminal.Row{Cells: []string{o.Object, group.state, terminal.Age(now, o.Since),
				terminal.OrNone(o.Source)}, Below: o.Reason})
		}
	}
	more := len(rows) - mostAddons
	terminal.PrintTable(w, []string{"ADD-ON", "STATE", "FOR", "FILE"}, rows[:min(len(rows), mostAddons)])
	if more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
