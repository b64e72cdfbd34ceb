package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

func TestAMaintenanceHandsLeadershipOver(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	a, in := v.identified()
	supervised(t, a)
	events := make(chan string)
	a.host.metadata = &metadata{events: events}
	stop := a.host.keep(t.Context())
	defer stop()
	events <- "MIGRATE_ON_HOST_MAINTENANCE" // in the first phase: nothing can be handed over, and nothing fails
	events <- "NONE"
	a.mu.Lock()
	a.membership = membershipOf(a, in)
	m := a.membership
	a.mu.Unlock()
	asked := handsOver(t, m)
	if err := a.supervisor.Start(sleeper(etcdName)); err != nil {
		t.Fatal(err)
	}
	within := func(when string, limit time.Duration) {
		t.Helper()
		select {
		case got := <-asked:
			if got != "POST /hand-over" {
				t.Errorf("%s: %s", when, got)
			}
		case <-time.After(limit):
			t.Errorf("%s: the leadership stays for %s", when, limit)
		}
	}
	if len(asked) != 0 {
		t.Errorf("nothing is planned: %s", <-asked)
	}
	events <- "TERMINATE_ON_HOST_MAINTENANCE"
	within("it is announced", member.HandOverTimeout)
	within("it may have come back", 2*maintenancePeriod)
	events <- "NONE"
	for len(asked) > 0 {
		<-asked
	}
	select {
	case got := <-asked:
		t.Errorf("it is over: %s", got)
	case <-time.After(maintenancePeriod + time.Second):
	}
}

// A Spot VM has 30 s: what an apiserver gets to drain, and leases to be released, it has not.
func TestASpotVMStopsInOneThirdOfTheTime(t *testing.T) {
	t.Parallel()
	for name, spot := range map[string]bool{"a standard VM": false, "a Spot VM": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVM(t)
			a, in := v.identified()
			a.host.metadata = &metadata{spot: spot}
			a.membership = membershipOf(a, in)
			stopAsking := a.host.keep(t.Context())
			if spot {
				eventually(t, "it says so", a.host.isSpot)
			}
			stopAsking()
			if all := a.tracker.All(); (len(all) == 1 && all[0].Name == spotVM) != spot {
				t.Errorf("waits: %+v", all)
			}
			stop := a.superviseChildren(t.Context())
			drains, deaf := sleeper(replica.APIServer), filepath.Join(t.TempDir(), "deaf")
			drains.Path = "/bin/sh"
			drains.Args = []string{"-c", "trap '' TERM; : > " + deaf + "; while :; do sleep 0.1; done"}
			drains.StopTimeout = orphanTimeout + 4*time.Second
			for _, s := range []supervisor.Spec{sleeper(etcdName), drains} {
				if err := a.supervisor.Start(s); err != nil {
					t.Fatal(err)
				}
				eventually(t, "it runs",
					func() bool { s, _ := a.supervisor.StatusOf(s.Name); return s.State == supervisor.Ready })
			}
			eventually(t, "it heeds no SIGTERM", func() bool { _, err := os.Stat(deaf); return err == nil })
			begin := time.Now()
			if err := stop(nil); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); (took < orphanTimeout+2*time.Second) != spot {
				t.Errorf("the stop took %s", took)
			}
		})
	}
}
