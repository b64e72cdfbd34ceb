package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// stoppable is a project whose VMs can be stopped, which takes 5 s.
type stoppable struct {
	mu      sync.Mutex // VMs are stopped at the same time
	list    []gce.Instance
	stopped []string // by id, in order
	refuses error    // to stop
	silent  error    // to list
}

func (s *stoppable) Instances(context.Context, string) ([]gce.Instance, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list), time.Time{}, s.silent
}

func (s *stoppable) StopInstance(_ context.Context, p replica.Place, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.IndexFunc(s.list, func(i gce.Instance) bool { return i.InstanceID == id && i.Place == p })
	if n < 0 || s.list[n].Status == "TERMINATED" {
		return fmt.Errorf("stopped %s in %s, which does not run: %v", id, p, s.list)
	}
	if s.refuses != nil {
		return s.refuses
	}
	s.list[n].Status = "STOPPING"
	s.mu.Unlock()
	time.Sleep(5 * time.Second)
	s.mu.Lock()
	s.list[n].Status = "TERMINATED"
	s.stopped = append(s.stopped, id)
	return nil
}

// ordered is the record of a cluster whose restore by A is ordered, and accepted.
func ordered() record.View {
	w := wrecked()
	v := w.View
	v.Epochs = []record.Epoch{w.epoch}
	v.Orders = []record.Order{{Number: 4, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1, Replica: placeA}, Accepted: &record.Accepted{}}}
	return v
}

func TestVMsThatKeepARestoreWaitingAreStopped(t *testing.T) {
	running := func(p replica.Place, id string) gce.Instance {
		return gce.Instance{Place: p, InstanceID: id, Status: "RUNNING"}
	}
	for _, tc := range []struct {
		name   string
		change func(*record.View, *stoppable)
		// stopped after how many seconds, told.
		stopped string
		seconds int
		told    []string
	}{
		{"nobody before the order is accepted", func(v *record.View, _ *stoppable) { v.Orders[0].Accepted = nil }, "", 120, nil},
		{"nobody once the epoch has ended", func(v *record.View, _ *stoppable) { v.Epochs[0].Closed = &record.Closed{} }, "", 120, nil},
		{"nobody who may still say so himself", func(*record.View, *stoppable) {}, "", 18, nil},
		{"both others, and never the one that restores", func(*record.View, *stoppable) {}, "102 103", 60,
			[]string{"Stopping us-central1-b.master-b (instance 102), which is RUNNING.", "us-central1-c.master-c (instance 103) is stopped.", "gcloud compute instances start master-c --zone us-central1-c"}},
		{"not the one that has said so", func(v *record.View, _ *stoppable) {
			v.Epochs[0].Stopped = []record.Stopped{{Place: placeB, Incarnation: 1}}
		}, "103", 60, nil},
		{"not one that has followed under the name", func(_ *record.View, s *stoppable) { s.list[1].InstanceID = "200" }, "103", 60, nil},
		{"not what is off already", func(_ *record.View, s *stoppable) { s.list[1].Status = "TERMINATED" }, "103", 60, nil},
		{"an earlier VM of the restorer's place that still runs", func(v *record.View, s *stoppable) {
			later := v.Replicas[placeA][0]
			later.Number, later.InstanceID = 2, "301"
			v.Replicas[placeA] = append(v.Replicas[placeA], later)
			s.list = append(s.list, running(placeA, "301"))
		}, "101 102 103", 60, nil},
		{"a refusal is told once, and tried again", func(_ *record.View, s *stoppable) {
			s.list, s.refuses = s.list[:2], errors.New("found status 403")
		}, "", 120, []string{"master-b (instance 102) was not stopped: found status 403. It is tried again."}},
		{"no list", func(_ *record.View, s *stoppable) { s.silent = errors.New("no answer") }, "", 120, []string{"Which VMs still run is not known: no answer."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := ordered()
				api := &stoppable{list: []gce.Instance{running(placeA, "101"), running(placeB, "102"), running(placeC, "103")}}
				tc.change(&v, api)
				var out strings.Builder
				s := newVMStops(api, "demo")
				for begin := time.Now(); time.Since(begin) < time.Duration(tc.seconds)*time.Second; time.Sleep(followPeriod) {
					s.look(t.Context(), &out, waitsFor(v, 1, now), time.Now())
					synctest.Wait()
				}
				slices.Sort(api.stopped)
				if got := strings.Join(api.stopped, " "); got != tc.stopped {
					t.Errorf("stopped %q, want %q", got, tc.stopped)
				}
				text := strings.Join(strings.Fields(out.String()), " ")
				for _, want := range tc.told {
					if strings.Count(text, want) != 1 {
						t.Errorf("told %d times: %q in %q", strings.Count(text, want), want, text)
					}
				}
				if strings.Contains(text, "which does not run") {
					t.Error(text)
				}
			})
		})
	}
}
