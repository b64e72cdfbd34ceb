package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// A data disk that cannot be mounted has its agent say so, start nothing and write nothing, and go on by itself once a
// person has repaired it.
func TestCaseTheDataDiskIsMountedLate(t *testing.T) {
	t.Parallel()
	const device = "/dev/disk/by-id/google-" + localgce.DeviceName
	for name, c := range map[string]struct{ before, says, repair string }{
		"data-disk-missing": {"umount /var/lib/quorate; mv " + device + " /run/aside",
			"no disk is attached as " + device, "mv /run/aside " + device + "; mount " + device + " /var/lib/quorate"},
		"data-disk-damaged": {"umount /var/lib/quorate; dd if=/dev/zero of=" + device + " bs=4096 count=1 conv=fsync",
			device + " is attached, and is not mounted", // its superblock is gone, and there is a copy
			"e2fsck -fyb 32768 " + device + "; mount " + device + " /var/lib/quorate"},
		"data-disk-damaged read-only": {"mount -o remount,ro /var/lib/quorate", "is mounted read-only",
			"mount -o remount,rw /var/lib/quorate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The agent begins once the disk is as the case wants it. What a unit starts may neither mount nor unmount.
			cluster := bare(t, plan{vms: []string{"master-a"}, agent: localgce.Agent{Command: []string{"/bin/sh", "-c",
				"touch /run/waits; until [ -e /run/begins ]; do sleep 0.05; done; exec /usr/local/bin/quorate agent " +
					"--log-dir /var/log/quorate"}}})
			cluster.in(t, "master-a", "until [ -e /run/waits ]; do sleep 0.05; done; "+c.before+"; touch /run/begins")
			wait, _, _ := strings.Cut(name, " ")
			await(t, "the wait is told", func() error {
				s, err := cluster.status("master-a")
				if err == nil && (len(s.Blocked) != 1 || s.Blocked[0].Name != wait ||
					!strings.Contains(s.Blocked[0].Reason, c.says)) {
					err = fmt.Errorf("blocked: %+v", s.Blocked)
				}
				return err
			})
			if log := cluster.agentLog(t, "master-a"); !strings.Contains(log, wait) {
				t.Errorf("the agent's log, which is on the serial console, has nothing of %s:\n%s", wait, log)
			}
			if there := strings.Fields(cluster.in(t, "master-a", "ls /var/lib/quorate")); strings.Contains(
				strings.Join(there, " "), "agent.json") || strings.Contains(strings.Join(there, " "), "etcd") {
				t.Errorf("something was written where the disk is not: %q", there)
			}
			cluster.in(t, "master-a", "("+c.repair+") >/run/repair 2>&1; mountpoint /var/lib/quorate || cat /run/repair")
			await(t, "whole", cluster.membersWhole)
		})
	}
}
