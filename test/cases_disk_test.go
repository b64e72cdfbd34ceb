package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/localgce"
)

// This file holds the cases in which a disk is not what it was, or not where.

// The new VM is given the address of the deleted one, whose member is still in the list.
func TestCase05AnotherNameReplacesADeletedVM(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "70 seconds: a voter is removed after one minute")
	c, l := threeMembers(t)
	gone := c.follower(t)
	c.must(t, c.DeleteVM(t.Context(), gone, true))
	c.vms = append(c.others(gone), "master-x")
	c.must(t, c.CreateVM(t.Context(), localgce.VMConfig{Name: "master-x", Zone: "us-central1-f"}, ""))
	await(t, "master-x has taken the place of "+gone, c.membersWhole)
	c.invariants(t, l)
}

// archived wants a replica to have put away so many directories.
func (c *cluster) archived(t *testing.T, vm string, want int) {
	t.Helper()
	if list, err := filepath.Glob(c.diskOf(vm, "archive/*")); err != nil || len(list) != want {
		t.Errorf("%s has archived %q, want %d directories: %v", vm, list, want, err)
	}
}

// agentLog is what the agents of a VM have printed so far.
func (c *cluster) agentLog(t *testing.T, vm string) string {
	t.Helper()
	b, err := os.ReadFile(c.vm(vm).Log)
	c.must(t, err)
	return string(b)
}

// rollBack cuts a VM's power and starts it on its disk as it was so long ago, under the same id or as another disk;
// then the cluster becomes whole.
func (c *cluster) rollBack(t *testing.T, vm string, by time.Duration, sameID bool) {
	t.Helper()
	c.must(t, c.SnapshotDisk(vm, "earlier"))
	time.Sleep(by)
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.RestoreDisk(vm, "earlier", sameID))
	c.must(t, c.DeleteSnapshot("earlier"))
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, vm+", on an older disk, is whole again", c.membersWhole)
}

func TestCase09DiskRolledBack(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	for _, vm := range []string{c.follower(t), c.leader(t)} {
		before := c.member(t, vm)
		c.rollBack(t, vm, 2*time.Second, false)
		c.wantMember(t, vm, before, false)
		c.archived(t, vm, 1)
	}
	c.invariants(t, l)
}

func TestCase09DiskRolledBackUnderTheSameIDBelowItsMark(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "two minutes: marks are 30 s apart")
	c, l := threeMembers(t)
	vm := c.follower(t)
	before := c.member(t, vm)
	c.rollBack(t, vm, 70*time.Second, true)
	c.wantMember(t, vm, before, false)
	c.archived(t, vm, 1)
	c.invariants(t, l)
}

// A copy that is put back above the last mark, under the id of the disk, has lost what the member acknowledged after
// it, and nothing on it or in the record says so: the leader does, as long as it leads.
func TestCase09DiskRolledBackUnderTheSameIDAboveItsMark(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	told := 0
	for _, vm := range c.others(c.leader(t)) {
		before := c.member(t, vm)
		c.rollBack(t, vm, 2*time.Second, true)
		c.wantMember(t, vm, before, false)
		c.archived(t, vm, 1)
		if strings.Contains(c.agentLog(t, vm), "has its acknowledgement of everything up to") {
			told++
		}
	}
	if told == 0 { // one of them may have written a mark in these two seconds
		t.Error("no replica was told by the leader what it had acknowledged")
	}
	// Whoever leads next has heard nothing of this one: it goes on from the copy, and a quorum of the others has all
	// that it ever acknowledged.
	c.rollBack(t, c.leader(t), 2*time.Second, true)
	c.invariants(t, l)
}

