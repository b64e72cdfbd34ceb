package election

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/quorate/quorate/agent/lease"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// tickPeriod is the time between two looks at what ends, and between two questions whether the term goes on where
	// there is no alarm for that.
	tickPeriod = 100 * time.Millisecond
	// killNow asks for an end without any time for it.
	killNow = time.Millisecond
	// patience is what may run while it ends in order.
	patience = 2 * time.Second
	// releaseTimeout bounds giving the Lease back. A replica that stops does not wait long for an apiserver.
	releaseTimeout = 2 * time.Second
)

// Config is what an election needs. All of it must be given, but for Now.
type Config struct {
	Log *slog.Logger
	// Lock is the Lease. Its identity names this boot of this replica: an agent that was started again goes on, and
	// nobody else is taken for it.
	Lock  Lease
	Times replica.ElectionTimes
	// Stop ends all that Begin has started, within that time or by force, and returns nil once the kernel says that
	// nothing of it is left. It is called again where it fails, and possibly while a former call is under way.
	Stop func(within time.Duration) error
	// Lead is called while the Lease is held. Its ctx ends when the term does. It returns soon then.
	Lead func(ctx context.Context)
	// Now is SinceBoot; tests have clocks of their own.
	Now func() time.Duration

	newAlarm func() *alarm
}

// Election stands for election for as long as Run runs.
type Election struct {
	cfg   Config
	yield chan error // why the term ends, so that another replica can try

	mu    sync.Mutex
	term  *term     // nil: the Lease is not held
	aside time.Time // until then another replica can try
}

// New returns an election that has not begun.
func New(cfg Config) *Election {
	cfg.newAlarm = newTickingAlarm
	if cfg.Now == nil {
		cfg.Now, cfg.newAlarm = SinceBoot, newBootAlarm
	}
	return &Election{cfg: cfg, yield: make(chan error, 1)}
}

// Yield ends the term, so that another replica can take the Lease. This one does not try to for a while, also where it
// does not hold it.
func (e *Election) Yield(why string, aside time.Duration) {
	e.mu.Lock()
	if until := time.Now().Add(aside); until.After(e.aside) {
		e.aside = until
	}
	e.mu.Unlock()
	select {
	case e.yield <- errors.New(why):
	default: // it yields already
	}
}

// standsAside is for how long still.
func (e *Election) standsAside() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Until(e.aside)
}

// Held says whether something may be started under the Lease now.
func (e *Election) Held() bool { return e.Begin(func() error { return nil }) == nil }

// Begin calls start while the Lease is surely held, and returns ErrNotHeld where it is not. start must not wait for
// anything: the end of the term waits for it.
func (e *Election) Begin(start func() error) error {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	if t == nil {
		return ErrNotHeld
	}
	return t.begin(start)
}

// Run stands for election again and again until ctx is done. It returns once nothing runs under the Lease any more.
func (e *Election) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-e.yield: // Yield has set until when this replica stands aside: that is asked next
		default:
		}
		if left := e.standsAside(); left > 0 {
			_ = backoff.Sleep(ctx, left)
			continue
		}
		e.stand(ctx)
	}
}

// stand tries to take the Lease and leads with it, once.
func (e *Election) stand(ctx context.Context) {
	l := newLock(e.cfg.Lock, e.cfg.Now, e.cfg.Times.RetryPeriod)
	t := &term{times: termTimes(e.cfg.Times), lock: l, now: e.cfg.Now, newAlarm: e.cfg.newAlarm}
	// The elector goes on while what runs under the Lease is stopped: others must not take it meanwhile.
	// client-go would say each try that fails; what ends a term is said here.
	electing, stopElecting := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer stopElecting()
	took, gaveUp := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: e.cfg.Times.LeaseDuration, RenewDeadline: e.cfg.Times.RenewDeadline,
		RetryPeriod: e.cfg.Times.RetryPeriod, Name: l.Describe(),
		// It would give the Lease back before what runs under it has ended.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(took) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		panic("election: " + err.Error()) // the times are of a profile
	}
	go func() {
		defer close(gaveUp)
		elector.Run(electing)
	}()
	gone := true
	select {
	case <-ctx.Done():
	case <-took:
		gone = e.lead(ctx, t, gaveUp, stopElecting)
	case <-gaveUp:
	case <-e.yield:
	}
	stopElecting()
	<-gaveUp
	if _, held, lost := l.state(); held && !lost && gone {
		e.release(context.WithoutCancel(ctx), l)
	}
}

// termTimes are those of a holder that writes the Lease once a renewPeriod.
func termTimes(of replica.ElectionTimes) lease.Times {
	return lease.TimesOf(of.LeaseDuration, of.RenewDeadline, renewPeriod(of.RetryPeriod))
}

// lead is one term, from the Lease that was taken to the end of all that ran under it. inTime is false where that did
// not end although it was killed: the Lease ran out meanwhile, and nothing was left to give back.
func (e *Election) lead(ctx context.Context, t *term, gaveUp <-chan struct{}, stopElecting func()) (inTime bool) {
	e.cfg.Log.Info("took the lease", "lease", t.lock.Describe())
	leading, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	e.hold(t)
	work.Go(func() { e.cfg.Lead(leading) })
	why := t.watch(ctx, gaveUp, e.yield)
	t.end()
	e.hold(nil)
	end()
	e.cfg.Log.Info("stops what runs under the lease", "lease", t.lock.Describe(), "reason", why.Error())
	inTime = t.stopAll(e.cfg.Stop, stopElecting)
	work.Wait()
	return inTime
}

func (e *Election) hold(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}

// release gives the Lease back, if nobody has written it since this replica did. What fails makes the others wait.
func (e *Election) release(ctx context.Context, l *lock) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	r, _, err := l.Get(ctx)
	if err == nil && r.HolderIdentity == l.Identity() {
		r.HolderIdentity, r.LeaseDurationSeconds = "", 1
		err = l.Update(ctx, *r)
	}
	if err != nil {
		e.cfg.Log.Warn("give the lease back", "lease", l.Describe(), "err", err.Error())
	}
}
