package agent

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
)

// continuing is a bundle as another generation, with the same CAs and keys.
func continuing(t *testing.T, bundle []byte, generation uint64) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(bundle, &doc); err != nil {
		t.Fatal(err)
	}
	doc["generation"] = generation
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unrelated is a bundle of the same cluster with CAs of its own.
func unrelated(t *testing.T, generation uint64) []byte {
	t.Helper()
	b, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.Generation = generation
	out, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A replica whose VM boots again, or whose disk is new, takes the last generation of the unbroken line from the one
// that it has, and says which one it refuses.
func TestAGenerationThatDoesNotContinueTheOneBeforeIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		later   func(t *testing.T, first []byte) [][]byte
		takes   uint64
		refuses bool
	}{
		"none is newer": {func(*testing.T, []byte) [][]byte { return nil }, 1, false},
		"the next one continues it": {func(t *testing.T, first []byte) [][]byte {
			return [][]byte{continuing(t, first, 2)}
		}, 2, false},
		"the next one is unrelated": {func(t *testing.T, first []byte) [][]byte {
			return [][]byte{unrelated(t, 2)}
		}, 1, true},
		"the one after the next is": {func(t *testing.T, first []byte) [][]byte {
			return [][]byte{continuing(t, first, 2), unrelated(t, 3)}
		}, 2, true},
		"one follows on an unrelated": {func(t *testing.T, first []byte) [][]byte {
			return [][]byte{unrelated(t, 2), continuing(t, first, 3)}
		}, 1, true},
	} {
		for _, emptied := range []bool{false, true} {
			v, a, in := renewing(t)
			v.bundles.later = c.later(t, v.bundles.held)
			in.makeBundle = false
			folder := a.files.Volatile // as a boot leaves it
			if emptied {
				folder = v.data()
			}
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
			out, err := a.certify(t.Context(), in.recorded)
			if err != nil {
				t.Errorf("%s, emptied %t: %v", name, emptied, err)
				continue
			}
			if out.report.Generation != c.takes || out.bundle == nil || out.bundle.Generation != c.takes {
				t.Errorf("%s, emptied %t: generation %d, want %d", name, emptied, out.report.Generation, c.takes)
			}
			if _, err := certs.EtcdTLS(a.files); err != nil || len(out.report.Pending) > 0 {
				t.Errorf("%s, emptied %t: %v, pending %v", name, emptied, err, out.report.Pending)
			}
			a.setPhase(PhaseEtcd) // it is no wait of the phase: the replica goes on, and still says it
			blocked := a.status(t.Context()).Blocked
			said := len(blocked) == 1 && blocked[0].Name == bundleRefused &&
				strings.Contains(blocked[0].Reason, "does not continue")
			if said != c.refuses {
				t.Errorf("%s, emptied %t: blocked %+v", name, emptied, blocked)
			}
			if said := strings.Contains(scraped(t, a), `name="bundle-refused"`); said != c.refuses {
				t.Errorf("%s, emptied %t: in the metrics: %t", name, emptied, said)
			}
		}
	}
}

func TestAGenerationThatTheRecordLacksIsNotReplaced(t *testing.T) {
	v, a, in := renewing(t)
	v.bundles.later = [][]byte{continuing(t, v.bundles.held, 2)}
	_, err := a.readBundle(t.Context(), withoutFirst{v.bundles}, 1)
	if err == nil || !strings.Contains(err.Error(), "lacks bundle generation 1, which this disk has") {
		t.Error(err)
	}
	if found, err := a.readBundle(t.Context(), withoutFirst{v.bundles}, 0); err != nil || found.bundle.Generation != 2 {
		t.Errorf("on a disk that has seen none: %v, %v", found.bundle, err)
	}
	in.makeBundle = false
	in.cloud.Bundles = withoutFirst{v.bundles}
	if err := os.RemoveAll(a.files.Volatile); err != nil {
		t.Fatal(err)
	}
	if _, err := a.renewOnce(t.Context(), in); err == nil {
		t.Error("a renewal takes it")
	}
}

// withoutFirst is a record that has lost generation 1.
type withoutFirst struct{ Bundles }

func (w withoutFirst) Generations(ctx context.Context) ([]uint64, error) {
	all, err := w.Bundles.Generations(ctx)
	return all[1:], err
}

func TestABundleUnderAnotherNumberIsNotTaken(t *testing.T) {
	v, a, _ := renewing(t)
	v.bundles.later = [][]byte{continuing(t, v.bundles.held, 3)}
	_, err := a.readBundle(t.Context(), v.bundles, 1)
	if err == nil || !strings.Contains(err.Error(), "stands as generation 2") {
		t.Error(err)
	}
}

// A disk that has lost its binding is not led back to a generation before its own, though the record has no other any
// more.
func TestADiskThatLostItsBindingIsNotLedBack(t *testing.T) {
	for _, lost := range []bool{false, true} {
		v, a, in := renewing(t)
		in.makeBundle = false
		v.bundles.later = [][]byte{nextKeys(t, v.bundles.held)}
		renew := func() certified {
			if err := os.RemoveAll(a.files.Volatile); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(a.files.Binding()); err != nil {
				t.Fatal(err)
			}
			out, err := a.certify(t.Context(), in.recorded)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		renew()
		if lost {
			v.bundles.later = nil
		}
		out := renew()
		if !lost && (out.report.Generation != 2 || out.lacking) {
			t.Errorf("generation %d, lacking %t", out.report.Generation, out.lacking)
		}
		if w := a.tracker.All(); lost && (!out.lacking || len(w) != 1 ||
			!strings.Contains(w[0].Reason, certs.ErrNotContinued.Error())) {
			t.Errorf("the record lost the second generation, and the waits are %+v", w)
		}
	}
}

// nextKeys is the second generation of a bundle, which knows one more key of each kind.
func nextKeys(t *testing.T, bundle []byte) []byte {
	t.Helper()
	var first, other map[string]any
	for doc, text := range map[*map[string]any][]byte{&first: bundle, &other: unrelated(t, 2)} {
		if err := json.Unmarshal(text, doc); err != nil {
			t.Fatal(err)
		}
	}
	first["generation"] = 2
	first["serviceAccountKeys"] = append(first["serviceAccountKeys"].([]any), other["serviceAccountKeys"].([]any)...)
	key := other["encryptionKeys"].([]any)[0].(map[string]any)
	key["name"] = "g2"
	first["encryptionKeys"] = append(first["encryptionKeys"].([]any), key)
	out, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
