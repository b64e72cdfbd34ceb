package kubeletwatch

// State is how a unit stands. The words are part of the status and of the metrics.
type State string

const (
	// Running is well.
	Running State = "running"
	// Unknown means that systemd did not say how the unit stands.
	Unknown State = "unknown"
	// Absent is a unit that this machine does not have.
	Absent State = "absent"
	// Masked is a person's choice, and is left alone.
	Masked State = "masked"
	// Stopped is a person's choice, too.
	Stopped State = "stopped"
	// Busy means that systemd starts or stops it at this moment.
	Busy State = "busy"
	// Waiting means that the unit has not started its program yet: it waits for what its ExecStartPre= asks for.
	Waiting State = "waiting"
	// Starting is a process whose start-up is not over.
	Starting State = "starting"
	// Exited means that systemd starts it again in a moment.
	Exited State = "exited"
	// CrashLoop means that it ends by itself again and again: another restart would not help.
	CrashLoop State = "crash-loop"
	// Failed means that systemd has given up starting it.
	Failed State = "failed"
	// Hung is a process that lives and does nothing any more.
	Hung State = "hung"
	// HungAtStart is a process whose start-up does not end.
	HungAtStart State = "hung-at-start"
	// Unkillable is a process that SIGKILL does not end: the unit is parked until it has gone.
	Unkillable State = "unkillable"
	// Unsafe is a hung runtime whose restart would end the containers.
	Unsafe State = "unsafe-to-restart"
	// Unreached means that nobody listens where the runtime is said to, and it never was seen there.
	Unreached State = "unreached"
	// RuntimeFirst is a kubelet whose runtime has to be well before anything is said of it.
	RuntimeFirst State = "runtime-first"
	// PortBlocked is a kubelet that lives and whose health port does not answer.
	PortBlocked State = "port-blocked"
	// NoNetwork is a kubelet whose runtime has no network for pods.
	NoNetwork State = "no-network"
	// NoAPIServer is a kubelet whose apiserver is not ready.
	NoAPIServer State = "no-apiserver"
)

// Well says that nothing of the unit itself is wrong: what it lacks, others have to bring.
func (s State) Well() bool {
	switch s {
	case Running, PortBlocked, NoNetwork, NoAPIServer:
		return true
	}
	return false
}

// Act is something that is done to a unit.
type Act string

const (
	// Nothing is done.
	Nothing Act = ""
	// Restart ends the main process, after it has written its stacks, and starts it again.
	Restart Act = "restart"
	// Start starts a unit that systemd has given up, or that was parked.
	Start Act = "start"
	// Park stops a unit, so that systemd starts no second process next to one that does not end.
	Park Act = "park"
)

// Verdict is what Decide says of one unit.
type Verdict struct {
	State  State
	Reason string
	// Act is what to do now. Where the budget does not allow it yet, Act is Nothing and Held says why.
	Act  Act
	Held string
	// Spent says that nothing more is done before a person has acted, or the unit was well for half an hour.
	Spent bool
}
