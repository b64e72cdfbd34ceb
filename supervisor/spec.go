package supervisor

import (
	"context"
	"time"
)

// Spec says what one supervised process is. It is a value: a changed process is a new Spec under the same name.
type Spec struct {
	// Name is unique in a supervisor: it is in the logs, the status and the name of the process's cgroup.
	Name string
	// Path is the program, absolute; it runs in /. Args do not hold the program's name.
	Path string
	Args []string
	// Env is added to the supervisor's own environment, from which what systemd meant for the agent alone is taken out.
	Env []string
	// RunAs is whom the process runs as; nil: as the supervisor.
	RunAs *Account
	// After names the processes that must be ready before this one starts. They are stopped after it. Each was added to
	// the supervisor before this one was.
	After []string
	// Start passes once the process has come up; until then Live is not asked. Live failing restarts it. Ready says
	// whether others may use it; nil: ready once started. What passes Ready is alive, so Live is asked only while Ready
	// does not pass. Each may be nil.
	Start, Live, Ready *Probe
	// StopTimeout is how long the process may take from SIGTERM, sent once, to its exit; then it is killed. 0: 10 s.
	StopTimeout time.Duration
	// OOMScore and Nice put the process behind the supervisor where memory or processors are short: they are added to
	// its oom_score_adj and to its niceness, up to what the kernel allows. 0: the process stands where the supervisor
	// does.
	OOMScore, Nice int
	// Limits are what the process may take.
	Limits Limits
	// ExpectedExit says that an exit is part of normal life, such as a lost lease: no back-off grows. It is given the
	// exit code (-1 after a signal) and the last lines that the process wrote. nil: no exit is expected.
	ExpectedExit func(code int, tail string) bool
}

// Account is a user of the system. A process that runs as one has its group alone, and of the supervisor's
// capabilities only those that are named.
type Account struct {
	UID, GID uint32
	// Capabilities are the kernel's numbers of what the process may do besides, also after it has executed another
	// program.
	Capabilities []uintptr
}

// Probe is a check that is asked again and again.
type Probe struct {
	// Check returns nil while all is well. It must return soon after ctx is done.
	Check func(ctx context.Context) error
	// Period is the time between two checks; 0: 1 s. Timeout bounds one check; 0: 1 s.
	Period, Timeout time.Duration
	// Retry is the time from a check of Ready that failed to the next, where that differs from Period; 0: it does not.
	Retry time.Duration
	// Limit is how long it may fail until it counts as failed; 0: 2 s. For Start it is counted from the launch, however
	// many checks that was time for, and the process is restarted then. For Live and Ready it is counted from the first
	// failed check in a row and judged at each further one: a supervisor that was itself stopped for that long does not
	// take the one check that it was late for as proof.
	Limit time.Duration
}

// State is where a process is in its life; the diagram is at machine, in machine.go.
type State string

// The states.
const (
	Stopped  State = "stopped"
	Waiting  State = "waiting"
	Starting State = "starting"
	Ready    State = "ready"
	Degraded State = "degraded"
	Stopping State = "stopping"
	Backoff  State = "backoff"
	Parked   State = "parked"
)

// Status is what is reported of one process.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Since is when the process came into this state.
	Since time.Time `json:"since"`
	// Restarts counts starts after the first, of this Spec, since the supervisor began.
	Restarts int `json:"restarts"`
	// Reason is why the process is in this state, for a person.
	Reason string `json:"reason"`
	// PID is 0 while no process runs.
	PID int `json:"pid,omitempty"`
	// Unlimited says which of the Spec's limits are not in force for the run, and why; empty: all are.
	Unlimited string `json:"unlimited,omitempty"`
	// OutputDropped is how many bytes of its output its log did not take, since the supervisor began.
	OutputDropped int64 `json:"outputDropped,omitempty"`
}
