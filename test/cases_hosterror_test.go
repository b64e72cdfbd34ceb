package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// This file holds the cases in which the cloud's word about a VM is not the VM's own: an instance that runs on two
// hosts at once, and VMs that run and are called stopped, or are in no list.

// GCE starts an instance on another host when it does not hear of the first any more, and promises nothing about what
// ran there. The newest boot of an instance id is the living one: the older one reads of it in the record and stops,
// whether or not it can still write to its disk.
func TestAHostErrorLeavesOneLivingBoot(t *testing.T) {
	t.Parallel()
	for _, disk := range []string{"fenced", "copy"} {
		t.Run(disk, func(t *testing.T) {
			t.Parallel()
			c, l := threeMembers(t)
			vms := []string{c.leader(t)}
			if chaos {
				vms = append(vms, c.vms...)
			}
			for _, vm := range vms {
				c.loseHost(t, vm, disk)
			}
			c.invariants(t, l)
		})
	}
}

// loseHost moves a VM to another host, and waits until its former boot has let go of its member, which is the
// successor's.
func (c *cluster) loseHost(t *testing.T, vm, disk string) {
	t.Helper()
	before, member, former := c.vm(vm), c.member(t, vm), vm+".1"
	taken := c.incarnations(t, vm)
	c.must(t, c.HostError(t.Context(), vm, localgce.HostError{Disk: disk}))
	await(t, vm+" has taken an incarnation on its new host", func() error {
		if n := c.incarnations(t, vm); n == taken {
			return fmt.Errorf("%d incarnations", n)
		}
		return nil
	})
	// The record is read every 10 s, and by a member that has lost its leader at once. On a fenced disk a member ends
	// by itself and may be started again until then, and its agent too.
	quiet := time.Now()
	soon(t, "the former boot lets go of the member, for good", func() error {
		if err := c.memberless(former); err != nil {
			quiet = time.Now()
			return err
		}
		if time.Since(quiet) < 3*time.Second {
			return errors.New("it may be started again")
		}
		if disk == "copy" {
			return c.blocked(former, "superseded")
		}
		return nil
	})
	if t.Failed() {
		t.Logf("the log of the former boot:\n%s", c.logOf(former))
	}
	await(t, "whole, on the new host", c.membersWhole)
	if now := c.vm(vm); now.InstanceID != before.InstanceID || now.Address != before.Address ||
		now.DiskID != before.DiskID {
		t.Errorf("%s is %+v, before %+v: the same instance is wanted", vm, now, before)
	}
	c.wantMember(t, vm, member, true)
	c.must(t, c.DeleteVM(t.Context(), former, true))
}

// memberless says whether a member runs in a VM.
func (c *cluster) memberless(vm string) error {
	if n := len(c.processes(vm)["etcd"]); n != 0 {
		return fmt.Errorf("%d members run on %s", n, vm)
	}
	return nil
}

// incarnations is how many the record has of a VM's place.
func (c *cluster) incarnations(t *testing.T, vm string) int {
	t.Helper()
	v := c.vm(vm)
	started, err := filepath.Glob(filepath.Join(c.record(), "replicas", v.Zone+"."+v.Name, "*.started.json"))
	c.must(t, err)
	return len(started)
}

// wordOfAPI is what the Compute API says of a VM that runs, and the witness that a restore then names.
type wordOfAPI struct {
	localgce.Fault
	stopped time.Duration // before now
	witness string
}

