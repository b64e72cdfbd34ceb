package telling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// Store is where a replica tells people outside how it is. Nothing decides by what it holds. Its calls may be made
// concurrently; who makes them sets the limit.
type Store interface {
	// WriteReport overwrites the report of its replica. WriteBatch writes once: a batch that is there is no error.
	WriteReport(ctx context.Context, r report.Report) error
	WriteBatch(ctx context.Context, b report.Batch) error
	// Of is the report of a replica; nil: it has none.
	Of(ctx context.Context, p replica.Place) (*report.Sighting, error)
	// DropOldEvents deletes some of the events that are too old, and says how many.
	DropOldEvents(ctx context.Context) (int, error)
}

const (
	// observePeriod is the time between two observations of oneself: a change is written within two seconds.
	observePeriod = time.Second
	// observeTimeout bounds one: all that is asked is the member on this machine.
	observeTimeout = time.Second
	// writeTimeout bounds the writing of a report and a batch of events, each with a second try.
	writeTimeout = 10 * time.Second
	// lastReportTimeout is how long the end of the agent waits for a last report.
	lastReportTimeout = 500 * time.Millisecond
	// dropPeriod is the time between two deletions of old events, by each replica.
	dropPeriod  = 6 * time.Hour
	dropTimeout = time.Minute
)

// Reporter observes the agent and writes what it finds. Nobody waits for it but the agent's very end, and that not for
// long: it has goroutines and deadlines of its own, and what it cannot write it drops and counts.
type Reporter struct {
	log     *slog.Logger
	version string
	gather  func(ctx context.Context) status.Status
	tell    func([]report.Event)
	wake    chan struct{} // there may be something to write

	mu     sync.Mutex
	store  Store // nil until the document is known, and where there is none
	outbox report.Outbox
	// again is when this boot began, where the report before was of another.
	again time.Time
	// unstopped is why something that the agent runs could not be stopped.
	unstopped error

	// What follows is the writer's alone.
	former  bool // what the report before said is noted
	failing bool // the log has it
	dropAt  time.Time
}

// NewReporter reports what gather says, as an agent of a version. What has happened is given to tell, too, which must
// not block.
func NewReporter(log *slog.Logger, version string, gather func(ctx context.Context) status.Status,
	tell func([]report.Event)) *Reporter {
	return &Reporter{log: log, version: version, gather: gather, tell: tell, wake: make(chan struct{}, 1)}
}

// Open notes where to write; nil: people outside learn nothing.
func (r *Reporter) Open(s Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store = s
}

// Note adds events that no two reports show.
func (r *Reporter) Note(list ...report.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range list {
		r.outbox.Note(e)
	}
}

// NoteStopped says, before the last report, whether what the agent runs could be stopped: err is why not.
func (r *Reporter) NoteStopped(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unstopped = err
}

// stopped is how a stop ended that was asked for.
func (r *Reporter) stopped(at time.Time) report.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unstopped != nil {
		return report.Event{At: at, Kind: report.Unstopped,
			Text: report.Clean("could not stop everything that it ran: " + r.unstopped.Error())}
	}
	return report.Event{At: at, Kind: report.Stopped, Text: "has stopped in order"}
}

func (r *Reporter) opened() Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store
}

// Keep reports until the returned function is called, which waits for a last report.
func (r *Reporter) Keep() (stop func()) {
	r.dropAt = time.Now().Add(rand.N(dropPeriod))
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
func (r *Reporter) last() {
	ctx, cancel := context.WithTimeout(context.Background(), lastReportTimeout)
	defer cancel()
	if store := r.opened(); store != nil {
		if s := r.observeOnce(ctx); s.AskedToStop() {
			r.Note(r.stopped(s.At))
		}
		for r.writeNext(ctx, store, (*report.Outbox).Rest) {
		}
	}
}

func (r *Reporter) observe(ctx context.Context) {
	for ctx.Err() == nil {
		if r.opened() != nil {
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

func (r *Reporter) observeOnce(ctx context.Context) report.Report {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	seen := reportOf(r.gather(ctx), r.version, time.Now())
	r.mu.Lock()
	seen.BootedAgain = r.again
	happened := r.outbox.Observe(seen)
	r.mu.Unlock()
	r.tell(happened)
	return seen
}

func (r *Reporter) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		store := r.opened()
		r.writeNext(ctx, store, (*report.Outbox).Next)
		if now := time.Now(); now.After(r.dropAt) {
			r.dropAt = now.Add(dropPeriod)
			r.dropOld(ctx, store)
		}
	}
}

// writeNext writes what is due, the events also where the report is refused, and reports whether all of that was
// written. What the report before said is noted first: this replica is about to overwrite it.
func (r *Reporter) writeNext(ctx context.Context, store Store,
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
	if err == nil && w.Report != nil && !superseded(*w.Report) {
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
		r.log.Warn("people outside do not learn how this replica is", "err", err.Error())
		r.failing = true
	case err == nil && r.failing:
		r.log.Info("people outside learn again how this replica is")
		r.failing = false
	}
	return err == nil
}

// superseded: another boot has this replica's place. Its report is the one that people are to see, also how long it has
// been silent, so this one overwrites none; that it waits is an event.
func superseded(own report.Report) bool {
	return slices.ContainsFunc(own.Waits, func(w replica.Wait) bool { return w.Name == table.WaitSuperseded })
}

func (r *Reporter) noteFormer(ctx context.Context, store Store, w report.Write) error {
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
	again := s.BootedAgain // the agent alone was started again
	if s.BootID != w.Report.BootID {
		again = now.UTC()
	}
	w.Report.BootedAgain = again
	e := report.Event{At: now, Kind: report.Began, Subject: "former", Text: formerText(*s, now),
		Before: now.Add(-s.Age).UTC()}
	r.mu.Lock()
	r.outbox.Note(e)
	r.again = again
	r.mu.Unlock()
	return nil
}

// formerText says what the report before this agent's said.
func formerText(s report.Sighting, now time.Time) string {
	how := "phase " + s.Phase
	if s.Ready {
		how = "ready"
	}
	var waits []string
	for _, w := range s.Waits {
		waits = append(waits, w.Name)
	}
	if len(waits) > 0 {
		how += ", waiting: " + strings.Join(waits, ", ")
	}
	return fmt.Sprintf("the report before was written at %s: %s, instance %s, boot %.8s",
		now.Add(-s.Age).UTC().Format(time.DateTime), how, s.InstanceID, s.BootID)
}

func (r *Reporter) dropOld(ctx context.Context, store Store) {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	n, err := store.DropOldEvents(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		r.log.Warn("old events are not deleted", "err", err.Error())
	case n > 0:
		r.log.Info("deleted old events", "batches", n)
	}
}
