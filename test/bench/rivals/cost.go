package rivals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/proc"
)

// Cost is what a rival uses while nothing happens, in one VM. CPU is in percent of a core.
type Cost struct {
	Rival string `json:"rival"`
	// CPU, with that of the programs that it runs, Memory in MiB and Wakeups a second are those of its own processes.
	// Programs that it runs are in none but CPU.
	CPU     float64 `json:"cpu"`
	Memory  float64 `json:"memory"`
	Wakeups float64 `json:"wakeups"`
	// Asked is the CPU of systemd and of the bus, which some rivals ask much and others little.
	Asked float64 `json:"asked"`
}

// usage is what some processes have used since they began.
type usage struct {
	cpu, asked time.Duration
	wakeups    float64
	memory     float64
}

// askedOfAll are systemd and the bus.
var askedOfAll = []string{"/usr/bin/dbus-daemon --system"}

// used reads what the rival of a VM has used.
func (v *vm) used() (u usage, err error) {
	for _, program := range v.programs {
		pid, err := proc.Find(v.pid, strings.Fields(program)...)
		if err != nil {
			return u, fmt.Errorf("find what %s runs: %w", v.rival.name, err)
		}
		cpu, err := proc.CPUWithChildren(pid)
		if err != nil {
			return u, err
		}
		wakeups, err := proc.Wakeups(pid)
		if err != nil {
			return u, err
		}
		memory, _, err := proc.Memory(pid)
		if err != nil {
			return u, err
		}
		u.cpu, u.wakeups, u.memory = u.cpu+cpu, u.wakeups+wakeups, u.memory+memory
	}
	if u.asked, err = proc.CPU(v.pid); err != nil {
		return u, err
	}
	for _, program := range askedOfAll {
		pid, err := proc.Find(v.pid, strings.Fields(program)...)
		if err != nil {
			return u, err
		}
		cpu, err := proc.CPU(pid)
		if err != nil {
			return u, err
		}
		u.asked += cpu
	}
	return u, nil
}

// costs measures all VMs at once, while nothing happens.
func costs(ctx context.Context, vms []*vm, lasting time.Duration) (out []Cost, err error) {
	before, began := make([]usage, len(vms)), make([]time.Time, len(vms))
	for i, v := range vms {
		began[i] = time.Now()
		if before[i], err = v.used(); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, lasting); err != nil {
		return nil, err
	}
	for i, v := range vms {
		after, err := v.used()
		if err != nil {
			return nil, err
		}
		share := func(d time.Duration) float64 { return 100 * d.Seconds() / time.Since(began[i]).Seconds() }
		out = append(out, Cost{Rival: v.rival.name, CPU: share(after.cpu - before[i].cpu), Memory: after.memory,
			Wakeups: (after.wakeups - before[i].wakeups) / time.Since(began[i]).Seconds(),
			Asked:   share(after.asked - before[i].asked)})
	}
	return out, nil
}
