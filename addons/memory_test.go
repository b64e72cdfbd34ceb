package addons

import (
	"testing"
	"time"

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
