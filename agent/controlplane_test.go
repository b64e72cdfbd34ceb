package agent

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// An apiserver uses other members only where its own cannot serve it alone, the leader's first, and never a learner's.
func TestWhichOtherMembersAnApiserverUses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*table.MemberStatus)
		want   []string // the names in the URLs, in order
	}{
		"a voter that serves": {nil, nil},
		"a voter whose client port is late": {func(s *table.MemberStatus) { s.Ready = false },
			[]string{"master-b", "master-c"}},
		"a learner": {func(s *table.MemberStatus) { s.Learner = true },
			[]string{"master-b", "master-c"}},
		"a learner beside another": {func(s *table.MemberStatus) {
			s.Learner,
				s.Members[1].Learner = true, true
		}, []string{"master-b"}},
		"a learner, and one that has no name": {func(s *table.MemberStatus) {
			s.Learner,
				s.Members[1].Name = true, ""
		}, []string{"master-b"}},
		"a learner that does not know a leader": {func(s *table.MemberStatus) { s.Learner, s.Leader = true, 0 },
			[]string{"master-c", "master-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t)
			a, in := v.identified()
			newMember(t, a, in, threeOf(c.change))
			got := otherEtcd(t.Context(),
				joined{certified{recorded: recorded{identified: in, membership: a.membership}}})
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

// loops runs for ever, and its command line can be read.
const loops = "#!/bin/sh\n[ \"$1\" = --version ] && { echo Kubernetes v1.36.3; exit; }\nwhile :; do sleep 0.1; done\n"

// commandLine is how a component runs; empty: it does not.
func (f fitting) commandLine(name string) []string {
	s, _ := f.supervisor.StatusOf(name)
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
	return strings.Split(string(b), "\x00")
}

// An apiserver that used another's member in addition to its own uses its own alone once it is a voter: another's
// silent death would stall it.
func TestAnApiserverComesHome(t *testing.T) {
	_, a, in := renewing(t)
	m := newMember(t, a, in.identified, threeOf(func(s *table.MemberStatus) { s.Learner = true }))
	in.membership = a.membership
	f := newFitting(t, a, in)
	f.put(replica.APIServer, loops)
	defer a.keepControlPlane(t.Context(), f.in, func(error) {})()
	servers := func() string {
		for _, arg := range f.commandLine(replica.APIServer) {
			if value, ok := strings.CutPrefix(arg, "--etcd-servers="); ok {
				return value
			}
		}
		return ""
	}
	eventually(t, "the apiserver runs", func() bool { return servers() != "" })
	if got := servers(); strings.Count(got, "https://") != 3 || !strings.Contains(got, "master-b") {
		t.Errorf("a learner's apiserver uses %s", got)
	}
	m.is(func(s *table.MemberStatus) { s.Learner = false })
	eventually(t, "the apiserver comes home", func() bool { return servers() == "https://127.0.0.1:2379" })
}

func TestAVotersApiserverIsAtHome(t *testing.T) {
	_, a, in := renewing(t)
	newMember(t, a, in.identified, threeOf(nil))
	in.membership = a.membership
	f := newFitting(t, a, in)
	f.put(replica.APIServer, loops)
	defer a.keepControlPlane(t.Context(), f.in, func(error) {})()
	eventually(t, "the apiserver runs", func() bool { return len(f.commandLine(replica.APIServer)) > 2 })
	if args := f.commandLine(replica.APIServer); !slices.Contains(args, "--etcd-servers=https://127.0.0.1:2379") {
		t.Errorf("it runs as %q", args)
	}
}

const schedulerLease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"

// scheduling lets the agent in, and has the scheduler's lease held on this machine for another hour.
func scheduling(t *testing.T, api *clusterAPI) *coordinationv1.Lease {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	api.objects[rolePath] = []byte("{}")
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(host + "_1"), LeaseDurationSeconds: new(int32(3600))}}
}

// A planned stop ends the components that elect themselves first, and frees their leases while there is an apiserver to
// do it through.
func TestAPlannedStopFreesTheLeases(t *testing.T) {
	t.Parallel()
	_, a, in := renewing(t)
	api := answeringAPI(t, &in)
	lease := scheduling(t, api)
	if err := a.leaders.Open(a.access(joined{in}).leases); err != nil {
		t.Fatal(err)
	}
	stop := a.superviseChildren(t.Context())
	m := newMember(t, a, in.identified, threeOf(nil))
	for _, name := range []string{etcdName, replica.APIServer, replica.Scheduler} {
		if err := a.supervisor.Start(sleeper(name)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it runs", func() bool { s, _ := a.supervisor.StatusOf(name); return s.State == supervisor.Ready })
	}
	lease.Spec.RenewTime = new(metav1.NowMicro())
	api.put(schedulerLease, lease)
	var apiserver, scheduler supervisor.Status
	api.onPut = func() {
		apiserver, _ = a.supervisor.StatusOf(replica.APIServer)
		scheduler, _ = a.supervisor.StatusOf(replica.Scheduler)
	}
	if err := stop(nil); err != nil {
		t.Error(err)
	}
	if updates := api.count(http.MethodPut); updates != 1 || apiserver.State != supervisor.Ready ||
		scheduler.State != supervisor.Stopped ||
		!m.wasAsked("POST /hand-over") {
		t.Errorf("%d leases freed, the apiserver was %q then and the scheduler %q; etcd was asked %q", updates,
			apiserver.State, scheduler.State, m.asked)
	}
}

// Where nothing can be handed over or written, nothing is: whatever uses the member stops soon.
func TestAReplicaWithoutALeaderIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*table.MemberStatus)
		ended  bool
		given  bool
	}{
		"a leader":          {given: false},
		"no leader":         {change: func(s *table.MemberStatus) { s.Leader = 0 }, given: true},
		"no raft yet":       {change: func(s *table.MemberStatus) { s.Leader, s.MemberID = 0, 0 }, given: false},
		"etcd does not run": {ended: true, given: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t)
			a, in := v.identified()
			stop := a.superviseChildren(t.Context())
			m := newMember(t, a, in, threeOf(c.change))
			etcd := sleeper(etcdName)
			if c.ended {
				etcd.Args = []string{"-c", "exit 1"}
			}
			for _, spec := range []supervisor.Spec{etcd, sleeper(replica.APIServer)} {
				if err := a.supervisor.Start(spec); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "etcd has ended",
				func() bool { _, ended := a.supervisor.Exited(etcdName); return ended == c.ended })
			eventually(t, "it runs",
				func() bool { s, _ := a.supervisor.StatusOf(replica.APIServer); return s.State == supervisor.Ready })
			if err := stop(nil); err != nil {
				t.Error(err)
			}
			s, _ := a.supervisor.StatusOf(replica.APIServer)
			if soon := strings.Contains(s.Reason, orphanTimeout.String()); soon != c.given ||
				m.wasAsked("POST /hand-over") == c.given {
				t.Errorf("the apiserver: %s; etcd was asked %q", s.Reason, m.asked)
			}
			// at the same time, and with all of its own time
			e, _ := a.supervisor.StatusOf(etcdName)
			if strings.Contains(e.Reason, "asked to stop within "+etcdStopTimeout.String()) != c.given {
				t.Errorf("etcd: %s", e.Reason)
			}
		})
	}
	a := newVM(t).agent()
	if a.leaving.unable(t.Context()) {
		t.Error("a replica without a member has no leader to miss")
	}
}

