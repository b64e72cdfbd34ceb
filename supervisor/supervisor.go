// Package supervisor keeps processes running: it starts them when what they need is ready, asks them how they are,
// starts them again when they end or hang, and stops them in order. It knows nothing of what the processes do.
//
//	Start ──► process: one goroutine that alone touches its machine ──► Status, Changed, Exited
//	              │  ▲
//	       launch │  │ results of the probes, exit of the whole group
//	              ▼  │
//	           child: own cgroup (or process group) ── stdout, stderr ──► output ──► file or journal
//
// Every decision (what follows an exit, a failed check, a deadline) is in machine, which has no clock, no process and
// no goroutine. Everything around it is thin.
//
// Guarantees
//   - A process is never started while anything of its former run lives. In a cgroup the proof is the kernel's
//     "populated 0"; in a process group it is that no live process of the group is left.
//   - SIGTERM is sent once for a run; what has not ended at the deadline is killed, with all that it started. A kill
//     that fails is tried again.
//   - What is blocked in the kernel, a process or a launch, holds up no caller for long and no other process: Stop and
//     Restart return ErrParked, and go on by themselves.
//   - Every limit is a time: a check that hangs gives a process no more than one that is refused at once.
//   - Nothing that a process writes, and nothing that goes wrong with writing it down, holds up supervision: output
//     that cannot be written in time is dropped, and the gap is said in the log.
//   - A process that fails is tried again for ever, with a growing distance. Giving up would need somebody who notices.
//   - Each transition has a reason for a person, one log line, and is seen by those who wait on Changed.
//
// It does not survive for its children: if the supervisor's own process dies, ending the children is the work of what
// started it (KillMode=mixed under systemd, or an init that kills the rest). What a former supervisor left in a
// process's cgroup is killed before the process is started; in process groups nothing can be known about it. A process
// that leaves its process group with setsid(2) is out of reach without cgroups.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Config is what a Supervisor needs from its owner. The zero value works: no log, output to the journal, process
// groups, and an empty environment.
type Config struct {
	// Log gets one line for each transition; nil: nothing is logged. It must not block: supervision waits for it.
	Log *slog.Logger
	// LogDir gets NAME.log with what each process writes, and NAME.log.1 with what it wrote before that; it is made if
	// absent. Empty: the journal with the process's name as identifier; while none runs, what is written is dropped.
	LogDir string
	// Words, if there is one, also gets what each process writes, in pieces, and nil where a run has ended. It must
	// neither block nor keep the text.
	Words func(process string, text []byte)
	// Cgroup is the cgroup2 folder, as of DelegatedCgroup, in which each process gets one of its own. Empty: process
	// groups.
	Cgroup string
	// Env is the environment that all processes get, as of os.Environ. NOTIFY_SOCKET, WATCHDOG_* and LISTEN_* are taken
	// out, because they are meant for the supervisor alone: a child that has them would report itself as its parent. So
	// is an HTTP proxy (HTTPS_PROXY and the like): a process that needs one has it in its Spec.
	Env []string
}

// Supervisor runs processes. Its methods may be called by many at once.
type Supervisor struct {
	cfg   Config
	board *board
	log   *slog.Logger
	// newLauncher makes what starts the processes of one name; tests put an imitation here.
	newLauncher func(name string) launcher

	starting sync.Mutex // held by Start, so that the check of the dependencies and the change are one step

	mu        sync.Mutex
	processes []*process // in start order
	after     map[string][]string
	running   bool // Run has begun
	ending    bool // Run is stopping all: no more starts

	loops sync.WaitGroup
}

// New returns a supervisor without processes. Nothing starts before Run is called.
func New(cfg Config) *Supervisor {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Supervisor{cfg: cfg, board: newBoard(), log: log, after: map[string][]string{}}
	s.newLauncher = func(name string) launcher {
		out := newOutput(name, openSink(cfg.LogDir, name), log)
		out.words = cfg.Words
		return &host{cgroup: cfg.Cgroup, env: childEnv(cfg.Env), output: out}
	}
	return s
}

// lingerPatience is how long Run waits, once all processes are gone, for goroutines that may be stuck in a write to a
// frozen disk or in a check that does not heed its context. They are left behind then: the caller is about to exit.
const lingerPatience = time.Second

// Run supervises until ctx is done, then stops every process, dependants before what they depend on and those that are
// independent at the same time, and returns when all are gone. The error names those that could not be ended even by
// SIGKILL. It is called once.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	<-ctx.Done()
	err := s.stopAll()
	waitAtMost(&s.loops, lingerPatience)
	return err
}

// begin starts the goroutines of the processes that were added before Run.
func (s *Supervisor) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return errors.New("run the supervisor: it has been run before")
	}
	s.running = true
	for _, p := range s.processes {
		s.loops.Go(p.loop)
	}
	return nil
}

// stopAll stops every process once those that come after it are gone.
func (s *Supervisor) stopAll() error {
	s.mu.Lock()
	s.ending = true
	processes := s.processes
	gone := map[string]chan struct{}{}
	dependants := map[string][]string{}
	for _, p := range processes {
		gone[p.name] = make(chan struct{})
		for _, name := range s.after[p.name] {
			dependants[name] = append(dependants[name], p.name)
		}
	}
	s.mu.Unlock()

	errs := make([]error, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() {
			defer close(gone[p.name])
			for _, name := range dependants[p.name] {
				<-gone[name]
			}
			errs[i] = s.stopForGood(p)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// stopForGood stops p and ends its goroutine. It gives up on a process that is parked, so that those it depends on are
// stopped in order nevertheless.
func (s *Supervisor) stopForGood(p *process) error {
	defer close(p.quit)
	if err := s.carryOut(context.Background(), p, newRequest(askEnd, "the supervisor ends")); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}

// waitAtMost waits for the goroutines of g, but not longer than d.
func waitAtMost(g *sync.WaitGroup, d time.Duration) {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
