package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/proc"
)

// usage is what one process of a replica uses while nothing happens.
type usage struct {
	VM string `json:"vm"`
	// Name is agent or etcd.
	Name string `json:"name"`
	// RSS is all resident memory, and File the part of it that is the program's own file in the page cache, which its
	// processes share and the kernel takes back when it needs to.
	RSS  mebibytes `json:"rss"`
	File mebibytes `json:"file"`
	// CPU is in percent of one core.
	CPU float64 `json:"cpu"`
}

// usage boots three replicas, leaves them alone, and measures what each agent and each etcd child uses.
func (b *bench) usage(ctx context.Context) ([]usage, error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return nil, err
	}
	project, _, err := boot(ctx, w, true)
	if err != nil {
		return nil, err
	}
	defer project.Close(context.WithoutCancel(ctx))
	b.say("three replicas settle for %s, then their agents are watched for %s", b.settle, b.watch)
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	var pids []int
	var out []usage
	for _, vm := range project.Status().VMs {
		for name, words := range map[string][]string{"agent": {"quorate", "agent"}, "etcd": {"quorate", "run-etcd"}} {
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
