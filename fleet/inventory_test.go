package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// What a reading says of the members, by how the reports and the VMs are.
func TestWhoIsBelieved(t *testing.T) {
	edit := func(w *world, n int, change func(*world, replica.Place)) { change(w, place(n)) }
	waits := func(name string) func(*world, replica.Place) {
		return func(w *world, p replica.Place) {
			s := w.reports[p]
			s.Waits = []replica.Wait{{Name: name}}
			w.reports[p] = s
		}
	}
	for _, tc := range []struct {
		name   string
		change func(w *world)
		// unknown is in Members.Unknown; ready says of each replica whether it is ready.
		unknown, ready string
	}{
		{"all well", func(*world) {}, "", "yyy"},
		{"one waits for something", func(w *world) { edit(w, 1, waits("no-room")) }, "", "yny"},
		{"one has a note", func(w *world) { edit(w, 1, waits("even-voters")) }, "", "yyy"},
		{"one's report is of its former VM", func(w *world) { w.vms[place(1)].InstanceID = "9" }, "", "yny"},
		{"one's report is of its former member", func(w *world) {
			s := w.reports[place(1)]
			s.Member = "a0"
			w.reports[place(1)] = s
		}, "", "yny"},
		{"the leader's VM is off", func(w *world) { w.vms[place(0)].Status = "TERMINATED" }, "no report", ""},
		{"the leader's report is of an earlier epoch", func(w *world) {
			s := w.reports[place(0)]
			s.ClusterID = "c0"
			w.reports[place(0)] = s
		}, "no report", ""},
		{"the leader stops", func(w *world) {
			s := w.reports[place(0)]
			s.Phase = "stopping"
			w.reports[place(0)] = s
		}, "no report", ""},
		{"the leader has been silent for long", func(w *world) {
			s := w.reports[place(0)]
			s.Written = time.Now().Add(-2 * time.Minute)
			w.reports[place(0)] = s
		}, "no report", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inWorld(t, 3, func(t *testing.T, w *world) {
				w.mu.Lock()
				tc.change(w)
				w.mute = map[replica.Place]bool{place(0): true, place(1): true, place(2): true}
				w.mu.Unlock()
				r, err := fleetOf(w).Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ready := ""
				for _, m := range r.Members.List {
					if !m.Heard && m.Place != place(1) {
						t.Errorf("%s is not heard of", m.Place)
					}
					ready += map[bool]string{true: "y", false: "n"}[m.Ready]
				}
				if ready != tc.ready || !strings.Contains(r.Members.Unknown, tc.unknown) ||
					(r.Members.Unknown == "") != (tc.unknown == "") {
					t.Errorf("%+v, want %q, ready %s", r.Members, tc.unknown, tc.ready)
				}
			})
		})
	}
}

// What a reading says of the record.
func TestTheRecordAsItIsRead(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		p := place(1)
		w.mu.Lock()
		w.orders = append(w.orders, record.Order{Number: 2, Kind: record.OrderReplicas, Replicas: 5},
			record.Order{Number: 3, Kind: record.OrderLeave, Place: &p},
			record.Order{Number: 4, Kind: record.OrderPause})
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
		r, err := fleetOf(w).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k := r.Record
		if k.Wanted != 5 || !strings.Contains(k.Busy, "paused") || len(k.Leaves) != 1 || k.Leaves[0].Number != 3 ||
			!k.Leaves[0].Done || len(k.Replicas) != 3 || k.Replicas[1].DiskID != "1003" || k.Region != region ||
			!k.Begun || !k.Formed {
			t.Errorf("%+v", k)
		}
		w.mu.Lock()
		w.formed = false // its claim and outcome are lost
		w.mu.Unlock()
		if r, err := fleetOf(w).Read(t.Context()); err == nil || r.Record.Unread == "" {
			t.Errorf("a damaged record is believed: %+v", r.Record)
		}
	})
}

// A disk and a VM that a command makes are known again by their labels, in another reading.
func TestLabelsTellWhoseADiskIs(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		for _, c := range commands {
			if c.name != "replace" {
				continue
			}
			if err := c.run(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		r, err := fleetOf(w).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, d := range r.Disks {
			if d.Replica != "" && d.Replica == d.User && d.Replaces == "1004" {
				found++
			}
		}
		for _, v := range r.VMs {
			if v.Labels["team"] == "infra" && v.Labels[fleet.ReplacesLabel] == "1004" {
				found++
			}
		}
		if found != 2 {
			t.Errorf("%d of 2 are known again: %+v", found, r.Disks)
		}
	})
}
