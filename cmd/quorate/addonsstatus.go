package main

import (
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/addons/plan"
)

// mostAddons is how many objects a status shows; the JSON has all.
const mostAddons = 10

// showAddonObjects lists the objects of the add-ons of which there is something to say, each with its reason.
func showAddonObjects(w io.Writer, s *plan.Status, now time.Time) {
	var rows []row
	for _, group := range []struct {
		state   string
		objects []plan.ObjectStatus
	}{{"failing", s.Failing}, {"contested", s.Contested}, {"not ready", s.NotReady}} {
		for _, o := range group.objects {
			rows = append(rows, row{cells: []string{o.Object, group.state, age(now, o.Since), orNone(o.Source)},
				below: o.Reason})
		}
	}
	more := len(rows) - mostAddons
	printTable(w, []string{"ADD-ON", "STATE", "FOR", "FILE"}, rows[:min(len(rows), mostAddons)])
	if more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
