package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/localgce"
)

// TestRestores takes one cluster of three beyond what it survives, twice, and has one command bring it back: from the
// disk that survived, with nothing lost, and from a snapshot when none did.
func TestRestores(t *testing.T) {
	c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}})
	c.awaitWhole(t)
	if !t.Run("two of three are lost with their disks: nothing is lost from the third's", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		fromTheSurvivor(t, c)
	}) {
		return
	}
	if !t.Run("all are lost with their disks: what the snapshot holds is back", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		fromASnapshot(t, c)
	}) {
		return
	}
	t.Run("the same snapshot once more: no resourceVersion goes back", func(t *testing.T) {
		t.Cleanup(func() { c.tell(t) })
		epoch, before := c.newestEpoch(t)
		c.note(t, "lost-again")
		last := c.resourceVersion(t)
		c.restore(t, "--from", "snapshot="+c.snapshotBefore(t, epoch), "--on", "master-b")
		c.sameHistoryFor(t, before)
		c.wantAnotherHistory(t, last+1-revisionBump, last)
	})
}

// TestASurvivorGoesOnByItself deletes one VM of three, which leaves two voters, and then another with its disk: all
// that was acknowledged is on the third's.
func TestASurvivorGoesOnByItself(t *testing.T) {
	onlyInChaos(t, "3 minutes")
	c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}})
	c.awaitWhole(t)
	c.must(t, c.DeleteVM(t.Context(), "master-c", true))
	await(t, "two voters are left", func() error { return c.seesWhole("master-a", 2) })
	// Until etcd's own next snapshot the logs have the change, and before a change is applied the third can have
	// acknowledged: the survivor cannot know.
	for range 8 {
		c.writeMany(t, "master-a", etcdSnapshotCount/7)
	}
	before := c.clusterID(t, "master-a")
	c.note(t, "by-two")
	c.must(t, c.DeleteVM(t.Context(), "master-b", true))
	c.vms = []string{"master-a"}
	await(t, "the epoch is ended without a person", func() error {
		out, err := c.quorate(t, "record", "show")
		if err == nil && !strings.Contains(out, "policy of") {
			err = fmt.Errorf("nobody ordered a restore: %s", out)
		}
		return err
	})
	await(t, "the last one serves alone", func() error { return c.seesWhole("master-a", 1) })
	if now := c.clusterID(t, "master-a"); now == before {
		t.Errorf("master-a is still of etcd cluster %s", now)
	}
	c.sees(t, "by-two")
}

// etcdSnapshotCount is after how many entries etcd takes its own snapshot.
const etcdSnapshotCount = 10000

// writeMany puts so many small values through a member.
func (c *cluster) writeMany(t *testing.T, vm string, n int) {
	t.Helper()
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(64)
		for i := range n {
			g.Go(func() error {
				_, err := client.Put(ctx, fmt.Sprintf("many/%d", i%100), "x")
				return err
			})
		}
		return g.Wait()
	})
}

func fromTheSurvivor(t *testing.T, c *cluster) {
	c.note(t, "before")
	before := c.clusterID(t, "master-a")
	c.in(t, "master-a", "quorate snapshot save")
	c.note(t, "after-the-snapshot")
	_, err := c.quorate(t, "restore", "--from", "directory=master-a", "--yes", "--no-wait")
	if err == nil || !strings.Contains(err.Error(), "add --end-living-cluster; nothing was written") {
		t.Fatalf("a restore of a living cluster: %v", err)
	}
	last := c.resourceVersion(t)
	c.lose(t, "master-b", "master-c")
	await(t, "the survivor and the new ones wait",
		func() error { return c.allBlocked("no-quorum-empty-disk", "master-b", "master-c") })
	c.restore(t, "--from", "directory=master-a")
	c.sameHistoryFor(t, before)
	c.wantAnotherHistory(t, last, last)
	c.sees(t, "before", "after-the-snapshot")
	s := c.archives(t, "master-a")
	if len(s) != 1 {
		t.Errorf("archived on the survivor: %q", s)
	}
}

func fromASnapshot(t *testing.T, c *cluster) {
	before := c.clusterID(t, "master-b")
	saved := c.resourceVersion(t)
	c.in(t, "master-b", "quorate snapshot save")
	c.note(t, "lost")
	last := c.resourceVersion(t)
	c.lose(t, c.vms...)
	await(t, "all wait with empty disks", func() error { return c.allBlocked("no-quorum-empty-disk", c.vms...) })
	c.restore(t, "--from", "snapshot", "--on", "master-c")
	c.sameHistoryFor(t, before)
	c.wantAnotherHistory(t, saved, last)
	c.sees(t, "before", "after-the-snapshot")
	if _, err := c.kubectl(t, "", "get", "configmap", "lost"); err == nil ||
		!strings.Contains(err.Error(), "NotFound") {
		t.Errorf("what was written after the snapshot: %v", err)
	}
}

// note writes an object that is read back later.
func (c *cluster) note(t *testing.T, name string) {
	t.Helper()
	c.mustKubectl(t, "", "create", "configmap", name, "--from-literal", "is="+name)
}

