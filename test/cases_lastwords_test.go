package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// shown is of the line that a component says before its VM dies; a secret follows it, which nobody may be shown.
const shown = "1 disk.go:7] the telltale line of etcd, with the password"

// TestTheLastWordsOfADeadMaster: its journal goes with the boot disk. What its logs said last is found in the record
// and on its data disk, if that was kept; if it was not, that is said.
func TestTheLastWordsOfADeadMaster(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs})
	await(t, "whole", c.membersWhole)
	vm := c.follower(t)
	boot := c.bootOf(t, vm)
	telltale := time.Now().UTC().Format("W0102 15:04:05.000000       ") + shown + " swordfish"
	c.in(t, vm, fmt.Sprintf("echo '%s' >/proc/%s/fd/2", telltale, c.processes(vm)["etcd"][0]))
	soon(t, "the line is on the data disk", func() error {
		b, err := os.ReadFile(c.diskOf(vm, "lastwords/etcd.log"))
		if err == nil && !strings.Contains(string(b), telltale) {
			err = fmt.Errorf("%d bytes, without the line", len(b))
		}
		return err
	})
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{}))
	await(t, "whole with the recreated VM", c.membersWhole)
	c.says(t, vm, "the last words of boot "+boot, "ended without being asked to", "etcd: W", shown)
	if words := c.inSupport(t, vm, "lastwords/etcd.log"); !strings.Contains(words, shown) ||
		strings.Contains(words, "swordfish") {
		t.Errorf("support has of etcd's last words:\n%s", words)
	}
	if words := c.inSupport(t, vm, "lastwords/agent.log"); !strings.Contains(words, "level=INFO msg=identified") {
		t.Errorf("support has of the agent's last words:\n%s", words)
	}

	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	await(t, "whole with an empty disk", c.membersWhole)
	c.says(t, vm, "with an empty disk. Its disk is new: the logs of before went with the former one")
	if m := c.inSupport(t, vm, "manifest.json"); !strings.Contains(m, "the logs of before went with the former one") {
		t.Errorf("support does not say that the disk is new:\n%s", m)
	}
}

// bootOf is how people are told which boot a VM is in.
func (c *cluster) bootOf(t *testing.T, vm string) string {
	t.Helper()
	s, err := c.status(vm)
	c.must(t, err)
	return s.Replica.BootID[:8]
}

// says wants a replica's story, from afar, to have some texts, and no secret.
func (c *cluster) says(t *testing.T, vm string, texts ...string) {
	t.Helper()
	soon(t, "quorate why has it", func() error {
		story, err := c.quorate(t, "why", vm)
		for _, text := range texts {
			if err == nil && !strings.Contains(strings.Join(strings.Fields(story), " "), text) {
				err = fmt.Errorf("no %q in\n%s", text, story)
			}
		}
		if strings.Contains(story, "swordfish") {
			t.Fatalf("a secret is told:\n%s", story)
		}
		return err
	})
}

// inSupport is a part of the file that support writes on a VM.
func (c *cluster) inSupport(t *testing.T, vm, part string) string {
	t.Helper()
	return c.in(t, vm, "rm -f /run/s.tar.gz; quorate support /run/s.tar.gz >/dev/null && "+
		"tar xzOf /run/s.tar.gz quorate-support/"+part)
}
