package election

import (
	"errors"
	"os"
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

// alarm says when a term has to look at the time.
type alarm struct {
	goes chan struct{} // has room for one
	// set is the time for which it is set, by the term's clock. It may go off before that, but not later.
	set  func(at time.Duration)
	stop func()
}

func (a *alarm) goOff() {
	select {
	case a.goes <- struct{}{}:
	default: // it has gone off already
	}
}

// newBootAlarm goes off when SinceBoot has reached the time for which it is set, and if that was while the machine was
// suspended, as soon as it goes on: a timer of Go's would stand still meanwhile, and to look again and again instead
// keeps an idle machine awake. Where the kernel gives no timer, as when all file descriptors are in use, or none that
// can be waited for, it ticks.
func newBootAlarm() *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return newTickingAlarm()
	}
	f := os.NewFile(uintptr(fd), "timer")
	a := &alarm{goes: make(chan struct{}, 1), stop: func() { f.Close() }}
	a.set = func(at time.Duration) {
		// In the past it goes off at once, and 0 would be never.
		when := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, int64(at)))}
		if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &when, nil); err != nil {
			panic("election: set a timer: " + err.Error()) // it is one, and the time is valid
		}
	}
	go func() {
		times := make([]byte, 8) // how often it went off
		for {
			if _, err := f.Read(times); errors.Is(err, os.ErrClosed) {
				return // it was stopped
			} else if err != nil {
				time.Sleep(tickPeriod) // Go could not watch it
			}
			a.goOff()
		}
	}()
	return a
}

// newTickingAlarm goes off each tickPeriod, whatever the term's clock is.
func newTickingAlarm() *alarm {
	tick, stopped := time.NewTicker(tickPeriod), make(chan struct{})
	a := &alarm{goes: make(chan struct{}, 1), set: func(time.Duration) {}}
	a.stop = func() { tick.Stop(); close(stopped) }
	go func() {
		for {
			select {
			case <-stopped:
				return
			case <-tick.C:
				a.goOff()
			}
		}
	}()
	return a
}
