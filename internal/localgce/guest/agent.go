package guest

import "time"

// Agent is the unit that a VM runs: our own init as systemd would, and systemd as quorate.service of the image. Of
// SystemdVMs, what is not given is as the image has it.
type Agent struct {
	// Command is the program and its arguments: /usr/local/bin/quorate agent where not given.
	Command []string `json:"command"`
	// Env is added to PATH, LANG, NOTIFY_SOCKET and, with Watchdog, WATCHDOG_USEC.
	Env []string `json:"env,omitempty"`
	// Watchdog is the unit's WatchdogSec: without a ping for so long after READY=1 the agent gets SIGABRT. 0: off, of
	// ProcessVMs.
	Watchdog time.Duration `json:"watchdog,omitempty"`
	// TimerSlack is the unit's TimerSlackNSec, of ProcessVMs alone: how much later than asked the kernel may wake what
	// the agent runs. 0: the kernel's own 50 µs.
	TimerSlack time.Duration `json:"timerSlack,omitempty"`
	// StopTimeout is how long a stop in order may take: 120 s where not given, as GCE gives a VM. Of SystemdVMs, the
	// power is cut then.
	StopTimeout time.Duration `json:"stopTimeout"`
}

// Bind shows a file or folder of the host at a path in the VM.
type Bind struct {
	Host     string `json:"host"`
	Guest    string `json:"guest"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}
