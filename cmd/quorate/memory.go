package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/agent"
)

// agentGCPercent trades CPU for memory: the agent allocates little, so that it collects some times a minute either way,
// and half of Go's default saves a quarter of its heap.
const agentGCPercent = 50

// leanNotifier gives memory back when the boot is done.
type leanNotifier struct {
	agent.Notifier
	log *slog.Logger
}

// Ready implements agent.Notifier.
func (n leanNotifier) Ready() {
	n.Notifier.Ready()
	if err := giveBackMemory(); err != nil {
		n.log.Warn("give memory back", "err", err.Error())
	}
}

// giveBackMemory returns what only the boot needed: its heap, and the pages of the program that its start has touched.
// The start of a program with a thousand packages touches most of its file; what the agent needs from then on is half
// of it, and comes back from the page cache by itself. Measured 30 s after a boot: 54 MiB instead of 80.
func giveBackMemory() error {
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		begin, size, ok := programPages(line, self)
		if !ok {
			continue
		}
		// unix.Madvise takes a slice, and there is none of the program's own pages. Of read-only pages of a file,
		// MADV_DONTNEED drops nothing that cannot be read again.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, begin, size, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise %s: %w", strings.TrimSpace(line), errno)
		}
	}
	return nil
}

// programPages reads a line of /proc/self/maps and reports whether it shows read-only pages of the program's file.
func programPages(line, self string) (begin, size uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != self || strings.Contains(fields[1], "w") {
		return 0, 0, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	b, berr := strconv.ParseUint(low, 16, 64)
	e, eerr := strconv.ParseUint(high, 16, 64)
	return uintptr(b), uintptr(e - b), berr == nil && eerr == nil && e > b
}
