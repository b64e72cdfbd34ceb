package certificates

import (
	"bytes"
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
			w := newWorld(t)
			w.atStep = func(s acts.Step, m acts.Moment) {
				if s == acts.StepBundle && m == when {
					panic(cut{})
				}
			}
			if ended := endsIn(func() { w.start().Certify(t.Context(), true) }); !ended {
				t.Fatalf("%s: the agent did not end at the bundle", when)
			}
			made := w.bundles.held
			if (made != nil) != (when == acts.After) {
				t.Errorf("%s: a bundle is there: %t", when, made != nil)
			}
			if emptied {
				w.remove(w.data())
			}
			w.atStep = nil
			out, err := w.start().Certify(t.Context(), true)
			if err != nil || out.Bundle == nil {
				t.Fatalf("%s, emptied %t: %v", when, emptied, err)
			}
			if made != nil && !bytes.Equal(made, w.bundles.held) {
				t.Errorf("%s, emptied %t: another bundle was made", when, emptied)
			}
			if mine, err := out.Bundle.Encode(); err != nil || !bytes.Equal(mine, w.bundles.held) {
				t.Errorf("%s, emptied %t: the bundle in use is not the record's: %v", when, emptied, err)
			}
			if _, err := certs.EtcdTLS(w.me.Files); err != nil {
				t.Error(err)
			}
		}
	}
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
	w := newWorld(t)
	b, err := certs.NewBundle(uid, time.Now().Add(72*time.Hour))
	if err == nil {
		w.bundles.held, err = b.Encode()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.start().bundleOnce(t.Context(), true, 0); err == nil ||
		!strings.Contains(err.Error(), "one of the clocks is wrong") {
		t.Errorf("%v", err)
	}
}
