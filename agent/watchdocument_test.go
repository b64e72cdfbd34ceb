package agent

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// A document that changes while the agent runs is shown until the next start; one that cannot be used is a wait, and
// changes nothing; the one in force makes both go away.
func TestADocumentThatChangesIsPending(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	documents := make(chan string)
	v.metadata.documents = documents
	a, in := v.identified()
	stop := a.keepDocument(t.Context(), in)
	defer stop()
	former := v.metadata.attributes[ClusterAttribute]
	if former == "" {
		t.Fatal("the test's VM has no document")
	}
	changed := former + "\nsurvivors: wait\n"
	for _, c := range []struct {
		name, document, wait string
		pending              int
	}{
		{"as it is", former, "", 0},
		{"a change", changed, "", 1},
		{"one that cannot be used", former + "\nsurvivor: wait\n", "survivor", 0},
		{"a change again", changed, "", 1},
		{"none at all", "", "no configuration", 0},
		{"as it was", former, "", 0},
	} {
		documents <- c.document
		documents <- c.document // what was sent first is dealt with once this one is taken
		s := a.status(t.Context())
		if len(s.PendingRestart) != c.pending {
			t.Errorf("%s: pending %v", c.name, s.PendingRestart)
		}
		if c.pending == 1 && len(s.PendingRestart) == 1 &&
			s.PendingRestart[0] != (replica.Change{Field: "survivors", Before: "restore", After: "wait"}) {
			t.Errorf("%s: pending %v", c.name, s.PendingRestart)
		}
		if c.wait == "" != (len(s.Blocked) == 0) || c.wait != "" && (s.Blocked[0].Name != documentRefused ||
			!strings.Contains(s.Blocked[0].Reason, c.wait)) {
			t.Errorf("%s: blocked %+v", c.name, s.Blocked)
		}
		if got := scraped(t, a); !strings.Contains(got,
			"quorate_pending_restart_fields "+string(rune('0'+c.pending))+"\n") {
			t.Errorf("%s: the metrics do not say %d", c.name, c.pending)
		}
	}
}
