package agent

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
)

// The first bundle is written once and for all, so a clock that is wrong makes none, and the boot goes on when it is
// set.
func TestTheFirstBundleIsNotMadeByAClockThatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		behind time.Duration // the metadata server's clock
		err    error
		right  bool
	}{
		"the same time":        {0, nil, true},
		"an hour ahead":        {time.Hour, nil, true},
		"an hour behind":       {-time.Hour, nil, true},
		"a day ahead":          {24 * time.Hour, nil, false},
		"two years ahead":      {2 * 365 * 24 * time.Hour, nil, false},
		"two years behind":     {-2 * 365 * 24 * time.Hour, nil, false},
		"nobody says the time": {0, errBroken, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := newVM(t)
			a, in := v.identified()
			v.record.view.Bundle = 1
			rec := recorded{identified: in, makeBundle: true, membership: membershipOf(a, in)}
			if _, err := rec.membership.Claim(t.Context()); err != nil { // says whose cluster it is
				t.Fatal(err)
			}
			begin := time.Now()
			v.metadata.time = func() (time.Time, error) {
				if time.Since(begin) > 10*time.Second { // it is set
					return time.Now(), nil
				}
				return time.Now().Add(-c.behind), c.err
			}
			seen := make(chan status.Status, 1)
			time.AfterFunc(9*time.Second, func() { seen <- a.status(t.Context()) })
			out, err := a.certify(t.Context(), rec)
			if waited := time.Since(begin) > 10*time.Second; err != nil || out.bundle == nil ||
				v.bundles.creates != 1 || waited == c.right {
				t.Errorf("%s: %v, %d bundles after %s", name, err, v.bundles.creates, time.Since(begin))
			}
			if c.right {
				return
			}
			if s := <-seen; len(s.Blocked) != 1 || s.Blocked[0].Name != clockWrong || s.Blocked[0].Next != clockNext {
				t.Errorf("%s: blocked %+v", name, s.Blocked)
			}
		})
	}
}

// A disk that has seen the bundle asks for no other one, though the record has lost it.
func TestALostBundleIsNotMadeAnewBesideADiskThatHasIt(t *testing.T) {
	v, a, in := renewing(t)
	if err := os.RemoveAll(a.files.Volatile); err != nil { // as a boot leaves it
		t.Fatal(err)
	}
	in.makeBundle = true
	v.bundles.held = nil
	creates := v.bundles.creates
	_, err := a.bundleOnce(t.Context(), in.recorded, in.report.Generation)
	if err == nil || !strings.Contains(err.Error(), "the record holds no bundle") || v.bundles.creates != creates {
		t.Errorf("%v, %d bundles made", err, v.bundles.creates-creates)
	}
}

// A later generation of a clock that was ahead leaves those alone that have the one before.
func TestAGenerationFromTheFutureIsNotTaken(t *testing.T) {
	for _, emptied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v, a, in := renewing(t)
			in.makeBundle = false
			// Two further ones: the first of them is right.
			third := continuing(t, v.bundles.held, 3)
			third = []byte(strings.Replace(string(third), `"created":"20`, `"created":"21`, 1))
			v.bundles.later = [][]byte{continuing(t, v.bundles.held, 2), third}
			folder := a.files.Volatile
			if emptied {
				folder = v.data()
			}
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
			out, err := a.certify(t.Context(), in.recorded)
			if err != nil || out.report.Generation != 2 {
				t.Fatalf("emptied %t: generation %d, %v", emptied, out.report.Generation, err)
			}
			blocked := a.status(t.Context()).Blocked
			if len(blocked) != 1 || blocked[0].Name != bundleRefused || blocked[0].Next != bundleFuture ||
				!strings.Contains(blocked[0].Reason, "one of the clocks is wrong") {
				t.Errorf("emptied %t: blocked %+v", emptied, blocked)
			}
			if _, err := certs.EtcdTLS(a.files); err != nil {
				t.Error(err)
			}
		})
	}
}
