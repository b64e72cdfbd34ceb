package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/local"
)

// beTheOnlyAgent makes the agent's folder and takes its lock.
func beTheOnlyAgent(runDir string) (release func(), err error) {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the agent's folder: %w", err)
	}
	path := filepath.Join(runDir, "agent.lock")
	release, err = local.Lock(path)
	switch {
	case errors.Is(err, local.ErrLocked):
		return nil, fmt.Errorf("%w (it holds %s): 'quorate status' says how it is", errRunning, path)
	case err != nil:
		return nil, fmt.Errorf("lock the agent's folder: %w", err)
	}
	return release, nil
}
