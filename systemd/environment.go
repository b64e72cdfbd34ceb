package systemd

import (
	"fmt"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/journal"
)

// Environment is what systemd passes to the process. The zero value means: not started by systemd.
type Environment struct {
	// Socket is the notify socket's path; an abstract one begins with @.
	Socket string
	// Watchdog is how long systemd waits for a ping before it kills the agent; 0 means that it does not wait.
	Watchdog time.Duration
}

// TakeEnvironment reads NOTIFY_SOCKET and WATCHDOG_* and removes them, with LISTEN_*, from the process's environment,
// so that no child can speak for the agent. It is for cmd, once, before anything else runs. A malformed WATCHDOG_USEC
// or WATCHDOG_PID is an error.
func TakeEnvironment() (Environment, error) {
	env := Environment{Socket: os.Getenv("NOTIFY_SOCKET")}
	for _, name := range []string{"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return Environment{}, fmt.Errorf("remove %s from the environment: %w", name, err)
		}
	}
	watchdog, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		return Environment{}, fmt.Errorf("read systemd's watchdog from WATCHDOG_USEC and WATCHDOG_PID: %w", err)
	}
	env.Watchdog = watchdog
	return env, nil
}

// StderrIsJournal reports whether what this process writes to stderr goes to the journal, which reads a priority in
// front of a line.
func StderrIsJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}
