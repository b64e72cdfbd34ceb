package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

var (
	placeA = replica.Place{Zone: "us-central1-a", Name: "master-a"}
	placeB = replica.Place{Zone: "us-central1-b", Name: "master-b"}
)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

func said(at time.Time, k Kind, subject, text string) Event {
	return Event{At: at, Kind: k, Subject: subject, Text: text}
}

func batchOf(p replica.Place, instance, boot string, events ...Event) Batch {
	return Batch{Place: p, InstanceID: instance, BootID: boot, At: events[0].At, Events: events}
}

// wasShot: master-b is shot, another notices, and the VM is made again with an empty disk.
func wasShot() []Batch {
	return []Batch{
		batchOf(placeA, "1", "x", said(at(0), Ready, "", "is ready"),
			said(at(62), Silent, placeB.String(), "hears nothing of it"),
			said(at(90), ComponentState, "etcd", "etcd is ready")),
		batchOf(placeB, "2", "y", said(at(1), Ready, "", "is ready"), said(at(2), Row, "running", "row running holds")),
		batchOf(placeB, "3", "z", said(at(120), Began, "", "its agent began"),
			said(at(126), Joined, "b2", "is a voter")),
		batchOf(placeA, "1", "x", said(at(125), Heard, placeB.String(), "hears of it again")),
	}
}

func TestTheStoryOfAReplicaThatWasShot(t *testing.T) {
	batches := wasShot()
	var got []string
	for _, l := range Story(batches, placeB, t0) {
		got = append(got, l.At.Format("05 ")+l.By.Name+" "+l.Text)
	}
	want := []string{"01 master-b is ready", "02 master-a hears nothing of it",
		"02 master-b ended between 06:00:02 and 06:01:02 UTC without being asked to: power lost, killed, crashed, or its VM " +
			"was deleted. Its next boot began at 06:02:00 UTC, as another VM: instance 3 in place of 2",
		"00 master-b its agent began", "05 master-a hears of it again", "06 master-b is a voter"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if all := Lines(batches, t0); len(all) != 8 || !slices.IsSortedFunc(all,
		func(a, b Line) int { return a.At.Compare(b.At) }) {
		t.Errorf("%d lines: %+v", len(all), all)
	}
}

// How it ended is said as far as it is known, and does not depend on how far back a person asks.
func TestHowAnEndIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]Batch)
		at     time.Time
		want   string
	}{
		"its report was the last sign": {func(b []Batch) { b[2].Events[0].Before = at(60) }, at(62),
			"ended between 06:01:00 and 06:01:02 UTC without being asked to: power lost, killed, crashed, or its " +
				"VM was deleted. Its next boot began at 06:02:00 UTC, as another VM: instance 3 in place of 2"},
		"nobody noticed": {func(b []Batch) { b[0].Events[1].Kind, b[2].InstanceID = Heard, "2" }, at(2),
			"ended between 06:00:02 and 06:02:00 UTC without being asked to: power lost, killed or crashed. Its next " +
				"boot began at 06:02:00 UTC"},
		"in order": {func(b []Batch) {
			b[1].Events = []Event{said(at(40), Stopping, "", ""), said(at(50), Stopped, "", "")}
			b[2].InstanceID = "2"
		}, at(50), "stopped in order, as it was asked to at 06:00:40 UTC. Its next boot began at 06:02:00 UTC"},
		"asked, and nobody saw the end": {func(b []Batch) { // who was silent then was etcd
			b[1].Events[1], b[2].InstanceID = said(at(40), Stopping, "", ""), "2"
		}, at(40), "ended between 06:00:40 and 06:02:00 UTC; it was asked to stop at 06:00:40 UTC, and was not seen to " +
			"finish that. Its next boot began at 06:02:00 UTC"},
		"asked, and something hung": {func(b []Batch) {
			b[1].Events[1], b[2].InstanceID = said(at(40), Stopping, "", ""), "2"
			b[1].Events = append(b[1].Events, said(at(55), Unstopped, "", "could not stop everything that it ran: etcd"))
		}, at(55), "ended between 06:00:55 and 06:02:00 UTC; it was asked to stop at 06:00:40 UTC, and could not stop " +
			"everything that it ran: etcd. Its next boot began at 06:02:00 UTC"},
		"its agent ended to be started again, and was not": {func(b []Batch) {
			b[1].Events[1], b[2].InstanceID = said(at(40), Restarting, "", ""), "2"
		}, at(40), "ended between 06:00:40 and 06:02:00 UTC without being asked to: power lost, killed or crashed. Its " +
			"next boot began at 06:02:00 UTC"},
		"etcd had crashed before": {func(b []Batch) {
			b[1].Events = []Event{stateOf(at(1), "ready"), stateOf(at(50), "backoff")}
			b[2].InstanceID = "2"
		}, at(50), "ended between 06:00:50 and 06:02:00 UTC without being asked to: power lost, killed or crashed. Its " +
			"next boot began at 06:02:00 UTC"},
		"etcd had crashed before, and ran again": {func(b []Batch) {
			b[1].Events = []Event{stateOf(at(40), "backoff"), stateOf(at(50), "ready")}
			b[2].InstanceID = "2"
		}, at(62), "ended between 06:00:50 and 06:01:02 UTC without being asked to: power lost, killed or crashed. Its " +
			"next boot began at 06:02:00 UTC"},
		"its agent was started again after a stop": {func(b []Batch) {
			b[1].Events = []Event{said(at(20), Stopping, "", ""), said(at(30), Stopped, "", ""),
				said(at(40), Began, "", ""), stateOf(at(40), "ready")}
			b[2].InstanceID = "2"
		}, at(62), "ended between 06:00:40 and 06:01:02 UTC without being asked to: power lost, killed or crashed. Its " +
			"next boot began at 06:02:00 UTC"},
		"its agent was started again later": {func(b []Batch) {
			again := said(at(4000), Began, "former", "the report before")
			again.Before = at(3990)
			b[2].Events = append(b[2].Events, again)
			b[2].InstanceID = "2"
		}, at(62), "ended between 06:00:02 and 06:01:02 UTC without being asked to: power lost, killed or crashed. Its " +
			"next boot began at 06:02:00 UTC"},
		"the report before was read late": {func(b []Batch) {
			b[1].Events = []Event{said(at(40), Stopping, "", ""), said(at(50), Stopped, "", ""),
				said(at(50), Began, "former", "")}
			b[2].InstanceID = "2"
		}, at(50), "stopped in order, as it was asked to at 06:00:40 UTC. Its next boot began at 06:02:00 UTC"},
		"it was slow for a moment before": {func(b []Batch) {
			b[0].Events = slices.Insert(b[0].Events, 1, said(at(20), Silent, placeB.String(), ""),
				said(at(21), Heard, placeB.String(), ""))
			b[2].InstanceID = "2"
		}, at(62), "ended between 06:00:02 and 06:01:02 UTC without being asked to: power lost, killed or crashed. Its " +
			"next boot began at 06:02:00 UTC"},
		"days before": {func(b []Batch) {
			for _, n := range []int{0, 1} {
				b[1].Events[n].At = b[1].Events[n].At.AddDate(0, 0, -3)
			}
			b[1].At, b[2].InstanceID = b[1].Events[0].At, "2"
		}, at(62), "ended between 2026-11-20 06:00:02 and 06:01:02 UTC without being asked to: power lost, killed or " +
			"crashed. Its next boot began at 06:02:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			batches := wasShot()
			c.change(batches)
			for _, since := range []time.Time{t0.AddDate(0, 0, -4), t0, at(110)} {
				ends := Ends(batches, since)
				if len(ends) != 1 || ends[0].Text() != c.want || !ends[0].At().Equal(c.at) {
					t.Fatalf("since %s: %+v at %s\n     %q\nwant %q", since, ends, ends[0].At(), ends[0].Text(), c.want)
				}
			}
			if later := Ends(batches, at(121)); len(later) != 0 {
				t.Errorf("its next boot is older than what was asked for: %+v", later)
			}
		})
	}
}

