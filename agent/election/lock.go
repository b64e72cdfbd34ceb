package election

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lease is a Lease that is elected with. Its calls come one at a time.
type Lease interface {
	resourcelock.Interface
	// Glance is Get of what the apiserver has in its memory, which costs etcd nothing. It may be old, but a Lease is
	// not older than what the last call of Get, Create, Update or Glance said or wrote; NotFound may be from before
	// that. An Update of an old Lease is refused.
	Glance(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error)
}

// lock is a Lease that notes when the requests that renewed it began, and whether another was seen to hold it. The
// elector uses it, one call at a time. It spares etcd what an idle elector would ask for: a standby glances at the
// Lease, and the holder writes it at every other try.
type lock struct {
	Lease
	now func() time.Duration
	// retry is the time between two tries of the elector.
	retry time.Duration
	// What follows is the elector's goroutine's. standsBy: another was seen to hold the Lease, and no request has
	// failed since. Its last renewal was seen first at the time moved. glanced: the holder's last try only glanced.
	standsBy, glanced bool
	renewal           metav1.Time
	moved             time.Duration

	mu sync.Mutex
	// renewed is when the last request that made the Lease this replica's began; held says that there was one. lost is
	// set once another, or nobody, was seen to hold it after that.
	renewed    time.Duration
	held, lost bool
	// failed is why the last request failed; nil: it did not.
	failed error
	// changed is told of each change; it has room for one.
	changed chan struct{}
}

func newLock(l Lease, now func() time.Duration, retry time.Duration) *lock {
	return &lock{Lease: l, now: now, retry: retry, changed: make(chan struct{}, 1)}
}

// renewPeriod is the time between two writes of a Lease whose holder has a try each retry.
func renewPeriod(retry time.Duration) time.Duration { return 2 * retry }

// errTaken is what a holder finds that has lost its Lease.
var errTaken = errors.New("another replica has the lease")

// Get reads the Lease. Who stands by glances at it while that shows renewals: a memory that has stopped would show a
// Lease that has run out, and be found out only by the write that is refused then.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.standsBy && l.now()-l.moved < 2*renewPeriod(l.retry) {
		return l.look(ctx, l.Glance)
	}
	return l.look(ctx, l.Lease.Get)
}

func (l *lock) look(ctx context.Context, get func(context.Context) (*resourcelock.LeaderElectionRecord, []byte,
	error)) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := get(ctx)
	if err == nil && !r.RenewTime.Equal(&l.renewal) {
		l.renewal, l.moved = r.RenewTime, l.now()
	}
	l.note(func() {
		l.failed = err
		l.lost = l.lost || l.held && err == nil && r.HolderIdentity != l.Identity()
		l.standsBy = err == nil && !l.held && r.HolderIdentity != "" && r.HolderIdentity != l.Identity()
	})
	return r, raw, err
}

// Create makes the Lease.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() error { return l.Lease.Create(ctx, r) })
}

// Update takes or renews the Lease, if nobody has written it since it was read. After a renewal the next try only looks
// whether it is still held. The elector takes it for renewed then, which decides nothing: renewed is what counts.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if !l.mayGlance(r) {
		return l.write(r, func() error { return l.Lease.Update(ctx, r) })
	}
	l.glanced = true
	found, _, err := l.look(ctx, l.Glance)
	if err == nil && found.HolderIdentity != l.Identity() {
		err = errTaken
	}
	return err
}

// mayGlance: the try before has renewed the Lease, and the next one is early enough to.
func (l *lock) mayGlance(r resourcelock.LeaderElectionRecord) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.HolderIdentity == l.Identity() && l.held && !l.lost && l.failed == nil && !l.glanced &&
		now-l.renewed < renewPeriod(l.retry)-l.retry/2
}

func (l *lock) write(r resourcelock.LeaderElectionRecord, do func() error) error {
	begun := l.now()
	err := do()
	l.glanced, l.standsBy = err != nil && l.glanced, false
	l.note(func() {
		if l.failed = err; err == nil && r.HolderIdentity == l.Identity() {
			l.renewed, l.held = begun, true
		}
	})
	return err
}

func (l *lock) note(what func()) {
	l.mu.Lock()
	what()
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// failure is why the last request failed; empty: it did not.
func (l *lock) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		return ""
	}
	return ": " + l.failed.Error()
}

// state is what is known of the Lease.
func (l *lock) state() (renewed time.Duration, held, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed, l.held, l.lost
}