// A restore ends a history only when nobody can serve it any more, and what the Compute API says of a VM is not proof
// of that by itself. The VM of one member runs on, apart from the others and without the record, while the API calls it
// something else.
func TestARestoreDoesNotTakeTheComputeAPIsWordAlone(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		says []wordOfAPI
		// silent: the last of them proves the VM silent once no mark of its member has been written for two minutes.
		silent bool
	}{
		"TERMINATED just now and then absent with its disk attached": {says: []wordOfAPI{
			{localgce.Fault{Kind: "terminated"}, time.Second, "its VM is said to be stopped"},
			{localgce.Fault{Kind: "absent"}, 0, "is attached to it"}}},
		"in states that prove nothing": {says: []wordOfAPI{
			{localgce.Fault{Kind: "suspended"}, 0, "SUSPENDED"},
			{localgce.Fault{Kind: "pending_stop"}, 0, "PENDING_STOP"},
			{localgce.Fault{Kind: "repairing"}, 0, "REPAIRING"},
			{localgce.Fault{Kind: "deprovisioning"}, 0, "DEPROVISIONING"}}},
		"TERMINATED long ago": {[]wordOfAPI{
			{localgce.Fault{Kind: "terminated"}, 10 * time.Minute, "no further mark"}}, true},
		"STOPPED long ago": {[]wordOfAPI{
			{localgce.Fault{Kind: "stopped"}, 10 * time.Minute, "no further mark"}}, true},
		"absent with its disk detached": {[]wordOfAPI{
			{localgce.Fault{Kind: "absent", Detached: true}, 0, "no further mark"}}, true},
		"absent with its disk absent as well": {[]wordOfAPI{
			{localgce.Fault{Kind: "missing"}, 0, "no further mark"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if x.silent {
				onlyInChaos(t, "3 minutes")
			}
			c, l := threeMembers(t)
			survivor, runs := c.vms[2], c.vms[1]
			c.must(t, c.SetFault(localgce.Storage, localgce.Fault{Who: runs, Kind: "unavailable"}))
			for _, other := range []string{c.vms[0], survivor} {
				c.must(t, c.Partition(t.Context(), runs, other, false))
			}
			restored := make(chan error, 1)
			for n, say := range x.says {
				if say.VMs = []string{runs}; say.stopped > 0 {
					say.LastStop = time.Now().Add(-say.stopped)
				}
				c.must(t, c.SetFault(localgce.Compute, say.Fault))
				if n == 0 {
					go func() {
						from := "directory=" + survivor
						out, err := c.quorate(t, "restore", "--yes", "--end-living-cluster", "--from", from)
						t.Logf("%s", out)
						restored <- err
					}()
				}
				await(t, runs+" is "+say.Kind+", and the restore waits for it and names the witness", func() error {
					return c.restoreWaits(survivor, runs+" (instance "+c.vm(runs).InstanceID+"): ", say.witness)
				})
			}
			if n := len(c.processes(runs)["etcd"]); n != 1 {
				t.Errorf("%d members run on %s: it is to run on", n, runs)
			}
			if !x.silent { // it hears of the order, and says itself that it has stopped
				c.must(t, c.SetFault(localgce.Storage, localgce.Fault{Who: runs}))
			}
			// Two minutes of silence prove it; two more, where the order goes over to a survivor with a longer log.
			awaitWithin(t, 3*patience, "the restore is done", func() error {
				select {
				case err := <-restored:
					c.must(t, err)
					return nil
				default:
					return errors.New("the command still waits")
				}
			})
			c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))
			c.must(t, c.SetFault(localgce.Storage, localgce.Fault{Who: runs}))
			c.must(t, c.Heal(t.Context(), ""))
			await(t, "whole, in the next epoch", c.membersWhole)
			if epoch, _ := c.newestEpoch(t); epoch != 2 {
				t.Errorf("epoch %d", epoch)
			}
			c.wantOne(t, c.vms...)
			c.check(t, l, c.vms...)
		})
	}
}

// restoreWaits says what is missing to a VM whose restore waits, with all of the words in the reason.
func (c *cluster) restoreWaits(vm string, words ...string) error {
	return c.waitSays(vm, "restore-waits", words...)
}

// A boot that the Compute API does not answer goes on without its data disk's id. It learns it later, and completes its
// incarnation with it: the record then tells this disk from another, and the member is the same.
func TestADiskIDThatIsLearnedLateIsInTheRecord(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	vm := c.follower(t)
	member, taken := c.member(t, vm), c.incarnations(t, vm)
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "forbidden", Who: vm}))
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, vm+" is whole without the id of its disk", c.membersWhole)
	s, err := c.status(vm)
	c.must(t, err)
	if !s.Replica.DiskIDUnknown || s.Replica.DiskID != "" || int(s.Replica.Incarnation) != taken+1 {
		t.Errorf("%+v: incarnation %d without a disk's id is wanted", s.Replica, taken+1)
	}
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))
	noted := filepath.Join(c.record(), "replicas", c.vm(vm).Zone+"."+vm, fmt.Sprintf("%d.disk.json", taken+1))
	await(t, "the record has it", func() error {
		b, err := os.ReadFile(noted)
		if err == nil && !strings.Contains(string(b), `"`+c.vm(vm).DiskID+`"`) {
			err = fmt.Errorf("%s, want %s", b, c.vm(vm).DiskID)
		}
		return err
	})
	c.kill(t, vm, c.processes(vm)["agent"][0]) // the next one remembers it
	await(t, "whole, with another agent", c.membersWhole)
	s, err = c.status(vm)
	c.must(t, err)
	if s.Replica.DiskIDUnknown || s.Replica.DiskID != c.vm(vm).DiskID || int(s.Replica.Incarnation) != taken+1 {
		t.Errorf("after the agent's restart: %+v", s.Replica)
	}
	c.wantMember(t, vm, member, true)
	c.invariants(t, l)
}
