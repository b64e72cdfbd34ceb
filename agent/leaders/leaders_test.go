package leaders

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/agent/lease"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// What is released, and what is left alone, when a component has exited on this machine.
func TestALeaseIsReleasedOnlyForAProcessOfThisHostThatHasExited(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	exit := supervisor.Exit{Launched: time.Now().Add(-time.Hour), At: time.Now()}
	scheduler := controlplane.Lease{Component: replica.Scheduler, Name: "kube-scheduler"}
	autoscaler := controlplane.Lease{Component: replica.Autoscaler, Name: "cluster-autoscaler", HolderIsHost: true}
	namesake := func(s *table.MemberStatus) { s.Members[1].Name = "us-central1-c.master-a.103" }
	for name, c := range map[string]struct {
		of       controlplane.Lease
		holder   string
		change   func(*leaseServer)
		members  func(*table.MemberStatus)
		released bool
	}{
		"the scheduler's":  {scheduler, host + "_123", nil, nil, true},
		"the autoscaler's": {autoscaler, host, nil, nil, true},
		"another's":        {scheduler, "other_123", nil, nil, false},
		"somebody was quicker": {scheduler, host + "_1", func(s *leaseServer) { s.conflict = true }, nil,
			false},
		"the apiserver answers later": {scheduler, host + "_1", func(s *leaseServer) { s.fails = 3 }, nil, true},
		"it never answers": {scheduler, host + "_1", func(s *leaseServer) { s.fails = 1000 }, nil,
			false},
		"there is none": {scheduler, host + "_1", func(s *leaseServer) { s.lease = nil }, nil,
			false},
		"two VMs of one name":              {scheduler, host + "_1", nil, namesake, false},
		"two VMs of one name, autoscaling": {autoscaler, host, nil, namesake, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.members)
			l, s := w.leaders, w.leasing()
			s.lease.Spec.HolderIdentity, s.lease.ResourceVersion = &c.holder, "5"
			s.lease.Spec.RenewTime = new(metav1.NewMicroTime(exit.At.Add(-time.Second)))
			if c.change != nil {
				c.change(s)
			}
			l.release(t.Context(), c.of, exit)
			if (s.updates == 1) != c.released {
				t.Errorf("%d updates", s.updates)
			}
			if c.released && (*s.lease.Spec.HolderIdentity != "" || s.lease.ResourceVersion != "5") {
				t.Errorf("%+v", s.lease)
			}
		})
	}
}

// An autoscaler takes whoever has its host name for itself: next to a namesake's it does not run.
func TestAnAutoscalerDoesNotRunNextToANamesakes(t *testing.T) {
	w := newWorld(t, nil)
	on := w.cluster.Components[replica.Autoscaler]
	on.Enabled = new(true)
	w.cluster.Components[replica.Autoscaler] = on
	if err := w.leaders.Clash(t.Context(), replica.Autoscaler); err != nil {
		t.Error(err)
	}
	w.members(func(s *table.MemberStatus) { s.Members[1].Name = "us-central1-c.master-a.103" })
	if err := w.leaders.Clash(t.Context(), replica.Autoscaler); err == nil {
		t.Error("two would run")
	}
	if err := w.leaders.Clash(t.Context(), replica.Scheduler); err != nil {
		t.Error(err)
	}
}

// A leader that hangs is started again, once, and only where its lease can be written.
func TestAHangingLeaderIsStartedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		refuses, restarts bool
	}{
		"the lease can be written": {false, true},
		"a webhook refuses":        {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			l, s := w.leaders, w.leasing()
			s.refuses = c.refuses
			before := w.runs(replica.Scheduler)
			of := controlplane.Leases(w.cluster)[0]
			old := func() {
				t.Helper()
				all, err := l.leases.list(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for at := time.Duration(0); at <= time.Minute; at += time.Second {
					l.seen.note(all, at)
				}
			}
			old()
			watch, _ := l.seen.watch(of.Name)
			before.Since = time.Now().Add(-time.Hour) // it has been up for that long
			f := l.facts(t.Context(), of, watch, before)
			if !f.Holds || f.Unchanged != time.Minute {
				t.Fatalf("%+v", f)
			}
			l.judgeOne(t.Context(), of, watch, before)
			after, _ := l.supervisor.StatusOf(replica.Scheduler)
			if (after.PID != before.PID) != c.restarts || s.dryRuns != 1 || s.updates != 0 {
				t.Errorf("before %+v, after %+v, %d tries, %d writes", before, after, s.dryRuns, s.updates)
			}
			why := l.judgeOne(t.Context(), of, watch, before)
			if why == nil {
				t.Error("nobody is told")
			}
		})
	}
}

