package election

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a Lease that notes when the requests that renewed it began, and whether another was seen to hold it. The
// elector uses it, one call at a time.
type lock struct {
	resourcelock.Interface
	now func() time.Duration

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

func newLock(l resourcelock.Interface, now func() time.Duration) *lock {
	return &lock{Interface: l, now: now, changed: make(chan struct{}, 1)}
}

// Get reads the Lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	l.note(func() {
		l.failed = err
		l.lost = l.lost || l.held && err == nil && r.HolderIdentity != l.Identity()
	})
	return r, raw, err
}

// Create makes the Lease.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update takes or renews the Lease, if nobody has written it since it was read.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *lock) write(r resourcelock.LeaderElectionRecord, do func() error) error {
	begun := l.now()
	err := do()
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
