package supervisor

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit is how one run of a process ended.
type Exit struct {
	// Run counts the starts of this Spec from 1.
	Run int
	// At is when the process and all that it had started were gone.
	At time.Time
	// Code is the exit code, -1 after a signal. Signal is the signal's name, such as SIGKILL; empty after an exit.
	Code   int
	Signal string
	// OutOfMemory says that the kernel killed something in the process's cgroup because its memory was used up.
	OutOfMemory bool
	// Asked says that the supervisor ended it: a stop, a restart, a failed check. Expected is what Spec.ExpectedExit said of
	// an end that was not asked for.
	Asked, Expected bool
	// Tail is the last that this run wrote, at most 64 KiB, from the begin of a line.
	Tail string
}

// exitOf translates what wait(2) said.
func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(status.Signal())}
	}
	return Exit{Code: status.ExitStatus()}
}

// String says it for a person, with the last line that the process wrote, or with the one that a Go program's panic begins with.
func (e Exit) String() string {
	text := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != "" {
		text = "was killed by " + e.Signal
	}
	if e.OutOfMemory {
		text += " (out of memory)"
	}
	if line := tellingLine(e.Tail); line != "" {
		text += ": " + line
	}
	return text
}

// lineLimit keeps a reason on a person's screen.
const lineLimit = 300

// tellingLine returns the line that says why a process ended: the last that holds something, but of a Go program that ended in a panic
// or by a fault of its runtime that would be a place in the source, far behind what went wrong.
func tellingLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "panic: ") || strings.HasPrefix(lines[i], "fatal error: ") {
			line = lines[i]
			break
		}
	}
	line = strings.TrimSpace(line)
	return strings.ToValidUTF8(line[:min(len(line), lineLimit)], "")
}
