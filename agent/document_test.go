package agent

import (
	"context"
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
	a, _ := v.identified()
	stop := background(t.Context(), func(ctx context.Context) { a.document.keep(ctx, v.metadata) })
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
		{"what VMs are made of, which no agent reads", former + `
gce: {project: example, region: us-central1, zones: [us-central1-a], image: quorate-master, serviceAccount: ` +
			"m@example.iam.gserviceaccount.com}\n", "", 0},
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

// What nothing is built on counts at once, and is not pending; with the rest of a change it is apart. A document that
// cannot be used changes nothing of it.
func TestWhatCountsAtOnceIsNotPending(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	documents := make(chan string)
	v.metadata.documents = documents
	a, in := v.identified()
	defer background(t.Context(), func(ctx context.Context) { a.document.keep(ctx, v.metadata) })()
	former := v.metadata.attributes[ClusterAttribute]
	const watch = "\nkubelet: {misses: 5, startWithin: 10m}\n"
	const balanced = "\ngce: {project: example, region: us-central1, zones: [us-central1-a], image: quorate-master, " +
		"serviceAccount: m@example.iam.gserviceaccount.com, loadBalancer: {type: external, name: lb}}\n"
	for _, c := range []struct {
		name, document string
		misses         int
		pending        string
	}{
		{"as it is", former, 3, ""},
		{"the watch of the kubelet", former + watch, 5, ""},
		{"that and another field", former + watch + "survivors: wait\n", 5, "survivors"},
		{"one that cannot be used", former + "\nkubelet: {misses: 1}\n", 5, ""},
		{"as it was", former, 3, ""},
		{"the load balancer", former + balanced, 3, ""},
		{"none again", former, 3, ""},
	} {
		documents <- c.document
		documents <- c.document // what was sent first is dealt with once this one is taken
		if got := a.document.inForce().kubelet.Misses; got != c.misses {
			t.Errorf("%s: %d misses are in force, want %d", c.name, got, c.misses)
		}
		var want replica.LoadBalancer
		if strings.Contains(c.document, "loadBalancer") {
			want = replica.LoadBalancer{Type: "external", Name: "lb"}
		}
		if got := a.document.inForce().balancer; got != want {
			t.Errorf("%s: the load balancer in force is %+v, want %+v", c.name, got, want)
		}
		var fields []string
		for _, p := range a.status(t.Context()).PendingRestart {
			fields = append(fields, p.Field)
		}
		if got := strings.Join(fields, " "); got != c.pending {
			t.Errorf("%s: pending %q, want %q", c.name, got, c.pending)
		}
	}
	if in.cluster.Kubelet.Misses != 3 {
		t.Error("the document of the agent's start was written into")
	}
}
