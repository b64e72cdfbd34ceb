package supervisor

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// launcher starts the runs of one process; running is one of them. In the package they are host and child.
type launcher interface {
	// launch starts a run. An error means that nothing was started, and nothing of a former run was found alive.
	launch(spec Spec) (running, error)
	// dropped is how many bytes of the runs' output were lost. It may be called at any time.
	dropped() int64
	// close is called once, when nothing runs and nothing will be launched.
	close()
}

type running interface {
	pid() int
	// unlimited says which limits are not in force, and why; empty: all are.
	unlimited() string
	// terminate asks the process to end. It is called at most once.
	terminate() error
	// kill kills the process and all that it started. It may be called when they are gone.
	kill() error
	// left gets the exit if the process has ended and something that it started lives on; gone gets it when nothing
	// lives.
	left() <-chan Exit
	gone() <-chan Exit
}

// process is one name. Its goroutine, loop, alone touches the machine and the run, so all that happens to a process
// happens one after the other, and nothing is started twice.
type process struct {
	name     string
	board    *board
	log      *slog.Logger
	launcher launcher
	machine  machine

	run        running // nil: nothing runs
	results    chan result
	stopProbes context.CancelFunc // of the run
	asking     sync.WaitGroup     // the probes of all runs
	lastExit   *Exit              // not yet on the board
	waiters    []chan struct{}    // closed once nothing runs
	final      bool               // no more starts

	inbox *inbox
	quit  chan struct{} // closed by Run: the loop ends
	ended chan struct{} // closed by the loop at its end
}

func newProcess(name string, board *board, log *slog.Logger, launcher launcher) *process {
	p := &process{
		name: name, board: board, log: log, launcher: launcher,
		inbox: newInbox(), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	p.machine = machine{state: Stopped, jitter: rand.Float64, moved: p.moved}
	return p
}

// loop is the process's life.
func (p *process) loop() {
	defer p.leave()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := p.advance()
		p.arm(timer)
		if p.quitting() {
			return
		}
		select {
		case <-p.inbox.filled:
			for _, r := range p.inbox.take() {
				p.answer(r)
			}
		case r := <-p.results:
			p.do(p.machine.probed(time.Now(), r.question, r.err))
		case exit := <-p.left():
			p.machine.left(time.Now(), exit)
		case exit := <-p.gone():
			p.reap(exit)
		case <-timer.C:
			p.do(p.machine.tick(time.Now()))
		case <-changed:
		case <-p.quit:
			return
		}
	}
}

// quitting comes before all else: a launch that comes back when Run has given it up finds requests that nobody waits
// for.
func (p *process) quitting() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

// advance publishes how things are and launches what may be launched. While it has to wait for others it returns a
// channel that is closed when something has changed.
func (p *process) advance() <-chan struct{} {
	for {
		p.publish()
		if p.machine.state != Waiting {
			return nil
		}
		changed := p.board.Changed()
		p.do(p.machine.depend(time.Now(), p.board.missing(p.machine.spec.After)))
		if p.machine.state == Waiting {
			// Publishing may close changed, which costs one more turn in which nothing is different.
			p.publish()
			return changed
		}
	}
}

// do carries out what the machine wants.
func (p *process) do(a act) {
	var err error
	switch a {
	case launch:
		p.launch()
	case terminate:
		p.stopProbes()
		err = p.run.terminate()
	case kill:
		again := p.machine.killErr != nil
		err = p.run.kill()
		p.machine.shot(time.Now(), err)
		if again {
			return // the first failure was said
		}
	}
	if err != nil {
		p.log.Warn("a process could not be signalled", "process", p.name, "error", err)
	}
}

func (p *process) launch() {
	p.publish()
	spec := p.machine.spec
	run, err := p.launcher.launch(spec)
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p.run, p.stopProbes, p.results = run, cancel, make(chan result)
		results := p.results
		p.asking.Go(func() { ask(ctx, spec, results) })
	}
	p.do(p.machine.ran(time.Now(), err))
}

// reap takes note that nothing of the run lives any more.
func (p *process) reap(exit Exit) {
	p.stopProbes()
	spec := p.machine.spec
	exit.Run, exit.Launched, exit.At = p.machine.starts, p.machine.launched, time.Now()
	exit.Asked = p.machine.asked()
	exit.Expected = !exit.Asked && spec.ExpectedExit != nil && spec.ExpectedExit(exit.Code, exit.Tail)
	p.run, p.results, p.lastExit = nil, nil, &exit
	p.machine.gone(exit.At, exit)
	p.publish()
}

func (p *process) left() <-chan Exit {
	if p.run == nil {
		return nil
	}
	return p.run.left()
}

func (p *process) gone() <-chan Exit {
	if p.run == nil {
		return nil
	}
	return p.run.gone()
}

// arm sets the timer to when the machine wants to be called.
func (p *process) arm(timer *time.Timer) {
	if p.machine.due.IsZero() {
		timer.Stop()
		return
	}
	timer.Reset(time.Until(p.machine.due))
}

// publish shows the state to others, and lets go those who wait for the end of a run.
func (p *process) publish() {
	st := Status{
		Name: p.name, State: p.machine.state, Since: p.machine.since, Reason: p.machine.reason,
		Restarts: max(0, p.machine.starts-1),
	}
	if p.run != nil {
		st.PID, st.Unlimited = p.run.pid(), p.run.unlimited()
	}
	p.board.write(st, p.lastExit)
	p.lastExit = nil
	if p.run == nil {
		for _, waiter := range p.waiters {
			close(waiter)
		}
		p.waiters = nil
	}
}

// moved logs a transition.
func (p *process) moved(from, to State, why string) {
	level := slog.LevelInfo
	if to == Degraded || to == Backoff || to == Parked {
		level = slog.LevelWarn
	}
	p.log.Log(context.Background(), level, "process changed state",
		"process", p.name, "from", string(from), "to", string(to), "reason", why)
}

// leave ends the loop. A run that is still there was blocked in the kernel, or its launch was and has come back too
// late: it is killed, and what becomes of that is left to whatever ends the supervisor's children after it.
func (p *process) leave() {
	if p.run == nil {
		p.launcher.close()
	} else {
		p.do(kill)
		p.stopProbes()
	}
	close(p.ended)
	p.asking.Wait()
}
