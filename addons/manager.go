package addons

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/local"
)

// Config is what one manager needs. Folder, Kubeconfig and Socket must be given.
type Config struct {
	Log *slog.Logger
	// Folder holds the set: the file version, manifests, and folders of manifests or with a kustomization.
	Folder string
	// Kubeconfig is of the manager's own identity.
	Kubeconfig string
	// Replica is in the Events, so that a person knows which manager tells.
	Replica string
	// Socket is where the status is asked for.
	Socket string
	// Pace is for tests that have no hour; the zero value is production's.
	Pace Pace
}

// Pace is how often the manager does what it does.
type Pace struct {
	// Resync is the longest time between two comparisons with the cluster: 30 s where it is 0. Up to a fifth is taken
	// off by chance, so that the replicas' managers do not come in step.
	Resync time.Duration
	// Poll is the time between two readings of the folder: 5 s where it is 0. A change counts once two readings in a
	// row are the same, since files are not written at once.
	Poll time.Duration
	// Write is the longest time that one write may take: 35 s where it is 0, since the apiserver itself gives up a
	// patch after 34 s. It bounds what a manager that has lost its right has in flight, so it is also the better part
	// of the time for which a new set deletes nothing.
	Write time.Duration
}

// grace is how long after its claim a set deletes nothing. What the set before had in flight has landed by then: it was
// checked at most fencePeriod before it was sent, and had ended after Write. The rest is for the clocks of two machines
// that do not run alike.
func (p Pace) grace() time.Duration { return 2*fencePeriod + p.Write*5/4 }

const (
	defaultResync, defaultPoll, defaultWrite = 30 * time.Second, 5 * time.Second, 35 * time.Second
	// again is the time to the pass that confirms what a pass has written, and prunes.
	again = time.Second
	// readyPoll is the time between two passes while an object is not ready.
	readyPoll = 10 * time.Second
	// An object that failed is tried again after firstTry, and later and later, up to lastTry.
	firstTry, lastTry = time.Second, time.Minute
	// Objects that fail for longer than that are tried in one pass: else a thousand of them would keep it busy.
	tryTogether = 5 * time.Second
	// leastRest is the shortest time between two passes.
	leastRest = time.Second
	// A pass that was broken off is tried again after firstPass, up to lastPass: the apiserver restarts in seconds.
	firstPass, lastPass = 500 * time.Millisecond, 10 * time.Second
	// stuckAfter is how long the manager may do nothing at all: the longest request, twice, and a stage's definitions.
	stuckAfter = 5 * time.Minute
)

// manager is one running manager. Its loop has all but status and progress to itself.
type manager struct {
	cfg     Config
	cluster *cluster
	fence   fence
	writes  atomic.Uint64
	// progress is when the loop last got on, in Unix nanoseconds.
	progress atomic.Int64

	set     set
	pending string // the digest of a folder that has changed, and is not known to be whole
	memory  memory

	mu     sync.Mutex
	status plan.Status // what it leads to is never written again
}

// Run keeps the folder applied until ctx is done. An error says why it could not begin; whatever comes later is a wait.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Pace.Resync == 0 {
		cfg.Pace.Resync = defaultResync
	}
	if cfg.Pace.Poll == 0 {
		cfg.Pace.Poll = defaultPoll
	}
	if cfg.Pace.Write == 0 {
		cfg.Pace.Write = defaultWrite
	}
	c, err := openCluster(cfg.Kubeconfig, cfg.Pace.Write)
	if err != nil {
		return err
	}
	m := &manager{cfg: cfg, cluster: c, memory: newMemory()}
	m.got()
	stop, err := local.Serve(cfg.Socket, m.answers())
	if err != nil {
		return fmt.Errorf("listen for status: %w", err)
	}
	defer stop()
	m.keep(ctx)
	return nil
}

