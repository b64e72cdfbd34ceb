package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errRunning says that this machine has an agent: a second one would take its socket and start a second set of
// children.
var errRunning = errors.New("another agent runs on this machine")

// beTheOnlyAgent makes the agent's folder and takes its lock, which the kernel frees when this process ends, however it
// ends. The children do not inherit it.
func beTheOnlyAgent(runDir string) (release func(), err error) {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the agent's folder: %w", err)
	}
	path := filepath.Join(runDir, "agent.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the agent's folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (it holds %s): 'quorate status' says how it is", errRunning, path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
