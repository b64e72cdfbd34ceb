// Package host asks the machine for what a project needs of it: programs, mounts, file systems, threads.
package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Run runs a program and returns its output.
func Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %s (%w)", program, strings.Join(args, " "), FirstLine(stderr.String()), err)
	}
	return out, nil
}

// FirstLine is the first line of what a program has said.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// PreflightError names everything that the machine lacks.
type PreflightError struct{ Missing []string }

// Error implements error.
func (e *PreflightError) Error() string {
	return "this machine lacks what a local GCE project needs:\n  - " + strings.Join(e.Missing, "\n  - ")
}

// MissingFileSystems names those that the kernel lacks, after a try to load them.
func MissingFileSystems(wanted ...string) (missing []string) {
	for _, name := range wanted {
		if !hasFileSystem(name) && exec.Command("modprobe", name).Run() != nil && !hasFileSystem(name) {
			missing = append(missing, fmt.Sprintf("file system %s in the kernel (modprobe %s, or another kernel)", name,
				name))
		}
	}
	return missing
}

func hasFileSystem(name string) bool {
	b, err := os.ReadFile("/proc/filesystems")
	return err == nil && slices.Contains(strings.Fields(string(b)), name)
}
