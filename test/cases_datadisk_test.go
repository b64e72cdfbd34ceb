package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/agent"
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
			// A moment after the status.
			await(t, "the agent's log, which is on the serial console, has it", func() error {
				if log := cluster.agentLog(t, "master-a"); !strings.Contains(log, wait) {
					return fmt.Errorf("nothing of %s in:\n%s", wait, log)
				}
				return nil
			})
			if there := strings.Fields(cluster.in(t, "master-a", "ls /var/lib/quorate")); strings.Contains(
				strings.Join(there, " "), "agent.json") || strings.Contains(strings.Join(there, " "), "etcd") {
				t.Errorf("something was written where the disk is not: %q", there)
			}
			cluster.in(t, "master-a", "("+c.repair+") >/run/repair 2>&1; mountpoint /var/lib/quorate || cat /run/repair")
			await(t, "whole", cluster.membersWhole)
		})
	}
}

// A data disk is enlarged while its member runs, and then etcd's quota by the document. The status has both, with what
// is left of them. That a file system grows while it is in use is the image's doing, and shown with the image.
func TestCaseTheDataDiskGrows(t *testing.T) {
	t.Parallel()
	const gib, quota, larger = int64(1) << 30, 64 << 20, 96 << 20
	c := bare(t, plan{vms: []string{"master-a"}, diskSize: gib, etcd: fmt.Sprint("quotaBytes: ", quota)})
	sizes := func(disk, wanted int64, grown bool) func() error {
		return func() error {
			s, err := c.status("master-a")
			switch {
			case err != nil:
				return err
			case s.DataDisk == nil || s.Etcd.Database == nil:
				return fmt.Errorf("data disk %+v, database %+v", s.DataDisk, s.Etcd.Database)
			}
			d, e := *s.DataDisk, *s.Etcd.Database
			if d.Device != disk || d.NotGrown() == grown || d.Free <= 0 || d.Free > d.FileSystem || e.Quota != wanted ||
				e.Bytes <= 0 || e.InUse <= 0 || e.InUse > e.Bytes {
				return fmt.Errorf("data disk %+v, database %+v; want a disk of %d and a quota of %d", d, e, disk, wanted)
			}
			return nil
		}
	}
	await(t, "whole", c.membersWhole)
	await(t, "both sizes", sizes(gib, quota, true))
	c.must(t, c.GrowDisk(t.Context(), "master-a", 2*gib))
	await(t, "the larger disk, while all goes on", sizes(2*gib, quota, false))
	c.must(t, c.KillVM(t.Context(), "master-a"))
	c.must(t, c.StartVM(t.Context(), "master-a"))
	await(t, "the larger file system, after a boot", sizes(2*gib, quota, true))

	text := strings.Replace(c.document, fmt.Sprint(quota), fmt.Sprint(larger), 1)
	c.must(t, c.SetAttribute("", agent.ClusterAttribute, &text))
	await(t, "the quota waits for the agent's next start", func() error {
		s, err := c.status("master-a")
		if got := fmt.Sprint(s.PendingRestart); err == nil && !strings.Contains(got, "etcd.quotaBytes") {
			err = fmt.Errorf("pending: %s", got)
		}
		return err
	})
	c.in(t, "master-a", "kill -TERM "+c.processes("master-a")["agent"][0])
	await(t, "the larger quota", sizes(2*gib, larger, true))
	out := c.in(t, "master-a", "quorate status || true")
	for _, want := range []string{"the data disk has 2.0 GiB, its file system ", " of its quota of 96 MiB ("} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}
