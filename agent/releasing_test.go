package agent

import (
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			v := newVM(t)
			a, in := v.identified()
			newMember(t, a, in, threeOf(c.members))
			s := leasing(t, a)
			s.lease.Spec.HolderIdentity, s.lease.ResourceVersion = &c.holder, "5"
			s.lease.Spec.RenewTime = new(metav1.NewMicroTime(exit.At.Add(-time.Second)))
			if c.change != nil {
				c.change(s)
			}
			a.releaseLease(t.Context(), c.of, exit)
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
	v := newVM(t)
	a, in := v.identified()
	on := in.cluster.Components[replica.Autoscaler]
	on.Enabled = new(true)
	in.cluster.Components[replica.Autoscaler] = on
	m := newMember(t, a, in, threeOf(nil))
	if err := a.hostClash(t.Context(), replica.Autoscaler); err != nil {
		t.Error(err)
	}
	m.is(func(s *table.MemberStatus) { s.Members[1].Name = "us-central1-c.master-a.103" })
	if err := a.hostClash(t.Context(), replica.Autoscaler); err == nil {
		t.Error("two would run")
	}
	if err := a.hostClash(t.Context(), replica.Scheduler); err != nil {
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
			a, in := kept(t)
			newMember(t, a, in.identified, threeOf(nil))
			s := leasing(t, a)
			s.refuses = c.refuses
			if err := a.supervisor.Start(sleeper(replica.Scheduler)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it runs",
				func() bool { s, _ := a.supervisor.StatusOf(replica.Scheduler); return s.State == supervisor.Ready })
			before, _ := a.supervisor.StatusOf(replica.Scheduler)
			l := controlplane.Leases(a.cluster)[0]
			old := func() {
				t.Helper()
				all, err := a.leases.list(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for at := time.Duration(0); at <= time.Minute; at += time.Second {
					a.leaders.note(all, at)
				}
			}
			old()
			w, _ := a.leaders.watch(l.Name)
			before.Since = time.Now().Add(-time.Hour) // it has been up for that long
			f := a.leaderFacts(t.Context(), l, w, before)
			if !f.Holds || f.Unchanged != time.Minute {
				t.Fatalf("%+v", f)
			}
			a.judgeLeader(t.Context(), l, w, before)
			after, _ := a.supervisor.StatusOf(replica.Scheduler)
			if (after.PID != before.PID) != c.restarts || s.dryRuns != 1 || s.updates != 0 {
				t.Errorf("before %+v, after %+v, %d tries, %d writes", before, after, s.dryRuns, s.updates)
			}
			why := a.judgeLeader(t.Context(), l, w, before)
			if why == nil {
				t.Error("nobody is told")
			}
		})
	}
}

// What a replica says of the leases: what it is in each, and how old they are by its own clock.
func TestTheStatusOfTheLeases(t *testing.T) {
	a, in := kept(t)
	newMember(t, a, in.identified, threeOf(nil))
	s := leasing(t, a)
	all, err := a.leases.list(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	own := all["kube-scheduler"]
	own.Holder = leaseIdentity(in.self)
	all[leaseName] = own
	own.Holder = "another_1"
	all["kube-controller-manager"], all["ccm"] = own, own
	a.leaders.note(all, time.Minute)
	roles := map[string]string{}
	for _, l := range a.leaseStatus(time.Minute + 3*time.Second) {
		roles[l.Name] = l.Role
		if l.Age != 3 {
			t.Errorf("%s is %f s old", l.Name, l.Age)
		}
	}
	for name, want := range map[string]string{leaseName: "leader", "kube-scheduler": "leader",
		"kube-controller-manager": "standby", "ccm": ""} {
		if got, ok := roles[name]; !ok || got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := a.leaseStatus(time.Minute + leasesPatience + 1); len(got) != 0 {
		t.Errorf("leases that cannot be read are shown: %+v", got)
	}
	_ = s
	var none coordinationv1.LeaseSpec
	if got := seen(none); got.Holder != "" || !got.Renewed.IsZero() {
		t.Errorf("%+v", got)
	}
}
