package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors on which callers branch.
var (
	// ErrUnknown says that no process of that name was ever started here.
	ErrUnknown = errors.New("no such process")
	// ErrStopped says that the process is stopped and will not start by itself.
	ErrStopped = errors.New("the process is stopped")
	// ErrParked says that the process is still there although it was killed, or that its launch has hung for long. It
	// ends when it can, and nothing is started next to it: a later Stop may succeed.
	ErrParked = errors.New("the process does not end")
	// ErrEnded says that the supervisor stops everything or has done so.
	ErrEnded = errors.New("the supervisor ends")
)

// Start adds the process and starts it as soon as those in After are ready. The name must be free or that of a stopped
// process, whose Spec is replaced; the names in After must be known. It does not wait: WaitReady does. Called before
// Run, the process starts when Run begins.
func (s *Supervisor) Start(spec Spec) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	spec = spec.clone()
	if err := s.validate(spec); err != nil {
		return fmt.Errorf("start %q: %w", spec.Name, err)
	}
	p, err := s.enlist(spec)
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if p == nil {
		return nil
	}
	r := newRequest(askStart, "")
	r.spec = spec
	if err := p.ask(context.Background(), r); err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after[spec.Name] = spec.After
	return nil
}

// enlist adds a process of a new name, and returns nil then; or it returns the process that has the name. starting is
// held.
func (s *Supervisor) enlist(spec Spec) (*process, error) {
	s.mu.Lock()
	known, ending := s.find(spec.Name), s.ending
	s.mu.Unlock()
	switch {
	case ending:
		return nil, ErrEnded
	case known != nil:
		// Only Start takes a process out of Stopped, and starting is held: what is Stopped here answers at once. Any
		// other may be inside a launch that hangs, and is not asked.
		if st, _ := s.board.get(spec.Name); st.State != Stopped {
			return nil, nameTaken(st.State)
		}
		return known, nil
	}
	p := newProcess(spec.Name, s.board, s.log, s.newLauncher(spec.Name))
	if err := p.machine.start(time.Now(), spec); err != nil { // which logs, and so not under mu
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, ErrEnded
	}
	p.publish()
	s.processes = append(s.processes, p)
	s.after[spec.Name] = spec.After
	if s.running {
		s.loops.Go(p.loop)
	}
	return nil, nil
}

// Stop stops the process, which stays stopped, and returns when it and all that it started are gone. What comes after
// it is left alone. When ctx is done first, or when it returns ErrParked, the stop goes on without the caller.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	return s.askAndWait(ctx, "stop", name, newRequest(askStop, "asked to stop"))
}

// StopWithin is Stop for a process whose work is lost anyway: it is killed after that time, if its Spec does not say so
// earlier.
func (s *Supervisor) StopWithin(ctx context.Context, name string, limit time.Duration) error {
	r := newRequest(askStop, "asked to stop within "+limit.String())
	r.within = limit
	return s.askAndWait(ctx, "stop", name, r)
}

// Restart stops the process and starts it again without back-off, and returns when the former one is gone; WaitReady
// tells when the new one is ready. A process that waits for its back-off starts at once. The reason is shown in status
// and log. A stopped process stays stopped: ErrStopped. ctx and ErrParked are as in Stop.
func (s *Supervisor) Restart(ctx context.Context, name, reason string) error {
	return s.askAndWait(ctx, "restart", name, newRequest(askRestart, reason))
}

func (s *Supervisor) askAndWait(ctx context.Context, verb, name string, r request) error {
	s.mu.Lock()
	p := s.find(name)
	s.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%s %q: %w", verb, name, ErrUnknown)
	}
	err := s.carryOut(ctx, p, r)
	if st, _ := s.board.get(name); errors.Is(err, ErrEnded) && r.kind == askStop && st.State == Stopped {
		return nil // Run has done it
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	return nil
}

// answerPatience is how long a process's goroutine may take to hear a request. It hears at once, unless it is in the
// middle of a launch: that reads the program from a disk, which may hang, and gives a former run formerPatience to go.
const answerPatience = 10 * time.Second

// carryOut hands r over and returns nil once nothing of the run that it is about lives.
func (s *Supervisor) carryOut(ctx context.Context, p *process, r request) error {
	heard, cancel := context.WithTimeoutCause(ctx, answerPatience,
		fmt.Errorf("%w: its launch has not come back for %s: it is blocked in the kernel", ErrParked, answerPatience))
	defer cancel()
	if err := p.ask(heard, r); err != nil {
		return err
	}
	return s.awaitGone(ctx, p, r)
}

// awaitGone returns nil once nothing of the run that r was about lives, and does not wait for a process that is parked.
func (s *Supervisor) awaitGone(ctx context.Context, p *process, r request) error {
	for {
		changed := s.board.Changed()
		if st, _ := s.board.get(p.name); st.State == Parked {
			return fmt.Errorf("%w: pid %d is still there: %s", ErrParked, st.PID, st.Reason)
		}
		select {
		case <-r.gone:
			return nil
		case <-p.ended:
			return ErrEnded
		case <-ctx.Done():
			return s.notYet(ctx, p.name)
		case <-changed:
		}
	}
}

// WaitReady returns nil as soon as the process is ready, ErrStopped if it is stopped, and an error that says in which
// state the process is, and why, when ctx is done.
func (s *Supervisor) WaitReady(ctx context.Context, name string) error {
	for {
		changed := s.board.Changed()
		st, ok := s.board.get(name)
		switch {
		case !ok:
			return fmt.Errorf("wait for %q: %w", name, ErrUnknown)
		case st.State == Ready:
			return nil
		case st.State == Stopped:
			return fmt.Errorf("wait for %s: %w: %s", name, ErrStopped, st.Reason)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", name, s.notYet(ctx, name))
		}
	}
}

// notYet says why ctx ended and how the process was doing by then.
func (s *Supervisor) notYet(ctx context.Context, name string) error {
	st, _ := s.board.get(name)
	age := time.Since(st.Since).Round(time.Millisecond)
	return fmt.Errorf("%w; it is %s since %s: %s", context.Cause(ctx), st.State, age, st.Reason)
}

// find returns the process of that name or nil. mu is held.
func (s *Supervisor) find(name string) *process {
	for _, p := range s.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}
