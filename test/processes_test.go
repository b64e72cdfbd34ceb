package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// kinds are the processes that each replica has one of.
var kinds = append([]string{"agent", "etcd"}, kubernetes...)

// processes are the pids in a VM by kind, as its own /proc shows them. Zombies have no command line and do not count,
// nor do the runs that ask a program for its version.
func (c *cluster) processes(name string) map[string][]string {
	out := map[string][]string{}
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/proc/[0-9]*/cmdline", c.vm(name).InitPID))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		kind := filepath.Base(args[0])
		if kind == "quorate" && len(args) > 1 {
			kind = strings.TrimPrefix(args[1], "run-")
		}
		if (slices.Contains(kinds, kind) || kind == "addons") && !slices.Contains(args, "--version") {
			out[kind] = append(out[kind], filepath.Base(filepath.Dir(path)))
		}
	}
	return out
}

// one says which kind of process a VM has not exactly one of: of kinds where none is named.
func (c *cluster) one(name string, wanted ...string) error {
	found := c.processes(name)
	if len(wanted) == 0 {
		wanted = kinds
	}
	for _, kind := range wanted {
		if n := len(found[kind]); n != 1 {
			return fmt.Errorf("%s has %d processes of %s: %v", name, n, kind, found[kind])
		}
	}
	return nil
}

// wantEtcdFirst fails the test unless memory that is short takes the apiserver before etcd and the agent, and the
// others before the apiserver.
func (c *cluster) wantEtcdFirst(t *testing.T, vm string) {
	t.Helper()
	found, scores := c.processes(vm), map[string]int{}
	for _, kind := range kinds {
		path := fmt.Sprintf("/proc/%d/root/proc/%s/oom_score_adj", c.vm(vm).InitPID, found[kind][0])
		b, err := os.ReadFile(path)
		c.must(t, err)
		scores[kind], err = strconv.Atoi(strings.TrimSpace(string(b)))
		c.must(t, err)
	}
	api := scores["kube-apiserver"]
	if scores["agent"] != scores["etcd"] || api <= scores["etcd"] || scores["kube-scheduler"] <= api ||
		scores["kube-controller-manager"] <= api {
		t.Errorf("oom_score_adj in the wrong order: %v", scores)
	}
}

// kill ends a process of a VM by SIGKILL. What became of it is for the caller to see: it may have ended by itself
// before.
func (c *cluster) kill(t *testing.T, vm, pid string) {
	t.Helper()
	cmd, err := c.Command(t.Context(), vm, "sh", "-c", "kill -9 "+pid)
	c.must(t, err)
	_ = cmd.Run()
}

// duplicateAge is how long two of a kind must be seen to be a fault: between fork and exec a child bears its parent's
// command line.
const duplicateAge = time.Second

// watchDuplicates polls every VM until the returned function is called, which fails the test if two of a kind lived
// at the same time.
func (c *cluster) watchDuplicates(t *testing.T) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	t.Cleanup(func() { stop(); wait.Wait() }) // also where the test ends before end is called
	var mu sync.Mutex
	seen := map[string]string{}
	for _, name := range c.vms {
		wait.Go(func() {
			since := map[string]time.Time{}
			for {
				pairs := map[string]time.Time{}
				for kind, pids := range c.processes(name) {
					for i := 1; i < len(pids); i++ {
						pair := fmt.Sprintf("%s on %s: %s and %s", kind, name, pids[i-1], pids[i])
						if pairs[pair] = since[pair]; pairs[pair].IsZero() {
							pairs[pair] = time.Now()
						}
						if age := time.Since(pairs[pair]); age > duplicateAge {
							mu.Lock()
							seen[pair] = age.String()
							mu.Unlock()
						}
					}
				}
				since = pairs
				select {
				case <-ctx.Done():
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		t.Helper()
		stop()
		wait.Wait()
		for pair, age := range seen {
			t.Errorf("two processes of one kind for %s: %s", age, pair)
		}
	}
}
