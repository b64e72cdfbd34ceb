package report

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// A master is shot, another notices, and the VM is made again with an empty disk.
func TestTheStoryOfAReplicaThatWasShot(t *testing.T) {
	a, b := replica.Place{Zone: "us-central1-a", Name: "master-a"}, replica.Place{Zone: "us-central1-b",
		Name: "master-b"}
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	batch := func(p replica.Place, instance, boot string, events ...Event) Batch {
		return Batch{Place: p, InstanceID: instance, BootID: boot, At: events[0].At, Events: events}
	}
	batches := []Batch{
		batch(a, "1", "x", Event{at(0), Ready, "", "is ready"}, Event{at(62), Silent, b.String(),
			"hears nothing of it"},
			Event{at(90), ComponentState, "etcd", "etcd is ready"}),
		batch(b, "2", "y", Event{at(1), Ready, "", "is ready"}, Event{at(2), Row, "running", "row running holds"}),
		batch(b, "3", "z", Event{at(120), Began, "", "its agent began"}, Event{at(126), Joined, "b2", "is a voter"}),
		batch(a, "1", "x", Event{at(125), Heard, b.String(), "hears of it again"}),
	}
	var got []string
	for _, l := range Story(batches, b, t0) {
		got = append(got, l.At.Format("05 ")+l.By.Name+" "+l.Text)
	}
	want := []string{"01 master-b is ready", "02 master-a hears nothing of it",
		"02 master-b ended without being asked to: power lost, killed or crashed. Its next boot began at 06:02:00 UTC, " +
			"as another VM: instance 3 in place of 2",
		"00 master-b its agent began", "05 master-a hears of it again", "06 master-b is a voter"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	batches[1].Events[1] = Event{at(2), Stopping, "", "was asked to stop"}
	batches[2].InstanceID = "2"
	story := Story(batches, b, at(60))
	if len(story) < 2 || story[1].Text != "had stopped in order; its next boot began at 06:02:00 UTC" ||
		story[0].Kind != Silent {
		t.Errorf("after a stop: %+v", story)
	}
	late := Story(batches, b, at(100))
	if len(late) == 0 || late[0].Kind != Gone || !late[0].At.Equal(at(100)) {
		t.Errorf("its last event is older than the story: %+v", late)
	}
	if all := Lines(batches, t0); len(all) != 8 || !slices.IsSortedFunc(all,
		func(a, b Line) int { return a.At.Compare(b.At) }) {
		t.Errorf("%d lines: %+v", len(all), all)
	}
}
