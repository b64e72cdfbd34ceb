package agent

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/waits"
)

// Phase is one step of a replica's boot.
type Phase string

// The phases, in order.
const (
	// PhasePacing is the pause before a boot where agents have ended soon after their start, one after the other.
	PhasePacing       Phase = "pacing"
	PhaseIdentity     Phase = "identity"
	PhaseDataDisk     Phase = "data disk"
	PhaseRecord       Phase = "record"
	PhaseCertificates Phase = "certificates"
	PhaseEtcd         Phase = "etcd"
	PhaseControlPlane Phase = "control plane"
	PhaseKeep         Phase = "keep"
	// PhaseStopping is the way down, from whichever phase it begins.
	PhaseStopping Phase = "stopping"
)

// forPeople is the phase as `systemctl status` shows it.
func (p Phase) forPeople() string {
	if p == PhaseKeep {
		return "running"
	}
	return string(p)
}

// deadlines bound the phases that nothing but a fault can hold up. A phase that is not here may have to wait for
// others, for a quorum or for a record that comes back, and says so in the status instead of giving up.
var deadlines = map[Phase]time.Duration{
	PhaseIdentity: 2 * time.Minute, // the metadata server is on the same host; its client tries again meanwhile
	// KMS may be slow, and is tried again; a wrong seal.key is read anew only by the next start
	PhaseCertificates: 30 * time.Second,
}

// PhaseError says in which phase the boot ended. cmd gives an exit code to some of its causes.
type PhaseError struct {
	Phase Phase
	Err   error
}

func (e *PhaseError) Error() string { return string(e.Phase) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PhaseError) Unwrap() error { return e.Err }

// progress is how far the boot has come. Several may use it at once.
type progress struct {
	log    *slog.Logger
	waits  *waits.Phased
	notify Notifier
	begun  time.Time

	mu    sync.Mutex
	phase Phase
	since time.Time
	ready bool
	ends  string // why the agent ends without being asked to
	boot  status.Boot
}

func newProgress(log *slog.Logger, w *waits.Phased, notify Notifier) *progress {
	now := time.Now()
	return &progress{log: log, waits: w, notify: notify, begun: now, since: now}
}

// enter notes, and tells people and the service manager, that a phase begins.
func (p *progress) enter(phase Phase) {
	p.mu.Lock()
	p.phase, p.since, p.ready = phase, time.Now(), phase == PhaseKeep
	p.mu.Unlock()
	p.waits.Enter(string(phase))
	p.notify.Status(phase.forPeople())
}

// end notes that the way down begins; why is nil where somebody asked for it. Whoever sees the phase sees the reason.
func (p *progress) end(why error) {
	if why != nil {
		reason := why.Error()
		if _, cause, ok := strings.Cut(reason, ErrStartAgain.Error()+": "); ok {
			reason = cause // the phase in which it was noticed says nothing
		}
		p.log.Warn("ends, to be started again", "reason", reason)
		p.mu.Lock()
		p.ends = reason
		p.mu.Unlock()
	}
	p.enter(PhaseStopping)
}

// took keeps how long a phase took that is done.
func (p *progress) took(phase Phase, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boot.Phases = append(p.boot.Phases, status.PhaseTook{Phase: string(phase), Seconds: took.Seconds()})
}

// done keeps how long all of the boot took.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boot.Ready = time.Since(p.begun).Seconds()
}

// now is the phase that goes on.
func (p *progress) now() Phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase
}

// show adds it to what is told.
func (p *progress) show(s *status.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Replica.Phase, s.Replica.Since, s.Replica.Ready = string(p.phase), p.since, p.ready
	s.Replica.StartsAgain = p.ends
	s.Boot = status.Boot{Phases: append([]status.PhaseTook{}, p.boot.Phases...), Ready: p.boot.Ready}
}

// enter runs one phase: a log line at its begin and end, a STATUS= line, a deadline, and its name before its error. The
// phase's result is the next one's input: the types are the arrows between the phases of live.
func enter[In, Out any](ctx context.Context, p *progress, phase Phase, in In, do func(context.Context, In) (Out,
	error)) (Out, error) {
	p.enter(phase)
	begin := time.Now()
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if d, ok := deadlines[phase]; ok {
		bounded, cancel = context.WithTimeoutCause(ctx, d, fmt.Errorf("not done within %s", d))
	}
	defer cancel()
	out, err := do(bounded, in)
	if err != nil {
		if bounded.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(bounded), err)
		}
		return out, &PhaseError{Phase: phase, Err: err}
	}
	p.took(phase, time.Since(begin))
	p.log.Info("phase done", "phase", string(phase), "took", time.Since(begin).Round(time.Millisecond).String())
	return out, nil
}
