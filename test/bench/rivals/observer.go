package rivals

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/cri"
	"github.com/quorate/quorate/internal/localgce/host"
)

const (
	// observePeriod is the error of what is measured. To look more often costs as much as a VM does.
	observePeriod = 250 * time.Millisecond
	// answerLimit is how long a well kubelet or runtime may take on a busy machine.
	answerLimit = 2 * time.Second
)

// units are the two that are watched, each with the name of its program.
var units = []string{"kubelet", "containerd"}

// observer sees from outside of a VM how its kubelet and its runtime are. No rival knows of it.
type observer struct {
	root string // of the VM's files, as the host reaches them

	mu sync.Mutex
	// living are the main processes of each unit, begun those that were seen to appear.
	living map[string][]int
	begun  map[string][]start
	// asked is when the last answer of each unit's was asked for, answered whether it was good.
	asked    map[string]time.Time
	answered map[string]bool
}

// start is a process that appeared.
type start struct {
	pid int
	at  time.Time
}

// observe begins to observe the VM with that pid 1. wait returns when ctx is done and nothing of it is left.
func observe(ctx context.Context, pid int) (o *observer, wait func()) {
	o = &observer{root: fmt.Sprintf("/proc/%d/root", pid), living: map[string][]int{}, begun: map[string][]start{},
		asked: map[string]time.Time{}, answered: map[string]bool{}}
	var all sync.WaitGroup
	all.Go(func() { repeat(ctx, o.look) })
	all.Go(func() {
		// Its thread is in the VM's network from then on. Nothing comes of an error: no answer is not well either.
		_ = host.OnOwnThread(func() error {
			if err := enterNetwork(pid); err != nil {
				return err
			}
			repeat(ctx, func() { o.ask(ctx, "kubelet", o.health) })
			return nil
		})
	})
	runtime := cri.Runtime{Socket: o.root + "/run/containerd/containerd.sock"}
	all.Go(func() {
		repeat(ctx, func() {
			o.ask(ctx, "containerd", func(ctx context.Context) error { _, _, err := runtime.Ask(ctx); return err })
		})
	})
	return o, all.Wait
}

// repeat calls f again and again until ctx is done.
func repeat(ctx context.Context, f func()) {
	tick := time.NewTicker(observePeriod)
	defer tick.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func enterNetwork(pid int) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer f.Close()
	defer runtime.KeepAlive(f)
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// look notes the main processes of the units.
func (o *observer) look() {
	for _, unit := range units {
		now := programsIn(filepath.Join(o.root, "sys/fs/cgroup/unified/system.slice", unit+".service/cgroup.procs"), unit)
		o.mu.Lock()
		for _, pid := range now {
			if !slices.Contains(o.living[unit], pid) {
				o.begun[unit] = append(o.begun[unit], start{pid, time.Now()})
			}
		}
		o.living[unit] = now
		o.mu.Unlock()
	}
}

// programsIn are the processes of a cgroup that run a program, and not the shell of a unit's ExecStartPre=. A child of
// another of them is none: between fork and exec it has its parent's name.
func programsIn(procs, program string) (pids []int) {
	text, err := os.ReadFile(procs)
	if err != nil {
		return nil // the unit is down
	}
	all := strings.Fields(string(text))
	for _, field := range all {
		name, parent := nameAndParent(field)
		if pid, err := strconv.Atoi(field); err == nil && name == program && !slices.Contains(all, parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// nameAndParent are the name of a process and its parent's id, by proc_pid_stat(5): ID (NAME) STATE PARENT.
func nameAndParent(pid string) (name, parent string) {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat") // empty: it has ended
	_, rest, _ := strings.Cut(string(stat), "(")
	end := strings.LastIndex(rest, ") ")
	if end < 0 {
		return "", ""
	}
	if fields := strings.Fields(rest[end+2:]); len(fields) > 1 {
		parent = fields[1]
	}
	return rest[:end], parent
}

// ask asks once and notes how it went.
func (o *observer) ask(ctx context.Context, unit string, question func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	at := time.Now()
	err := question(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[unit], o.answered[unit] = at, err == nil
}

// health asks the kubelet's health port. http.Client would dial on another thread, in the host's network.
func (o *observer) health(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:10248")
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n")); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the kubelet's health is %s", response.Status)
	}
	return nil
}

// well says that both units answered a question that was asked after a time.
func (o *observer) well(since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, unit := range units {
		if !o.answered[unit] || !o.asked[unit].After(since) || len(o.living[unit]) == 0 {
			return false
		}
	}
	return true
}

// ill says that one of the units left a question unanswered that was asked after a time.
func (o *observer) ill(since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(units, func(unit string) bool {
		return o.asked[unit].After(since) && !o.answered[unit] || len(o.living[unit]) == 0
	})
}

// starts are how many processes of a unit have begun after a time.
func (o *observer) starts(unit string, since time.Time) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.begun[unit] {
		if s.at.After(since) {
			n++
		}
	}
	return n
}

// calmSince is when a process of either unit began last.
func (o *observer) calmSince() (at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, unit := range units {
		for _, s := range o.begun[unit] {
			if s.at.After(at) {
				at = s.at
			}
		}
	}
	return at
}
