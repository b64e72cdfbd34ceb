package restoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// stoppable is a project whose VMs can be stopped, which takes 5 s.
type stoppable struct {
	mu      sync.Mutex // VMs are stopped at the same time
	list    []replica.VM
	stopped []string // by id, in order
	refuses error    // to stop
	silent  error    // to list
	noted   []string // in the record, as order and id
	unnoted error    // why it cannot be noted
}

func (s *stoppable) NoteVMStop(_ context.Context, order uint64, v record.VMStop) (record.VMStop, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unnoted != nil {
		err := s.unnoted
		s.unnoted = nil // it is found the next time
		return v, false, err
	}
	if !slices.Contains(s.stopped, v.InstanceID) || v.By == "" {
		return v, false, fmt.Errorf("%s was not stopped", v.InstanceID)
	}
	s.noted = append(s.noted, fmt.Sprint(order, " ", v.InstanceID))
	return v, true, nil
}

func (s *stoppable) VMs(context.Context) ([]replica.VM, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list), time.Time{}, s.silent
}

func (s *stoppable) StopInstance(_ context.Context, p replica.Place, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.IndexFunc(s.list, func(i replica.VM) bool { return i.InstanceID == id && i.Place == p })
	switch {
	case n < 0:
		return fmt.Errorf("stopped %s in %s, which is not there: %v", id, p, s.list)
	case s.refuses != nil:
		return s.refuses
	case s.list[n].Status == "TERMINATED" || s.list[n].Status == "STOPPED": // the operation ends at once
		s.stopped = append(s.stopped, id)
		return nil
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
	r := lostQuorum()
	v := r.Record
	v.Epochs = []record.Epoch{r.Ends}
	v.Orders = []record.Order{{Number: 4, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1,
		Replica: placeA}, Accepted: &record.Accepted{}}}
	return v
}

func TestVMsThatKeepARestoreWaitingAreStopped(t *testing.T) {
	running := func(p replica.Place, id string) replica.VM {
		return replica.VM{Place: p, InstanceID: id, Status: "RUNNING"}
	}
	for _, tc := range []struct {
		name   string
		change func(*record.View, *stoppable)
		// stopped after how many seconds, told.
		stopped string
		seconds int
		told    []string
	}{
		{"nobody before the order is accepted", func(v *record.View, _ *stoppable) { v.Orders[0].Accepted = nil }, "",
			120, nil},
		{"nobody once the epoch has ended",
			func(v *record.View, _ *stoppable) { v.Epochs[0].Closed = &record.Closed{} }, "", 120, nil},
		{"nobody who may still say so himself", func(*record.View, *stoppable) {}, "", 18, nil},
		{"both others, and never the one that restores", func(*record.View, *stoppable) {}, "102 103", 60,
			[]string{"Stopping us-central1-b.master-b (instance 102), which is RUNNING.",
				"us-central1-c.master-c (instance 103) is stopped.",
				"gcloud compute instances start master-c --zone us-central1-c"}},
		{"not the one that has said so", func(v *record.View, _ *stoppable) {
			v.Epochs[0].Stopped = []record.Stopped{{Place: placeB, Incarnation: 1}}
		}, "103", 60, nil},
		{"not one that has followed under the name",
			func(_ *record.View, s *stoppable) { s.list[1].InstanceID = "200" }, "103", 60, nil},
		{"what another has stopped once more, so that it is proven",
			func(_ *record.View, s *stoppable) { s.list[1].Status, s.list[2].Status = "TERMINATED", "STOPPED" },
			"102 103", 24,
			[]string{"us-central1-b.master-b (instance 102) is TERMINATED already, and not by this command.",
				"us-central1-c.master-c (instance 103) is STOPPED already"}},
		{"not what was stopped for an order before", func(v *record.View, s *stoppable) {
			s.list[1].Status = "TERMINATED"
			v.Orders[0].VMStops = map[string]record.VMStop{"102": {InstanceID: "102"}}
		}, "103", 60, nil},
		{"what was, and runs again", func(v *record.View, _ *stoppable) {
			v.Orders[0].VMStops = map[string]record.VMStop{"102": {InstanceID: "102"}}
		}, "102 103", 60, nil},
		{"what was, was started again and stopped by another", func(v *record.View, s *stoppable) {
			s.list[1].Status = "TERMINATED"
			v.Orders[0].VMStops = map[string]record.VMStop{"102": {InstanceID: "102", Written: now}}
			v.Replicas[placeB][0].Written = now.Add(time.Minute)
		}, "102 103", 60, []string{"us-central1-b.master-b (instance 102) is TERMINATED already, and not by this"}},
		{"nobody once the verdict is there", func(v *record.View,
			_ *stoppable) {
			v.Orders[0].Verdict = &record.Verdict{Closing: true}
		}, "", 120, nil},
		{"a note that fails is written again", func(_ *record.View,
			s *stoppable) {
			s.unnoted = errors.New("no answer")
		}, "102 103", 60,
			[]string{"is stopped could not be noted: no answer. It is tried again."}},
		{"an earlier VM of the restorer's place that still runs", func(v *record.View, s *stoppable) {
			later := v.Replicas[placeA][0]
			later.Number, later.InstanceID = 2, "301"
			v.Replicas[placeA] = append(v.Replicas[placeA], later)
			s.list = append(s.list, running(placeA, "301"))
		}, "101 102 103", 60, nil},
		{"a refusal is told once, and tried again", func(_ *record.View, s *stoppable) {
			s.list, s.refuses = s.list[:2], errors.New("found status 403")
		}, "", 120, []string{"master-b (instance 102) was not stopped: found status 403. It is tried again."}},
		{"no list", func(_ *record.View, s *stoppable) { s.silent = errors.New("no answer") }, "", 120,
			[]string{"Which VMs still run is not known: no answer."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := ordered()
				api := &stoppable{list: []replica.VM{running(placeA, "101"), running(placeB, "102"),
					running(placeC, "103")}}
				tc.change(&v, api)
				var out strings.Builder
				s := NewStops(api, api)
				for begin := time.Now(); time.Since(begin) < time.Duration(tc.seconds)*time.Second; time.Sleep(
					followPeriod) {
					r, p := order.Follow(v, 1, now)
					s.check(t.Context(), &out, r, p, time.Now())
					synctest.Wait()
					for _, id := range api.stopped { // as the record has it then
						if slices.Contains(api.noted, "4 "+id) {
							v.Orders[0].VMStops = maps.Clone(v.Orders[0].VMStops)
							if v.Orders[0].VMStops == nil {
								v.Orders[0].VMStops = map[string]record.VMStop{}
							}
							v.Orders[0].VMStops[id] = record.VMStop{InstanceID: id, Written: now.Add(time.Hour)}
						}
					}
				}
				slices.Sort(api.stopped)
				slices.Sort(api.noted)
				if got := strings.ReplaceAll(strings.Join(api.noted, " "), "4 ", ""); got != tc.stopped {
					t.Errorf("noted %q, want %q", got, tc.stopped)
				}
				if got := strings.Join(api.stopped, " "); got != tc.stopped {
					t.Errorf("stopped %q, want %q", got, tc.stopped)
				}
				text := strings.Join(strings.Fields(out.String()), " ")
				for _, want := range tc.told {
					if strings.Count(text, want) != 1 {
						t.Errorf("told %d times: %q in %q", strings.Count(text, want), want, text)
					}
				}
				if strings.Contains(text, "which is not there") {
					t.Error(text)
				}
			})
		})
	}
}