func TestCase10AnotherReplicasDiskIsCloned(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	from, to := c.leader(t), c.follower(t)
	original := c.member(t, from)
	c.must(t, c.KillVM(t.Context(), to))
	c.must(t, c.CloneDisk(from, to))
	c.must(t, c.StartVM(t.Context(), to))
	await(t, to+", on a copy of the disk of "+from+", is whole again", c.membersWhole)
	c.wantMember(t, from, original, true)
	c.wantMember(t, to, original, false)
	c.archived(t, to, 1)

	x, y := c.vms[0], c.vms[1]
	c.together(t, []string{x, y}, c.KillVM)
	c.must(t, c.SwapDisks(x, y))
	c.together(t, []string{x, y}, c.StartVM)
	await(t, "both say that the disks are others'", func() error {
		for _, vm := range []string{x, y} {
			if err := c.blocked(vm, "foreign-disk"); err != nil {
				return err
			}
		}
		return nil
	})
	c.together(t, []string{x, y}, c.KillVM)
	c.must(t, c.SwapDisks(x, y))
	c.together(t, []string{x, y}, c.StartVM)
	await(t, "swapped back", c.membersWhole)
	c.invariants(t, l)
}

// The former VM runs on: Google says that it is gone, and its host has not heard of it.
func TestCase10AnOldVMOfTheSameNameStillRuns(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	for _, vm := range []string{c.follower(t), c.leader(t)} {
		former := vm + ".1"
		c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true, Address: c.nextFree(),
			LeaveRunning: true}))
		await(t, vm+" is whole next to its former self", c.membersWhole)
		await(t, "the former one has stopped", func() error {
			if n := len(c.processes(former)["etcd"]); n != 0 {
				return fmt.Errorf("%d members run on it", n)
			}
			return c.blocked(former, "superseded")
		})
		time.Sleep(2 * time.Second)
		c.must(t, c.DeleteVM(t.Context(), former, true))
	}
	c.invariants(t, l)
}

func TestCase11TornAndFlippedLog(t *testing.T) {
	t.Parallel()
	c, l := membersOf(t, plan{vms: threeVMs, reflink: true})
	rounds := 1
	if chaos {
		rounds = 10
	}
	for range rounds {
		for name, tear := range map[string]act{"its file system was shut": c.TearDisk,
			"it has what was written at one instant": c.TearDiskByCopy} {
			for _, vm := range []string{c.follower(t), c.leader(t)} {
				before := c.member(t, vm)
				c.must(t, tear(t.Context(), vm))
				c.must(t, c.StartVM(t.Context(), vm))
				await(t, "the disk of "+vm+" was torn ("+name+"), and is whole again", c.membersWhole)
				c.wantMember(t, vm, before, true)
			}
		}
	}
	vm := c.leader(t)
	before := c.member(t, vm)
	c.must(t, c.KillVM(t.Context(), vm))
	_, err := c.CorruptDisk(t.Context(), vm, localgce.Corruption{Path: "etcd/member/wal/*.wal", Offset: 5000, Bits: 3})
	c.must(t, err)
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, vm+" had bits flipped in its log, and is whole again", c.membersWhole)
	c.wantMember(t, vm, before, false)
	c.archived(t, vm, 1)
	c.invariants(t, l)
}

func TestCase12TruncatedDatabase(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	for _, vm := range []string{c.follower(t), c.leader(t)} {
		before := c.member(t, vm)
		c.must(t, c.KillVM(t.Context(), vm))
		_, err := c.TruncateDisk(t.Context(), vm, "etcd/member/snap/db", 8192)
		c.must(t, err)
		c.must(t, c.StartVM(t.Context(), vm))
		await(t, vm+" had its database cut, and is whole again", c.membersWhole)
		c.wantMember(t, vm, before, false)
		c.archived(t, vm, 1)
	}
	c.invariants(t, l)
}

// One page in the middle of the database is not what it was. Nothing at its head says so, and etcd ends on it without a
// word of its own at each start.
func TestCase12DamagedPage(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	for _, vm := range []string{c.follower(t), c.leader(t)} {
		before := c.member(t, vm)
		time.Sleep(2 * time.Second) // for a leaf that is full, and so is written no more
		pages := oldestLeaf(t, c.diskOf(vm, "etcd/member/snap/db"))
		c.must(t, c.KillVM(t.Context(), vm))
		for _, page := range pages {
			_, err := c.CorruptDisk(t.Context(), vm, localgce.Corruption{Path: "etcd/member/snap/db",
				Offset: page * 4096, Bits: 4096 * 8})
			c.must(t, err)
		}
		c.must(t, c.StartVM(t.Context(), vm))
		await(t, vm+" had a page of its database damaged, and is whole again", func() error {
			s, err := c.status(vm)
			if err == nil && s.Etcd.Member == before {
				err = fmt.Errorf("%s still has member %s", vm, before)
			}
			return errors.Join(err, c.membersWhole())
		})
		c.archived(t, vm, 1)
		if !strings.Contains(c.agentLog(t, vm), "the database is damaged") {
			t.Errorf("the agent of %s does not say why", vm)
		}
	}
	c.invariants(t, l)
}

