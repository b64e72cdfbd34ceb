package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// found is how long agents may take to see what the record says: they poll every ten seconds, and a machine under test
// is busy.
const found = 20 * time.Second

// TestTheRecordIsRebuilt: a cluster's record is lost in part, rolled back and lost whole while it serves. It goes on
// serving, its agents say what they wait for, and one command brings the record back from what the masters say, with
// nobody stopped.
func TestTheRecordIsRebuilt(t *testing.T) {
	c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}, bare: true})
	await(t, "whole", c.membersWhole)
	escrow, passphrase := filepath.Join(c.state, "escrow"), filepath.Join(c.state, "passphrase")
	c.must(t, os.WriteFile(passphrase, []byte("correct horse battery staple\n"), 0o600))
	_, err := c.quorate(t, "bundle", "export", escrow, "--passphrase-file", passphrase)
	c.must(t, err)
	bringBundle := func(t *testing.T) {
		out, err := c.quorate(t, "bundle", "import", escrow, "--passphrase-file", passphrase, "--yes")
		c.must(t, err)
		t.Log(out)
	}
	l := c.startWriters(t)
	for _, scenario := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"the outcome is lost, and a member brings it back by itself", func(t *testing.T) {
			outcome := filepath.Join(c.record(), "epochs", "1", "outcome.json")
			c.must(t, os.Remove(outcome))
			c.within(t, found, "the outcome is back", func() error { _, err := os.Stat(outcome); return err })
		}},
		{"the record is rolled back to its inception", func(t *testing.T) {
			for _, folder := range []string{"epochs", "replicas", "marks", "bundle"} {
				c.must(t, os.RemoveAll(filepath.Join(c.record(), folder)))
			}
			c.servesWithoutRecord(t, l, "record-rolled-back", "record-lost")
			out := c.rebuild(t, c.vms)
			wantWords(t, out, "created epochs/1/outcome.json", "created epochs/1/claim.json", "It still has no bundle")
			if strings.Contains(out, "created inception.json") {
				t.Error("the inception was there, and is said to be created")
			}
			bringBundle(t)
		}},
		{"the claim and one incarnation are lost", func(t *testing.T) {
			c.must(t, os.Remove(filepath.Join(c.record(), "epochs", "1", "claim.json")))
			c.must(t, os.Remove(c.newestIncarnation(t, "master-b")))
			for _, vm := range c.vms {
				c.within(t, found, vm+" says that it waits",
					func() error { return c.waitsFor(vm, "record-unreadable") })
			}
			out := c.rebuild(t, c.vms)
			wantWords(t, out, "created epochs/1/claim.json", "created replicas/us-central1-b.master-b/")
			if n := strings.Count(out, "created "); n != 2 {
				t.Errorf("it created %d objects, want 2:\n%s", n, out)
			}
		}},
		{"the whole record is lost, and a master is recreated with an empty disk", func(t *testing.T) {
			former := c.member(t, "master-b")
			c.must(t, os.RemoveAll(c.record()))
			c.servesWithoutRecord(t, l, "record-lost", "record-lost")
			c.must(t, c.RecreateVM(t.Context(), "master-b", localgce.Recreation{Wipe: true}))
			await(t, "the new master waits", func() error { return c.waitsFor("master-b", "record-lost") })
			if out, err := c.tryRebuild(t, c.vms, "--yes"); err == nil ||
				!strings.Contains(err.Error(), "nobody speaks for it") {
				t.Errorf("the member of the lost disk is passed over: %v\n%s", err, out)
			}
			// The member that is passed over has left a mark a moment ago, for which it would take two minutes to count
			// as gone.
			if err := os.Remove(filepath.Join(c.record(), "marks", former+".json")); err != nil &&
				!errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			wantWords(t, c.rebuild(t, c.vms, "--without", former), "created inception.json")
			bringBundle(t)
		}},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t) })
			scenario.do(t)
			begin := time.Now()
			await(t, "whole again", c.membersWhole)
			since := time.Now()
			await(t, "clients go on", func() error { return l.goOn(since) })
			t.Logf("after %s every agent is without a wait; the longest without a write was %s",
				since.Sub(begin).Round(time.Millisecond), l.stall())
			if _, err := c.quorate(t, "record", "check"); err != nil {
				t.Error(err)
			}
		})
		if !ok {
			t.Fatal("the cases after this one need a whole cluster")
		}
	}
	c.invariants(t, l)
}

