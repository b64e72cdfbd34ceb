package supervisor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/asynclog"
)

// Exit is how one run of a process ended.
type Exit struct {
	// Run counts the starts of this Spec from 1.
	Run int
	// Launched is when the run began, At when the process and all that it had started were gone.
	Launched, At time.Time
	// Code is the exit code, -1 after a signal. Signal is the signal's name, such as SIGKILL; empty after an exit.
	Code   int
	Signal string
	// OutOfMemory says that the kernel killed something in the process's cgroup because its memory was used up.
	OutOfMemory bool
	// Asked says that the supervisor ended it: a stop, a restart, a failed check. Expected is what Spec.ExpectedExit
	// said of an end that was not asked for.
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

// String says it for a person, with the last line that the process wrote, or with the one that a Go program's panic
// begins with. An end in order needs no explanation.
func (e Exit) String() string {
	text := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != "" {
		text = "was killed by " + e.Signal
	}
	if e.OutOfMemory {
		text += " (out of memory)"
	}
	if line := TellingLine(e.Tail); line != "" && !e.inOrder() {
		text += ": " + line
	}
	return text
}

// inOrder: it was asked to end, and did, by itself or by the signal that asked it.
func (e Exit) inOrder() bool {
	return e.Asked && (e.Code == 0 || e.Signal == unix.SignalName(unix.SIGTERM))
}

// lineLimit keeps a reason on a person's screen.
const lineLimit = 300

// errorWithin is how many lines before its end a process's last error says why it ended.
const errorWithin = 20

// TellingLine returns the line that says why a process ended: the last that holds something. Where that is a log's, and
// no error, another thread has gone on for a moment: then it is the last error near the end. Of a Go program that ended
// in a panic or by a fault of its runtime it is the line with which that begins: the last would be a place in the
// source, far behind what went wrong.
func TellingLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[lastError(lines)]
	for _, l := range slices.Backward(lines) {
		if asynclog.BeginsCrash(l) {
			line = l
			break
		}
	}
	line = printable(message(line))
	return strings.ToValidUTF8(line[:min(len(line), lineLimit)], "") // a character may have been cut in two
}

// lastError finds the line that TellingLine takes where nothing has crashed.
func lastError(lines []string) int {
	last := len(lines) - 1
	if isError, said := asynclog.Level(lines[last]); isError || !said {
		return last
	}
	for n := last; n >= max(0, last-errorWithin); n-- {
		if isError, _ := asynclog.Level(lines[n]); isError {
			return n
		}
	}
	return last
}

// message is what a line says that is JSON, as zap, slog and klog write it. Any other line is its own message.
func message(line string) string {
	var m struct{ Msg, Error, Err string }
	_ = json.Unmarshal([]byte(line), &m) // what is no such line leaves Msg empty
	if m.Msg == "" {
		return line
	}
	if why := cmp.Or(m.Error, m.Err); why != "" {
		return m.Msg + ": " + why
	}
	return m.Msg
}

// printable drops what a terminal would obey instead of showing it.
func printable(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "")))
}
