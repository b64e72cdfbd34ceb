package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/localgce"
)

// only is the one VM of TestBadStarts.
const only = "master-a"

// TestBadStarts takes one VM, whose first boot lacks everything, through the faults that a user meets, one after the
// other: each has one clear line and a code of its own or a name in the status, makes nothing by halves, and once it is
// repaired the boot goes on without a hand. At the end there is a cluster of one, and the same cluster after what can
// befall it alone.
func TestBadStarts(t *testing.T) {
	t.Parallel()
	onlyInCases(t)
	own := t.TempDir()
	common := programs(t)
	if err := share(common, own, "quorate", "kube-apiserver", "kube-controller-manager", "etcdctl",
		"kubectl"); err != nil {
		t.Fatal(err)
	}
	withScheduler := func() error { return share(common, own, "kube-scheduler") }
	c := begin(t, plan{vms: []string{only}, programs: own, noRecord: true, noAttribute: true})
	for _, bad := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"no attribute and no baked document", func(t *testing.T) {
			c.wantEnd(t, 3, `no attribute "quorate-cluster"`, "/etc/quorate/cluster.yaml")
		}},
		{"a document with an unknown field", func(t *testing.T) {
			c.setDocument(t, c.document+"replcas: 3\n")
			c.wantEnd(t, 3, "instance attribute quorate-cluster", "replcas", "line 15")
		}},
		{"a document with two faults names both", func(t *testing.T) {
			c.setDocument(t, strings.NewReplacer("name: test", "name: Test!", "replicas: 1",
				"replicas: 9").Replace(c.document))
			c.wantEnd(t, 3, "name", "Test!", "replicas", "9")
		}},
		{"a metadata server that answers with a page", func(t *testing.T) {
			c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only, Kind: "html"}))
			c.wantEnd(t, 4, "the metadata server at 169.254.169.254")
		}},
		{"a metadata server that is away", func(t *testing.T) {
			c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only, Kind: "away"}))
			c.wantEnd(t, 4, "the metadata server at 169.254.169.254", "gave up after")
		}},
		{"a metadata server that never answers", func(t *testing.T) {
			if !chaos {
				t.Skip("30 s; with QUORATE_CHAOS=1")
			}
			c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only, Kind: "slow", Delay: time.Hour}))
			c.wantEnd(t, 4, "the metadata server at 169.254.169.254", "no answer")
		}},
		{"a slow metadata server, a right document, a record that never began", func(t *testing.T) {
			c.setDocument(t, c.document)
			c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only, Kind: "slow",
				Delay: 500 * time.Millisecond}))
			c.wantBlocked(t, "record-lost")
		}},
		{"a record that cannot be read", func(t *testing.T) {
			c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only}))
			c.hideRecord(t)
			c.wantBlocked(t, "record-unreadable")
			c.showRecord(t)
			c.wantBlocked(t, "record-lost")
		}},
		{"a program that is missing", func(t *testing.T) {
			c.initRecord(t)
			c.wantBlocked(t, "preflight", "kube-scheduler")
		}},
		{"a program of another version", func(t *testing.T) {
			c.must(t, os.WriteFile(filepath.Join(own, "kube-scheduler"), []byte("#!/bin/sh\necho Kubernetes v1.30.1\n"),
				0o755))
			c.wantBlocked(t, "preflight", "kube-scheduler", "1.30.1", "1.36")
		}},
	} {
		t.Run(bad.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t) })
			bad.do(t)
			c.wantNothingMade(t)
		})
	}
	if t.Failed() {
		return
	}
	t.Run("all repaired, it comes up as a cluster of one", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		c.must(t, os.Remove(filepath.Join(own, "kube-scheduler")))
		c.must(t, withScheduler())
		c.awaitWhole(t)
		c.wantOneCluster(t)
		c.wantEtcdFirst(t, only)
		c.mustKubectl(t, "", "create", "configmap", "kept")
	})
	t.Run("the agent starts again while the whole cloud is away", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only, Kind: "away"}))
		c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "unavailable"}))
		c.hideRecord(t)
		c.kill(t, only, c.processes(only)["agent"][0])
		await(t, "ready without the cloud", func() error {
			s, err := c.status(only)
			if err == nil && (!s.Replica.Ready || len(voters(s)) != 1 || !names(s, "record-unreadable")) {
				err = fmt.Errorf("phase %s, members %+v, blocked %+v", s.Replica.Phase, s.Etcd.Members, s.Blocked)
			}
			return err
		})
		c.must(t, c.one(only))
		if !strings.Contains(c.logOf(only), "going on as before the restart") {
			t.Error("the agent does not say that it goes on with what it remembers")
		}
		c.mustKubectl(t, "", "get", "configmap", "kept")
		c.showRecord(t)
		c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: only}))
		c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))
		await(t, "whole with the cloud", c.whole)
	})
	t.Run("a lone voter's power is cut, and nothing is lost", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		c.must(t, c.KillVM(t.Context(), only))
		c.must(t, c.StartVM(t.Context(), only))
		await(t, "whole again", c.whole)
		c.mustKubectl(t, "", "get", "configmap", "kept")
	})
	t.Run("a lone voter's disk is lost, and nobody seeds a second history", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		c.must(t, c.RecreateVM(t.Context(), only, localgce.Recreation{Wipe: true}))
		c.wantBlocked(t, "no-quorum-empty-disk")
		time.Sleep(3 * time.Second) // more than one read of the record
		c.wantBlocked(t, "no-quorum-empty-disk")
		if list, _ := filepath.Glob(filepath.Join(c.record(), "epochs", "*")); len(list) != 1 {
			t.Errorf("epochs: %q", list)
		}
		if n := len(c.processes(only)["etcd"]); n != 0 {
			t.Errorf("%d etcd processes on the empty disk", n)
		}
	})
}

