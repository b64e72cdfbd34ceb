package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

var t0 = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)

// ready is a replica that is well, and leads two others.
func ready(at time.Time) Report {
	return Report{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "101", BootID: "boot-1111",
		At: at, Phase: "keep", Ready: true, Cluster: "demo", Epoch: 1, Incarnation: 1, Member: "a1", Row: "running",
		Members: []Member{{Name: "us-central1-a.master-a", ID: "a1", Role: "voter", Leader: true, Started: true,
			Heard: new(true)},
			{Name: "us-central1-b.master-b", ID: "b1", Role: "voter", Started: true, Heard: new(true),
				Lag: new(uint64(0))}},
		Components: []Component{{Name: "etcd", State: "ready"}, {Name: "kube-apiserver", State: "ready"}}}
}

// written runs an outbox for a while: each second it observes what now says, and all that it writes succeeds unless
// fails says otherwise.
func written(o *Outbox, lasts time.Duration, now func(at time.Time) Report,
	fails func(at time.Time) bool) (out []Write) {
	for at := t0; at.Before(t0.Add(lasts)); at = at.Add(250 * time.Millisecond) {
		if at.Sub(t0)%time.Second == 0 {
			o.Observe(now(at))
		}
		w := o.Next(at)
		if w == (Write{}) {
			continue
		}
		var err error
		if fails != nil && fails(at) {
			w, err = Write{}, errors.New("503")
		} else {
			out = append(out, w)
		}
		o.Done(at, w, err)
	}
	return out
}

func reportsOf(list []Write) (out []Report) {
	for _, w := range list {
		if w.Report != nil {
			out = append(out, *w.Report)
		}
	}
	return out
}

func eventsOf(list []Write) (out []Event) {
	for _, w := range list {
		if w.Batch != nil {
			out = append(out, w.Batch.Events...)
		}
	}
	return out
}

func TestAReplicaThatIsWellReportsEachHalfMinute(t *testing.T) {
	var o Outbox
	lag := uint64(0)
	all := reportsOf(written(&o, 10*time.Minute, func(at time.Time) Report {
		r := ready(at)
		lag++ // what changes all the time is no change
		r.Members[1].Lag, r.RecordRead = new(lag), &at
		return r
	}, nil))
	if len(all) != 20 {
		t.Errorf("%d reports in ten minutes, want 20", len(all))
	}
}

func TestAChangeIsWrittenAtOnceAndAtMostOneASecond(t *testing.T) {
	var o Outbox
	all := reportsOf(written(&o, time.Minute, func(at time.Time) Report {
		r := ready(at)
		if at.Sub(t0)/time.Second == 7 {
			r.Ready = false
		}
		return r
	}, nil))
	var at []time.Duration
	for _, r := range all {
		at = append(at, r.At.Sub(t0))
	}
	if want := []time.Duration{0, 7 * time.Second, 8 * time.Second, 38 * time.Second}; !slices.Equal(at, want) {
		t.Errorf("written at %v, want %v", at, want)
	}
}

func TestWhatChangesEachSecondIsBounded(t *testing.T) {
	var o Outbox
	n := 0
	all := written(&o, 2*time.Hour, func(at time.Time) Report {
		r := ready(at)
		n++
		r.Incarnation = uint64(n)
		return r
	}, nil)
	// those of each period, what the allowances refill, and their bursts
	if got := len(reportsOf(all)); got > 240+120+5000/12+1 {
		t.Errorf("%d reports in two hours", got)
	}
	batches := 0
	for _, w := range all {
		if w.Batch != nil {
			batches++
		}
	}
	var dropped, said uint64
	kept := 0
	for _, e := range eventsOf(all) {
		if e.Kind != Dropped {
			kept++
			continue
		}
		fmt.Sscanf(e.Text, "%d", &said)
		dropped += said
	}
	if kept > 1000+5000/12+1 || kept < 1000 {
		t.Errorf("%d events in two hours", kept)
	}
	if said := len(eventsOf(all)) - kept; batches > kept || said > batches {
		t.Errorf("%d batches and %d notes of what was dropped, for %d events", batches, said, kept)
	}
	if dropped < 5700 || o.last.EventsDropped < 5700 {
		t.Errorf("of 7,200 events %d are said to be dropped, and the report says %d", dropped, o.last.EventsDropped)
	}
}

