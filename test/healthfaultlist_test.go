package test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/localgce"
)

// injectedFault is one thing that goes wrong, and what an operator learns of it.
type injectedFault struct {
	name string
	// inject does it to a VM: a follower's, or the leader's.
	inject func(t *testing.T, c *cluster, vm string) error
	leader bool
	// causes are the findings of which one has to come first; none: it mends itself before anybody can ask.
	causes []string
	// never are findings of consequences that may not stand beside it as another cause.
	never []string
	// anywhere: the finding need not be about that VM. passes: it need not stay.
	anywhere, passes bool
	// compute: health asks the Compute API, too.
	compute bool
	// mends: the remedy is all that it takes. noRemedy: only time helps.
	mends, noRemedy bool
	// heal is what a person does who has read it.
	heal func(t *testing.T, c *cluster, vm string) error
	// story is what the replica's story has then, as regular expressions; of anywhere, the events of all.
	story []string
}

const (
	lostPower = "ended between .* without being asked to"
	isReady   = "is ready"
)

// on is a fault that one call makes.
func on(do func(ctx context.Context, c *cluster, vm, other string) error) func(*testing.T, *cluster, string) error {
	return func(t *testing.T, c *cluster, vm string) error { return do(t.Context(), c, vm, "") }
}

// serviceFails makes one of Google's services fail, for the VM or for all.
func serviceFails(s localgce.Service, kind string, all bool) func(*testing.T, *cluster, string) error {
	return func(_ *testing.T, c *cluster, vm string) error {
		if all {
			vm = ""
		}
		f := localgce.Fault{Who: vm, Kind: kind}
		if kind == "slow" {
			f.Delay = 30 * time.Second
		}
		return c.SetFault(s, f)
	}
}

// serviceWell ends all faults of a service.
func serviceWell(s localgce.Service) func(*testing.T, *cluster, string) error {
	return func(_ *testing.T, c *cluster, vm string) error {
		if err := c.SetFault(s, localgce.Fault{Who: vm}); err != nil {
			return err
		}
		return c.SetFault(s, localgce.Fault{})
	}
}

// restarted boots the VM after something was done to it.
func restarted(do func(*testing.T, *cluster, string) error) func(*testing.T, *cluster, string) error {
	return func(t *testing.T, c *cluster, vm string) error {
		if err := c.KillVM(t.Context(), vm); err != nil {
			return err
		}
		if err := do(t, c, vm); err != nil {
			return err
		}
		return c.StartVM(t.Context(), vm)
	}
}

// document gives the VM an own document; again takes it back.
func document(old, new string) func(*testing.T, *cluster, string) error {
	return func(_ *testing.T, c *cluster, vm string) error {
		text := strings.Replace(c.document, old, new, 1)
		return c.SetAttribute(vm, agent.ClusterAttribute, &text)
	}
}

func documentAgain(_ *testing.T, c *cluster, vm string) error {
	return c.SetAttribute(vm, agent.ClusterAttribute, &c.document)
}

// order runs the operator's command.
func order(words ...string) func(*testing.T, *cluster, string) error {
	return func(t *testing.T, c *cluster, vm string) error {
		args := []string{}
		for _, w := range words {
			args = append(args, strings.ReplaceAll(w, "VM", vm))
		}
		_, err := c.quorate(t, args...)
		return err
	}
}

// program puts another in the apiserver's place on all VMs, and has the VM's start it.
func program(script string, mode os.FileMode) func(*testing.T, *cluster, string) error {
	return func(t *testing.T, c *cluster, vm string) error {
		path := filepath.Join(c.programs, "kube-apiserver")
		if err := os.Rename(path, path+".right"); err != nil {
			return err
		}
		if mode != 0 {
			if err := os.WriteFile(path, []byte(script), mode); err != nil {
				return err
			}
		}
		c.kill(t, vm, c.processes(vm)["kube-apiserver"][0])
		return nil
	}
}