// lose deletes VMs with their disks and makes them again with empty ones.
func (c *cluster) lose(t *testing.T, vms ...string) {
	t.Helper()
	for _, vm := range vms {
		c.must(t, c.KillVM(t.Context(), vm))
	}
	for _, vm := range vms {
		c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	}
}

// allBlocked says which of the VMs does not wait under a name.
func (c *cluster) allBlocked(name string, vms ...string) error {
	for _, vm := range vms {
		if err := c.blocked(vm, name); err != nil {
			return err
		}
	}
	return nil
}

// restore is the one command, and the wait for a whole cluster.
func (c *cluster) restore(t *testing.T, args ...string) {
	t.Helper()
	begin := time.Now()
	out, err := c.quorate(t, append([]string{"restore", "--yes", "--end-living-cluster"}, args...)...)
	t.Logf("%s", out)
	c.must(t, err)
	t.Logf("the next epoch was formed %s after the command", time.Since(begin).Round(10*time.Millisecond))
	await(t, "whole again", c.whole)
}

// clusterID is etcd's cluster id as a replica's agent knows it.
func (c *cluster) clusterID(t *testing.T, vm string) string {
	t.Helper()
	s, err := c.status(vm)
	c.must(t, err)
	return s.Cluster.ID
}

// sameHistoryFor fails unless all replicas are of one etcd cluster, which is not the one before, and the order is done.
func (c *cluster) sameHistoryFor(t *testing.T, before string) {
	t.Helper()
	now := c.clusterID(t, c.vms[0])
	for _, vm := range c.vms {
		if id := c.clusterID(t, vm); id != now || id == before {
			t.Errorf("%s is of etcd cluster %s, %s of %s, before %s", vm, id, c.vms[0], now, before)
		}
	}
	out, err := c.quorate(t, "record", "show", "-o", "json")
	c.must(t, err)
	var v struct {
		Epochs []struct {
			Number  int
			Outcome struct{ Formed *struct{} }
			Closed  *struct{}
		}
		Orders []struct{ Done *struct{} }
	}
	c.must(t, json.Unmarshal([]byte(out), &v))
	open := 0
	for _, e := range v.Epochs {
		if e.Outcome.Formed != nil && e.Closed == nil {
			open++
		}
	}
	if open != 1 || slices.ContainsFunc(v.Orders, func(o struct{ Done *struct{} }) bool { return o.Done == nil }) {
		t.Errorf("%d open epochs, or an order that is not done: %s", open, out)
	}
}

// sees fails unless every apiserver has the objects, both by a read of etcd and from its watch cache, and passes on
// what is written now.
func (c *cluster) sees(t *testing.T, names ...string) {
	t.Helper()
	fresh := fmt.Sprintf("fresh-%d", time.Now().UnixNano())
	c.note(t, fresh)
	for _, vm := range c.vms {
		server := c.vm(vm).Address
		for _, name := range append(slices.Clone(names), fresh) {
			c.mustKubectl(t, server, "get", "configmap", name)
		}
		await(t, "the watch cache of "+vm, func() error {
			cached, err := c.kubectl(t, server, "get", "--raw",
				"/api/v1/namespaces/default/configmaps?resourceVersion=0")
			if err != nil {
				return err
			}
			for _, name := range append(slices.Clone(names), fresh) {
				if !strings.Contains(cached, `"name":"`+name+`"`) {
					return fmt.Errorf("it lacks %s: %s", name, cached)
				}
			}
			return nil
		})
	}
}

// revisionBump is what a restore adds to the revision of its source.
const revisionBump = 1_000_000_000

// resourceVersion is that of a list which is read from etcd.
func (c *cluster) resourceVersion(t *testing.T) (version int64) {
	t.Helper()
	out := c.mustKubectl(t, "", "get", "--raw", "/api/v1/namespaces/default/configmaps?limit=1")
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	c.must(t, json.Unmarshal([]byte(out), &list))
	version, err := strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
	c.must(t, err)
	return version
}

// wantAnotherHistory fails unless every resourceVersion from before a restore is one that no apiserver can go on from:
// the source's was at least saved, and last is the newest that a client can have seen.
func (c *cluster) wantAnotherHistory(t *testing.T, saved, last int64) {
	t.Helper()
	if now := c.resourceVersion(t); now < saved+revisionBump {
		t.Errorf("the resourceVersion is %d after the restore, %d before: it has to be %d greater", now, saved,
			revisionBump)
	}
	for _, vm := range c.vms {
		path := fmt.Sprintf("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=%d&timeoutSeconds=5", last)
		out, err := c.kubectl(t, c.vm(vm).Address, "get", "--raw", path)
		if told := fmt.Sprint(out, err); !strings.Contains(told, `"code":410`) &&
			!strings.Contains(told, "too old resource version") {
			t.Errorf("a watch from resourceVersion %d through %s goes on: %s", last, vm, told)
		}
	}
}

// archives are the directories that a replica has put away.
func (c *cluster) archives(t *testing.T, vm string) []string {
	t.Helper()
	return strings.Fields(c.in(t, vm, "ls /var/lib/quorate/archive"))
}
