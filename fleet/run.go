package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/backoff"
)

const (
	// period is the time between two readings while something is waited for.
	period = 2 * time.Second
	// stepLimit bounds one step: operations of the Compute API take minutes at most.
	stepLimit = 10 * time.Minute
	// grace is how long the step under way may go on once the command is interrupted.
	grace = 30 * time.Second
)

// Event is something that a person is told while a plan is carried out. Exactly one is set: the step that begins, the
// text of what is waited for, or the step that has ended and how long it took.
type Event struct {
	Begins *plan.Step
	Waits  string
	Ended  *plan.Step
	Took   time.Duration
}

// Talk is how Run speaks with the operator.
type Talk struct {
	// Approve is asked once, with the whole plan, before the first step; an error ends the command.
	Approve func(plan.Plan) error
	// Tell is told what happens; nil: nobody wants to know.
	Tell func(Event)
}

// ErrStopped is in the error of a command that was interrupted, or that a step failed in.
var ErrStopped = errors.New("run the command again: it goes on where it stopped")

// complete fills in what a wish leaves open: the document's replicas and zones, the names' beginning, and drawn ends of
// names.
func (f *Fleet) complete(w plan.Wish) plan.Wish {
	if w.Kind == plan.Create {
		w.Count = cmp.Or(w.Count, f.Document.Replicas)
	}
	if len(w.Zones) == 0 {
		w.Zones = f.Document.GCE.Zones
	}
	if w.Prefix == "" {
		w.Prefix = f.Document.Name + "-master"
	}
	if len(w.Suffixes) == 0 {
		for range 32 {
			w.Suffixes = append(w.Suffixes, strings.ToLower(rand.Text()[:4]))
		}
	}
	return w
}

// Plan says what Run would do.
func (f *Fleet) Plan(ctx context.Context, w plan.Wish, tell func(Event)) (plan.Plan, error) {
	r := &run{Fleet: f, talk: Talk{Tell: tell}}
	p, _, err := r.begin(ctx, f.complete(w))
	return p, err
}

// Run carries a wish out: it reads, plans, asks, and takes one step after another, each by what is read anew. It
// returns the plan that it began with.
func (f *Fleet) Run(ctx context.Context, w plan.Wish, talk Talk) (plan.Plan, error) {
	r := &run{Fleet: f, talk: talk}
	p, w, err := r.begin(ctx, f.complete(w))
	if err != nil || len(p.Steps) == 0 {
		return p, err
	}
	if err := talk.Approve(p); err != nil {
		return p, err
	}
	err = r.carryOut(ctx, w)
	if err != nil && r.taken > 0 && !errors.Is(err, ErrStopped) {
		err = fmt.Errorf("%w What was done stays; then %w", err, ErrStopped)
	}
	return p, err
}

// run is one command on its way.
type run struct {
	*Fleet
	talk Talk
	// seen are the reports as they were listed when the last step ended, and said what was told last of a wait.
	seen Seen
	said string
	// taken is how many steps were begun.
	taken int
	// last is the step that ended last.
	last *plan.Step
	// gone are the VMs that were deleted, by their ids.
	gone map[string]bool
	// around is what surrounds the masters; nil: it has to be read.
	around *plan.Surroundings
	// waiting are the waits that have not ended, by their keys.
	waiting map[string]begun
}

// begun is a wait that has begun, and the step that it is; nil: it comes before a step.
type begun struct {
	since time.Time
	step  *plan.Step
}

func (r *run) tell(e Event) {
	if r.talk.Tell != nil {
		r.talk.Tell(e)
	}
}

// begin reads, resolves the wish and makes the whole plan. What passes by itself is waited for.
func (r *run) begin(ctx context.Context, w plan.Wish) (plan.Plan, plan.Wish, error) {
	r.waiting = map[string]begun{}
	for {
		rd, err := r.read(ctx, r.seen, r.gone)
		if err == nil {
			r.readSurroundings(ctx, w.Kind, &rd)
			err = rd.fault
		}
		if err != nil {
			return plan.Plan{}, w, err
		}
		if r.seen == nil {
			r.seen = rd.Seen
			if w, err = r.withImage(ctx, w); err != nil {
				return plan.Plan{}, w, err
			}
		}
		resolved, err := plan.Resolve(w, rd.Inventory)
		var p plan.Plan
		if err == nil {
			p, err = plan.Make(resolved, rd.Inventory)
		}
		t := rd.untilWell(next(resolved, rd, p, err), leaderLimit)
		if err == nil || t.wait == nil {
			return p, resolved, err
		}
		if err := r.pause(ctx, t.wait); err != nil {
			return p, resolved, err
		}
	}
}

