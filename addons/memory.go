package addons

import (
	"encoding/json"
	"maps"
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
	// notReady are those in place that do not do their work yet.
	notReady map[plan.Key]plan.ObjectStatus
	// inPlace has the hash of the manifest that each object in place was found to agree with.
	inPlace  map[plan.Key]string
	waiting  map[plan.Key]plan.ObjectStatus
	contests map[plan.Key]*plan.Contest
	// unserved is since when the kind of a leftover has not been served, at each pass that asked for it.
	unserved map[plan.Key]time.Time
	// toldKinds is when a fault of a whole kind was last told.
	toldKinds map[plan.Key]time.Time
	released  []plan.ObjectStatus
	kept      string
	wrote     bool // in the last pass
	claim     held
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
	m := memory{toldKinds: map[plan.Key]time.Time{}}
	m.stepBack()
	return m
}

// stepBack forgets what is of objects: another set writes them.
func (m *memory) stepBack() {
	m.kept, m.claim = "", held{}
	m.seen, m.troubles = map[plan.Key]plan.Seen{}, map[plan.Key]*trouble{}
	m.notReady, m.waiting = map[plan.Key]plan.ObjectStatus{}, map[plan.Key]plan.ObjectStatus{}
	m.inPlace, m.contests = map[plan.Key]string{}, map[plan.Key]*plan.Contest{}
	m.unserved = map[plan.Key]time.Time{}
}

// forget drops what is of objects that the set does not have any more, or has another manifest of.
func (m *memory) forget(s set) {
	hashes := make(map[plan.Key]string, len(s.Objects))
	for _, o := range s.Objects {
		hashes[o.Key()] = o.Hash
	}
	gone := func(k plan.Key) bool { return hashes[k] == "" }
	maps.DeleteFunc(m.troubles, func(k plan.Key, _ *trouble) bool { return gone(k) })
	maps.DeleteFunc(m.waiting, func(k plan.Key, _ plan.ObjectStatus) bool { return gone(k) })
	maps.DeleteFunc(m.contests, func(k plan.Key, c *plan.Contest) bool { return c.Hash != hashes[k] })
	maps.DeleteFunc(m.inPlace, func(k plan.Key, hash string) bool { return hash != hashes[k] })
	maps.DeleteFunc(m.notReady, func(k plan.Key, _ plan.ObjectStatus) bool { return m.inPlace[k] == "" })
	maps.DeleteFunc(m.seen, func(k plan.Key, seen plan.Seen) bool { return seen.Hash != hashes[k] })
}

// known is what is remembered of an object of the set.
func (m *memory) known(o plan.Object) (k plan.Known) {
	if seen, ok := m.seen[o.Key()]; ok {
		k.Seen = &seen
	}
	if t := m.troubles[o.Key()]; t != nil {
		k.Trouble = &t.Trouble
	}
	k.Contest = m.contests[o.Key()]
	return k
}

// pending are the objects of the set that are not in place, and may come to be.
func (m *memory) pending(s set) (out []plan.ID) {
	for _, o := range s.Objects {
		t := m.troubles[o.Key()]
		if m.inPlace[o.Key()] == "" && !m.contests[o.Key()].Contested() && (t == nil || !t.Refused) {
			out = append(out, o.ID)
		}
	}
	return out
}

// asks is what an object has to wait for: the set's workloads in the namespaces of the services that the apiserver will
// ask because of it.
func (m *memory) asks(o plan.Object, s set) string {
	for _, other := range s.Objects {
		_, unready := m.notReady[other.Key()]
		if slices.Contains(o.Asks, other.Namespace) && other.Stage() < o.Stage() &&
			(unready || m.inPlace[other.Key()] == "") {
			return other.String()
		}
	}
	return ""
}

// tellsKind says whether a fault of a whole kind has to be told now, and notes that it was.
func (m *memory) tellsKind(id plan.ID, now time.Time) bool {
	kind := plan.Key{Group: id.Group(), Kind: id.Kind}
	if now.Sub(m.toldKinds[kind]) < tellPeriod {
		return false
	}
	m.toldKinds[kind] = now
	return true
}

// contest notes a write, and what it changed of an object that had been in place.
func (m *memory) contest(o plan.Object, fields []string, owner string, now time.Time) {
	c := m.contests[o.Key()].After(fields, owner, now)
	c.Hash = o.Hash
	m.contests[o.Key()] = c
}

// fails notes that an object failed, and reports whether it has to be told: at its first failure, and for another
// reason at most each tellPeriod.
func (m *memory) fails(o plan.Object, reason string, refused bool, now time.Time) (tell bool) {
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
	pause := t.retry.Next()
	next := now.Add(pause)
	if pause > tryTogether { // so that one pass tries many
		next = next.Truncate(tryTogether)
	}
	t.ObjectStatus.Reason, t.Trouble = reason, plan.Trouble{Reason: reason, Next: next, Refused: refused}
	m.absent(o.Key())
	return tell
}

// absent notes that an object is not in place.
func (m *memory) absent(k plan.Key) {
	delete(m.inPlace, k)
	delete(m.notReady, k)
	delete(m.waiting, k)
}

// tellPeriod is the time between two Events about one object: reasons may hold numbers that change each time.
const tellPeriod = 10 * time.Minute

// stands notes that an object is in place, and whether it does its work.
func (m *memory) stands(o plan.Object, notReady string, now time.Time) {
	key := o.Key()
	m.inPlace[key] = o.Hash
	delete(m.troubles, key)
	delete(m.waiting, key)
	if c := m.contests[key]; c != nil && c.Over(now) {
		delete(m.contests, key)
	}
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

// waits notes that an object is not made yet.
func (m *memory) waits(o plan.Object, reason string, now time.Time) {
	before, there := m.waiting[o.Key()]
	if !there {
		before.Since = now
	}
	m.absent(o.Key())
	m.waiting[o.Key()] = plan.ObjectStatus{Object: o.String(), Source: o.Source, Reason: reason, Since: before.Since}
	delete(m.troubles, o.Key())
}

// report is the status that follows from it.
func (m *memory) report(s set, folder string) plan.Status {
	out := plan.Status{Folder: folder, Version: s.Version, Digest: s.Digest, Inventory: m.version, Standing: m.standing,
		Objects: len(s.Objects), InPlace: len(m.inPlace), Ready: len(m.inPlace) - len(m.notReady),
		Faults:  append([]string{}, s.Faults...),
		Failing: []plan.ObjectStatus{}, NotReady: []plan.ObjectStatus{}, Contested: []plan.ObjectStatus{},
		Kept: m.kept, Released: append([]plan.ObjectStatus{}, m.released...)}
	for _, t := range m.troubles {
		out.Failing = append(out.Failing, t.ObjectStatus)
	}
	for _, list := range []map[plan.Key]plan.ObjectStatus{m.notReady, m.waiting} {
		for _, o := range list {
			out.NotReady = append(out.NotReady, o)
		}
	}
	for _, o := range s.Objects {
		if c := m.contests[o.Key()]; c.Contested() {
			out.Contested = append(out.Contested, plan.ObjectStatus{Object: o.String(), Source: o.Source,
				Reason: c.Reason(), Since: c.Since})
		}
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
