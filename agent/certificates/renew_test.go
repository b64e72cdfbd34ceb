package certificates

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/certs"
)

// firstEnd is when the first leaf ends, by the list.
func firstEnd(t *testing.T, c *Certificates) time.Time {
	t.Helper()
	list := c.Expiries()
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
		w, c, issued := renewing(t)
		before := firstEnd(t, c)
		time.Sleep(time.Until(issued.Report.NextRenewal.Add(-renewPeriod / 2)))
		w.waits.Enter("etcd")
		stop := renewal(t.Context(), c, issued)
		creates := w.bundles.creates
		time.Sleep(renewPeriod/2 - time.Second)
		synctest.Wait()
		if !firstEnd(t, c).Equal(before) {
			t.Error("renewed before it is due")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !firstEnd(t, c).After(before) {
			t.Error("not renewed when it is due")
		}
		if w.bundles.creates != creates {
			t.Error("the bundle of the first generation was asked for in place of the newest")
		}
		if !w.renewed {
			t.Error("the renewal is not told")
		}
		stop()
	})
}

func TestARenewalThatTheBootWentOnWithoutIsTriedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c, issued := renewing(t)
		time.Sleep(time.Until(issued.Report.NextRenewal.Add(time.Hour)))
		before := firstEnd(t, c)
		w.bundles.err = errBroken
		issued, err := c.Certify(t.Context(), false)
		if err != nil || issued.Bundle != nil || len(issued.Report.Pending) == 0 {
			t.Fatalf("the boot goes on without what it can do without: %v, %v", issued.Report.Pending, err)
		}
		defer renewal(t.Context(), c, issued)()
		time.Sleep(bundlePause + time.Millisecond)
		synctest.Wait()
		if all := w.tracker.All(); len(all) != 1 || all[0].Name != "certificates-not-renewed" {
			t.Errorf("blocked: %+v", all)
		}
		w.bundles.mu.Lock()
		w.bundles.err = nil
		w.bundles.mu.Unlock()
		time.Sleep(renewRetry)
		synctest.Wait()
		if all := w.tracker.All(); len(all) != 0 || !firstEnd(t, c).After(before) {
			t.Errorf("blocked: %+v; the first ends at %s, before %s", all, firstEnd(t, c), before)
		}
	})
}

func TestHowLongCertificatesAreLeftAlone(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
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
		if got := untilRenewal(tc.report, now); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What is whole needs no bundle: a restart, and each check of the certificates, does without the record.
func TestWhatIsWholeNeedsNoBundle(t *testing.T) {
	w, c, _ := renewing(t)
	w.bundles.err = errBroken
	if _, err := c.renewOnce(t.Context()); err != nil {
		t.Errorf("a renewal: %v", err)
	}
	begin := time.Now()
	out, err := c.Certify(t.Context(), false)
	if err != nil || out.Bundle != nil || time.Since(begin) > optionalBundle/2 {
		t.Errorf("a boot: %v after %s, bundle %v", err, time.Since(begin), out.Bundle)
	}
}

// A record that is away is asked later and later, and within half a minute of its return.
func TestARenewalThatFailsIsTriedLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c, _ := renewing(t)
		if err := os.Remove(w.me.Files.CASignerKey(certs.Kubernetes)); err != nil {
			t.Fatal(err)
		}
		w.bundles.err = errBroken
		issued, err := c.Certify(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		stop := renewal(t.Context(), c, issued)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.bundles.mu.Lock()
		before := w.bundles.lists
		w.bundles.mu.Unlock()
		time.Sleep(10 * time.Minute)
		stop()
		if n := w.bundles.lists - before; n < 20 || n > 41 {
			t.Errorf("it was asked %d times in ten minutes", n)
		}
	})
}
