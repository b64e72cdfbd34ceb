package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quorate/quorate/internal/replica"
)

// fast are the times of the profile.
var fast = (&replica.Cluster{}).ElectionTimes()

// clientTimeout is what a candidate waits for an answer: client-go gives half of the deadline.
var clientTimeout = fast.RenewDeadline / 2

// world is one Lease in memory, and who works under it. It checks that never two do.
type world struct {
	t     *testing.T
	begin time.Time

	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	// versions are all that were written; behind is how far the apiservers' memory is.
	versions []version
	behind   time.Duration
	// working are the candidates whose child works, with since when. tolerated is how long two may.
	working   map[string]time.Time
	tolerated time.Duration
	overlaps  []string
	history   []string
}

// version is one of the Lease, and when it was written. Versions count from 1.
type version struct {
	record resourcelock.LeaderElectionRecord
	at     time.Duration
}

func newWorld(t *testing.T) *world {
	return &world{t: t, begin: time.Now(), working: map[string]time.Time{}}
}

// at is the world's time.
func (w *world) at() time.Duration { return time.Since(w.begin) }

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%8s ", w.at().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// works notes that a candidate's child begins or ends to work.
func (w *world) works(name string, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s works: %t", name, yes)
	now := time.Now()
	if yes {
		w.working[name] = now
		return
	}
	since, was := w.working[name]
	delete(w.working, name)
	if !was {
		return
	}
	for other, from := range w.working {
		if from.Before(since) {
			from = since
		}
		if both := now.Sub(from); both > w.tolerated {
			w.overlaps = append(w.overlaps, fmt.Sprintf("%s and %s for %s until %s", name, other, both, w.at()))
		}
	}
}

func (w *world) check() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.overlaps) > 0 {
		for _, line := range w.history {
			w.t.Log(line)
		}
		w.t.Errorf("two worked: %q", w.overlaps)
	}
}

// candidate is one replica. It is a resourcelock.Interface, whose requests its network may delay or lose.
type candidate struct {
	*world
	name string
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	e    *Election

	mu sync.Mutex
	// request and answer are how long the way to the apiserver and back takes; more than the client waits: it is lost.
	request, answer time.Duration
	// patience is what it waits for an answer.
	patience time.Duration
	// thawed is open while the machine stands still; slept is for how long it has.
	thawed chan struct{}
	slept  time.Duration
	// dies is how long the child takes to end; a killed one ends at once, but for one that is stuck.
	dies  time.Duration
	stuck chan struct{}
	// clock is what the election goes by.
	clock   func() time.Duration
	version int
	child   bool
	killed  chan struct{}
	asked   []time.Duration
	// reads, glances and written count what the apiserver was asked for.
	reads, glances, written int
}

func (w *world) candidate(name string) *candidate {
	c := &candidate{world: w, name: name, done: make(chan struct{}), thawed: make(chan struct{}), dies: time.Second,
		stuck: make(chan struct{}), patience: clientTimeout}
	close(c.thawed)
	close(c.stuck)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.clock = w.at
	c.e = New(Config{Log: slog.New(slog.DiscardHandler), Lock: c, Times: fast, Stop: c.stopChild, Lead: c.lead,
		Now: func() time.Duration { c.awake(); return c.clock() }})
	return c
}

// run begins to stand for election.
func (c *candidate) run() *candidate {
	go func() { defer close(c.done); c.e.Run(c.ctx) }()
	return c
}

// awake waits until the machine goes on.
func (c *candidate) awake() {
	c.mu.Lock()
	thawed := c.thawed
	c.mu.Unlock()
	<-thawed
}

// freeze lets the machine stand still; what its child does not do meanwhile does not count.
func (c *candidate) freeze(d time.Duration) {
	c.mu.Lock()
	thawed := make(chan struct{})
	c.thawed = thawed
	worked := c.child
	c.mu.Unlock()
	if worked {
		c.works(c.name, false)
	}
	time.Sleep(d)
	c.mu.Lock()
	c.slept += d
	worked = c.child
	c.mu.Unlock()
	if worked {
		c.works(c.name, true)
	}
	close(thawed)
}