// oldestLeaf is the page of a database with the oldest key revisions, and the former copies of it that nothing has been
// written over: bbolt writes a page that is changed to another place. The layout is bbolt's: a page begins with its
// number, its kind and how many elements it has, each with where its key is.
func oldestLeaf(t *testing.T, file string) (pages []int64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var oldest []byte
	for page := int64(2); (page+1)*4096 <= int64(len(b)); page++ {
		p := b[page*4096:][:4096]
		isLeaf := binary.LittleEndian.Uint64(p) == uint64(page) && binary.LittleEndian.Uint16(p[8:]) == 2 && p[10] > 2
		key, size := 16+int(binary.LittleEndian.Uint32(p[20:])), binary.LittleEndian.Uint32(p[24:])
		if !isLeaf || size != 17 || key+17 > len(p) || p[key+8] != '_' {
			continue
		}
		if revision := p[key : key+17]; oldest == nil || bytes.Compare(revision, oldest) < 0 {
			oldest, pages = revision, nil
		}
		if bytes.Equal(p[key:key+17], oldest) {
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		t.Fatal("the database has no leaf of key revisions")
	}
	t.Logf("the oldest revisions are in %d pages of %d", len(pages), len(b)/4096)
	return pages
}

// A value is changed in the database, where no checksum is: only the comparison with the others finds it, after a
// compaction, once a minute.
func TestCase12FlippedValueRaisesTheAlarmAndIsRepaired(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "two minutes: members are compared once a minute")
	c, l := threeMembers(t)
	vm := c.follower(t)
	before := c.member(t, vm)
	const canary = "the-canary-sings-in-the-coal-mine"
	var revision int64
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		put, err := client.Put(ctx, "canary", canary)
		if err == nil {
			revision = put.Header.Revision
		}
		return err
	})
	time.Sleep(time.Second) // etcd commits its database every 100 ms
	c.must(t, c.StopVM(t.Context(), vm))
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, "whole", c.membersWhole)
	b, err := os.ReadFile(c.diskOf(vm, "etcd/member/snap/db"))
	c.must(t, err)
	offset := bytes.Index(b, []byte(canary))
	if offset < 0 {
		t.Fatal("the value is not in the database")
	}
	c.must(t, c.StopVM(t.Context(), vm))
	_, err = c.CorruptDisk(t.Context(), vm, localgce.Corruption{Path: "etcd/member/snap/db", Offset: int64(offset),
		Bits: 1})
	c.must(t, err)
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, "it runs on the changed database", c.membersWhole)
	c.wantMember(t, vm, before, true)
	await(t, "the change is found, the member replaced", func() error {
		c.withMember(t, c.others(vm)[0], func(ctx context.Context, client *clientv3.Client) error {
			revision++
			_, _ = client.Compact(ctx, revision) // refused where it was done already
			return nil
		})
		s, err := c.status(vm) // its agent starts anew when its member is removed
		if err == nil && s.Etcd.Member == before {
			err = fmt.Errorf("%s still has member %s", vm, before)
		}
		return errors.Join(err, c.membersWhole())
	})
	c.invariants(t, l)
}

func TestCase13FullDisk(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	for _, vm := range []string{c.follower(t), c.leader(t)} {
		before := c.member(t, vm)
		c.must(t, c.FillDisk(t.Context(), vm, 0))
		await(t, "the member of "+vm+" ends for want of room", func() error {
			if b, err := os.ReadFile(filepath.Join(c.vm(vm).LogFolder, "etcd.log")); err != nil ||
				!bytes.Contains(b, []byte("no space left on device")) {
				return fmt.Errorf("its log does not say so: %v", err)
			}
			return nil
		})
		time.Sleep(inChaos(3*time.Second, 20*time.Second))
		since := time.Now()
		await(t, "clients go on", func() error { return l.goOn(since) })
		c.must(t, c.FreeDisk(t.Context(), vm))
		await(t, "the disk of "+vm+" has room again", c.membersWhole)
		c.wantMember(t, vm, before, true)
	}
	c.invariants(t, l)
}

