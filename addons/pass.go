package addons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/internal/backoff"
)

// errOvertaken ends a pass whose inventory another manager has changed: the next pass reads it anew.
var errOvertaken = errors.New("another replica has changed the inventory")

const (
	// atOnce is how many objects are written at the same time.
	atOnce = 4
	// Definitions are polled until they count, for at most definitionsLimit: what waits for one is tried again anyway.
	definitionsPoll, definitionsLimit = 250 * time.Millisecond, 20 * time.Second
)

// pass compares the set with the cluster once, and writes what differs. An error broke it off; what a single object
// failed on is in memory.
func (m *manager) pass(ctx context.Context) error {
	m.memory.wrote, m.memory.deletesFrom = false, time.Time{}
	m.memory.forget(m.set)
	began := time.Now()
	there, inv, err := m.cluster.inventory(ctx)
	if err != nil {
		return err
	}
	m.memory.version, m.memory.standing = "", ""
	if inv != nil {
		m.memory.version = inv.Version
	}
	if m.set.Version == "" || len(m.set.Objects) == 0 {
		m.memory.kept = ""
		return nil // nothing is known of what has to be there, so nothing is done
	}
	if m.memory.standing = plan.Stand(inv, m.set.Set); !m.memory.standing.Writes() {
		m.memory.stepBack()
		return nil
	}
	if m.memory.standing == plan.Current {
		m.memory.holds(m.set.Digest, time.Now())
	}
	c := claim{there: there, began: m.memory.standing}
	if inv != nil {
		c.inv = *inv
	}
	m.fence.passed(began)
	for stage := range plan.Stages {
		if err := m.stage(ctx, stage, &c); err != nil {
			return err
		}
	}
	return m.prune(ctx, &c)
}

// claim is the inventory as this manager last read or wrote it.
type claim struct {
	there *corev1.ConfigMap
	inv   plan.Inventory
	began plan.Standing // how the pass found it
}