// servesWithoutRecord wants every agent to say what it waits for, and clients to go on: also when the agent and the
// member of one master are started again meanwhile.
func (c *cluster) servesWithoutRecord(t *testing.T, l *clients, names ...string) {
	t.Helper()
	for _, vm := range c.vms {
		c.within(t, found, vm+" says that it waits", func() error { return c.waitsFor(vm, names...) })
	}
	before := c.processes("master-c")
	c.kill(t, "master-c", before["agent"][0])
	await(t, "master-c is started again without a record", func() error {
		now := c.processes("master-c")
		if len(now["etcd"]) != 1 || now["etcd"][0] == before["etcd"][0] {
			return fmt.Errorf("etcd of master-c: pids %v, before %v", now["etcd"], before["etcd"])
		}
		s, err := c.status("master-c")
		if err == nil && (!s.Replica.Ready || len(voters(s)) != 3) {
			err = fmt.Errorf("phase %s, voters %v", s.Replica.Phase, voters(s))
		}
		return err
	})
	// All three without a word of the others in the record: it needs each to find its peers.
	leader := c.leader(t)
	c.kill(t, leader, c.processes(leader)["etcd"][0])
	since := time.Now()
	await(t, "clients go on without a record", func() error { return l.goOn(since.Add(3 * time.Second)) })
}

// waitsFor says what is missing to an agent that waits with one of those names.
func (c *cluster) waitsFor(vm string, names ...string) error {
	s, err := c.status(vm)
	if err != nil {
		return err
	}
	for _, b := range s.Blocked {
		if slices.Contains(names, b.Name) {
			return nil
		}
	}
	return fmt.Errorf("%s is blocked: %+v", vm, s.Blocked)
}

// rebuild runs both halves of the command: collect on each master, rebuild with what they said.
func (c *cluster) rebuild(t *testing.T, vms []string, args ...string) string {
	t.Helper()
	out, err := c.tryRebuild(t, vms, append(args, "--yes")...)
	c.must(t, err)
	t.Log(out)
	for _, vm := range vms {
		c.within(t, found, vm+" leaves its wait", func() error {
			if c.waitsFor(vm, "record-lost", "record-rolled-back", "record-unreadable") == nil {
				return fmt.Errorf("%s still waits for the record", vm)
			}
			return nil
		})
	}
	return out
}

func (c *cluster) tryRebuild(t *testing.T, vms []string, args ...string) (string, error) {
	t.Helper()
	command := append([]string{"record", "rebuild"}, args...)
	for _, vm := range vms {
		file := filepath.Join(t.TempDir(), vm+".json")
		c.must(t, os.WriteFile(file, []byte(c.in(t, vm, "quorate record rebuild --collect -")), 0o600))
		command = append(command, file)
	}
	return c.quorate(t, command...)
}

// newestIncarnation is the file of a master's newest incarnation.
func (c *cluster) newestIncarnation(t *testing.T, vm string) string {
	t.Helper()
	s, err := c.status(vm)
	c.must(t, err)
	return filepath.Join(c.record(), "replicas", s.Replica.Place.String(),
		fmt.Sprintf("%d.json", s.Replica.Incarnation))
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// within is await with a limit of its own.
func (c *cluster) within(t *testing.T, limit time.Duration, what string, ok func() error) {
	t.Helper()
	begin := time.Now()
	await(t, what, ok)
	if took := time.Since(begin); took > limit {
		t.Errorf("%s: it took %s, and the limit is %s", what, took.Round(time.Millisecond), limit)
	}
}
