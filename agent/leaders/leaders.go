// Package leaders is this replica's part in the elections of the control plane.
//
//	the components' own ─── Keep ──────────► a leader that hangs is started again
//	                        ReleaseExited ─► what an exited one has left is freed, or runs out
//	                        Stop ──────────► a planned stop ends them and frees what they held
//	the agents' own ─────── Candidate ─────► stands for it, and ends what runs under it
//
// Guarantees: a lease is released only if what held it has ended on this machine, and no other replica may have the
// same host name. Nothing is read or written before Open: until then the agent may not use leases. What it cannot read
// or release costs the others time and ends nothing here.
//
// What is to be done is decided by agent/lease; how a term ends is agent/election's business.
package leaders

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/supervisor"
)

const (
	// Namespace is where the control plane's elections are.
	Namespace = "kube-system"
	// Own is the agents' own Lease. Its holder runs the components that run on one replica at a time, and does what
	// one replica at a time does.
	Own = "quorate"
)

// Replica is whose leases these are.
type Replica struct {
	Self    replica.Identity
	Cluster *replica.Cluster
	// Members asks the own member about itself and the others.
	Members func(ctx context.Context) (table.MemberStatus, error)
}

// identity names one boot of one VM, so that an agent that was started again goes on at once: the children of the one
// before it are dead. It begins with the VM's name, for people.
func identity(self replica.Identity) string {
	return self.Place.Name + "_" + self.Place.Zone + "_" + self.InstanceID + "_" + self.BootID
}

// Leaders is what this replica knows of the elections of its components, and what it does about them. Several may use
// it at once.
type Leaders struct {
	log        *slog.Logger
	waits      *waits.Phased
	supervisor *supervisor.Supervisor
	seen       observed
	opened     chan struct{} // closed once leases is there

	mu     sync.Mutex
	me     Replica // its Cluster is nil before it is known
	leases *leases // nil until the agent may use them
}

// New knows of no election yet.
func New(log *slog.Logger, w *waits.Phased, s *supervisor.Supervisor) *Leaders {
	return &Leaders{log: log, waits: w, supervisor: s, opened: make(chan struct{})}
}

// Join notes whose leases they are. It comes before the first of the replica's processes.
func (l *Leaders) Join(me Replica) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.me = me
}

func (l *Leaders) replica() Replica {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.me
}

// Open lets the leases be used: the agent's role has been granted. as returns the client of one who shows that leaf.
func (l *Leaders) Open(as func(certs.Leaf) (Client, error)) error {
	own, err := as(certs.Agent)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.leases == nil
	l.leases = &leases{client: own, as: as}
	if first {
		close(l.opened) // who waits for it reads leases
	}
	return nil
}

// Opened is closed once the leases may be used.
func (l *Leaders) Opened() <-chan struct{} { return l.opened }

// open are the leases; nil before the agent may use them.
func (l *Leaders) open() *leases {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases
}

// Alive takes each lock, for the watchdog: one that is never given back keeps the answer back, too.
func (l *Leaders) Alive() {
	l.replica()
	l.seen.watch(Own)
}

const (
	// A lease that could not be released is tried again after firstReleaseRetry, and later and later, up to
	// lastReleaseRetry, until it has run out by itself.
	firstReleaseRetry, lastReleaseRetry = 200 * time.Millisecond, 2 * time.Second
	// observePeriod is the time between two observations of the leases. They are for people, and for a leader that
	// hangs.
	observePeriod = 4 * time.Second
	// patience is how long after it was read a lease is still shown.
	patience = 10 * time.Second
	// lossMargin is how long a process must have been up before the last renewal that was seen, to be the one that
	// renewed: that may be seen observePeriod later, and a process that has just ended may have left it.
	lossMargin = 7 * time.Second
)

const (
	// readyPeriod is the time between two questions, under the agents' Lease, whether what runs under it is ready.
	readyPeriod = time.Second
	// yieldPatience is how long a component may take to get ready under the Lease until another replica is let try,
	// yieldAside for how long this one does not, and yieldDistance how far apart that is: a component that gets ready
	// nowhere must not go round without end.
	yieldPatience = 30 * time.Second
	yieldAside    = 30 * time.Second
	yieldDistance = time.Hour
	// yieldForGood is longer than a replica takes to leave.
	yieldForGood = time.Hour
)
