package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The least that the kernel lets a process have: it is killed first for want of memory, and runs when nobody else wants
// to.
const (
	mostOOMScore = 1000
	mostNice     = 19
)

// GiveWay puts a process that has just been started, and leads a process group, behind the one that started it: it adds
// to the oom_score_adj and to the niceness that the process has inherited. Both are only ever raised, which needs no
// privilege.
func GiveWay(pid, oomScore, nice int) error {
	return errors.Join(raiseOOMScore(pid, oomScore), raiseNice(pid, nice))
}

// raiseOOMScore adds points. The kernel takes each for a thousandth of the machine's memory that the process has
// besides its own.
func raiseOOMScore(pid, points int) error {
	if points == 0 {
		return nil
	}
	path := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read its OOM score: %w", err)
	}
	inherited, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("read its OOM score: %w", err)
	}
	score := strconv.Itoa(min(inherited+points, mostOOMScore))
	if err := os.WriteFile(path, []byte(score), 0); err != nil {
		return fmt.Errorf("set its OOM score to %s: %w", score, err)
	}
	return nil
}

// raiseNice adds steps for all threads of the process's group: what is set for a process is set for its first thread
// alone, and it may have started others already.
func raiseNice(pid, steps int) error {
	if steps == 0 {
		return nil
	}
	inherited, err := niceness(pid)
	if err != nil {
		return err
	}
	nice := min(inherited+steps, mostNice)
	if err := unix.Setpriority(unix.PRIO_PGRP, pid, nice); err != nil {
		return fmt.Errorf("set its niceness to %d: %w", nice, err)
	}
	return nil
}

// niceness is that of a process; 0: of this one.
func niceness(pid int) (int, error) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		return 0, fmt.Errorf("read its niceness: %w", err)
	}
	return 20 - raw, nil // the kernel returns 20 less the niceness, so that it is above 0
}
