package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// brokenPrograms are the ways in which a program of the control plane is none, the wait that names it, and what of it
// the wait has to say: the program's last words, where it has any.
var brokenPrograms = []struct {
	name, script string
	mode         os.FileMode // 0: there is no file
	wait, says   string
}{
	{"prints another version", "#!/bin/sh\necho Kubernetes v1.37.0\n", 0o755, "program-unusable", "v1.37.0"},
	{"ends at once", asksVersion + "exit 3\n", 0o755, "component-not-ready", "exited with code 3"},
	{"hangs at its start", asksVersion + "exec sleep 100000\n", 0o755, "component-not-ready", ""},
	{"is not executable", asksVersion, 0o644, "program-unusable", "not an executable file"},
	{"says nothing", "#!/bin/sh\nexec sleep 100000\n", 0o755, "program-unusable", ""},
	{"rejects a flag", asksVersion + "echo 'Error: unknown flag: --etcd-servers' >&2; exit 1\n", 0o755,
		"component-not-ready", "exited with code 1: Error: unknown flag: --etcd-servers"},
	{"is missing", "", 0, "program-unusable", "no such file"},
}

const (
	asksVersion = "#!/bin/sh\n[ \"$1\" = --version ] && { echo Kubernetes v1.36.9; exit; }\n"
	// namedWithin is how soon the status names a program that is broken; repairedWithin, how soon one that was put
	// right serves.
	namedWithin, repairedWithin = 10 * time.Second, 30 * time.Second
)

// Nothing of a control plane ends its voter: on each of three masters the apiserver's program is broken in each way.
// The member's process stays, clients go on, the status names the program, and the right one is taken up without a
// hand. Every other time the agent is started again while the program is broken, which starts the member once and no
// more.
func TestABrokenProgramStopsNoVoter(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	c, l := membersOf(t, plan{vms: threeVMs, programs: own})
	for i, vm := range c.vms {
		for j, broken := range brokenPrograms {
			if !chaos && j%len(c.vms) != i {
				continue
			}
			for _, restart := range []bool{false, true} {
				if !chaos && restart != (j%2 == 0) {
					continue
				}
				name := fmt.Sprintf("the apiserver's program on %s %s, agent started again: %t", vm, broken.name,
					restart)
				if !t.Run(name, func(t *testing.T) { c.breakProgram(t, vm, j, restart, l.goOn, c.membersWhole) }) {
					c.tell(t)
					t.FailNow()
				}
			}
		}
	}
	c.invariants(t, l)
}

// The same with the real programs, on whole masters with a client at the load balancer: each way once.
func TestABrokenAPIServerStopsNoVoter(t *testing.T) {
	onlyInChaos(t, "5 minutes")
	built, own := programs(t), t.TempDir()
	if err := share(built, own, slices.Concat([]string{"quorate"}, kubernetes, tools)...); err != nil {
		t.Fatal(err)
	}
	c := begin(t, plan{vms: threeVMs, programs: own})
	c.awaitWhole(t)
	l := c.startLoad(t)
	for j, broken := range brokenPrograms {
		vm := c.vms[j%len(c.vms)]
		if !t.Run(vm+" "+broken.name, func(t *testing.T) { c.breakProgram(t, vm, j, false, l.goOn, c.whole) }) {
			c.tell(t)
			t.FailNow()
		}
	}
	l.end(t, c)
}

// breakProgram breaks the apiserver's program in one of the ways, and repairs it. goOn says whether clients have been
// served since, whole whether all is well again.
func (c *cluster) breakProgram(t *testing.T, vm string, how int, restart bool, goOn func(since time.Time) error,
	whole func() error) {
	broken, path := brokenPrograms[how], filepath.Join(c.programs, "kube-apiserver")
	right := path + ".right"
	c.must(t, os.Rename(path, right))
	if broken.mode != 0 {
		c.must(t, os.WriteFile(path+".broken", []byte(broken.script), broken.mode))
		c.must(t, os.Rename(path+".broken", path))
	}
	repair := func() { c.must(t, os.Rename(right, path)) }
	victim := "kube-apiserver"
	if restart {
		victim = "agent"
	}
	etcd := func() []string { return c.processes(vm)["etcd"] }
	before, begin := etcd(), time.Now()
	c.kill(t, vm, c.processes(vm)[victim][0])
	if restart {
		await(t, "the agent has started its member", func() error {
			if now := etcd(); len(now) != 1 || slices.Equal(now, before) {
				return fmt.Errorf("etcd is %v, was %v", now, before)
			}
			return nil
		})
		before = etcd()
	}
	awaitWithin(t, namedWithin, "the program is named", func() error {
		s, err := c.status(vm)
		if err == nil && !names(s, broken.wait, "kube-apiserver", "/usr/local/bin/kube-apiserver", broken.says) {
			err = fmt.Errorf("phase %s, blocked %+v", s.Replica.Phase, s.Blocked)
		}
		return err
	})
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now := etcd(); !slices.Equal(now, before) {
			t.Errorf("etcd is %v, was %v", now, before)
		}
	}
	await(t, "clients go on", func() error { return goOn(begin) })
	s, err := c.status(vm)
	c.must(t, err)
	if n := len(voters(s)); n != len(c.vms) {
		t.Errorf("%d voters: %+v", n, s.Etcd.Members)
	}
	repair()
	awaitWithin(t, repairedWithin, "the right program is taken up", whole)
	if now := etcd(); !slices.Equal(now, before) {
		t.Errorf("etcd is %v, was %v", now, before)
	}
}
