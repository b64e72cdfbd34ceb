package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// Reports is where a replica tells people outside how it is. Nothing decides by what it holds. Its calls may be made
// concurrently; who makes them sets the limit.
type Reports interface {
	// WriteReport overwrites the report of its replica. WriteBatch writes once: a batch that is there is no error.
	WriteReport(ctx context.Context, r report.Report) error
	WriteBatch(ctx context.Context, b report.Batch) error
	// Of is the report of a replica; nil: it has none.
	Of(ctx context.Context, p replica.Place) (*report.Sighting, error)
	// DropOldEvents deletes some of the events that are too old, and says how many.
	DropOldEvents(ctx context.Context) (int, error)
}

// reporter observes the agent and writes what it finds. Nobody waits for it but the agent's very end, and that not for
// long: it has goroutines and deadlines of its own, and what it cannot write it drops and counts.
type reporter struct {
	*Agent
	wake chan struct{} // there may be something to write

	mu     sync.Mutex
	outbox report.Outbox

	// What follows is the writer's alone.
	former  bool // what the report before said is noted
	failing bool // the log has it
	dropAt  time.Time
}

// keepReports reports until the returned function is called, which waits for a last report.
func (a *Agent) keepReports() (stop func()) {
	r := &reporter{Agent: a, wake: make(chan struct{}, 1), dropAt: time.Now().Add(rand.N(dropPeriod))}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { r.observe(ctx) })
	running.Go(func() { r.write(ctx) })
	go func() {
		defer close(done)
		running.Wait()
		r.last()
	}()
	return func() {
		cancel()
		select {
		case <-done:
		case <-time.After(2 * lastReportTimeout): // it hangs in the kernel
		}
	}
}

// last writes a last report and the events that are left.
func (r *reporter) last() {
	ctx, cancel := context.WithTimeout(context.Background(), lastReportTimeout)
	defer cancel()
	if store := r.reportsStore(); store != nil {
		r.observeOnce(ctx)
		for r.writeNext(ctx, store, (*report.Outbox).Rest) {
		}
	}
}

// reportsStore is known once the document is; nil: it is not, or there is none.
func (a *Agent) reportsStore() Reports {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reports
}

func (r *reporter) observe(ctx context.Context) {
	for ctx.Err() == nil {
		if r.reportsStore() != nil {
			r.observeOnce(ctx)
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(observePeriod):
		}
	}
}

func (r *reporter) observeOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	seen := reportOf(r.report(ctx), r.cfg.Version, time.Now())
	r.mu.Lock()
	happened := r.outbox.Observe(seen)
	r.mu.Unlock()
	r.tellNode(happened)
}

func (r *reporter) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		store := r.reportsStore()
		r.writeNext(ctx, store, (*report.Outbox).Next)
		if now := time.Now(); now.After(r.dropAt) {
			r.dropAt = now.Add(dropPeriod)
			r.dropOld(ctx, store)
		}
	}
}

// writeNext writes what is due, the events also where the report is refused, and reports whether all of that was
// written. What the report before said is noted first: this replica is about to overwrite it.
func (r *reporter) writeNext(ctx context.Context, store Reports,
	due func(*report.Outbox, time.Time) report.Write) bool {
	r.mu.Lock()
	w := due(&r.outbox, time.Now())
	r.mu.Unlock()
	if w == (report.Write{}) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := r.noteFormer(ctx, store, w)
	if err == nil && w.Report != nil {
		err = store.WriteReport(ctx, *w.Report)
	}
	if err != nil {
		w.Report = nil
	}
	if w.Batch != nil {
		if batchErr := store.WriteBatch(ctx, *w.Batch); batchErr != nil {
			err, w.Batch = errors.Join(err, batchErr), nil
		}
	}
	r.mu.Lock()
	r.outbox.Done(time.Now(), w, err)
	r.mu.Unlock()
	switch {
	case err != nil && !r.failing && !errors.Is(ctx.Err(), context.Canceled):
		r.cfg.Log.Warn("people outside do not learn how this replica is", "err", err.Error())
		r.failing = true
	case err == nil && r.failing:
		r.cfg.Log.Info("people outside learn again how this replica is")
		r.failing = false
	}
	return err == nil
}

func (r *reporter) noteFormer(ctx context.Context, store Reports, w report.Write) error {
	if r.former || w.Report == nil {
		return nil
	}
	s, err := store.Of(ctx, w.Report.Place)
	if err != nil {
		return err
	}
	r.former = true
	if s == nil {
		return nil
	}
	now := time.Now()
	e := report.Event{At: now, Kind: report.Began, Subject: "former", Text: formerText(*s, now)}
	r.mu.Lock()
	r.outbox.Note(e)
	r.mu.Unlock()
	return nil
}

// formerText says what the report before this agent's said.
func formerText(s report.Sighting, now time.Time) string {
	how := "phase " + s.Phase
	if s.Ready {
		how = "ready"
	}
	return fmt.Sprintf("the report before was written at %s: %s, instance %s, boot %.8s",
		now.Add(-s.Age).UTC().Format(time.DateTime), how, s.InstanceID, s.BootID)
}

func (r *reporter) dropOld(ctx context.Context, store Reports) {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	n, err := store.DropOldEvents(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		r.cfg.Log.Warn("old events are not deleted", "err", err.Error())
	case n > 0:
		r.cfg.Log.Info("deleted old events", "batches", n)
	}
}