// stage brings the objects of one stage in line.
func (m *manager) stage(ctx context.Context, stage int, c *claim) error {
	var objects []plan.Object
	for _, o := range m.set.Objects {
		if o.Stage() == stage {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	live, err := m.cluster.observe(ctx, objects)
	if err != nil {
		return err
	}
	steps := make([]plan.Step, 0, len(objects))
	now := time.Now()
	for _, o := range objects {
		l := live[o.Key()]
		if err := m.cluster.outage(ctx, l.err); err != nil {
			return err
		}
		known := m.memory.known(o)
		known.Waits = m.memory.asks(o, m.set)
		steps = append(steps, plan.Decide(o, l.Live, known, now))
	}
	next := c.inv.Without(plan.Yielded(steps)).Claim(m.set.Set, plan.Expected(steps))
	if err := m.write(ctx, c, next); err != nil {
		return err
	}
	m.memory.standing, m.memory.version = plan.Current, m.set.Version
	if err := m.take(ctx, steps, live); err != nil {
		return err
	}
	if stage == plan.Definitions && m.memory.wrote {
		return m.awaitDefinitions(ctx, objects)
	}
	return nil
}

// write writes the inventory where it changes.
func (m *manager) write(ctx context.Context, c *claim, next plan.Inventory) error {
	if c.there != nil && c.inv.Same(next) {
		return nil
	}
	there, err := m.cluster.writeInventory(ctx, c.there, next)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: %w", errOvertaken, err)
	}
	if err != nil {
		return err
	}
	m.writes.Add(1)
	m.memory.wrote = true
	c.there, c.inv = there, next
	m.memory.holds(m.set.Digest, time.Now())
	m.cfg.Log.Info("inventory written", "version", string(next.Version), "objects", len(next.Objects))
	return nil
}

// outcome is how a step came out.
type outcome struct {
	taken, changed bool
	// confirmed: what was observed is what the dry run found to be right.
	confirmed bool
	// fields are what was changed, and owner who had set them.
	fields []string
	owner  string
	// raced: somebody has made the object since it was observed, so it has to be observed again.
	raced bool
	err   error
}

// take takes the steps, some at a time. An object that fails does not keep the others; only ctx, or a newer set, does.
func (m *manager) take(ctx context.Context, steps []plan.Step, live map[plan.Key]observed) error {
	outcomes := make([]outcome, len(steps))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, s := range steps {
		if s.Action != plan.Create && s.Action != plan.Check {
			continue
		}
		g.Go(func() error {
			out, err := m.applyOne(inner, s, live[s.Key()])
			m.got()
			if err != nil {
				return err
			}
			outcomes[i] = out
			return nil
		})
	}
	broken := g.Wait()
	now := time.Now()
	for i, s := range steps {
		if broken != nil && !outcomes[i].taken && (s.Action == plan.Create || s.Action == plan.Check) {
			continue
		}
		m.note(ctx, s, live[s.Key()], outcomes[i], now)
	}
	return broken
}

// applyOne applies one manifest: first as a dry run, then, where that shows a difference, in earnest. The fence is
// asked between the two, as near to the write as can be.
func (m *manager) applyOne(ctx context.Context, s plan.Step, live observed) (outcome, error) {
	out := outcome{taken: true}
	manifest := marked(m.set.manifests[s.Key()], s.Origin)
	var d difference
	d, out.err = m.cluster.compare(ctx, manifest)
	switch {
	case out.err != nil:
		return out, m.cluster.outage(ctx, out.err)
	case d.same:
		// It was right when it was compared. What was observed before that is known to be right only if it is the same.
		u, err := m.cluster.get(ctx, s.ID)
		out.confirmed = err == nil && u != nil && live.object != nil &&
			u.GetResourceVersion() == live.object.GetResourceVersion()
		return out, nil
	case s.Action == plan.Create && d.before != nil:
		out.raced = true
		return out, nil
	}
	if err := m.fence.check(ctx, m.cluster, m.set.Set); err != nil {
		return outcome{}, err
	}
	if out.err = m.cluster.write(ctx, manifest, d.before); out.err != nil {
		return out, m.cluster.outage(ctx, out.err)
	}
	m.writes.Add(1)
	m.cfg.Log.Info("applied", "object", s.String(), "new", d.before == nil, "why", s.Reason)
	out.changed, out.fields = true, d.fields()
	out.owner = ownerOf(live.object, out.fields) // as observed: the dry run's result has no owners
	return out, nil
}

// note remembers how a step came out.
func (m *manager) note(ctx context.Context, s plan.Step, live observed, out outcome, now time.Time) {
	key := s.Key()
	if out.raced {
		m.memory.wrote = true
		return
	}
	failed := ""
	switch s.Action {
	case plan.Pause:
		return // it has failed, and is tried again later
	case plan.Yield:
		m.memory.absent(key)
		delete(m.memory.troubles, key)
		return
	case plan.Wait:
		m.memory.waits(s.Object, s.Reason, now)
		return
	case plan.Fail, plan.Refuse:
		failed = s.Reason
	case plan.Create, plan.Check:
		if out.err != nil {
			failed = out.err.Error()
		}
	}
	if failed != "" {
		delete(m.memory.seen, key)
		tell := m.memory.fails(s.Object, failed, s.Action == plan.Refuse, now)
		if live.shared {
			tell = m.memory.tellsKind(s.ID, now)
			failed = "and each other one of its kind: " + failed
		}
		if tell {
			m.cfg.Log.Warn("an object fails", "object", s.String(), "source", s.Source, "err", failed)
			m.tell(ctx, s.ID, live, corev1.EventTypeWarning, "AddonFailed", failed)
		}
		return
	}
	if m.memory.troubles[key] != nil {
		m.tell(ctx, s.ID, live, corev1.EventTypeNormal, "AddonApplied", "it is in place now")
	}
	notReady := ""
	switch {
	case out.changed || live.object == nil:
		m.noteWrite(ctx, s, live, out, now)
		delete(m.memory.seen, key)
		notReady = "it was just applied"
	case s.Action == plan.Check && !out.confirmed:
		delete(m.memory.seen, key)
		notReady = unready(live.object)
	default:
		m.memory.seen[key] = plan.Seen{Hash: s.Hash, Print: live.Print}
		notReady = unready(live.object)
	}
	m.memory.stands(s.Object, notReady, now)
}

// noteWrite remembers a write: of an object that had been in place, it may be part of a fight.
func (m *manager) noteWrite(ctx context.Context, s plan.Step, live observed, out outcome, now time.Time) {
	m.memory.wrote = m.memory.wrote || out.changed
	before := m.memory.contests[s.Key()]
	if !out.changed || m.memory.inPlace[s.Key()] != s.Hash && before == nil {
		return
	}
	m.memory.contest(s.Object, out.fields, out.owner, now)
	if c := m.memory.contests[s.Key()]; c.Contested() && !before.Contested() {
		m.cfg.Log.Warn("an object is contested", "object", s.String(), "err", c.Reason())
		m.tell(ctx, s.ID, live, corev1.EventTypeWarning, "AddonContested", c.Reason())
	}
}

// tell makes an Event. One that cannot be made is lost: the status says the same.
func (m *manager) tell(ctx context.Context, id plan.ID, live observed, kind, reason, message string) {
	var uid types.UID
	if live.object != nil {
		uid = live.object.GetUID()
	}
	m.got()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout) // many may have to be told of, and none is worth a long wait
	defer cancel()
	if err := m.cluster.tell(ctx, m.cfg.Replica, id, uid, kind, reason, message); err != nil {
		m.cfg.Log.Info("no Event could be made", "object", id.String(), "err", err.Error())
		return
	}
	m.writes.Add(1)
}