func programAgain(_ *testing.T, c *cluster, _ string) error {
	path := filepath.Join(c.programs, "kube-apiserver")
	if _, err := os.Stat(path + ".right"); err != nil {
		return nil
	}
	return os.Rename(path+".right", path)
}

// parts cuts what the VM and the first so many of the others send each other.
func parts(many int, oneWay bool) func(*testing.T, *cluster, string) error {
	return func(t *testing.T, c *cluster, vm string) error {
		for _, other := range c.others(vm)[:many] {
			if err := c.Partition(t.Context(), vm, other, oneWay); err != nil {
				return err
			}
		}
		return nil
	}
}

func damaged(path string) func(*testing.T, *cluster, string) error {
	return restarted(func(t *testing.T, c *cluster, vm string) error {
		_, err := c.CorruptDisk(t.Context(), vm, localgce.Corruption{Path: path, Offset: 5000, Bits: 3})
		return err
	})
}

// bigWriter is a client that writes without end, each time another key, so that nothing can be compacted away.
type bigWriter struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// begin writes through the member of a VM.
func (w *bigWriter) begin(t *testing.T, c *cluster, vm string, bytes int) error {
	ctx, cancel := context.WithCancel(t.Context())
	w.stop, w.ended = cancel, make(chan struct{})
	client, err := dial(ctx, c.vm(vm).Address, c.etcdTLS(t))
	if err != nil {
		close(w.ended)
		return err
	}
	go func() {
		defer close(w.ended)
		defer client.Close()
		value := strings.Repeat("x", bytes)
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := client.Put(ctx, fmt.Sprintf("big/%d", n), value); err != nil {
				time.Sleep(100 * time.Millisecond) // it is refused, or somebody else leads
			}
		}
	}()
	return nil
}

// end stops it, and deletes what it wrote.
func (w *bigWriter) end(t *testing.T, c *cluster, vm string) error {
	w.stop()
	<-w.ended
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Delete(ctx, "big/", clientv3.WithPrefix())
		return err
	})
	return nil
}

// quotaUsedUp is healed by the end of who writes, and by deleting what was written: the rest is the agents'.
func quotaUsedUp() injectedFault {
	var w bigWriter
	return injectedFault{name: "etcd's quota is used up", inject: func(t *testing.T, c *cluster, vm string) error {
		return w.begin(t, c, vm, 256<<10)
	}, anywhere: true, passes: true, causes: []string{"no-space"}, heal: w.end, story: []string{"no-space"}}
}

// etcdWithoutRoom is a full disk in a cluster that is written to: etcd ends on it again and again, and nobody hears of
// its member.
func etcdWithoutRoom() injectedFault {
	var w bigWriter
	return injectedFault{name: "a disk is full, and etcd ends", inject: func(t *testing.T, c *cluster, vm string) error {
		if err := c.FillDisk(t.Context(), vm, 0); err != nil {
			return err
		}
		return w.begin(t, c, c.leader(t), 16<<10)
	}, causes: []string{"no-room"}, never: []string{"replica-cut-off", "etcd-ended"},
		heal: func(t *testing.T, c *cluster, vm string) error {
			return errors.Join(w.end(t, c, c.leader(t)), c.FreeDisk(t.Context(), vm))
		}, story: []string{"waits, no-room"}}
}

func orderedToLeave() injectedFault {
	var number uint64
	return injectedFault{name: "a replica was ordered to leave", inject: func(t *testing.T, c *cluster, vm string) error {
		number = c.order(t, "orders", "give", "leave", vm, "--reason", "it goes", "--yes")
		return nil
	}, causes: []string{"left"}, heal: func(t *testing.T, c *cluster, vm string) error {
		return order("orders", "withdraw", fmt.Sprint(number))(t, c, vm)
	}, story: []string{"left|leave|remove"}}
}

