package bucket

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/record"
)

// A confirmation without its incarnation fails a View, which decides, and is told by Remains, which brings it back.
func TestAnOrphanFailsAViewAndIsFoundInTheRemains(t *testing.T) {
	url, folder := localBucket(t)
	s := openStore(t, url)
	for _, i := range []record.Incarnation{incarnation(placeA, 1, 1, true), incarnation(placeB, 1, 1, true)} {
		if _, _, err := s.CreateIncarnation(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.ConfirmIncarnation(t.Context(), i.Place, 1, *i.Started); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(folder, "replicas", placeB.String(), "1.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.View(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "replicas/z-b.m2/1.json is lost: quorate record rebuild") {
		t.Errorf("a view says %v", err)
	}
	r, err := s.Remains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Orphans) != 1 || r.Orphans[0].Place != placeB || r.Orphans[0].Number != 1 ||
		r.Orphans[0].Started.Epoch != 1 || len(r.Replicas[placeA]) != 1 {
		t.Errorf("the remains are %+v", r)
	}
}

// What cannot be read is no less an error there: a rebuilding that took it for absent would write beside it.
func TestRemainsAreAsStrictAsAView(t *testing.T) {
	url, folder := localBucket(t)
	s := openStore(t, url)
	if err := os.MkdirAll(filepath.Join(folder, "epochs", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "epochs", "1", "claim.json"), []byte(`{"token":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Remains(t.Context()); err == nil || !strings.Contains(err.Error(), "epochs/1/claim.json") {
		t.Errorf("the remains are %+v, %v", r, err)
	}
}