// setDocument changes the instance attribute; the agent reads it at its next start.
func (c *cluster) setDocument(t *testing.T, document string) {
	t.Helper()
	c.must(t, c.SetAttribute("", agent.ClusterAttribute, &document))
}

// wantEnd waits for an agent that started after this call to end with a code and one line that holds all words. What
// the agent complains of is every line that begins with "quorate: ".
func (c *cluster) wantEnd(t *testing.T, code int, words ...string) {
	t.Helper()
	c.wantEndOf(t, only, code, words...)
}

func (c *cluster) wantEndOf(t *testing.T, vm string, code int, words ...string) {
	t.Helper()
	onlyProcessVMs(t)
	const started, complains = "localgce-init: started ", "quorate: "
	before := len(c.logOf(vm))
	want := fmt.Sprintf("the agent has ended: exit status %d", code)
	await(t, want, func() error {
		_, log, ok := strings.Cut(c.logOf(vm)[before:], started)
		if !ok {
			return errors.New("the agent was not started again")
		}
		life, rest, ok := strings.Cut(log, "the agent has ended: ")
		if !ok {
			return errors.New("it has not ended")
		}
		before = len(c.logOf(vm)) - len(rest) // what was meant to end otherwise is checked once
		if end, _, _ := strings.Cut(rest, "\n"); end != fmt.Sprintf("exit status %d", code) {
			return fmt.Errorf("it ended with %s:\n%s", end, life)
		}
		var said []string
		for line := range strings.Lines(life) {
			if strings.HasPrefix(line, complains) {
				said = append(said, strings.TrimSpace(line))
			}
		}
		for _, w := range words {
			if !strings.Contains(strings.Join(said, "\n"), w) {
				t.Fatalf("the last words lack %q: %q", w, said)
			}
		}
		t.Logf("it said: %q", said)
		return nil
	})
}

// names says whether a status shows a wait of that name, with all words.
func names(s status.Status, name string, words ...string) bool {
	for _, b := range s.Blocked {
		lacks := func() bool {
			for _, w := range words {
				if !strings.Contains(b.Reason, w) {
					return true
				}
			}
			return false
		}
		if b.Name == name && b.Next != "" && !lacks() {
			return true
		}
	}
	return false
}

// wantBlocked waits until the one VM's status names a wait.
func (c *cluster) wantBlocked(t *testing.T, name string, words ...string) {
	t.Helper()
	await(t, "blocked: "+name, func() error {
		s, err := c.status(only)
		if err == nil && !names(s, name, words...) {
			err = fmt.Errorf("phase %s, blocked %+v", s.Replica.Phase, s.Blocked)
		}
		return err
	})
}

// wantNothingMade wants neither an epoch nor a bundle in the record, neither a member nor a key on the disk.
func (c *cluster) wantNothingMade(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{
		filepath.Join(c.record(), "epochs", "*"), filepath.Join(c.record(), "bundle", "*"),
		c.disk("etcd/*"), c.disk("pki/*"),
	} {
		if list, err := filepath.Glob(pattern); err != nil || len(list) > 0 {
			t.Errorf("half made: %q, %v", list, err)
		}
	}
}

// disk is a path on the one VM's data disk, as the host reaches it.
func (c *cluster) disk(path string) string { return c.diskOf(only, path) }

// hideRecord makes the bucket answer nothing but 503, and showRecord makes it well again.
func (c *cluster) hideRecord(t *testing.T) {
	t.Helper()
	c.must(t, c.SetFault(localgce.Storage, localgce.Fault{Kind: "unavailable"}))
}

func (c *cluster) showRecord(t *testing.T) {
	t.Helper()
	c.must(t, c.SetFault(localgce.Storage, localgce.Fault{}))
}