// injectedFaults are all that health, events and why are tried with. What no process VM has is not in it: a clock and a
// kubelet of its own. TestCase16AReplicaWhoseClockIsAnHourOff has the clock, cases_kubelet_test.go the kubelet.
var injectedFaults = []injectedFault{
	// VMs.
	{name: "power of a follower is lost", inject: on(killed), compute: true, causes: []string{"vm-not-running"},
		mends: true, story: []string{lostPower, isReady}},
	{name: "power of the leader is lost", inject: on(killed), leader: true, compute: true,
		causes: []string{"vm-not-running"}, mends: true, story: []string{lostPower, isReady}},
	{name: "power is lost, and nobody asks the Compute API", inject: on(killed),
		causes: []string{"replica-not-heard"}, mends: true, story: []string{lostPower, "hears nothing of"}},
	{name: "power of two is lost", inject: func(t *testing.T, c *cluster, vm string) error {
		if err := c.KillVM(t.Context(), c.others(vm)[0]); err != nil {
			return err
		}
		return c.KillVM(t.Context(), vm)
	}, leader: true, compute: true, anywhere: true, causes: []string{"vm-not-running"}, heal: startAll,
		story: []string{"no-quorum|knows of no etcd leader"}},
	{name: "power of all is lost", inject: func(t *testing.T, c *cluster, _ string) error {
		for _, vm := range c.vms {
			if err := c.KillVM(t.Context(), vm); err != nil {
				return err
			}
		}
		return nil
	}, compute: true, anywhere: true, causes: []string{"vm-not-running"}, heal: startAll,
		story: []string{"its agent began"}},
	{name: "a VM is stopped in order", inject: on(stopped), compute: true, causes: []string{"vm-not-running"},
		mends: true, story: []string{"stop", isReady}},
	{name: "a VM is stopped in order, and nobody asks the Compute API", inject: on(stopped), leader: true,
		causes: []string{"replica-stopped"}, mends: true, story: []string{"stop"}},
	{name: "a VM hangs", inject: on(frozen), compute: true, causes: []string{"replica-not-heard"}, mends: true,
		story: []string{"hears nothing of"}},
	{name: "the leader's VM hangs", inject: on(frozen), leader: true, compute: true,
		causes: []string{"replica-not-heard"}, mends: true, story: []string{"hears nothing of"}},
	{name: "a VM is deleted, and its disk is left", inject: func(t *testing.T, c *cluster, vm string) error {
		return c.DeleteVM(t.Context(), vm, false)
	}, compute: true, causes: []string{"vm-missing"}, mends: true, story: []string{lostPower, "took incarnation"}},
	{name: "a VM is deleted with its disk", inject: func(t *testing.T, c *cluster, vm string) error {
		return c.DeleteVM(t.Context(), vm, true)
	}, compute: true, causes: []string{"vm-missing"}, mends: true, story: []string{lostPower, "with an empty disk"}},
	{name: "a VM is recreated with an empty disk", inject: func(t *testing.T, c *cluster, vm string) error {
		return c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true})
	}, story: []string{lostPower, "with an empty disk", isReady}},
	{name: "the host of a VM is lost", inject: func(t *testing.T, c *cluster, vm string) error {
		return c.HostError(t.Context(), vm, localgce.HostError{})
	}, story: []string{lostPower, isReady}},
	// Disks.
	{name: "a disk is full", inject: func(t *testing.T, c *cluster, vm string) error {
		return c.FillDisk(t.Context(), vm, 0)
	}, causes: []string{"disk-nearly-full"}, heal: on(freed), story: []string{"disk-nearly-full"}},
	{name: "the leader's disk is full", inject: func(t *testing.T, c *cluster, vm string) error {
		return c.FillDisk(t.Context(), vm, 0)
	}, leader: true, causes: []string{"disk-nearly-full"}, heal: on(freed), story: []string{"disk-nearly-full"}},
	etcdWithoutRoom(),
	{name: "a disk is emptied while its VM is off", inject: restarted(func(_ *testing.T, c *cluster, vm string) error {
		return c.EmptyDisk(vm)
	}), story: []string{lostPower, isReady}},
	{name: "a disk was torn", inject: func(t *testing.T, c *cluster, vm string) error {
		if err := c.TearDisk(t.Context(), vm); err != nil {
			return err
		}
		return c.StartVM(t.Context(), vm)
	}, story: []string{lostPower, isReady}},
	{name: "etcd's log is damaged", inject: damaged("etcd/member/wal/*.wal"), story: []string{lostPower, isReady}},
	{name: "etcd's database is cut short", inject: restarted(func(t *testing.T, c *cluster, vm string) error {
		_, err := c.TruncateDisk(t.Context(), vm, "etcd/member/snap/db", 8192)
		return err
	}), story: []string{lostPower, isReady}},
	{name: "a disk is another replica's", inject: func(t *testing.T, c *cluster, vm string) error {
		other := c.others(vm)[0]
		if err := c.KillVM(t.Context(), vm); err != nil {
			return err
		}
		if err := c.CloneDisk(other, vm); err != nil {
			return err
		}
		return c.StartVM(t.Context(), vm)
	}, story: []string{lostPower, "put its former etcd directory into archive/", isReady}},
	{name: "two VMs may write to a disk", inject: restarted(func(_ *testing.T, c *cluster, vm string) error {
		return c.SetFault(localgce.Compute, localgce.Fault{Who: vm, Kind: "shared", VMs: []string{vm}})
	}), causes: []string{"data-disk-shared"}, heal: serviceWell(localgce.Compute), story: []string{"data-disk-shared"}},
	// The network.
	{name: "a VM has no network", inject: on(cut), compute: true, causes: []string{"replica-not-heard"},
		heal: on(healed), story: []string{"hears nothing of"}},
	{name: "a follower and both others do not reach each other", inject: parts(2, false),
		causes: []string{"peers-do-not-connect", "replica-cut-off"}, heal: on(healed),
		story: []string{"hears nothing of"}},
	{name: "the leader and both others do not reach each other", inject: parts(2, false), leader: true,
		causes: []string{"peers-do-not-connect", "replica-cut-off"}, heal: on(healed),
		story: []string{"hears nothing of"}},
	{name: "a follower and both others do not reach each other, and its etcd is killed",
		inject: func(t *testing.T, c *cluster, vm string) error {
			defer func() { c.kill(t, vm, c.processes(vm)["etcd"][0]) }()
			return parts(2, false)(t, c, vm)
		}, causes: []string{"peers-do-not-connect", "replica-cut-off"}, never: []string{"etcd-ended"}, heal: on(healed),
		story: []string{"hears nothing of"}},
	{name: "what a follower sends the others is lost", inject: parts(2, true),
		causes: []string{"peers-do-not-connect", "replica-cut-off"}, heal: on(healed),
		story: []string{"hears nothing of"}},
	// Google's services.
	{name: "a VM cannot reach the bucket", inject: serviceFails(localgce.Storage, "unavailable", false),
		causes: []string{"replica-without-report"}, heal: serviceWell(localgce.Storage),
		story: []string{"record-unreadable"}},
	{name: "a VM may not write to the bucket", inject: serviceFails(localgce.Storage, "readonly", false),
		causes: []string{"replica-without-report"}, heal: serviceWell(localgce.Storage)},
	{name: "the bucket hangs for a VM", inject: serviceFails(localgce.Storage, "silent", false), leader: true,
		causes: []string{"replica-without-report", "replica-not-heard"}, heal: serviceWell(localgce.Storage)},
	{name: "the bucket does not answer anybody", inject: serviceFails(localgce.Storage, "unavailable", true),
		anywhere: true, causes: []string{"record-unreadable-here"}, heal: serviceWell(localgce.Storage)},
	{name: "the bucket answers everybody with a page", inject: serviceFails(localgce.Storage, "html", true),
		anywhere: true, causes: []string{"record-unreadable-here"}, heal: serviceWell(localgce.Storage)},
	{name: "the bucket refuses everybody", inject: serviceFails(localgce.Storage, "forbidden", true), anywhere: true,
		causes: []string{"record-unreadable-here"}, heal: serviceWell(localgce.Storage)},
	{name: "the bucket's connections break", inject: serviceFails(localgce.Storage, "away", true), anywhere: true,
		causes: []string{"record-unreadable-here"}, heal: serviceWell(localgce.Storage)},
	{name: "the Compute API refuses everybody", inject: serviceFails(localgce.Compute, "forbidden", true), compute: true,
		anywhere: true, causes: []string{"vms-unreadable-here"}, heal: serviceWell(localgce.Compute)},
	{name: "the Compute API does not answer", inject: serviceFails(localgce.Compute, "unavailable", true), compute: true,
		anywhere: true, causes: []string{"vms-unreadable-here"}, heal: serviceWell(localgce.Compute)},
	{name: "a VM boots without its metadata", inject: restarted(serviceFails(localgce.Metadata, "notfound", false)),
		compute: true, causes: []string{"replica-not-heard"}, heal: serviceWell(localgce.Metadata),
		story: []string{lostPower}},
	{name: "the metadata server hangs for a VM that boots", leader: true,
		inject: restarted(serviceFails(localgce.Metadata, "silent", false)), compute: true,
		causes: []string{"replica-not-heard"}, heal: serviceWell(localgce.Metadata), story: []string{lostPower}},
	// Documents, keys and certificates.
	{name: "a VM is recreated with another seal key", inject: func(t *testing.T, c *cluster, vm string) error {
		key := "base64key://" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
		other := regexp.MustCompile(`base64key://\S+`).ReplaceAllString(c.document, key)
		if err := c.SetAttribute(vm, agent.ClusterAttribute, &other); err != nil {
			return err
		}
		return c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true})
	}, causes: []string{"bundle-unreadable"}, heal: documentAgain, story: []string{"bundle-unreadable"}},
	{name: "the document is broken", inject: document("replicas: 3", "replcas: 3"), causes: []string{"document-refused"},
		heal: documentAgain, story: []string{"document-refused"}},
	{name: "a certificate is damaged, and the VM boots", inject: restarted(func(t *testing.T, c *cluster,
		vm string) error {
		_, err := c.TruncateDisk(t.Context(), vm, "pki/etcd-peer.pem", 10)
		return err
	}), story: []string{lostPower, isReady}},
	// Orders.
	{name: "changes are paused", inject: order("pause", "--reason", "network maintenance"), anywhere: true,
		causes: []string{"membership-paused"}, mends: true},
	orderedToLeave(),
	// Components.
	{name: "the apiserver's program is another version", inject: program("#!/bin/sh\necho Kubernetes v1.37.0\n", 0o755),
		causes: []string{"program-unusable"}, heal: programAgain, story: []string{"program-unusable"}},
	{name: "the apiserver's program is missing", inject: program("", 0), causes: []string{"program-unusable"},
		heal: programAgain, story: []string{"program-unusable"}},
	{name: "the apiserver ends at once", inject: program(asksVersion+"exit 3\n", 0o755),
		causes: []string{"component-not-ready", "component-down"}, heal: programAgain, story: []string{"kube-apiserver"}},
	{name: "the apiserver hangs at its start", inject: program(asksVersion+"exec sleep 100000\n", 0o755), leader: true,
		causes: []string{"component-not-ready", "component-down"}, heal: programAgain, story: []string{"kube-apiserver"}},
	{name: "etcd is killed", inject: func(t *testing.T, c *cluster, vm string) error {
		c.kill(t, vm, c.processes(vm)["etcd"][0])
		return nil
	}, story: []string{"etcd"}},
	{name: "the agent is killed", leader: true, inject: func(t *testing.T, c *cluster, vm string) error {
		c.kill(t, vm, c.processes(vm)["agent"][0])
		return nil
	}, story: []string{isReady}},
	quotaUsedUp(),
}

func freed(ctx context.Context, c *cluster, vm, _ string) error { return c.FreeDisk(ctx, vm) }

// startAll starts whichever VM the remedy of the first finding was not about.
func startAll(t *testing.T, c *cluster, _ string) error {
	for _, vm := range c.vms {
		if c.vm(vm).Status != "RUNNING" {
			if err := c.StartVM(t.Context(), vm); err != nil {
				return err
			}
		}
	}
	return nil
}
