package agent

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/acts"
)

// cut is the panic by which an agent ends at a step.
type cut struct{}

// The agent that is to make the first bundle ends before or after that, and the claim's next holder goes on, on the
// same disk or on an empty one: there is one bundle, and all certificates are of it.
func TestTheFirstBundleIsMadeOnceWhenTheAgentEndsAtIt(t *testing.T) {
	for _, when := range []acts.Moment{acts.Before, acts.After} {
		for _, emptied := range []bool{false, true} {
			v := newVM(t)
			v.record.view.Bundle = 1
			first, in := v.identified()
			first.cfg.AtStep = func(s acts.Step, m acts.Moment) {
				if s == acts.StepBundle && m == when {
					panic(cut{})
				}
			}
			if ended := endsIn(func() { v.makeBundle(first, in) }); !ended {
				t.Fatalf("%s: the agent did not end at the bundle", when)
			}
			made := v.bundles.held
			if (made != nil) != (when == acts.After) {
				t.Errorf("%s: a bundle is there: %t", when, made != nil)
			}
			if emptied {
				if err := os.RemoveAll(v.data()); err != nil {
					t.Fatal(err)
				}
			}
			second, in := v.identified()
			out, err := v.makeBundle(second, in)
			if err != nil || out.bundle == nil {
				t.Fatalf("%s, emptied %t: %v", when, emptied, err)
			}
			if made != nil && !bytes.Equal(made, v.bundles.held) {
				t.Errorf("%s, emptied %t: another bundle was made", when, emptied)
			}
			if mine, err := out.bundle.Encode(); err != nil || !bytes.Equal(mine, v.bundles.held) {
				t.Errorf("%s, emptied %t: the bundle in use is not the record's: %v", when, emptied, err)
			}
			if _, err := certs.EtcdTLS(second.files); err != nil {
				t.Error(err)
			}
		}
	}
}

// makeBundle is the phase of certificates on the holder of the newest claim.
func (v *vm) makeBundle(a *Agent, in identified) (certified, error) {
	v.t.Helper()
	rec := recorded{identified: in, makeBundle: true, membership: membershipOf(a, in)}
	if _, err := rec.membership.Claim(v.t.Context()); err != nil { // says whose cluster it is
		v.t.Fatal(err)
	}
	return a.certify(v.t.Context(), rec)
}

// endsIn reports whether an agent ended at a step.
func endsIn(do func()) (ended bool) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case cut:
			ended = true
		default:
			panic(p)
		}
	}()
	do()
	return false
}

// What the record holds already is what counts, and it is checked like any other: here it was made by a clock that is
// days ahead.
func TestTheClaimsHolderLooksAtTheBundleThatItFinds(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	b, err := certs.NewBundle("uid", time.Now().Add(72*time.Hour))
	if err == nil {
		v.bundles.held, err = b.Encode()
	}
	if err != nil {
		t.Fatal(err)
	}
	rec := recorded{identified: in, membership: membershipOf(a, in), makeBundle: true}
	v.record.view.Bundle = 1
	if _, err := rec.membership.Claim(t.Context()); err != nil { // says whose cluster it is
		t.Fatal(err)
	}
	if _, err := a.bundleOnce(t.Context(), rec, 0); err == nil ||
		!strings.Contains(err.Error(), "one of the clocks is wrong") {
		t.Errorf("%v", err)
	}
}
