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

// rows are the agent's, whose worst replica counts, and then those of what it runs, with all that the three replicas use
// against what they use by hand: of what is elected, one does the work.
func (u *usages) rows() (out []row) {
	if u == nil {
		return nil
	}
	for _, of := range []struct {
		what, unit string
		value      func(usage) float64
		most       float64 // of the agent
	}{
		{"memory (RSS)", "MiB", func(u usage) float64 { return float64(u.RSS) }, goalMemory},
		{"CPU when idle", "% of a core", func(u usage) float64 { return u.CPU }, goalCPU},
	} {
		values := func(side []usage, name string) (out []float64) {
			for _, u := range side {
				if u.Name == name {
					out = append(out, of.value(u))
				}
			}
			return out
		}
		agent := spreadOf(values(u.Quorate, "agent"))
		out = append(out, row{What: "agent's " + of.what, Unit: of.unit, Quorate: agent, Value: agent.Max,
			Goal: of.most, OK: agent.Max <= of.most})
		for _, name := range append([]string{"etcd"}, slices.Sorted(maps.Keys(components))...) {
			own, byHand := values(u.Quorate, name), values(u.Floor, name)
			if len(own) == 0 || len(byHand) == 0 {
				continue
			}
			floor := spreadOf(byHand)
			ratio := sum(own) / sum(byHand)
			out = append(out, row{What: name + "'s " + of.what, Unit: of.unit, Quorate: spreadOf(own), Floor: &floor,
				Value: ratio, Goal: goalOthers, OK: ratio <= goalOthers})
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
