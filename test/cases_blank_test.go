package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestThreeVMsBootOnceWithBlankDisks is a mistake in a template: every VM boots once with an empty disk, and then with
// its own. Nobody says anything of a member whose disk may come back, so the cluster goes on without a hand.
func TestThreeVMsBootOnceWithBlankDisks(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	l.stop()
	c.blankOnce(t)
	c.check(t, l, c.vms...)
}

// blankOnce boots all VMs once with empty disks, and then with their own.
func (c *cluster) blankOnce(t *testing.T) {
	t.Helper()
	epoch, id := c.newestEpoch(t)
	for _, vm := range c.vms {
		c.must(t, c.KillVM(t.Context(), vm))
		c.must(t, c.SnapshotDisk(vm, "own-"+vm))
		c.must(t, c.EmptyDisk(vm))
		c.must(t, c.StartVM(t.Context(), vm))
	}
	for _, vm := range c.vms {
		await(t, vm+" waits", func() error { return c.blocked(vm, "no-quorum-empty-disk") })
	}
	for _, vm := range c.vms {
		c.must(t, c.KillVM(t.Context(), vm))
		c.must(t, c.RestoreDisk(vm, "own-"+vm, true))
		c.must(t, c.DeleteSnapshot("own-"+vm))
		c.must(t, c.StartVM(t.Context(), vm))
	}
	await(t, "whole, without a hand", c.membersWhole)
	if now, nowID := c.newestEpoch(t); now != epoch || nowID != id {
		t.Errorf("epoch %d, etcd cluster %s, before %d, %s", now, nowID, epoch, id)
	}
}

// takeBack orders a restore of a living cluster and takes it back once the others have stopped for it: the named
// replica stands still meanwhile.
func (c *cluster) takeBack(t *testing.T) {
	t.Helper()
	epoch, id := c.newestEpoch(t)
	named := c.vms[0]
	out, err := c.quorate(t, "restore", "--yes", "--end-living-cluster", "--no-wait", "--from", "directory="+named)
	t.Logf("%s", out)
	c.must(t, err)
	n := 1 // the newest order
	for ; err == nil; n++ {
		_, err = os.Stat(c.orderFile(n+1, ""))
	}
	n--
	soon(t, "accepted", func() error {
		_, err := os.Stat(c.orderFile(n, ".accepted"))
		return err
	})
	c.in(t, named, "kill -STOP -1") // all but init and this shell
	for _, vm := range c.vms[1:] {
		await(t, vm+" stops", func() error { return c.memberless(vm) })
	}
	out, err = c.quorate(t, "orders", "withdraw", fmt.Sprint(n))
	t.Logf("%s, %v", out, err)
	c.in(t, named, "kill -CONT -1")
	c.must(t, err)
	await(t, "whole again, as it was", c.membersWhole)
	if now, nowID := c.newestEpoch(t); now != epoch || nowID != id {
		t.Errorf("epoch %d, etcd cluster %s, before %d, %s", now, nowID, epoch, id)
	}
}

// orderFile is the object of an order, or of what is said of it.
func (c *cluster) orderFile(n int, what string) string {
	return filepath.Join(c.record(), "orders", fmt.Sprintf("%d%s.json", n, what))
}

// TestARestoreIsTakenBackAfterAllHaveStopped: what was taken back is taken back, whoever had stopped for it.
func TestARestoreIsTakenBackAfterAllHaveStopped(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	l.stop()
	c.takeBack(t)
	c.check(t, l, c.vms...)
}

// again restores the snapshot that the newest epoch was restored from once more: no client may see a revision twice.
func (c *cluster) again(t *testing.T, args ...string) {
	t.Helper()
	l := c.startWriters(t)
	l.stop()
	last := c.revision(t)
	c.restoreMembers(t, args...)
	if now := c.revision(t); now <= last {
		t.Errorf("revision %d after the second restore of one source, and clients have seen %d", now, last)
	}
}

// revision is etcd's.
func (c *cluster) revision(t *testing.T) (revision int64) {
	t.Helper()
	c.withMember(t, c.vms[0], func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Get(ctx, "x")
		if err == nil {
			revision = resp.Header.Revision
		}
		return err
	})
	return revision
}
