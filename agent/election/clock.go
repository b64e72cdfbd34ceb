package election

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot is the time since the machine's boot, with the time for which it was suspended. Nobody sets it. Go's own
// monotonic time stands still while the machine is suspended.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("election: the kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(t.Nano())
}