// A boot that runs on beside its successor, after a host error, is no end of that.
func TestAFormerBootThatRunsOnEndsOnce(t *testing.T) {
	batches := append(wasShot(), batchOf(placeB, "2", "y",
		said(at(140), Waiting, "superseded", "waits, superseded: it is")),
		batchOf(placeB, "3", "z", said(at(150), Ready, "", "is ready")),
		batchOf(placeB, "2", "y", said(at(160), Resumed, "superseded", "")))
	ends := Ends(batches, t0)
	if len(ends) != 1 || !ends[0].Next.Equal(at(120)) || len(ends[0].Waits) != 0 || !ends[0].Ready.Equal(at(150)) {
		t.Errorf("%+v", ends)
	}
}

// A paragraph says what was wrong, what was done about it and why, and when the replica was whole.
func TestTheWholeOfAnEnd(t *testing.T) {
	batches := wasShot()
	batches[1].Events = []Event{said(at(1), Ready, "", ""),
		said(at(40), Waiting, "no-room", "waits, no-room: it is full."),
		said(at(41), Waiting, "alone", "waits, alone: nobody answers"), said(at(42), Resumed, "alone", "")}
	batches[2].Events = append(batches[2].Events,
		said(at(123), Did, "remove member", "removed a former member: its disk is gone"),
		said(at(123), Did, "archive", "put its former etcd directory into archive/: its disk is gone"),
		said(at(124), Did, "add learner", "was added"), said(at(124), Joined, "m", "its member m is a learner"),
		said(at(126), Joined, "m", "its member m is a voter"), said(at(130), Ready, "", ""),
		said(at(200), Did, "remove member", "removed a former member: of another"))
	e := Ends(batches, t0)[0]
	want := e.Text() + ", with an empty disk. At its end it waited: no-room since 06:00:40 UTC: it is full. It removed " +
		"a former member: its disk is gone; it put its former etcd directory into archive/. It was a voter at 06:02:06 and ready " +
		"at 06:02:10 UTC, 1m8s to 1m28s after its end."
	if got := e.Whole("with an empty disk"); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	batches[0].Events[1].Kind = Heard
	if got := Ends(batches, t0)[0].Whole(""); !strings.HasSuffix(got,
		"ready at 06:02:10 UTC, 10s after that boot began.") {
		t.Errorf("nobody noticed: %q", got)
	}
	batches[2].Events = batches[2].Events[:1]
	if got := Ends(batches, t0)[0].Whole(""); !strings.HasSuffix(got,
		"in place of 2. At its end it waited: no-room since 06:00:40 UTC: it is full. "+
			"It was not ready since: `quorate health` says how it is.") {
		t.Errorf("%q", got)
	}
}

