package certificates

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

// The first bundle is written once and for all, so a clock that is wrong makes none, and the boot goes on when it is
// set.
func TestTheFirstBundleIsNotMadeByAClockThatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
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
			w := newWorld(t)
			begin := time.Now()
			w.time = func() (time.Time, error) {
				if time.Since(begin) > 10*time.Second { // it is set
					return time.Now(), nil
				}
				return time.Now().Add(-tc.behind), tc.err
			}
			seen := make(chan []replica.Wait, 1)
			time.AfterFunc(9*time.Second, func() { seen <- w.tracker.All() })
			out, err := w.start().Certify(t.Context(), true)
			if waited := time.Since(begin) > 10*time.Second; err != nil || out.Bundle == nil ||
				w.bundles.creates != 1 || waited == tc.right {
				t.Errorf("%s: %v, %d bundles after %s", name, err, w.bundles.creates, time.Since(begin))
			}
			if tc.right {
				return
			}
			if all := <-seen; len(all) != 1 || all[0].Name != clockWrong || all[0].Next != clockNext {
				t.Errorf("%s: blocked %+v", name, all)
			}
		})
	}
}

// A disk that has seen the bundle asks for no other one, though the record has lost it.
func TestALostBundleIsNotMadeAnewBesideADiskThatHasIt(t *testing.T) {
	w, c, issued := renewing(t)
	w.remove(w.me.Files.Volatile) // as a boot leaves it
	w.bundles.held = nil
	creates := w.bundles.creates
	_, err := c.bundleOnce(t.Context(), true, issued.Report.Generation)
	if err == nil || !strings.Contains(err.Error(), "the record holds no bundle") || w.bundles.creates != creates {
		t.Errorf("%v, %d bundles made", err, w.bundles.creates-creates)
	}
}

// A later generation of a clock that was ahead leaves those alone that have the one before.
func TestAGenerationFromTheFutureIsNotTaken(t *testing.T) {
	for _, emptied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, c, _ := renewing(t)
			// Two further ones: the first of them is right.
			third := continuing(t, w.bundles.held, 3)
			third = []byte(strings.Replace(string(third), `"created":"20`, `"created":"21`, 1))
			w.bundles.later = [][]byte{continuing(t, w.bundles.held, 2), third}
			folder := w.me.Files.Volatile
			if emptied {
				folder = w.data()
			}
			w.remove(folder)
			out, err := c.Certify(t.Context(), false)
			if err != nil || out.Report.Generation != 2 {
				t.Fatalf("emptied %t: generation %d, %v", emptied, out.Report.Generation, err)
			}
			blocked := w.tracker.All()
			if len(blocked) != 1 || blocked[0].Name != bundleRefused || blocked[0].Next != bundleFuture ||
				!strings.Contains(blocked[0].Reason, "one of the clocks is wrong") {
				t.Errorf("emptied %t: blocked %+v", emptied, blocked)
			}
			if _, err := certs.EtcdTLS(w.me.Files); err != nil {
				t.Error(err)
			}
		})
	}
}
