package addons

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
)

// aSet is a set with one object, and the object.
func aSet() (set, plan.Object) {
	o := plan.Object{ID: plan.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one"}, Hash: "h"}
	return set{Set: plan.Set{Version: "1", Objects: []plan.Object{o}}}, o
}

func TestAnObjectThatIsNotInPlaceIsNotAlsoNotReady(t *testing.T) {
	now := time.Now()
	for name, becomes := range map[string]func(*memory, plan.Object){
		"it fails":                  func(m *memory, o plan.Object) { m.fails(o, "refused", false, now) },
		"it waits":                  func(m *memory, o plan.Object) { m.waits(o, "it waits for a Deployment", now) },
		"its manifest is another":   func(m *memory, o plan.Object) { s, _ := aSet(); s.Objects[0].Hash = "i"; m.forget(s) },
		"the set does not have it":  func(m *memory, _ plan.Object) { m.forget(set{}) },
		"it waits, and then fails":  func(m *memory, o plan.Object) { m.waits(o, "w", now); m.fails(o, "f", false, now) },
		"it fails, and then is not": func(m *memory, o plan.Object) { m.fails(o, "f", false, now); m.forget(set{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, o := aSet()
			m := newMemory()
			m.stands(o, "its pods start", now)
			becomes(&m, o)
			if _, unready := m.notReady[o.Key()]; unready {
				t.Error("it is still not ready")
			}
			if got := m.report(s, ""); got.InPlace != 0 || got.Ready != 0 {
				t.Errorf("%d in place, %d ready", got.InPlace, got.Ready)
			}
		})
	}
}

func TestAnObjectThatIsLeftToOthersIsNotTriedEachSecond(t *testing.T) {
	s, o := aSet()
	m := &manager{memory: newMemory(), set: s, cfg: Config{Pace: Pace{Resync: defaultResync}}}
	tried := time.Now().Add(-time.Minute)
	m.memory.waits(o, "it waits for a Deployment", tried)
	m.memory.fails(o, "it could not be read", false, tried)
	m.memory.stands(o, "its pods start", tried)
	m.memory.fails(o, "it could not be read", false, tried)
	m.note(t.Context(), plan.Step{Object: o, Action: plan.Yield}, observed{}, outcome{}, time.Now())
	if rest := m.rest(time.Now()); rest < defaultResync/2 {
		t.Errorf("the next pass is in %s", rest)
	}
	if got := m.memory.report(s, ""); len(got.Failing)+len(got.NotReady)+got.InPlace > 0 {
		t.Errorf("it still is %+v", got)
	}
}

func TestAnUnservedKindIsCountedOnlyWhileItIsObserved(t *testing.T) {
	s, o := aSet()
	other := plan.Inventory{Objects: []plan.ID{{APIVersion: "example.com/v1", Kind: "Lamp", Name: "lit"}}}
	for name, pass := range map[string]func(*manager) error{
		"nothing is left over": func(m *manager) error { return m.prune(t.Context(), &claim{}) },
		"nothing may be deleted": func(m *manager) error {
			return m.prune(t.Context(), &claim{inv: other, began: plan.Newest})
		},
		"another object is not in place yet": func(m *manager) error {
			m.memory.claim.since = time.Now().Add(-time.Hour)
			return m.prune(t.Context(), &claim{there: &corev1.ConfigMap{}, inv: other, began: plan.Current})
		},
		"another set writes": func(m *manager) error { m.memory.stepBack(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{memory: newMemory(), set: s}
			m.memory.fails(o, "refused", false, time.Now())
			m.fence.passed(time.Now())
			m.memory.unserved[other.Objects[0].Key()] = time.Now().Add(-time.Hour)
			if err := pass(m); err != nil {
				t.Fatal(err)
			}
			if len(m.memory.unserved) > 0 {
				t.Error("it counts on")
			}
		})
	}
}

// noKinds answers as an apiserver does that serves no kind.
type noKinds struct{ client.Client }

func (noKinds) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return &meta.NoKindMatchError{}
}

func TestAnUnservedKindIsCountedFromPassToPass(t *testing.T) {
	s, o := aSet()
	lamp := plan.ID{APIVersion: "example.com/v1", Kind: "Lamp", Name: "lit"}
	m := &manager{memory: newMemory(), set: s, cluster: &cluster{client: noKinds{}}}
	m.memory.stands(o, "", time.Now())
	m.memory.claim.since = time.Now().Add(-time.Hour)
	c := claim{there: &corev1.ConfigMap{}, inv: plan.Inventory{Objects: []plan.ID{lamp}}, began: plan.Current}
	var since []time.Time
	for range 2 {
		m.fence.passed(time.Now())
		if err := m.prune(t.Context(), &c); err != nil || m.memory.kept == "" {
			t.Fatalf("%v, kept %q", err, m.memory.kept)
		}
		since = append(since, m.memory.unserved[lamp.Key()])
	}
	if since[0].IsZero() || !since[1].Equal(since[0]) {
		t.Errorf("it is counted from %s", since)
	}
}
