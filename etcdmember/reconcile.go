package etcdmember

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// reconciler makes one round of the membership: it observes, prepares what has to be ready before anything is decided,
// decides, and takes the one step. Boot (Membership.loop) and the running replica (keeper) go round with it. Only the
// loop uses it.
type reconciler struct {
	cfg      Config
	observer *observer
	disk     *diskState
	steps    *diskSteps
	actor    acts.Actor
	reported *lastReported
	// named is what the hosts file had right after the last round wrote it: what another writer loses of it during the
	// round, the next tick misses.
	named map[string]netip.Addr
}

// observe is what a decision is made of. It never fails: what could not be read is a fact too. Each step is decided on
// what was read right before it and on nothing else.
func (r *reconciler) observe(ctx context.Context) table.Facts {
	f := r.observeSelf(ctx)
	r.observer.others(ctx, &f)
	return f
}

// observeSelf is the part of it that stands here and in the record.
func (r *reconciler) observeSelf(ctx context.Context) table.Facts {
	disk := r.disk.open()
	f := r.observer.self(ctx, disk, r.disk.stopToRead(ctx, r.observer.keeping))
	r.prepare(&f)
	return f
}

// prepare writes what has to be on this machine before anything is decided, whatever that will be: what was found out
// about the directory and the record, and the peers' names. It gives back the room of a restore that was overtaken
// before room is asked for. Each of it may fail, and is tried again by the next round.
func (r *reconciler) prepare(f *table.Facts) {
	r.disk.noteDamage()
	if f.RecordErr == nil {
		r.noteEpoch(f.Record)
		f.Agent, f.AgentErr = r.disk.agent.File, r.disk.agent.Err
		keepHosts(r.cfg, f.Record)
	}
	r.named = hosts.Read(r.cfg.HostsFile)
	r.clearOvertaken(*f)
}

// noteEpoch writes the newest epoch that was seen into agent.json: a record that is later found below it has been
// rolled back.
func (r *reconciler) noteEpoch(v record.View) {
	a := r.disk.agent
	ours := a.File.Replica == r.cfg.Me.Place && v.Inception != nil && a.File.ClusterUID == v.Inception.UID
	if len(v.Epochs) == 0 || a.Err != nil || !ours {
		return
	}
	newest := v.Newest().Number
	if newest > a.File.NewestEpoch {
		if err := r.cfg.at(acts.StepNoteNewestEpoch,
			func() error { return a.Set(func(a *table.AgentFile) { a.NewestEpoch = newest }) }); err != nil {
			r.cfg.Log.Warn("note the newest epoch", "err", err.Error())
		}
	}
}

// clearOvertaken gives back the room of a restore that another replica has made instead: a join needs it.
func (r *reconciler) clearOvertaken(f table.Facts) {
	h := table.HistoryOf(f)
	if r.disk.opened && !f.Directory.Running && f.RecordErr == nil && table.Fault(f, h) == "" && h.Formed != nil &&
		!h.RestoreInSight() {
		r.steps.dropScratch()
	}
}

// decide is what the table says of the facts.
func (r *reconciler) decide(f table.Facts) (table.Observation, table.Plan) {
	o := table.Classify(f)
	plan := table.Decide(f.Now, o)
	r.observer.memory.noteDecision(o, plan)
	r.reported.noteDecision(f, o, plan)
	return o, plan
}

// act takes the one step of a plan. The caller observes again after it, whatever it returned.
func (r *reconciler) act(ctx context.Context, f table.Facts, p table.Plan) error {
	r.disk.forget()
	begin := time.Now()
	err := r.actor.Take(ctx, f, p)
	if p.Act == table.ActAccept {
		r.observer.memory.noteAccept(f, p, begin, err)
	}
	return err
}

// step takes the plan's step and reports whether it went well. A step that fails again and again is one line and one
// wait, not many.
func (r *reconciler) step(ctx context.Context, f table.Facts, p table.Plan) bool {
	failed := &r.observer.memory.failed
	again := failed.Of(p)
	if !again {
		r.cfg.Log.Info("step", "row", p.Row.Name(), "act", string(p.Act), "reason", p.Reason)
	}
	err := r.act(ctx, f, p)
	r.reported.noteStep(p, err)
	if err == nil {
		*failed = table.Failure{}
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	if p.Blocked != nil && !again { // what the plan itself waits for is shown before it
		r.cfg.Log.Warn("step failed", "row", p.Row.Name(), "act", string(p.Act), "err", err.Error())
	}
	*failed = failed.Again(p, err)
	r.showFailed(f)
	return false
}

// showFailed shows at once that a step has failed: the next observation may be half a minute away. The same facts are
// decided on once more, with the failure as one more of them; the step that this comes to is the next observation's.
func (r *reconciler) showFailed(f table.Facts) {
	f.Tries = r.observer.tries()
	r.observer.room(&f)
	r.show(f.Now, table.Decide(f.Now, table.Classify(f)).Blocked)
}

// show says what this replica waits for; nil: nothing.
func (r *reconciler) show(now time.Time, wait *replica.Wait) {
	r.reported.noteWait(now, wait, r.disk.agent.File.Incarnation)
}

// completeRestores is the end of a restore, once the new epoch's member serves. The room of the restore directory is
// given back, and the record says that the restore orders of epochs before it are done with. The replica that formed
// the epoch says so, again until it is written.
func (r *reconciler) completeRestores(ctx context.Context, f table.Facts) {
	h, a := table.HistoryOf(f), r.disk.agent.File
	if f.RecordErr != nil || h.Formed == nil || h.Formed.Claim == nil ||
		h.Formed.Claim.Seeder.Place != r.cfg.Me.Place ||
		a.Phase != table.PhaseStarted || a.Epoch != h.Formed.Number || !f.Directory.Running {
		return
	}
	r.steps.dropScratch()
	for _, o := range h.Orders.All {
		if o.Restore == nil || o.Done != nil || o.Restore.Ends >= h.Formed.Number {
			continue
		}
		what := fmt.Sprintf("epoch %d was formed by order %d instead", h.Formed.Number, h.Formed.Claim.Source.Order)
		if o.Number == h.Formed.Claim.Source.Order {
			what = fmt.Sprintf("epoch %d is formed", h.Formed.Number)
		}
		err := r.cfg.at(acts.StepCompleteOrder, func() error {
			_, _, err := r.cfg.Record.CompleteOrder(ctx, o.Number, record.Done{By: r.cfg.Me.MemberName(),
				Time: time.Now(), What: what})
			return err
		})
		if err != nil {
			r.cfg.Log.Warn("complete the order", "order", o.Number, "err", err.Error())
		}
	}
}

// noteDisk completes this boot's incarnation with the id of the data disk, where that was not known when the
// incarnation was taken. Without it nobody can tell later that this disk was rolled back, or that it is gone. It is one
// write, made again at the next observation, and nothing waits for it.
func (r *reconciler) noteDisk(ctx context.Context, f table.Facts) {
	newest, me := f.Record.Last(r.cfg.Me.Place), r.cfg.Me
	if f.RecordErr != nil || f.DiskID == "" || newest == nil {
		return
	}
	if newest.InstanceID != me.InstanceID || newest.BootID != me.BootID || newest.DiskID != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d := record.DataDisk{DiskID: f.DiskID, Time: time.Now()}
	got, _, err := r.cfg.Record.NoteDisk(ctx, me.Place, newest.Number, d)
	if err != nil {
		r.cfg.Log.Warn("note the data disk's id", "err", err.Error())
		return
	}
	r.cfg.Log.Info("the data disk's id is in the record", "incarnation", newest.Number, "disk", got.DiskID)
}
