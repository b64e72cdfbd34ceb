package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// quietEnough is the share of the machine that others may use when a round begins.
	quietEnough = 0.15
	// quietSample is how long the machine is watched to know that share, and quietPatience how long a round waits for
	// it.
	quietSample   = 250 * time.Millisecond
	quietPatience = 4 * time.Second
)

// awaitQuiet waits a little for a machine that does nothing else, and returns what share of it others use when it gives
// up waiting.
func awaitQuiet(ctx context.Context) (busy float64, err error) {
	for end := time.Now().Add(quietPatience); ; {
		begin, err := cpuTimes()
		if err != nil {
			return 0, err
		}
		if err := sleep(ctx, quietSample); err != nil {
			return 0, err
		}
		now, err := cpuTimes()
		if err != nil {
			return 0, err
		}
		total := now.all - begin.all
		if total == 0 {
			continue
		}
		busy = 1 - (now.idle-begin.idle)/total
		if busy <= quietEnough || time.Now().After(end) {
			return busy, nil
		}
	}
}

// times are in the kernel's ticks, over all cores since the boot.
type times struct{ all, idle float64 }

func cpuTimes() (t times, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		if i == 0 {
			continue // "cpu"
		}
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return t, fmt.Errorf("read /proc/stat: %w", err)
		}
		t.all += n
		if i == 4 || i == 5 { // idle, iowait
			t.idle += n
		}
	}
	return t, nil
}
