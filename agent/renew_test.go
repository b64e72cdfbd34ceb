package agent

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/certs"
)

// renewing is a replica whose certificates were made now, with the bundle in the record, as it is on its way to its
// place in etcd.
func renewing(t *testing.T) (*vm, *Agent, certified) {
	t.Helper()
	v := newVM(t)
	a, in := v.identified()
	b, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if v.bundles.held, err = b.Encode(); err != nil {
		t.Fatal(err)
	}
	v.record.view.Bundle = 1
	m := membershipOf(a, in)
	if _, err := m.Claim(t.Context()); err != nil { // says whose cluster it is
		t.Fatal(err)
	}
	// It is the one that made the bundle: what counts later is the newest, not what it made.
	out, err := a.certify(t.Context(), recorded{identified: in, membership: m, makeBundle: true})
	if err != nil {
		t.Fatal(err)
	}
	return v, a, out
}

// firstEnd is when the first leaf ends, by the status.
func firstEnd(t *testing.T, a *Agent) time.Time {
	t.Helper()
	list := a.status(t.Context()).Certificates
	if len(list) != 20 {
		t.Fatalf("%d certificates are listed", len(list))
	}
	first := list[0].NotAfter
	for _, e := range list {
		if e.NotAfter.Before(first) {
			first = e.NotAfter
		}
	}
	return first
}

func TestCertificatesAreRenewedWhenTheyAreDueWhileTheReplicaStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a, in := renewing(t)
		before := firstEnd(t, a)
		time.Sleep(time.Until(in.report.NextRenewal.Add(-renewPeriod / 2)))
		a.setPhase(PhaseEtcd)
		stop := a.keepCertificates(t.Context(), in)
		creates := v.bundles.creates
		time.Sleep(renewPeriod/2 - time.Second)
		synctest.Wait()
		if !firstEnd(t, a).Equal(before) {
			t.Error("renewed before it is due")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !firstEnd(t, a).After(before) {
			t.Error("not renewed when it is due")
		}
		if v.bundles.creates != creates {
			t.Error("the bundle of the first generation was asked for in place of the newest")
		}
		if n := len(a.supervisor.Status()); n != 0 {
			t.Errorf("%d components were started by a renewal", n)
		}
		stop()
	})
}

func TestARenewalThatTheBootWentOnWithoutIsTriedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a, in := renewing(t)
		time.Sleep(time.Until(in.report.NextRenewal.Add(time.Hour)))
		before := firstEnd(t, a)
		v.bundles.err = errBroken
		in, err := a.certify(t.Context(), in.recorded)
		if err != nil || in.bundle != nil || len(in.report.Pending) == 0 {
			t.Fatalf("the boot goes on without what it can do without: %v, %v", in.report.Pending, err)
		}
		defer a.keepCertificates(t.Context(), in)()
		time.Sleep(bundlePause + time.Millisecond)
		synctest.Wait()
		if s := a.status(t.Context()); len(s.Blocked) != 1 || s.Blocked[0].Name != "certificates-not-renewed" {
			t.Errorf("blocked: %+v", s.Blocked)
		}
		v.bundles.mu.Lock()
		v.bundles.err = nil
		v.bundles.mu.Unlock()
		time.Sleep(renewRetry)
		synctest.Wait()
		if s := a.status(t.Context()); len(s.Blocked) != 0 || !firstEnd(t, a).After(before) {
			t.Errorf("blocked: %+v; the first ends at %s, before %s", s.Blocked, firstEnd(t, a), before)
		}
	})
}

func TestHowLongCertificatesAreLeftAlone(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		report certs.Report
		want   time.Duration
	}{
		"due in a month":                 {certs.Report{NextRenewal: now.Add(720 * time.Hour)}, renewPeriod},
		"due in a minute":                {certs.Report{NextRenewal: now.Add(time.Minute)}, time.Minute},
		"overdue, and the CA ends first": {certs.Report{NextRenewal: now.Add(-time.Minute)}, renewPeriod},
		"something waits for the bundle": {certs.Report{NextRenewal: now.Add(720 * time.Hour),
			Pending: []certs.Change{{Name: "etcd-peer"}}}, bundlePause},
		"nothing that was issued is known here": {certs.Report{}, renewPeriod},
	} {
		if got := untilRenewal(c.report, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What is whole needs no bundle: a restart, and each check of the certificates, does without the record.
func TestWhatIsWholeNeedsNoBundle(t *testing.T) {
	v, a, in := renewing(t)
	v.bundles.err = errBroken
	if _, err := a.renewOnce(t.Context(), in); err != nil {
		t.Errorf("a renewal: %v", err)
	}
	begin := time.Now()
	out, err := a.certify(t.Context(), in.recorded)
	if err != nil || out.bundle != nil || time.Since(begin) > optionalBundle/2 {
		t.Errorf("a boot: %v after %s, bundle %v", err, time.Since(begin), out.bundle)
	}
}

// A record that is away is asked later and later, and within half a minute of its return.
func TestARenewalThatFailsIsTriedLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a, in := renewing(t)
		in.makeBundle = false
		if err := os.Remove(a.files.CASignerKey(certs.Kubernetes)); err != nil {
			t.Fatal(err)
		}
		v.bundles.err = errBroken
		in, err := a.certify(t.Context(), in.recorded)
		if err != nil {
			t.Fatal(err)
		}
		stop := a.keepCertificates(t.Context(), in)
		time.Sleep(time.Minute)
		synctest.Wait()
		v.bundles.mu.Lock()
		before := v.bundles.lists
		v.bundles.mu.Unlock()
		time.Sleep(10 * time.Minute)
		stop()
		if n := v.bundles.lists - before; n < 20 || n > 41 {
			t.Errorf("it was asked %d times in ten minutes", n)
		}
	})
}
