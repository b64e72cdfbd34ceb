package test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/internal/localgce"
)

// moment is a step of an act, before or after it takes effect.
type moment struct {
	step acts.Step
	when acts.Moment
}

// String is what the file end-at holds.
func (m moment) String() string { return string(m.step) + " " + string(m.when) }

// arm makes the agent of a running VM end, as if it were killed, the next time that it comes to the moment.
func (c *cluster) arm(t *testing.T, vm string, m moment) {
	t.Helper()
	c.must(t, os.MkdirAll(c.guest(vm, "/run/quorate"), 0o755))
	c.must(t, os.WriteFile(c.guest(vm, "/run/quorate/end-at"), []byte(m.String()), 0o600))
}

// ended says whether the agent of an armed VM has ended.
func (c *cluster) ended(vm string) bool {
	_, err := os.Stat(c.guest(vm, "/run/quorate/end-at"))
	return errors.Is(err, os.ErrNotExist) && c.vm(vm).InitPID != 0
}

// awaitEnd waits until the agent of one of the armed VMs has ended, and says whose.
func (c *cluster) awaitEnd(t *testing.T, m moment, vms ...string) (ended string) {
	t.Helper()
	for since := time.Now(); time.Since(since) < patience; time.Sleep(5 * time.Millisecond) {
		for _, vm := range vms {
			if c.ended(vm) {
				return vm
			}
		}
	}
	var told []string
	for _, vm := range vms {
		s, err := c.status(vm)
		told = append(told, fmt.Sprintf("%s: %s %+v %v", vm, s.Replica.Phase, s.Blocked, err))
	}
	t.Fatalf("no agent came to %s within %s: %s", m, patience, strings.Join(told, "\n"))
	return ""
}

// recreateArmed recreates a VM whose agent ends at the moment. Its metadata server is slow until it is armed.
func (c *cluster) recreateArmed(t *testing.T, vm string, r localgce.Recreation, m moment) {
	t.Helper()
	c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: vm, Kind: "slow", Delay: 200 * time.Millisecond}))
	c.must(t, c.RecreateVM(t.Context(), vm, r))
	c.arm(t, vm, m)
	c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: vm}))
}
