package certificates

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/waits"
)

// A voter is not kept from voting by what the control plane lacks: the boot goes on with the member's own certificates,
// the rest is a wait and is tried again.
func TestABootGoesOnWithTheMembersOwnCertificates(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks, repairs func(w *world) error
		says            string
		took            time.Duration // what the boot waits for
	}{
		"a folder cannot be written": {
			func(w *world) error {
				if err := os.RemoveAll(w.me.Files.Volatile); err != nil {
					return err
				}
				return os.WriteFile(w.me.Files.Volatile, nil, 0o600)
			},
			func(w *world) error { return os.Remove(w.me.Files.Volatile) },
			"is not a folder", 0,
		},
		"a leaf of the control plane is lost, and the record cannot be read": {
			func(w *world) error {
				w.bundles.err = errBroken
				return os.Remove(w.me.Files.Leaf(certs.Scheduler))
			},
			func(w *world) error { w.bundles.err = nil; return nil },
			"scheduler: missing", optionalBundle,
		},
		"the record holds an older bundle than the disk has seen": {
			func(w *world) error {
				w.bundles.later = nil
				return os.Remove(w.me.Files.CASignerKey(certs.Kubernetes))
			},
			func(w *world) error {
				w.bundles.later = [][]byte{continuing(w.t, w.bundles.held, 2)}
				return nil
			},
			"generation", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c, _ := renewing(t)
				w.bundles.later = [][]byte{continuing(t, w.bundles.held, 2)}
				// it takes the second generation
				if err := os.Remove(w.me.Files.CASignerKey(certs.Kubernetes)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Certify(t.Context(), false); err != nil {
					t.Fatal(err)
				}
				if err := tc.breaks(w); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				issued, err := c.Certify(t.Context(), false)
				if err != nil || !issued.Lacking || issued.Bundle != nil || time.Since(begin) != tc.took {
					t.Fatalf("%v after %s; lacking %t, bundle %v", err, time.Since(begin), issued.Lacking, issued.Bundle)
				}
				if all := w.tracker.All(); len(all) != 1 || all[0].Name != notRenewed ||
					!strings.Contains(all[0].Reason, tc.says) {
					t.Errorf("waits %+v", all)
				}
				defer renewal(t.Context(), c, issued)()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if all := w.tracker.All(); len(all) != 1 {
					t.Errorf("nothing is put right, and the waits are %+v", all)
				}
				w.bundles.mu.Lock()
				err = tc.repairs(w)
				w.bundles.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(renewRetry)
				synctest.Wait()
				if all := w.tracker.All(); len(all) != 0 || !w.renewed {
					t.Errorf("all is put right: waits %+v, and a fit is wanted: %t", all, w.renewed)
				}
			})
		})
	}
}

// Without its own certificates the member cannot run, so there is nothing to go on with.
func TestABootWithoutTheMembersCertificatesEnds(t *testing.T) {
	w, c, _ := renewing(t)
	if err := os.RemoveAll(w.me.Files.Volatile); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.me.Files.Volatile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []certs.Leaf{certs.EtcdServer, certs.EtcdPeerLeaf, certs.AgentEtcd} {
		path := w.me.Files.Leaf(leaf)
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Certify(t.Context(), false); err == nil ||
			!strings.Contains(err.Error(), "is not a folder") {
			t.Errorf("without %s: %v", leaf, err)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}

// A bundle without which the boot cannot go on is a wait that says why; one that only the signer lacks is not waited
// for.
func TestABundleThatCannotBeReadIsAWait(t *testing.T) {
	w := newWorld(t)
	c := w.start()
	w.bundles.err = errBroken
	w.waits.Enter("certificates")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.bundle(ctx, false, 0, true)
		held := w.tracker.All()
		if !errors.Is(err, errBroken) || len(held) != 1 || held[0].Name != "bundle-unreadable" ||
			held[0].Row != "certificates" || time.Since(held[0].Since) < 9*time.Second {
			t.Errorf("%v, held %+v", err, held)
		}
		whole, err := certs.NewBundle(uid, time.Now())
		if err == nil {
			w.bundles.held, err = whole.Encode()
		}
		if err != nil {
			t.Fatal(err)
		}
		w.bundles.err = nil
		if _, err := c.bundle(ctx, false, 0, true); err != nil || len(w.tracker.All()) != 0 {
			t.Errorf("%v, held %+v", err, w.tracker.All())
		}
		w.bundles.err = errBroken
		begin := time.Now()
		b, err := c.bundle(t.Context(), false, 0, false)
		if b.bundle != nil || err != nil || time.Since(begin) != optionalBundle || len(w.tracker.All()) != 0 {
			t.Errorf("%v, %v after %s, held %+v", b, err, time.Since(begin), w.tracker.All())
		}
	})
}

// Whoever scrapes meanwhile asks for what expires: a line that is written under its lock would let a log that is stuck
// keep the watchdog's answer back.
func TestALogThatIsStuckKeepsNoAnswerBack(t *testing.T) {
	var log stuckLog
	w := newWorld(t)
	w.waits.Source = waits.New(slog.New(slog.NewTextHandler(&log, nil)), "").Source("agent", "phase", 0)
	c := w.start()
	log.Lock()
	said := make(chan struct{})
	go func() { defer close(said); c.refuse(errBroken, bundleNext) }()
	time.Sleep(20 * time.Millisecond)
	answered := make(chan []certs.Expiry, 1)
	go func() { answered <- c.Expiries() }()
	select {
	case <-answered:
	case <-time.After(time.Second):
		t.Error("no answer while the log is stuck")
	}
	log.Unlock()
	<-said
}

// stuckLog takes no line while it is locked.
type stuckLog struct{ sync.Mutex }

func (l *stuckLog) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return len(p), nil
}