// A process that goes on without its lease is started again, unless the observation was old.
func TestALeaderWithoutItsLeaseIsStartedAgain(t *testing.T) {
	for name, restarts := range map[string]bool{"another has it": true, "it has it again": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			l, s := w.leaders, w.leasing()
			before := w.runs(replica.Scheduler)
			of := controlplane.Leases(w.cluster)[0]
			now := election.SinceBoot()
			all, err := l.leases.list(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			own := all[of.Name]
			l.seen.note(map[string]lease.Seen{of.Name: own}, now-time.Minute)
			other := lease.Seen{Holder: "other_1", Renewed: own.Renewed}
			l.seen.note(map[string]lease.Seen{of.Name: other}, now-time.Minute+time.Second)
			if restarts {
				s.lease.Spec.HolderIdentity = &other.Holder
			}
			before.Since = time.Now().Add(-time.Hour) // it has been up for that long
			watch, _ := l.seen.watch(of.Name)
			if f := l.facts(t.Context(), of, watch, before); !f.Lost || f.Holds {
				t.Fatalf("%+v", f)
			}
			l.judgeOne(t.Context(), of, watch, before)
			if after, _ := l.supervisor.StatusOf(replica.Scheduler); (after.PID != before.PID) != restarts {
				t.Errorf("before %+v, after %+v", before, after)
			}
		})
	}
}

// What a replica says of the leases: what it is in each, and how old they are by its own clock.
func TestTheStatusOfTheLeases(t *testing.T) {
	w := newWorld(t, nil)
	l := w.leaders
	w.leasing()
	all, err := l.leases.list(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	own := all["kube-scheduler"]
	own.Holder = identity(w.self)
	all[Own] = own
	own.Holder = "another_1"
	all["kube-controller-manager"], all["ccm"] = own, own
	l.seen.note(all, time.Minute)
	roles := map[string]string{}
	for _, s := range l.Status(time.Minute + 3*time.Second) {
		roles[s.Name] = s.Role
		if s.Age != 3 {
			t.Errorf("%s is %f s old", s.Name, s.Age)
		}
	}
	for name, want := range map[string]string{Own: "leader", "kube-scheduler": "leader",
		"kube-controller-manager": "standby", "ccm": ""} {
		if got, ok := roles[name]; !ok || got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := l.Status(time.Minute + patience + 1); len(got) != 0 {
		t.Errorf("leases that cannot be read are shown: %+v", got)
	}
	var none coordinationv1.LeaseSpec
	if got := seen(none); got.Holder != "" || !got.Renewed.IsZero() {
		t.Errorf("%+v", got)
	}
}

// The lease of a component that has exited is freed once for each exit, and not for one from before.
func TestTheLeaseOfAComponentThatExitedIsFreed(t *testing.T) {
	w := newWorld(t, nil)
	l, s := w.leaders, w.leasing()
	exits := func() {
		t.Helper()
		spec := supervisor.Spec{Name: replica.Scheduler, Path: "/bin/sh", Args: []string{"-c", "sleep 0.2; exit 3"}}
		if err := l.supervisor.Start(spec); err != nil {
			t.Fatal(err)
		}
		before, _ := l.supervisor.Exited(replica.Scheduler)
		eventually(t, "it runs", func() bool { s, _ := l.supervisor.StatusOf(replica.Scheduler); return s.PID != 0 })
		s.renew()
		eventually(t, "it exits", func() bool {
			e, ok := l.supervisor.Exited(replica.Scheduler)
			return ok &&
				e.At.After(before.At)
		})
		if err := l.supervisor.Stop(t.Context(), replica.Scheduler); err != nil {
			t.Fatal(err)
		}
	}
	exits()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.ReleaseExited(ctx) }()
	if err := l.supervisor.Start(sleeper("another")); err != nil { // something changes
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { s, _ := l.supervisor.StatusOf("another"); return s.State == supervisor.Ready })
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	if s.reads != 0 {
		t.Errorf("an exit from before: the lease was read %d times", s.reads)
	}
	s.mu.Unlock()
	exits()
	eventually(t, "it is freed",
		func() bool { s.mu.Lock(); defer s.mu.Unlock(); return *s.lease.Spec.HolderIdentity == "" })
	time.Sleep(50 * time.Millisecond)
	cancel()
	<-ended
	if s.reads != 1 || s.updates != 1 {
		t.Errorf("the lease was read %d times and written %d times for one exit", s.reads, s.updates)
	}
}

// The watchdog's question needs each lock: one that is never given back is what it is for.
func TestALockThatIsKeptKeepsTheWatchdogsAnswerBack(t *testing.T) {
	for name, lock := range map[string]func(l *Leaders) sync.Locker{
		"what is known of the replica": func(l *Leaders) sync.Locker { return &l.mu },
		"the leases' watch":            func(l *Leaders) sync.Locker { return &l.seen.mu },
	} {
		t.Run(name, func(t *testing.T) {
			l := newWorld(t, nil).leaders
			kept := lock(l)
			kept.Lock()
			alive := make(chan struct{})
			go func() { defer close(alive); l.Alive() }()
			select {
			case <-alive:
				t.Error("an answer without the lock")
				kept.Unlock()
			case <-time.After(50 * time.Millisecond):
				kept.Unlock()
				<-alive
			}
		})
	}
}