func TestAStoreThatFailsIsAskedLessAndLessAndLosesNothing(t *testing.T) {
	var o Outbox
	asked := 0
	all := written(&o, 5*time.Minute, func(at time.Time) Report {
		r := ready(at)
		if at.Sub(t0)/time.Minute%2 == 1 {
			r.Phase, r.Ready = "control plane", false
		}
		return r
	}, func(at time.Time) bool {
		if at.Sub(t0) < 4*time.Minute {
			asked++
			return true
		}
		return false
	})
	if asked > 13 {
		t.Errorf("asked %d times in four minutes", asked)
	}
	var got []string
	for _, e := range eventsOf(all) {
		if e.Kind == Began || e.Kind == Ready || e.Kind == Phase {
			got = append(got, fmt.Sprintf("%s %s", e.At.Sub(t0), e.Kind))
		}
	}
	want := []string{"0s began", "0s ready", "1m0s phase", "2m0s ready", "3m0s phase", "4m0s ready"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The name of a batch must not change from try to try: the first may have taken effect.
func TestABatchKeepsItsNameUntilItIsWritten(t *testing.T) {
	var o Outbox
	o.Observe(ready(t0))
	first := o.Next(t0)
	o.Done(t0, Write{}, errors.New("no answer"))
	changed := ready(t0.Add(time.Second))
	changed.Ready = false
	o.Observe(changed)
	if w := o.Next(t0.Add(500 * time.Millisecond)); w != (Write{}) {
		t.Errorf("it does not pause: %+v", w)
	}
	again := o.Next(t0.Add(2 * time.Second))
	if first.Batch == nil || again.Batch == nil || again.Batch.Key() != first.Batch.Key() ||
		len(again.Batch.Events) != len(first.Batch.Events) {
		t.Errorf("%+v, then %+v", first.Batch, again.Batch)
	}
	if again.Report == nil || again.Report.Ready {
		t.Errorf("it writes an old report: %+v", again.Report)
	}
}

func TestWhatIsLeftAtTheEndIsWrittenToTheLast(t *testing.T) {
	var o Outbox
	o.Observe(ready(t0))
	o.Done(t0, Write{Report: o.Next(t0).Report}, errors.New("the batch was refused"))
	r := ready(t0.Add(time.Second))
	r.Phase, r.Ready = "stopping", false
	o.Observe(r)
	var all []Write
	for w := o.Rest(r.At); w != (Write{}) && len(all) < 10; w = o.Rest(r.At) {
		all = append(all, w)
		o.Done(r.At, w, nil)
	}
	if list := reportsOf(all); len(list) != 1 || list[0].Phase != "stopping" {
		t.Errorf("%d reports: %+v", len(list), list)
	}
	list := eventsOf(all)
	if len(all) != 2 || list[0].Kind != Began || list[len(list)-1].Kind != Stopping {
		t.Errorf("%d writes: %+v", len(all), list)
	}
}

func TestAMemberIsNotHeardOfOnceTwoObservationsSaySo(t *testing.T) {
	var o Outbox
	at := t0
	silent := func(heard ...bool) (events []string) {
		for _, h := range heard {
			at = at.Add(time.Second)
			r := ready(at)
			r.Members[1].Heard = &h
			o.Observe(r)
		}
		for _, e := range o.queue {
			if e.Kind == Silent || e.Kind == Heard {
				events = append(events, string(e.Kind)+" "+e.Subject)
			}
		}
		return events
	}
	if got := silent(true, false, true, false, true); len(got) > 0 {
		t.Errorf("raft has forgotten it once: %q", got)
	}
	want := []string{"silent us-central1-b.master-b", "heard us-central1-b.master-b"}
	if got := silent(false, false, false, true, true); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAReportHasNoLongTextsAndNoLongLists(t *testing.T) {
	r := ready(t0)
	for n := range 1000 {
		r.Waits = append(r.Waits, replica.Wait{Name: fmt.Sprint(n), Reason: strings.Repeat("x", 5000)})
		r.Components = append(r.Components, Component{Name: fmt.Sprint(n), Reason: strings.Repeat("é", 5000)})
	}
	c := r.Cleaned()
	if len(c.Waits) != mostItems || len(c.Components) != mostItems || len(c.Waits[0].Reason) > longestText ||
		len(c.Components[5].Reason) > longestText {
		t.Errorf("%d waits, %d components", len(c.Waits), len(c.Components))
	}
	if len(r.Waits[0].Reason) != 5000 {
		t.Error("the status itself was changed")
	}
}
