package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// usage measures both sides, one after the other.
func (b *bench) usage(ctx context.Context) (*usages, error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return nil, err
	}
	own := maps.Clone(components)
	own["agent"], own["etcd"] = []string{"quorate", "agent"}, []string{"quorate", "run-etcd"}
	out := &usages{}
	if out.Quorate, err = b.idle(ctx, w, true, own); err != nil {
		return nil, err
	}
	if w, err = b.wholeFloorWorld(3); err != nil {
		return nil, err
	}
	byHand := maps.Clone(components)
	byHand["etcd"] = []string{"etcd"}
	out.Floor, err = b.idle(ctx, w, false, byHand)
	return out, err
}

// idle boots three replicas, leaves them alone, and measures what each of the processes uses.
func (b *bench) idle(ctx context.Context, w *world, voters bool, of processes) ([]usage, error) {
	project, _, err := boot(ctx, w, voters)
	if err != nil {
		return nil, err
	}
	defer project.Close(context.WithoutCancel(ctx))
	b.say("three replicas settle for %s, then their processes are watched for %s", b.settle, b.watch)
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	var pids []int
	var out []usage
	for _, vm := range project.Status().VMs {
		for name, words := range of {
			pid, err := proc.Find(vm.InitPID, words...)
			if err != nil {
				return nil, fmt.Errorf("find the %s of %s: %w", name, vm.Name, err)
			}
			pids, out = append(pids, pid), append(out, usage{VM: vm.Name, Name: name})
		}
	}
	before, begin := make([]time.Duration, len(pids)), time.Now()
	for i, pid := range pids {
		if before[i], err = proc.CPU(pid); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, b.watch); err != nil {
		return nil, err
	}
	for i, pid := range pids {
		after, err := proc.CPU(pid)
		if err != nil {
			return nil, err
		}
		out[i].CPU = 100 * (after - before[i]).Seconds() / time.Since(begin).Seconds()
		rss, file, err := proc.Memory(pid)
		if err != nil {
			return nil, err
		}
		out[i].RSS, out[i].File = mebibytes(rss), mebibytes(file)
	}
	slices.SortFunc(out, func(a, b usage) int { return strings.Compare(a.Name+a.VM, b.Name+b.VM) })
	return out, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
