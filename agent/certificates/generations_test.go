package certificates

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
	b, err := certs.NewBundle(uid, time.Now())
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
	for name, tc := range map[string]struct {
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
			w, c, _ := renewing(t)
			w.bundles.later = tc.later(t, w.bundles.held)
			folder := w.me.Files.Volatile // as a boot leaves it
			if emptied {
				folder = w.data()
			}
			w.remove(folder)
			out, err := c.Certify(t.Context(), false)
			if err != nil {
				t.Errorf("%s, emptied %t: %v", name, emptied, err)
				continue
			}
			if out.Report.Generation != tc.takes || out.Bundle == nil || out.Bundle.Generation != tc.takes {
				t.Errorf("%s, emptied %t: generation %d, want %d", name, emptied, out.Report.Generation, tc.takes)
			}
			if _, err := certs.EtcdTLS(w.me.Files); err != nil || len(out.Report.Pending) > 0 {
				t.Errorf("%s, emptied %t: %v, pending %v", name, emptied, err, out.Report.Pending)
			}
			w.waits.Enter("etcd") // it is no wait of the phase: the replica goes on, and still says it
			blocked := w.tracker.All()
			said := len(blocked) == 1 && blocked[0].Name == bundleRefused &&
				strings.Contains(blocked[0].Reason, "does not continue")
			if said != tc.refuses {
				t.Errorf("%s, emptied %t: blocked %+v", name, emptied, blocked)
			}
			if said := strings.Contains(w.scraped(), `name="bundle-refused"`); said != tc.refuses {
				t.Errorf("%s, emptied %t: in the metrics: %t", name, emptied, said)
			}
		}
	}
}

func TestAGenerationThatTheRecordLacksIsNotReplaced(t *testing.T) {
	w, c, _ := renewing(t)
	w.bundles.later = [][]byte{continuing(t, w.bundles.held, 2)}
	c.me.Bundles = withoutFirst{w.bundles}
	_, err := c.readBundle(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "lacks bundle generation 1, which this disk has") {
		t.Error(err)
	}
	if found, err := c.readBundle(t.Context(), 0); err != nil || found.bundle.Generation != 2 {
		t.Errorf("on a disk that has seen none: %v, %v", found.bundle, err)
	}
	w.remove(w.me.Files.Volatile)
	if _, err := c.renewOnce(t.Context()); err == nil {
		t.Error("a renewal takes it")
	}
}

// withoutFirst is a record that has lost generation 1.
type withoutFirst struct{ Bundles }

func (b withoutFirst) Generations(ctx context.Context) ([]uint64, error) {
	all, err := b.Bundles.Generations(ctx)
	return all[1:], err
}

func TestABundleUnderAnotherNumberIsNotTaken(t *testing.T) {
	w, c, _ := renewing(t)
	w.bundles.later = [][]byte{continuing(t, w.bundles.held, 3)}
	_, err := c.readBundle(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "stands as generation 2") {
		t.Error(err)
	}
}

// A disk that has lost its binding is not led back to a generation before its own, though the record has no other any
// more.
func TestADiskThatLostItsBindingIsNotLedBack(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w, c, _ := renewing(t)
		w.bundles.later = [][]byte{nextKeys(t, w.bundles.held)}
		renew := func() Issued {
			w.remove(w.me.Files.Volatile)
			if err := os.Remove(w.me.Files.Binding()); err != nil {
				t.Fatal(err)
			}
			out, err := c.Certify(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		renew()
		if lost {
			w.bundles.later = nil
		}
		out := renew()
		if !lost && (out.Report.Generation != 2 || out.Lacking) {
			t.Errorf("generation %d, lacking %t", out.Report.Generation, out.Lacking)
		}
		if all := w.tracker.All(); lost && (!out.Lacking || len(all) != 1 ||
			!strings.Contains(all[0].Reason, certs.ErrNotContinued.Error())) {
			t.Errorf("the record lost the second generation, and the waits are %+v", all)
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
