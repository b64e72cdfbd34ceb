package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The invariants of every case: at its end there is one cluster, of the wanted members, that holds every acknowledged
// write, and whose history is linearizable.

// membersWhole says what a bare cluster lacks: it is whole when the agent of each VM is ready, waits for nothing, and
// sees all VMs, and nobody else, as started voters.
func (c *cluster) membersWhole() error { return c.voters(c.vms...) }

// voters says what is missing to a cluster whose members are those VMs' alone, all of them voters.
func (c *cluster) voters(vms ...string) error {
	for _, vm := range vms {
		s, err := c.status(vm)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", vm, err)
		case !s.Replica.Ready || len(s.Blocked) > 0:
			return fmt.Errorf("%s is in phase %s; blocked: %+v", vm, s.Replica.Phase, s.Blocked)
		case len(voters(s)) != len(vms) || len(s.Etcd.Members) != len(vms):
			return fmt.Errorf("%s sees %+v, want %d voters", vm, s.Etcd.Members, len(vms))
		}
		for _, name := range voters(s) {

			if place := placeName(name); !slices.Contains(vms, place) {
				return fmt.Errorf("%s sees member %s, which is none of %q as they are now", vm, name, vms)
			}
		}
	}
	return nil
}

// newestEpoch is the newest epoch of the record and etcd's cluster id in its outcome.
func (c *cluster) newestEpoch(t *testing.T) (epoch int, clusterID string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(c.record(), "epochs", "*"))
	c.must(t, err)
	for _, path := range paths {
		n, err := strconv.Atoi(filepath.Base(path))
		c.must(t, err)
		epoch = max(epoch, n)
	}
	var outcome struct{ Formed *struct{ ClusterID string } }
	b, err := os.ReadFile(filepath.Join(c.record(), "epochs", strconv.Itoa(epoch), "outcome.json"))
	c.must(t, err)
	c.must(t, json.Unmarshal(b, &outcome))
	if outcome.Formed == nil || outcome.Formed.ClusterID == "" {
		t.Fatalf("epoch %d was not formed: %s", epoch, b)
	}
	return epoch, outcome.Formed.ClusterID
}

// wantOne wants one cluster over all those VMs: the record's newest epoch is theirs, each member is of its cluster, and
// each member lists the same voters and nobody else.
func (c *cluster) wantOne(t *testing.T, vms ...string) {
	t.Helper()
	epoch, id := c.newestEpoch(t)
	for _, vm := range vms {
		s, err := c.status(vm)
		c.must(t, err)
		if s.Cluster.ID != id || int(s.Cluster.Epoch) != epoch {
			t.Errorf("%s is in cluster %s, epoch %d; the record says %s, epoch %d", vm, s.Cluster.ID, s.Cluster.Epoch,
				id, epoch)
		}
		c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
			list, err := client.MemberList(ctx)
			if err != nil {
				return err
			}
			if found := strconv.FormatUint(list.Header.ClusterId, 16); found != id {
				t.Errorf("the member on %s answers as cluster %s; the record says %s", vm, found, id)
			}
			for _, m := range list.Members {
				if m.IsLearner || m.Name == "" || !slices.Contains(vms, placeName(m.Name)) {
					t.Errorf("the member on %s lists %v", vm, m)
				}
			}
			if len(list.Members) != len(vms) {
				t.Errorf("the member on %s lists %d members, want %d", vm, len(list.Members), len(vms))
			}
			return nil
		})
	}
}

// withMember asks the member of one VM, until it answers.
func (c *cluster) withMember(t *testing.T, vm string, ask func(context.Context, *clientv3.Client) error) {
	t.Helper()
	conf := c.etcdTLS(t)
	once := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		client, err := dial(ctx, c.vm(vm).Address, conf)
		if err != nil {
			return err
		}
		return errors.Join(ask(ctx, client), client.Close())
	}
	var err error
	for range 3 {
		if err = once(); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("ask the member on %s: %v", vm, err)
}

// check ends the load and verifies all that it did: each key is read once more through each of the VMs' members, no
// acknowledged write is missing on any of them, and the whole is linearizable.
func (c *cluster) check(t *testing.T, l *clients, vms ...string) {
	t.Helper()
	l.stop()
	acknowledged := l.history.acknowledged()
	for _, vm := range vms {
		c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
			began := l.history.now()
			all, err := client.Get(ctx, l.name+"/", clientv3.WithPrefix())
			if err != nil {
				return err
			}
			ended := l.history.now()
			there := map[string]string{}
			for _, kv := range all.Kvs {
				there[string(kv.Key)] = string(kv.Value)
			}
			for i := range keyCount {
				key := l.key(i)
				l.history.add(operation{client: writers, kind: opRead, key: key, found: there[key], outcome: done,
					call: began, end: ended})
			}
			lost := slices.DeleteFunc(slices.Clone(acknowledged),
				func(value string) bool { _, ok := there[value]; return ok })
			if len(lost) > 0 {
				t.Errorf("%d of %d acknowledged writes are not there through %s: %q", len(lost), len(acknowledged), vm,
					lost[:min(5, len(lost))])
			}
			return nil
		})
	}
	history := l.history.whole()
	begin := time.Now()
	if err := linearizable(history); err != nil {
		t.Errorf("the history is not linearizable: %v", err)
	}
	open := slices.DeleteFunc(slices.Clone(history), func(o operation) bool { return o.outcome != unknown })
	t.Logf("%d operations, %d of them writes that were acknowledged, %d without an answer; checked in %s; the "+
		"longest without a write was %s",
		len(history), len(acknowledged), len(open), time.Since(begin).Round(time.Millisecond), l.stall())
}

// invariants waits for a whole cluster of all VMs and checks all that must hold.
func (c *cluster) invariants(t *testing.T, l *clients) {
	t.Helper()
	await(t, "whole", c.membersWhole)
	since := time.Now()
	await(t, "clients go on", func() error { return l.goOn(since) })
	c.wantOne(t, c.vms...)
	c.check(t, l, c.vms...)
}

// members are the cluster's members, as a quorum of them says through whichever answers first.
func (c *cluster) members(ctx context.Context) (list []*etcdserverpb.Member, err error) {
	err = errors.New("no VM runs")
	for _, v := range c.Status().VMs {
		if v.InitPID == 0 {
			continue
		}
		if list, err = c.membersBy(ctx, v.Address); err == nil {
			return list, nil
		}
	}
	return nil, err
}

func (c *cluster) membersBy(ctx context.Context, address string) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := dial(ctx, address, c.clientTLS)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	resp, err := client.MemberList(clientv3.WithRequireLeader(ctx))
	if err != nil {
		return nil, err
	}
	return resp.Members, nil
}