// stateOf is what an agent says of its etcd.
func stateOf(at time.Time, state string) Event {
	e := said(at, ComponentState, "etcd", "etcd is "+state)
	e.State = state
	return e
}

// An agent that is started again finds its waits again, and knows since when they last.
func TestAWaitAtAnEndMayBeOlderThanItsAgent(t *testing.T) {
	batches := wasShot()
	full := said(at(53), Waiting, "no-room", "waits, no-room: it is full.")
	full.Since = at(-86400)
	batches[1].Events = []Event{said(at(45), Waiting, "former", "waits, former: of the agent before"),
		said(at(51), Began, "", ""), full, said(at(54), Waiting, "no-quorum", "waits, no-quorum: alone"),
		said(at(55), Waiting, "passing", "waits, passing: for a moment"), said(at(56), Resumed, "passing", "")}
	want := " At its end it waited: no-room since 2026-11-22 06:00:00 UTC: it is full; no-quorum since 06:00:54 UTC: " +
		"alone. "
	if got := Ends(batches, t0)[0].Whole(""); !strings.Contains(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestBriefLeavesOutWhatGoesWithoutSaying(t *testing.T) {
	line := func(k Kind, subject, text string) Line {
		return Line{Event: said(t0, k, subject, text), By: placeA}
	}
	former := line(Began, "former", "the report before")
	former.Before = t0
	later := func(d time.Duration, l Line) Line { l.At = t0.Add(d); return l }
	moment := later(aMoment, line(Heard, "b", "hears of b again"))
	full := func(k Kind, d time.Duration) Line { return later(d, line(k, "no-room", string(k))) }
	const hour = time.Hour
	lines := []struct {
		Line
		told bool
	}{
		{line(Began, "", "its agent began"), true}, {former, false}, {line(Phase, "", "phase etcd"), false},
		{line(Waiting, notUpYet, "it has just started"), false}, {line(Resumed, notUpYet, "it is up"), false},
		{line(Row, "join", "row join holds"), false}, {line(Did, "mark adding", "noted"), false},
		{line(Place, "", "has incarnation 1"), false}, {line(ComponentState, "etcd", "etcd is starting"), false},
		{line(Follows, "b", "follows b, which leads etcd"), false},
		{line(Unelected, "quorate", "does not see itself lead quorate any more"), false},
		{line(Silent, "b", "hears nothing of b"), false}, {moment, false},
		{line(Did, "archive", "put away"), true}, {line(Waiting, "no-quorum", "waits, no-quorum"), true},
		{line(Joined, "a", "is a voter"), true}, {line(Ready, "", "is ready"), true}, {former, false},
		{later(hour, line(Waiting, notUpYet, "it is down")), true},
		{later(hour+aPause+1, line(Resumed, notUpYet, "it is up")), true},
		{line(Leads, "", "knows of no etcd leader"), true}, {line(Elected, "quorate", "leads quorate"), true},
		{line(StartedAgain, "etcd", "etcd is ready, started again"), true},
		{line(Restarting, "", "stops its processes and starts again"), true}, {line(Gone, "", "ended"), true},
		{line(Silent, "b", "hears nothing of b"), true},
		// The story begins in the middle of a wait that comes back again and again, and ends in one.
		{full(Resumed, hour), true}, {full(Waiting, hour+aPause), true}, {full(Resumed, hour+aPause+1), false},
		{full(Waiting, hour+2*aPause), false}, {full(Resumed, hour+2*aPause+1), true},
		{later(3*hour, line(Began, "", "its agent began again")), true},
		{later(3*hour, line(Waiting, notUpYet, "it never comes up")), true},
	}
	var all, wanted []Line
	for _, l := range lines {
		all = append(all, l.Line)
		if l.told {
			wanted = append(wanted, l.Line)
		}
	}
	texts := func(list []Line) (out []string) {
		for _, l := range list {
			out = append(out, l.At.Format("15:04:05 ")+l.Text)
		}
		return out
	}
	if got := Brief(all); !slices.Equal(got, wanted) {
		t.Errorf("%q\nwant %q", texts(got), texts(wanted))
	}
}
