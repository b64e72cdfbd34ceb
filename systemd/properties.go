package systemd

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// properties are a unit's, as D-Bus gives them. One that is missing, as all of a service are in a unit that does not
// exist, reads as zero.
type properties map[string]any

func get[T any](p properties, name string) (value T) {
	value, _ = p[name].(T)
	return value
}

// moment is a timestamp of systemd's: microseconds since the boot.
func (p properties) moment(name string) time.Duration {
	return time.Duration(get[uint64](p, name)) * time.Microsecond
}

// unitOf is a unit with these properties.
func unitOf(p properties) kubeletwatch.Unit {
	u := kubeletwatch.Unit{
		Load: get[string](p, "LoadState"), Active: get[string](p, "ActiveState"),
		Sub: get[string](p, "SubState"), Result: get[string](p, "Result"), KillMode: get[string](p, "KillMode"),
		PID: int(get[uint32](p, "MainPID")), Started: p.moment("ExecMainStartTimestampMonotonic"),
		Pinged: p.moment("WatchdogTimestampMonotonic"), Restarts: get[uint32](p, "NRestarts"),
	}
	// The job is its number and its path; 0 is none.
	if job := get[[]any](p, "Job"); len(job) > 0 {
		u.Job = job[0] != uint32(0)
	}
	// "infinity" is a service without a watchdog.
	if every := get[uint64](p, "WatchdogUSec"); every < 1<<63 {
		u.PingEvery = time.Duration(every) * time.Microsecond
	}
	if u.PID == 0 {
		u.Exit = exitText(get[int32](p, "ExecMainCode"), get[int32](p, "ExecMainStatus"), u.Result)
	}
	return u
}

// exitText says how a main process ended, by waitid's code and status; empty: none has.
func exitText(code, status int32, result string) string {
	const exited, killed, dumped = 1, 2, 3
	text := ""
	switch code {
	case exited:
		text = fmt.Sprintf("exit code %d", status)
	case killed, dumped:
		text = unix.SignalName(syscall.Signal(status))
	}
	if text != "" && result == "watchdog" {
		text += " by systemd's watchdog"
	}
	return text
}

// cgroupOf is the path of a unit's cgroup. systemd does not name it any more where the unit is down, though a process
// may be left in it.
func cgroupOf(name string, p properties) string {
	if path := get[string](p, "ControlGroup"); path != "" {
		return path
	}
	slice := get[string](p, "Slice")
	if slice == "" {
		return ""
	}
	// a-b.slice is within a.slice
	path, whole := "", strings.TrimSuffix(slice, ".slice")
	for i, r := range whole + "-" {
		if r == '-' {
			path += "/" + whole[:i] + ".slice"
		}
	}
	return path + "/" + name
}
