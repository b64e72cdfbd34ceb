package addons

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/internal/backoff"
)

// memory is what a manager knows from its last passes. All of it can be lost: the next pass finds it out again.
type memory struct {
	standing plan.Standing
	version  plan.Version // the inventory's
	// seen are objects that were found to be as their manifests say.
	seen     map[plan.Key]plan.Seen
	troubles map[plan.Key]*trouble
	notReady map[plan.Key]plan.ObjectStatus
	inPlace  map[plan.Key]bool
	released []plan.ObjectStatus
	kept     string
	wrote    bool // in the last pass
	claim    held
	// deletesFrom is when leftovers may be deleted that are kept only for the claim's grace; zero: it is not that.
	deletesFrom time.Time
}

// held is since when the inventory has been known to be a set's.
type held struct {
	digest string
	since  time.Time
}

// holds notes that the inventory is a set's.
func (m *memory) holds(digest string, now time.Time) {
	if m.claim.digest != digest {
		m.claim = held{digest, now}
	}
}

// trouble is an object that fails.
type trouble struct {
	plan.Trouble
	plan.ObjectStatus
	retry backoff.Backoff
	told  time.Time
}

// mostReleased bounds what is remembered for the status.
const mostReleased = 20

func newMemory() memory {
	return memory{seen: map[plan.Key]plan.Seen{}, troubles: map[plan.Key]*trouble{},
		notReady: map[plan.Key]plan.ObjectStatus{}, inPlace: map[plan.Key]bool{}}
}

// forget drops what is of objects that the set does not have any more.
func (m *memory) forget(s set) {
	for k := range m.troubles {
		if s.manifests[k] == nil {
			delete(m.troubles, k)
		}
	}
	for k := range m.notReady {
		if s.manifests[k] == nil {
			delete(m.notReady, k)
		}
	}
	for k := range m.inPlace {
		if s.manifests[k] == nil {
			delete(m.inPlace, k)
			delete(m.seen, k)
		}
	}
}

// fails notes that an object failed, and reports whether it has to be told: at its first failure, and for another
// reason at most each tellPeriod.
func (m *memory) fails(o plan.Object, reason string, now time.Time) (tell bool) {
	t := m.troubles[o.Key()]
	if t == nil {
		t = &trouble{ObjectStatus: plan.ObjectStatus{Object: o.String(), Source: o.Source, Since: now},
			retry: backoff.Backoff{First: firstTry, Most: lastTry}}
		m.troubles[o.Key()] = t
	}
	tell = t.told.IsZero() || t.ObjectStatus.Reason != reason && now.Sub(t.told) >= tellPeriod
	if tell {
		t.told = now
	}
	t.ObjectStatus.Reason, t.Trouble = reason, plan.Trouble{Reason: reason, Next: now.Add(t.retry.Next())}
	delete(m.inPlace, o.Key())
	return tell
}

// tellPeriod is the time between two Events about one object: reasons may hold numbers that change each time.
const tellPeriod = 10 * time.Minute

// stands notes that an object is in place, and whether it does its work.
func (m *memory) stands(o plan.Object, notReady string, now time.Time) {
	key := o.Key()
	m.inPlace[key] = true
	delete(m.troubles, key)
	if notReady == "" {
		delete(m.notReady, key)
		return
	}
	before, there := m.notReady[key]
	if !there {
		before.Since = now
	}
	m.notReady[key] = plan.ObjectStatus{Object: o.String(), Source: o.Source, Reason: notReady, Since: before.Since}
}

// report is the status that follows from it.
func (m *memory) report(s set, folder string) plan.Status {
	out := plan.Status{Folder: folder, Version: s.Version, Digest: s.Digest, Inventory: m.version, Standing: m.standing,
		Objects: len(s.Objects), InPlace: len(m.inPlace), Ready: len(m.inPlace) - len(m.notReady),
		Faults: append([]string{}, s.Faults...), Failing: []plan.ObjectStatus{}, NotReady: []plan.ObjectStatus{},
		Kept: m.kept, Released: append([]plan.ObjectStatus{}, m.released...)}
	for _, t := range m.troubles {
		out.Failing = append(out.Failing, t.ObjectStatus)
	}
	for _, o := range m.notReady {
		out.NotReady = append(out.NotReady, o)
	}
	byName := func(a, b plan.ObjectStatus) int { return strings.Compare(a.Object, b.Object) }
	slices.SortFunc(out.Failing, byName)
	slices.SortFunc(out.NotReady, byName)
	return out
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