// To be told to stop ends nothing by itself: what runs is stopped in order.
func TestTheProcessesOutliveTheOrderToStop(t *testing.T) {
	a := newVM(t).agent()
	ctx, cancel := context.WithCancel(t.Context())
	stop := a.superviseChildren(ctx)
	if err := a.supervisor.Start(sleeper(replica.APIServer)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs",
		func() bool { s, _ := a.supervisor.StatusOf(replica.APIServer); return s.State == supervisor.Ready })
	cancel()
	time.Sleep(50 * time.Millisecond)
	if s, _ := a.supervisor.StatusOf(replica.APIServer); s.State != supervisor.Ready {
		t.Errorf("it is %s: %s", s.State, s.Reason)
	}
	if err := stop(nil); err != nil {
		t.Error(err)
	}
}

// GCE cuts the power about 90 s after it asked.
func TestAPlannedStopFitsIntoTheTimeThatGCEGives(t *testing.T) {
	_, a, in := renewing(t)
	specs, _, err := controlplane.Components(a.componentsInput(in.identified))
	if err != nil {
		t.Fatal(err)
	}
	if takes := stopPatience + member.HandOverTimeout + releaseTimeout + specs[0].StopTimeout +
		etcdStopTimeout; takes > 80*time.Second {
		t.Errorf("it takes %s", takes)
	}
	if takes := stopPatience + member.HandOverTimeout + max(orphanTimeout, etcdStopTimeout); takes > 25*time.Second {
		t.Errorf("of a Spot VM it takes %s", takes)
	}
}
