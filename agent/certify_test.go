package agent

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/certs"
)

// A voter is not kept from voting by what the control plane lacks: the boot goes on with the member's own certificates,
// the rest is a wait and is tried again.
func TestABootGoesOnWithTheMembersOwnCertificates(t *testing.T) {
	for name, c := range map[string]struct {
		breaks, repairs func(v *vm, a *Agent) error
		says            string
		took            time.Duration // what the boot waits for
	}{
		"a folder cannot be written": {
			func(_ *vm, a *Agent) error {
				if err := os.RemoveAll(a.files.Volatile); err != nil {
					return err
				}
				return os.WriteFile(a.files.Volatile, nil, 0o600)
			},
			func(_ *vm, a *Agent) error { return os.Remove(a.files.Volatile) },
			"is not a folder", 0,
		},
		"a leaf of the control plane is lost, and the record cannot be read": {
			func(v *vm, a *Agent) error {
				v.bundles.err = errBroken
				return os.Remove(a.files.Leaf(certs.Scheduler))
			},
			func(v *vm, _ *Agent) error { v.bundles.err = nil; return nil },
			"scheduler: missing", optionalBundle,
		},
		"the record holds an older bundle than the disk has seen": {
			func(v *vm, a *Agent) error {
				v.bundles.later = nil
				return os.Remove(a.files.CASignerKey(certs.Kubernetes))
			},
			func(v *vm, _ *Agent) error {
				v.bundles.later = [][]byte{continuing(v.t, v.bundles.held, 2)}
				return nil
			},
			"generation", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, a, in := renewing(t)
				in.makeBundle = false // there is one
				v.bundles.later = [][]byte{continuing(t, v.bundles.held, 2)}
				// it takes the second generation
				if err := os.Remove(a.files.CASignerKey(certs.Kubernetes)); err != nil {
					t.Fatal(err)
				}
				if _, err := a.certify(t.Context(), in.recorded); err != nil {
					t.Fatal(err)
				}
				if err := c.breaks(v, a); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				in, err := a.certify(t.Context(), in.recorded)
				if err != nil || !in.lacking || in.bundle != nil || time.Since(begin) != c.took {
					t.Fatalf("%v after %s; lacking %t, bundle %v", err, time.Since(begin), in.lacking, in.bundle)
				}
				if w := a.tracker.All(); len(w) != 1 || w[0].Name != certificatesNotRenewed ||
					!strings.Contains(w[0].Reason, c.says) {
					t.Errorf("waits %+v", w)
				}
				defer a.keepCertificates(t.Context(), in)()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if w := a.tracker.All(); len(w) != 1 {
					t.Errorf("nothing is put right, and the waits are %+v", w)
				}
				v.bundles.mu.Lock()
				err = c.repairs(v, a)
				v.bundles.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(renewRetry)
				synctest.Wait()
				if w := a.tracker.All(); len(w) != 0 || len(a.fitWanted) != 1 {
					t.Errorf("all is put right: waits %+v, %d fits are wanted", w, len(a.fitWanted))
				}
			})
		})
	}
}

// Without its own certificates the member cannot run, so there is nothing to go on with.
func TestABootWithoutTheMembersCertificatesEnds(t *testing.T) {
	_, a, in := renewing(t)
	if err := os.RemoveAll(a.files.Volatile); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.files.Volatile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []certs.Leaf{certs.EtcdServer, certs.EtcdPeerLeaf, certs.AgentEtcd} {
		path := a.files.Leaf(leaf)
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.certify(t.Context(), in.recorded); err == nil ||
			!strings.Contains(err.Error(), "is not a folder") {
			t.Errorf("without %s: %v", leaf, err)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}