// keep compares, again and again.
func (m *manager) keep(ctx context.Context) {
	f, err := m.settled(ctx)
	if err != nil {
		return
	}
	m.set = readSet(f)
	retry := backoff.Backoff{First: firstPass, Most: lastPass}
	for {
		m.got()
		err := m.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		rest := m.rest(time.Now())
		m.conclude(err)
		if err != nil {
			rest = retry.Next()
		} else {
			retry.Reset()
		}
		if m.await(ctx, rest) != nil {
			return
		}
	}
}

// settled reads the folder until two readings in a row are the same: it may be written just now, and what it does not
// hold yet must not be taken for what it holds no more.
func (m *manager) settled(ctx context.Context) (files, error) {
	f := readFiles(m.cfg.Folder)
	for {
		m.got()
		if err := backoff.Sleep(ctx, m.cfg.Pace.Poll); err != nil {
			return f, err
		}
		again := readFiles(m.cfg.Folder)
		if again.digest == f.digest {
			return again, nil
		}
		f = again
	}
}

// rest is the time to the next pass.
func (m *manager) rest(now time.Time) time.Duration {
	rest := m.cfg.Pace.Resync - rand.N(m.cfg.Pace.Resync/5+1)
	if m.memory.wrote {
		rest = min(rest, again)
	}
	if len(m.memory.notReady)+len(m.memory.waiting) > 0 {
		rest = min(rest, readyPoll)
	}
	if until := m.memory.deletesFrom; !until.IsZero() {
		rest = min(rest, until.Sub(now))
	}
	for _, t := range m.memory.troubles {
		rest = min(rest, t.Next.Sub(now))
	}
	for _, c := range m.memory.contests {
		if c.Yields(now) {
			rest = min(rest, c.Next().Sub(now))
		}
	}
	return max(rest, min(leastRest, m.cfg.Pace.Resync))
}

// await waits for a time, or until the folder has changed.
func (m *manager) await(ctx context.Context, rest time.Duration) error {
	until := time.Now().Add(rest)
	for {
		m.got()
		if err := backoff.Sleep(ctx, min(m.cfg.Pace.Poll, time.Until(until))); err != nil {
			return err
		}
		if m.changed() || !time.Now().Before(until) {
			return nil
		}
	}
}

// changed takes up a folder that has changed, once it is the same twice.
func (m *manager) changed() bool {
	f := readFiles(m.cfg.Folder)
	if f.digest == m.set.files {
		m.pending = ""
		return false
	}
	if f.digest != m.pending {
		m.pending = f.digest
		return false
	}
	m.pending, m.set = "", readSet(f)
	m.cfg.Log.Info("the folder has changed", "version", string(m.set.Version), "objects", len(m.set.Objects))
	return true
}

// got notes that the loop gets on.
func (m *manager) got() { m.progress.Store(time.Now().UnixNano()) }

// conclude publishes how things stand after a pass, and why it was broken off.
func (m *manager) conclude(err error) {
	now := time.Now()
	s := m.memory.report(m.set, m.cfg.Folder)
	s.Writes = m.writes.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Pass = m.status.Pass
	if err == nil || errors.Is(err, errOvertaken) {
		s.Pass = now
	} else {
		s.Unreachable = err.Error()
		if s.Pass.IsZero() {
			s.Pass = now // it has never been reached: the wait begins now
		}
	}
	if s.Unreachable != m.status.Unreachable {
		if s.Unreachable == "" {
			m.cfg.Log.Info("passes succeed again")
		} else {
			m.cfg.Log.Info("a pass failed", "err", s.Unreachable)
		}
	}
	m.status = s
}

// answers are what can be asked: the status, and whether the loop gets on, for the supervisor.
func (m *manager) answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		s := m.status
		m.mu.Unlock()
		writeJSON(w, s)
	})
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, _ *http.Request) {
		if still := time.Since(time.Unix(0, m.progress.Load())); still > stuckAfter {
			http.Error(w, fmt.Sprintf("nothing was done for %s", still.Round(time.Second)),
				http.StatusServiceUnavailable)
			return
		}
		writeJSON(w, true)
	})
	return mux
}