func TestCase13DatabaseAboveItsQuota(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, etcd: "quotaBytes: 67108864"})
	await(t, "whole", c.membersWhole)
	l := c.startWriters(t)
	vm := c.leader(t)
	full := false
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		value := strings.Repeat("x", 1<<20)
		for n := 0; n < 100 && !full; n++ {
			_, err := client.Put(ctx, "big", value)
			full = err != nil && strings.Contains(err.Error(), "space exceeded")
			if err != nil && !full {
				return err
			}
		}
		return nil
	})
	if !full {
		t.Fatal("100 MiB fit in a quota of 64 MiB")
	}
	// as an apiserver does every five minutes
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Get(ctx, "big", clientv3.WithKeysOnly())
		if err == nil {
			_, err = client.Compact(ctx, resp.Header.Revision)
		}
		return err
	})
	since := time.Now()
	await(t, "defragmented and disarmed: clients go on", func() error { return l.goOn(since) })
	c.invariants(t, l)
}

// A member whose disk stands still is not ended for it: it would read all its state again, from that disk.
func TestCase14StalledSync(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	still := inChaos(10*time.Second, 45*time.Second)
	for _, vm := range []string{c.follower(t), c.leader(t)} {
		before, process := c.member(t, vm), c.processes(vm)["etcd"]
		l.stall()
		c.must(t, c.FreezeDisk(vm, still))
		time.Sleep(still + time.Second)
		await(t, "whole", c.membersWhole)
		c.wantMember(t, vm, before, true)
		if now := c.processes(vm)["etcd"]; len(now) != 1 || !slices.Equal(now, process) {
			t.Errorf("etcd on %s is process %v, before %v", vm, now, process)
		}
		t.Logf("the disk of %s stood still for %s: writes stalled %s", vm, still, l.stall())
	}
	c.invariants(t, l)
}

// A member answers and knows its leader also while its disk stands still. It is not called ready any more once that has
// taken longer than a slow disk does, two minutes, and is whole again once the disk is.
func TestCase14ADiskThatStandsStillForLong(t *testing.T) {
	onlyInChaos(t, "3 min")
	t.Parallel()
	c, l := threeMembers(t)
	vm, begin := c.follower(t), time.Now()
	c.must(t, c.FreezeDisk(vm, 10*time.Minute))
	awaitWithin(t, 5*time.Minute, "etcd is not ready", func() error {
		s, err := c.status(vm)
		if err == nil && component(s, "etcd") == "ready" {
			return fmt.Errorf("it is ready after %s", time.Since(begin).Truncate(time.Second))
		}
		return err
	})
	c.must(t, c.ThawDisk(vm))
	await(t, "whole", c.membersWhole)
	c.invariants(t, l)
}

// An agent that is told to stop while its data disk stands still and its member has no quorum ends what has clients at
// once: it waits neither for the member, which the disk blocks, nor for what it does with that disk itself.
func TestCase14AStopWhileTheDiskStandsStill(t *testing.T) {
	onlyInChaos(t, "1 min")
	t.Parallel()
	c, l := threeMembers(t)
	vm := c.leader(t)
	c.must(t, c.Cut(t.Context(), vm))
	await(t, "the others go on", func() error { return l.goOn(time.Now().Add(-time.Second)) })
	c.must(t, c.FreezeDisk(vm, time.Minute))
	time.Sleep(10 * time.Second) // until something waits for the disk
	before := c.processes(vm)
	begin := time.Now()
	c.in(t, vm, "kill -TERM "+before["agent"][0])
	awaitWithin(t, 20*time.Second, "the apiserver is gone", func() error {
		if now := c.processes(vm)["kube-apiserver"]; slices.Contains(now, before["kube-apiserver"][0]) {
			return fmt.Errorf("it is still there after %s", time.Since(begin))
		}
		return nil
	})
	c.must(t, c.ThawDisk(vm))
	c.must(t, c.Heal(t.Context(), vm))
	c.invariants(t, l)
}
