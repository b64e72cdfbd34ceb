package lease

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyTheLeaseOfAProcessThatEndedHereIsReleased(t *testing.T) {
	launched := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	exited := launched.Add(time.Hour)
	byRun := Ended{Host: "master-a", Launched: launched, Exited: exited}
	byHost := byRun
	byHost.HolderIsHost = true
	with := func(e Ended, change func(*Ended)) Ended { change(&e); return e }
	shared := func(e *Ended) { e.HostShared = true }
	again := func(e *Ended) { e.RunsAgain = true }
	before := exited.Add(-time.Second)
	for name, c := range map[string]struct {
		ended Ended
		seen  Seen
		why   string // empty: it is released
	}{
		"held by the process that exited":       {byRun, Seen{"master-a_123", before}, ""},
		"renewed as it exited":                  {byRun, Seen{"master-a_123", exited}, ""},
		"free already":                          {byRun, Seen{"", before}, "nobody"},
		"another replica's":                     {byRun, Seen{"master-b_123", before}, "another replica's"},
		"another's, whose name begins like it":  {byRun, Seen{"master-a2_123", before}, "another replica's"},
		"the bare host, where it is not enough": {byRun, Seen{"master-a", before}, "another replica's"},
		"renewed since: its successor has it":   {byRun, Seen{"master-a_456", exited.Add(1)}, "renewed after"},
		"renewed after the clock was set back": {byRun, Seen{"master-a_123", exited.Add(time.Hour)},
			"renewed after"},
		"a standby ended: its lease is another's": {byRun, Seen{"master-b_9", before}, "another replica's"},
		"a recreated VM's, from before":           {byRun, Seen{"master-a_1", launched.Add(-1)}, "another process"},
		"two VMs of one name": {with(byRun, shared), Seen{"master-a_123", before},
			"host name too"},
		"its successor runs, with another identity": {with(byRun, again), Seen{"master-a_123", before}, ""},

		"by host: held by it":                    {byHost, Seen{"master-a", before}, ""},
		"by host: its successor runs":            {with(byHost, again), Seen{"master-a", before}, "successor"},
		"by host: its successor renewed it":      {byHost, Seen{"master-a", exited.Add(1)}, "renewed after"},
		"by host: another's":                     {byHost, Seen{"master-b", before}, "another replica's"},
		"by host: another's that begins like it": {byHost, Seen{"master-a_1", before}, "another replica's"},
		"by host: two VMs of one name":           {with(byHost, shared), Seen{"master-a", before}, "host name too"},
		"by host: a recreated VM's, from before": {byHost, Seen{"master-a", launched.Add(-1)}, "another process"},
		"by host: a domain name is another identity": {byHost, Seen{"master-a.c.p.internal", before},
			"another replica's"},
	} {
		yes, why := MayRelease(c.ended, c.seen)
		if yes != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %t, %q", name, yes, why)
		}
	}
}