// awaitDefinitions waits until namespaces and kinds that were just made can be used.
func (m *manager) awaitDefinitions(ctx context.Context, objects []plan.Object) error {
	until := time.Now().Add(definitionsLimit)
	for _, o := range objects {
		for m.memory.inPlace[o.Key()] != "" {
			u, err := m.cluster.get(ctx, o.ID)
			if err == nil && u != nil && unready(u) == "" || time.Now().After(until) {
				break
			}
			if err := backoff.Sleep(ctx, definitionsPoll); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune deletes what former sets have made and this one does not have.
func (m *manager) prune(ctx context.Context, c *claim) error {
	m.memory.kept = ""
	before := m.memory.unserved
	m.memory.unserved = map[plan.Key]time.Time{} // what this pass does not observe is not counted on
	leftovers := plan.Leftovers(c.inv, m.set.Set)
	if len(leftovers) == 0 {
		return nil
	}
	now := time.Now()
	may, why := plan.MayPrune(m.set.Set, plan.Whole{Standing: c.began, Changing: m.pending != "",
		Held: now.Sub(m.memory.claim.since), Grace: m.cfg.Pace.grace()})
	if !may {
		if at := m.memory.claim.since.Add(m.cfg.Pace.grace()); now.Before(at) {
			m.memory.deletesFrom = at
		}
		m.memory.kept = fmt.Sprintf("objects of former sets that are kept: %d, because %s", len(leftovers), why)
		return nil
	}
	pending := m.memory.pending(m.set)
	var gone []plan.ID
	var stays []error
	for _, id := range leftovers {
		if err := m.fence.check(ctx, m.cluster, m.set.Set); err != nil {
			return err
		}
		m.got()
		if by, held := plan.HeldBack(id, pending); held {
			stays = append(stays, fmt.Errorf("%s: %s is not in place", id, by))
			continue
		}
		done, err := m.pruneOne(ctx, id, before)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := m.cluster.outage(ctx, err); err != nil {
			return err
		}
		if err != nil {
			stays = append(stays, fmt.Errorf("%s: %w", id, err))
		}
		if done {
			gone = append(gone, id)
		}
	}
	if len(stays) > 0 {
		m.memory.kept = fmt.Sprintf("objects of former sets that are kept: %d, first %s", len(stays),
			stays[0])
	}
	return m.write(ctx, c, c.inv.Without(gone))
}

// pruneOne does what plan.Judge says of one leftover, and reports whether the inventory can forget it. before is what
// the pass before knew of kinds that are not served.
func (m *manager) pruneOne(ctx context.Context, id plan.ID, before map[plan.Key]time.Time) (done bool, err error) {
	u, live, err := m.cluster.leftover(ctx, id)
	if err != nil {
		return false, err
	}
	if live.Unserved {
		since, known := before[id.Key()]
		if !known {
			since = time.Now()
		}
		m.memory.unserved[id.Key()] = since
		live.UnservedFor = time.Since(since)
	}
	fate, why := plan.Judge(id, live)
	switch fate {
	case plan.Delete:
		if err := m.cluster.delete(ctx, u); err != nil {
			return false, err
		}
		m.writes.Add(1)
		m.memory.wrote = true
		m.cfg.Log.Info("deleted", "object", id.String(), "why", why)
		m.tell(ctx, id, observed{object: u}, corev1.EventTypeNormal, "AddonDeleted", why)
	case plan.Release:
		m.cfg.Log.Info("released", "object", id.String(), "why", why)
		m.tell(ctx, id, observed{object: u}, corev1.EventTypeNormal, "AddonReleased", why)
		if len(m.memory.released) < mostReleased {
			m.memory.released = append(m.memory.released, plan.ObjectStatus{Object: id.String(), Reason: why,
				Since: time.Now()})
		}
	case plan.Stay:
		return false, errors.New(why)
	}
	return true, nil
}