// lead starts the child whenever it may, as the agent does.
func (c *candidate) lead(ctx context.Context) {
	for ctx.Err() == nil {
		c.awake()
		_ = c.e.Begin(func() error { c.startChild(); return nil })
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *candidate) startChild() {
	c.mu.Lock()
	was := c.child
	if !was {
		c.child, c.killed = true, make(chan struct{})
	}
	c.mu.Unlock()
	if !was {
		c.works(c.name, true)
	}
}

func (c *candidate) stopChild(within time.Duration) error {
	c.awake()
	c.mu.Lock()
	c.asked = append(c.asked, within)
	there, killed, dies := c.child, c.killed, c.dies
	if there && within <= killNow {
		select {
		case <-killed:
		default:
			close(killed)
		}
	}
	c.mu.Unlock()
	if !there {
		return nil
	}
	select {
	case <-killed:
	case <-time.After(min(dies, within)):
	}
	select {
	case <-c.stuck:
	default:
		time.Sleep(10 * time.Second)
		return errors.New("it does not end")
	}
	c.awake()
	c.mu.Lock()
	there, c.child = c.child, false
	c.mu.Unlock()
	if there {
		c.works(c.name, false)
	}
	return nil
}

// errLost is what a candidate sees of a request or an answer that was lost.
var errLost = errors.New("no answer")

// call is one request: do is called at the apiserver, unless the request is lost.
func (c *candidate) call(ctx context.Context, do func() error) error {
	c.awake()
	c.mu.Lock()
	request, answer, patience := c.request, c.answer, c.patience
	c.mu.Unlock()
	if request > patience {
		sleep(ctx, patience)
		return errLost
	}
	sleep(ctx, request)
	c.world.mu.Lock()
	err := do()
	c.world.mu.Unlock()
	if sleep(ctx, min(answer, patience-request)); answer > patience-request {
		err = errLost
	}
	c.awake()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Get implements resourcelock.Interface, as all that follow.
func (c *candidate) Get(ctx context.Context) (r *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = c.call(ctx, func() error {
		if c.record == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "l")
		}
		c.reads++
		found := *c.record
		r, c.version = &found, c.world.version
		raw, _ = json.Marshal(found)
		return nil
	})
	return r, raw, err
}

// Glance says what an apiserver has in memory: one of the last versions, but none before what c knows.
func (c *candidate) Glance(ctx context.Context) (r *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = c.call(ctx, func() error {
		if c.record == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "l")
		}
		c.glances++
		for c.version < c.world.version && (c.version == 0 || c.versions[c.version].at <= c.at()-c.behind) {
			c.version++
		}
		found := c.versions[c.version-1].record
		r = &found
		raw, _ = json.Marshal(found)
		return nil
	})
	return r, raw, err
}

func (c *candidate) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return c.call(ctx, func() error {
		if c.record != nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, "l")
		}
		c.write(r)
		return nil
	})
}

func (c *candidate) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return c.call(ctx, func() error {
		if c.version != c.world.version {
			return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "l", errors.New("changed"))
		}
		c.write(r)
		return nil
	})
}

// write is what the apiserver does. A held lease is written by its holder, or after it has run out.
func (c *candidate) write(r resourcelock.LeaderElectionRecord) {
	if c.record == nil || c.record.HolderIdentity != r.HolderIdentity {
		c.world.note("%s writes the holder %q", c.name, r.HolderIdentity)
	}
	c.written++
	c.world.put(r)
	c.version = c.world.version
}

// put makes another version.
func (w *world) put(r resourcelock.LeaderElectionRecord) {
	w.record = &r
	w.version++
	w.versions = append(w.versions, version{r, w.at()})
}

func (c *candidate) RecordEvent(string) {}
func (c *candidate) Identity() string   { return c.name }
func (c *candidate) Describe() string   { return "kube-system/l" }

// network sets how long requests and answers take from now on.
func (c *candidate) network(request, answer time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request, c.answer = request, answer
}

func (w *world) worker() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.working {
		return name
	}
	return ""
}

// until waits for a condition, by the world's time.
func (w *world) until(what string, limit time.Duration, ok func() bool) {
	w.t.Helper()
	for end := w.at() + limit; w.at() < end; time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.history {
		w.t.Log(line)
	}
	w.t.Fatalf("never: %s", what)
}

// disturb does something to a candidate, for a while.
func (c *candidate) disturb(r *rand.Rand) {
	d := time.Duration(r.IntN(20_000)) * time.Millisecond
	lost := time.Hour
	switch r.IntN(6) {
	case 0:
		c.network(lost, 0)
	case 1:
		c.network(0, lost) // each request takes effect, and no answer comes
	case 2:
		c.network(time.Duration(r.IntN(2500))*time.Millisecond, time.Duration(r.IntN(2500))*time.Millisecond)
	case 3:
		c.freeze(d)
		return
	case 4:
		c.e.Yield("for a test", time.Duration(r.IntN(5000))*time.Millisecond)
		return
	default:
		c.mu.Lock()
		c.dies = time.Duration(r.IntN(12_000)) * time.Millisecond
		c.mu.Unlock()
	}
	time.Sleep(d)
	c.network(0, 0)
}
