package kubeletwatch

import "time"

// Unit is what systemd says of a service at one moment. The words are systemd's. Times are since the VM's boot, by the
// clock of systemd's own timestamps; 0: never.
type Unit struct {
	// Load is loaded, masked, not-found or another; Active, Sub and Result are its state.
	Load, Active, Sub, Result string
	// KillMode says what a stop ends: only with process and none do containers outlive a restart of their runtime.
	KillMode string
	// Job says that systemd has a start or a stop of it to do.
	Job bool
	// PID is the main process, 0 where there is none; Started is when it began, Ticks the same in the kernel's ticks.
	PID     int
	Started time.Duration
	Ticks   uint64
	// Exit is how the main process that was last ended, for people; empty while one runs.
	Exit string
	// Pinged is when it pinged last, PingEvery how long systemd waits for the next; 0: it does not have to ping.
	Pinged, PingEvery time.Duration
	// Restarts counts how often systemd started it again by itself.
	Restarts uint32
	// Unkilled are the processes of the unit that were sent SIGKILL and have not ended: shims and helpers too.
	Unkilled []Process
}

// main is the main process; its PID is 0 where there is none.
func (u Unit) main() Process { return Process{u.PID, u.Ticks} }

// overdue says that its ping has been lacking for two intervals: systemd should have aborted it after one.
func (u Unit) overdue(now time.Duration) bool {
	return u.PID != 0 && u.PingEvery > 0 && now-u.pinged() > 2*u.PingEvery
}

// pinged is when it last showed that it lives.
func (u Unit) pinged() time.Duration { return max(u.Pinged, u.Started) }

// Process is one that can be recognized after its id was given to another.
type Process struct {
	PID int `json:"pid"`
	// Started is its start in the kernel's ticks.
	Started uint64 `json:"started"`
}

// Answer is how a question to a process went.
type Answer string

const (
	// Unasked means that it was not asked yet.
	Unasked Answer = ""
	// Answered means that an answer came, whatever it says.
	Answered Answer = "answered"
	// Silent means that the kernel made the connection, and the process did not answer in time.
	Silent Answer = "silent"
	// Unreachable means that there was no connection: that tells of the way to the process, and nothing of it.
	Unreachable Answer = "unreachable"
)

// Answers are those of one process to one question that is asked again and again.
type Answers struct {
	Last Answer
	// Misses are those in a row that were not Answered, Since is when the first of them was asked.
	Misses int
	Since  time.Duration
	// Ever says that this process has answered before.
	Ever bool
	// Error is what the last miss was.
	Error string
}

// Connected says that somebody listened when the process was last asked.
func (a Answers) Connected() bool { return a.Last == Answered || a.Last == Silent }

// Next is what the answers are after one more, which was asked at asked.
func (a Answers) Next(answer Answer, err string, asked time.Duration) Answers {
	if answer == Answered {
		return Answers{Last: Answered, Ever: true}
	}
	if a.Misses == 0 {
		a.Since = asked
	}
	return Answers{Last: answer, Misses: a.Misses + 1, Since: a.Since, Ever: a.Ever, Error: err}
}

// Facts are what one observation found.
type Facts struct {
	// Now is the time since the VM's boot.
	Now time.Duration
	// Runtime and Kubelet are the units; the errors say why one could not be read.
	Runtime, Kubelet       Unit
	RuntimeErr, KubeletErr string
	// CRI are the runtime's answers, Port those of the kubelet's health port.
	CRI, Port Answers
	// Listening says that somebody listens on one of the kubelet's ports: its start-up is over then. It is false where
	// there is no kubelet.
	Listening bool
	// Network is why the runtime has no network for pods; empty: it has.
	Network string
	// APIServer says that this master's kube-apiserver is ready.
	APIServer bool
}
