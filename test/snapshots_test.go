package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// TestSnapshots: a person saves one on a master; the agents save one by themselves before a replica leaves; both are
// whole, also for somebody who has nothing but the record.
func TestSnapshots(t *testing.T) {
	onlyInCases(t)
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, always: true})
	await(t, "whole", c.membersWhole)
	out := c.in(t, "master-b", "quorate snapshot save -o json")
	var saved record.Snapshot
	c.must(t, json.Unmarshal([]byte(out), &saved))
	if saved.Revision < 1 || saved.Why != "by hand" || saved.By != "us-central1-b.master-b" {
		t.Errorf("saved %+v", saved)
	}
	if _, err := os.Stat(c.diskOf("master-b", "snapshots/"+strings.ReplaceAll(saved.Name, "/", "-")+".db")); err != nil {
		t.Errorf("no local copy: %v", err)
	}
	c.verifyNewest(t, saved.Name)

	// As if it had been saved long ago: a replica that leaves wants a younger one.
	c.must(t, os.RemoveAll(filepath.Join(c.record(), "snapshots")))
	_, err := c.quorate(t, "orders", "give", "leave", "master-c", "--yes")
	c.must(t, err)
	begin := time.Now()
	var list []record.Snapshot
	await(t, "a snapshot before the replica leaves", func() error {
		list = c.snapshots(t)
		if len(list) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	t.Logf("saved %s after the order: %+v", time.Since(begin).Round(time.Millisecond), list[0])
	if len(list) != 1 || list[0].Why != "before order 1 (leave)" {
		t.Errorf("snapshots %+v: want one, before order 1", list)
	}
	await(t, "the replica has left", func() error {
		s, err := c.status("master-a")
		if err == nil && len(s.Etcd.Members) != 2 {
			err = fmt.Errorf("members %+v, blocked %+v", s.Etcd.Members, s.Blocked)
		}
		return err
	})
	t.Logf("left %s after the order", time.Since(begin).Round(time.Millisecond))
	c.verifyNewest(t, list[0].Name)
	// Whose turn it is follows from the leader, and the replica that leaves may have led.
	terms := map[uint64]bool{}
	for _, saved := range c.snapshots(t) {
		if terms[saved.Term] {
			t.Errorf("two replicas saved before one order under one leader: %+v", c.snapshots(t))
		}
		terms[saved.Term] = true
	}
}

// snapshots lists what the record has.
func (c *cluster) snapshots(t *testing.T) (list []record.Snapshot) {
	t.Helper()
	out, err := c.quorate(t, "snapshot", "list", "-o", "json")
	c.must(t, err)
	c.must(t, json.Unmarshal([]byte(out), &list))
	return list
}

// verifyNewest verifies the newest snapshot from outside.
func (c *cluster) verifyNewest(t *testing.T, name string) {
	t.Helper()
	out, err := c.quorate(t, "snapshot", "verify", "--newest", "--dir", c.state)
	c.must(t, err)
	if !strings.HasPrefix(out, "Snapshot "+name+" ") {
		t.Errorf("verified %q: want %s", out, name)
	}
}
