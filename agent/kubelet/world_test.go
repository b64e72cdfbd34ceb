package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

const kubeletUnit, runtimeUnit = "kubelet.service", "containerd.service"

// world is a machine with a kubelet and a runtime: what systemd, the kernel and the two say. Tests change it as time
// goes by.
type world struct {
	t     *testing.T
	began time.Time
	dir   string

	mu      sync.Mutex
	changed chan struct{}
	units   map[string]*kubeletwatch.Unit
	nextPID int
	// acts are those that were done, with when; stacks the units that wrote theirs.
	acts   []string
	stacks []string
	// unreadable is systemd's silence; answer is how the runtime answers, health how the kubelet's port does.
	unreadable     error
	answer, health func(ctx context.Context) (bool, error)
	network        string
	listening      bool
	lists          int  // how often the kernel was asked who listens
	ready          bool // the apiserver
	// do is what systemd does with an act; nil: the unit runs anew.
	do   func(act kubeletwatch.Act, u *kubeletwatch.Unit) error
	told []Record

	tracker          *waits.Tracker
	kubelet, runtime *waits.Source
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, began: time.Now().Add(-time.Hour), dir: t.TempDir(), changed: make(chan struct{}, 1),
		nextPID:   100,
		listening: true, ready: true, answer: at(0), health: at(0),
		tracker: waits.New(slog.New(slog.DiscardHandler), "")}
	w.kubelet, w.runtime = w.tracker.Source("kubelet", "phase", 0), w.tracker.Source("runtime", "phase", 0)
	w.units = map[string]*kubeletwatch.Unit{}
	for _, name := range []string{kubeletUnit, runtimeUnit} {
		w.units[name] = &kubeletwatch.Unit{Load: "loaded", Result: "success", KillMode: "process"}
		w.start(w.units[name])
		w.units[name].Started = time.Minute
	}
	w.units[kubeletUnit].PingEvery = 30 * time.Second
	return w
}

// at is an answer that takes so long.
func at(d time.Duration) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-time.After(d):
			return true, nil
		}
	}
}

// silent takes the connection and never answers.
var silent = at(1000 * time.Hour)

// refused is an answer of the kernel's.
func refused(context.Context) (bool, error) { return false, errors.New("connection refused") }

func (w *world) clock() time.Duration { return time.Since(w.began) }

// start is systemd starting a unit's process.
func (w *world) start(u *kubeletwatch.Unit) {
	w.nextPID++
	u.Active, u.Sub, u.PID, u.Started, u.Exit, u.Job = "active", "running", w.nextPID, w.clock(), "", false
	u.Ticks = uint64(w.nextPID)
}

// change changes the world, and systemd says so.
func (w *world) change(how func(kubelet, runtime *kubeletwatch.Unit)) {
	w.mu.Lock()
	how(w.units[kubeletUnit], w.units[runtimeUnit])
	w.mu.Unlock()
	note(w.changed)
}

func (w *world) Unit(_ context.Context, name string) (kubeletwatch.Unit, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := *w.units[name]
	if u.PID != 0 && u.Pinged == 0 && u.PingEvery > 0 {
		u.Pinged = w.clock() // it pings all the time, unless a test says when it did last
	}
	return u, w.unreadable
}

func (w *world) Do(_ context.Context, act kubeletwatch.Act, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts = append(w.acts, string(act)+" "+name)
	u := w.units[name]
	if w.do != nil {
		return w.do(act, u)
	}
	if act == kubeletwatch.Park {
		u.Active, u.Sub, u.PID = "failed", "failed", 0
	} else {
		w.start(u)
	}
	note(w.changed)
	return nil
}

func (w *world) WriteStacks(_ context.Context, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stacks = append(w.stacks, name)
	u := w.units[name]
	u.Active, u.Sub, u.PID, u.Exit = "activating", "auto-restart", 0, "exit code 2"
	note(w.changed)
	return nil
}

func (w *world) Changed() <-chan struct{} { return w.changed }

func (w *world) Listening() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	return w.listening
}

// runtimeOf and portOf are the two that are asked.
type runtimeOf struct{ *world }
type portOf struct{ *world }

func (r runtimeOf) Ask(ctx context.Context) (string, bool, error) {
	r.mu.Lock()
	answer, network := r.answer, r.network
	r.mu.Unlock()
	connected, err := answer(ctx)
	return network, connected, err
}

func (p portOf) Ask(ctx context.Context) (bool, error) {
	p.mu.Lock()
	health, listening := p.health, p.listening
	p.mu.Unlock()
	if !listening {
		return false, syscall.ECONNREFUSED
	}
	return health(ctx)
}

// watch begins a watch of the world; stop ends it, as the agent's end does.
func (w *world) watch() (watch *Watch, stop func()) {
	w.t.Helper()
	watch, err := New(Config{
		Log: slog.New(slog.DiscardHandler), KubeletUnit: kubeletUnit, RuntimeUnit: runtimeUnit,
		Limits: kubeletwatch.Limits{AnswerWithin: 10 * time.Second, Misses: 3, StartWithin: 5 * time.Minute},
		Units:  w, Runtime: runtimeOf{w}, Port: portOf{w}, Clock: w.clock,
		APIServer: func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ready },
		StatePath: filepath.Join(w.dir, "kubelet.json"), KubeletWaits: w.kubelet, RuntimeWaits: w.runtime,
		Tell: func(r Record) { w.told = append(w.told, r) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { watch.Run(ctx) })
	return watch, func() { cancel(); running.Wait() }
}

// done are the acts so far.
func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.acts...)
}

// waiting are the names of the waits that are told.
func (w *world) waiting() (names []string) {
	for _, wait := range w.tracker.All() {
		names = append(names, wait.Name)
	}
	return names
}