// withImage is a wish with the image that its VMs are made of, once for all of them: a family may get another one
// while a command runs.
func (r *run) withImage(ctx context.Context, w plan.Wish) (plan.Wish, error) {
	if w.Kind == plan.Remove || w.Kind == plan.Delete {
		return w, nil
	}
	var err error
	w.Image, err = r.image(ctx, cmp.Or(w.Image, r.Document.GCE.Image))
	return w, err
}

// carryOut takes one step after another until none is left.
func (r *run) carryOut(ctx context.Context, w plan.Wish) error {
	r.seen, r.gone, r.waiting, r.around = nil, map[string]bool{}, map[string]begun{}, nil
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted between two steps: %s%w", r.outage(), ErrStopped)
		}
		rd, _ := r.read(ctx, r.seen, r.gone) // what could not be read is waited for
		if rd.fault == nil {
			r.readSurroundings(ctx, w.Kind, &rd)
		}
		if r.seen == nil && rd.fault == nil {
			r.seen = rd.Seen
		}
		p, err := plan.Make(w, rd.Inventory)
		t := rd.untilWell(r.unlessTaken(next(w, rd, p, err)), wellLimit)
		ended := r.endWaits(t)
		if ended {
			r.seen = rd.Seen
		}
		switch {
		case ended && t.step != nil && takesAway(*t.step): // it needs a report that is newer than this reading
			continue
		case t.err != nil:
			return t.err
		case t.wait != nil:
			if err := r.pause(ctx, t.wait); err != nil {
				return err
			}
		case t.step != nil:
			if err := r.step(ctx, *t.step); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// unlessTaken waits in place of a step that has just been taken: its effect is not in the lists yet.
func (r *run) unlessTaken(t turn) turn {
	if t.step == nil || r.last == nil || !same(*t.step, *r.last) {
		return t
	}
	r.around = nil
	const what = "what was done to be listed"
	return turn{wait: &wait{key: "listed", what: "waiting for " + what, limit: leaderLimit,
		otherwise: fmt.Errorf("waited %s for %s. The step was: %s %w", leaderLimit, what, r.last.What, ErrStopped)}}
}

// same reports whether two steps do the same to the same.
func same(a, b plan.Step) bool {
	a.What, a.Risk = b.What, b.Risk
	return a == b
}

// step takes one step. Once it has ended, what counts as new is what is written from then on.
func (r *run) step(ctx context.Context, s plan.Step) error {
	began := time.Now()
	r.taken++
	r.tell(Event{Begins: &s})
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	defer stop()
	if err := r.take(inner, s); err != nil {
		return fmt.Errorf("%s %w: %s%w", s.What, err, r.outage(), ErrStopped)
	}
	if s.Act == plan.DeleteVM {
		r.gone[s.InstanceID] = true
	}
	r.seen, r.last = nil, &s
	if s.Act == plan.CreateResource || s.Act == plan.DeleteResource {
		r.around = nil
	}
	r.tell(Event{Ended: &s, Took: time.Since(began)})
	return nil
}

// outage says so where the step that ended last has begun one.
func (r *run) outage() string {
	if beginsOutage(r.last) {
		return "nobody reaches the endpoint now; "
	}
	return ""
}

// endWaits forgets the waits that a turn shows to be over, and reports whether a step was among them. A reading that
// failed or contradicts itself shows nothing of a step.
func (r *run) endWaits(t turn) (stepEnded bool) {
	for key, w := range r.waiting {
		unclear := t.wait != nil && t.wait.step == nil && t.wait.key != "leader"
		switch {
		case t.wait != nil && t.wait.key == key, w.step != nil && unclear:
			continue
		case w.step != nil:
			stepEnded = true
			if t.err == nil {
				r.tell(Event{Ended: w.step, Took: time.Since(w.since)})
			}
		}
		delete(r.waiting, key)
		r.said = ""
	}
	return stepEnded
}

// pause rests before the next reading, or gives up.
func (r *run) pause(ctx context.Context, w *wait) error {
	began, waits := r.waiting[w.key]
	if !waits {
		began = begun{since: time.Now(), step: w.step}
		r.waiting[w.key] = began
		if w.step != nil {
			r.tell(Event{Begins: w.step})
		}
	}
	if w.what != r.said {
		r.said = w.what
		r.tell(Event{Waits: w.what})
	}
	if time.Since(began.since) >= w.limit {
		return w.otherwise
	}
	if backoff.Sleep(ctx, period) != nil {
		return fmt.Errorf("interrupted while it waited: %w", ErrStopped)
	}
	return nil
}
