package test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/localgce"
)

// The size that the case is about is 8 GB at 50 MB/s: `go test ./test -run TestCase20 -timeout 90m -copy.megabytes
// 8000`, for which some 50 GB of disk must be free. With -copy.megabytes 100 -copy.rate 300000 a copy takes longer than
// the 5 minutes of etcd's peer server.
var (
	copyMegabytes = flag.Int("copy.megabytes", 0, "the database that TestCase20 copies, in MB; 0 takes 100, and 1000 "+
		"in chaos")
	copyRate = flag.Int64("copy.rate", 0, "the link over which TestCase20 copies, in bytes a second; 0 takes 50 "+
		"MB, or less so that a copy takes 4 s")
)

// disturbance is what befalls a copy when so much of it has arrived.
type disturbance struct {
	name string
	at   float64
	do   func(t *testing.T, vm, leader string)
	// breaks: the copy ends, and another has to begin.
	breaks bool
}

func TestCase20ACopyOverASlowLinkIsDisturbed(t *testing.T) {
	t.Parallel()
	megabytes := cmp.Or(*copyMegabytes, 100)
	if chaos {
		megabytes = cmp.Or(*copyMegabytes, 1000)
	}
	size := int64(megabytes) << 20
	rate := cmp.Or(*copyRate, min(50e6, size/4))
	limit := patience + 4*time.Duration(size/rate)*time.Second
	// Fewer entries in the log than usual: it is kept in memory, and the values are large.
	c, l := membersOf(t, plan{vms: threeVMs, diskSize: 4*size + 2<<30, etcd: "catchUpEntries: 5000\n  quotaBytes: " +
		"17179869184"})
	c.fillMegabytes(t, c.leader(t), megabytes)
	vm := c.follower(t)
	c.must(t, c.SetLink(t.Context(), vm, localgce.Link{Bandwidth: rate}))
	for _, d := range c.disturbances() {
		leader, before, failed := c.leader(t), c.member(t, vm), c.brokenCopies(vm)
		whole := c.databaseSize(t, leader)
		c.must(t, wipe(c)(t.Context(), vm))
		begin := time.Now()
		c.awaitArrival(t, limit, vm, int64(d.at*float64(whole)))
		d.do(t, vm, leader)
		awaitWithin(t, limit, d.name+": a voter", c.membersWhole)
		c.wantMember(t, vm, before, false)
		if failed = c.brokenCopies(vm) - failed; d.breaks && failed == 0 {
			t.Errorf("%s: no copy was broken", d.name)
		}
		t.Logf("%s: %d MB at %.0f MB/s, %.1f s from the VM to a voter, %d copies broken", d.name, whole>>20,
			float64(rate)/1e6, time.Since(begin).Seconds(), failed)
	}
	c.must(t, c.SetLink(t.Context(), vm, localgce.Link{}))
	c.invariants(t, l)
}

func (c *cluster) disturbances() []disturbance {
	list := []disturbance{
		{name: "the leader changes in the middle", at: 0.5, do: c.changeLeader},
		{name: "all connections are reset near the end", at: 0.9, breaks: true,
			do: func(t *testing.T, vm, leader string) {
				n, err := c.ResetConnections(t.Context(), vm, leader)
				c.must(t, err)
				if n == 0 {
					t.Errorf("%s has no connection with %s", vm, leader)
				}
			}},
	}
	if !chaos {
		return list
	}
	return append(list, disturbance{name: "the leader is cut off", at: 0.33, breaks: true,
		do: func(t *testing.T, _, leader string) {
			c.must(t, c.Cut(t.Context(), leader))
			time.Sleep(7 * time.Second) // longer than the transport waits for a byte
			c.must(t, c.Heal(t.Context(), leader))
		}})
}

// changeLeader hands the leadership to the VM that is neither.
func (c *cluster) changeLeader(t *testing.T, vm, leader string) {
	t.Helper()
	third := c.others(vm, leader)[0]
	id, err := strconv.ParseUint(c.member(t, third), 16, 64)
	c.must(t, err)
	c.withMember(t, leader, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MoveLeader(ctx, id)
		return err
	})
	if c.arrived(vm) == 0 { // etcd answers once the other leads
		t.Errorf("the copy to %s was done before %s led", vm, third)
	}
}

// awaitArrival looks more often than await: what is left of the copy may take less than half a second.
func (c *cluster) awaitArrival(t *testing.T, limit time.Duration, vm string, bytes int64) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		got := c.arrived(vm)
		if got >= bytes {
			return
		}
		if time.Since(begin) > limit || t.Context().Err() != nil {
			t.Fatalf("%d bytes of a copy have reached %s within %s, want %d", got, vm, limit, bytes)
		}
	}
}

// arrived is how many bytes of a copy have reached a VM that joins; 0 where none is on its way.
func (c *cluster) arrived(vm string) (most int64) {
	list, _ := filepath.Glob(c.diskOf(vm, "etcd/member/snap/tmp*")) // its only error is a bad pattern
	for _, path := range list {
		if info, err := os.Stat(path); err == nil {
			most = max(most, info.Size())
		}
	}
	return most
}

// brokenCopies is how many copies a VM's members have begun to receive in vain.
func (c *cluster) brokenCopies(vm string) int {
	b, _ := os.ReadFile(filepath.Join(c.vm(vm).LogFolder, "etcd.log")) // none yet: none broken
	return bytes.Count(b, []byte("failed to save incoming database snapshot"))
}

// databaseSize is what a copy of the database has to send, in bytes: the file itself may be larger.
func (c *cluster) databaseSize(t *testing.T, vm string) (size int64) {
	t.Helper()
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		status, err := client.Status(ctx, client.Endpoints()[0])
		if err == nil {
			size = status.DbSize
		}
		return err
	})
	return size
}

// fillMegabytes writes so much in values of 128 KB.
func (c *cluster) fillMegabytes(t *testing.T, vm string, megabytes int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(megabytes)*200*time.Millisecond)
	defer cancel()
	client, err := dial(ctx, c.vm(vm).Address, c.etcdTLS(t))
	c.must(t, err)
	defer client.Close()
	value := strings.Repeat("x", 128<<10)
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for n := range megabytes * 8 {
		group.Go(func() error { return putAnyway(ctx, client, fmt.Sprintf("big/%d", n), value) })
	}
	c.must(t, group.Wait())
	t.Logf("filled with %d MB in %s", megabytes, time.Since(begin).Round(100*time.Millisecond))
}

// putAnyway tries a put again: a member under much load may be too slow once.
func putAnyway(ctx context.Context, client *clientv3.Client, key, value string) (err error) {
	for range 10 {
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err = client.Put(call, key, value)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	return err
}
