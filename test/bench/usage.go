package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/test/bench/proc"
)

// usage is what one process of a replica uses while nothing happens.
type usage struct {
	VM string `json:"vm"`
	// Name is agent, etcd or a component's.
	Name string `json:"name"`
	// RSS is all resident memory, and File the part of it that is the program's own file in the page cache, which its
	// processes share and the kernel takes back when it needs to.
	RSS  mebibytes `json:"rss"`
	File mebibytes `json:"file"`
	// CPU is in percent of one core.
	CPU float64 `json:"cpu"`
}

// usages are those of quorate's processes, and of the same programs started by hand.
type usages struct {
	Quorate []usage `json:"quorate"`
	Floor   []usage `json:"floor"`
}

// rows are the agent's, whose worst replica counts, and then those of what it runs: what all replicas use together
// against what they use by hand, because of what is elected one does the work.
func (u *usages) rows() (out []row) {
	if u == nil {
		return nil
	}
	rss := func(u usage) float64 { return float64(u.RSS) }
	ownMemory := func(u usage) float64 { return float64(u.RSS - u.File) }
	cpu := func(u usage) float64 { return u.CPU }
	out = append(out, u.agents("memory (RSS)", "MiB", rss, goalMemory),
		u.agents("CPU when idle", "% of a core", cpu, goalCPU))
	for _, name := range append([]string{"etcd"}, slices.Sorted(maps.Keys(components))...) {
		// The program's file is shared: etcd is quorate's own, and its pages are the agent's as well.
		out = append(out, u.against(name, "memory but its program's file", "MiB", ownMemory)...)
		out = append(out, u.against(name, "CPU when idle", "% of a core", cpu)...)
	}
	return out
}

// agents is a row about the agents.
func (u *usages) agents(what, unit string, of func(usage) float64, goal float64) row {
	s := spreadOf(usedBy(u.Quorate, "agent", of))
	return row{What: "agent's " + what, Unit: unit, Quorate: s, Value: s.Max, Goal: goal, OK: s.Max <= goal}
}

// against is a row about what runs on both sides; none where it does not.
func (u *usages) against(name, what, unit string, of func(usage) float64) []row {
	own, byHand := usedBy(u.Quorate, name, of), usedBy(u.Floor, name, of)
	if len(own) == 0 || len(byHand) == 0 {
		return nil
	}
	floor, ratio := spreadOf(byHand), sum(own)/sum(byHand)
	return []row{{What: name + "'s " + what, Unit: unit, Quorate: spreadOf(own), Floor: &floor, Value: ratio,
		Goal: goalOthers, OK: ratio <= goalOthers}}
}

func usedBy(side []usage, name string, of func(usage) float64) (out []float64) {
	for _, u := range side {
		if u.Name == name {
			out = append(out, of(u))
		}
	}
	return out
}

func sum(values []float64) (all float64) {
	for _, v := range values {
		all += v
	}
	return all
}

// processes are those of a replica by their names, each with the words that its command line begins with.
type processes map[string][]string

// components run under quorate as by hand.
var components = processes{replica.APIServer: {"kube-apiserver"}, replica.Scheduler: {"kube-scheduler"},
	replica.ControllerManager: {"kube-controller-manager"}}

// usage measures both sides in the same minute: this machine is a guest, and from one minute to the next its processors
// differ by a third.
func (b *bench) usage(ctx context.Context) (*usages, error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return nil, err
	}
	floor, err := b.wholeFloorWorld(3)
	if err != nil {
		return nil, err
	}
	project, _, err := boot(ctx, w, true)
	if err != nil {
		return nil, err
	}
	defer project.Close(context.WithoutCancel(ctx))
	byHand, _, err := boot(ctx, floor, false)
	if err != nil {
		return nil, err
	}
	defer byHand.Close(context.WithoutCancel(ctx))
	b.say("three replicas, and three by hand beside them, settle for %s, then their processes are watched for %s",
		b.settle, b.watch)
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	own, others := maps.Clone(components), maps.Clone(components)
	own["agent"], own["etcd"] = []string{"quorate", "agent"}, []string{"quorate", "run-etcd"}
	others["etcd"] = []string{"etcd"}
	ours, err := watchIdle(project.Status().VMs, own)
	if err != nil {
		return nil, err
	}
	theirs, err := watchIdle(byHand.Status().VMs, others)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(b.watch); time.Now().Before(end); {
		if err := sleep(ctx, min(lookPeriod, time.Until(end))); err != nil {
			return nil, err
		}
		if err := errors.Join(ours.look(), theirs.look()); err != nil {
			return nil, err
		}
	}
	out := &usages{}
	if out.Quorate, err = ours.used(); err != nil {
		return nil, err
	}
	out.Floor, err = theirs.used()
	return out, err
}

// lookPeriod is the time between two looks at the memory of those that are watched: what Go's programs have grows until
// garbage is collected, and what is reported is the mean.
const lookPeriod = 5 * time.Second

// watched are processes that are left alone.
type watched struct {
	pids   []int
	before []time.Duration // what each had used when it began
	begin  time.Time
	looks  int
	all    []usage // the memory: of all looks together, until it is used
}

// watchIdle finds the processes of each VM.
func watchIdle(vms []localgce.VMStatus, of processes) (*watched, error) {
	w := &watched{begin: time.Now()}
	for _, vm := range vms {
		for name, words := range of {
			pid, err := proc.Find(vm.InitPID, words...)
			if err != nil {
				return nil, fmt.Errorf("find the %s of %s: %w", name, vm.Name, err)
			}
			used, err := proc.CPU(pid)
			if err != nil {
				return nil, err
			}
			w.pids, w.before, w.all = append(w.pids, pid), append(w.before, used), append(w.all, usage{VM: vm.Name,
				Name: name})
		}
	}
	return w, nil
}

// look adds what each has in memory now.
func (w *watched) look() error {
	for i, pid := range w.pids {
		rss, file, err := proc.Memory(pid)
		if err != nil {
			return err
		}
		w.all[i].RSS += mebibytes(rss)
		w.all[i].File += mebibytes(file)
	}
	w.looks++
	return nil
}

// used is what each has used since then, and what it had in memory at a look.
func (w *watched) used() ([]usage, error) {
	for i, pid := range w.pids {
		after, err := proc.CPU(pid)
		if err != nil {
			return nil, err
		}
		w.all[i].CPU = 100 * (after - w.before[i]).Seconds() / time.Since(w.begin).Seconds()
		w.all[i].RSS /= mebibytes(w.looks)
		w.all[i].File /= mebibytes(w.looks)
	}
	slices.SortFunc(w.all, func(a, b usage) int { return strings.Compare(a.Name+a.VM, b.Name+b.VM) })
	return w.all, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
