package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// byItself is quorate's side: nobody does anything.
type byItself struct{}

func (byItself) files(vm localgce.VMStatus) certs.Files {
	return certs.Files{Dir: fmt.Sprintf("/proc/%d/root%s/pki", vm.InitPID, dataDir)}
}

func (byItself) peerURL(vm localgce.VMStatus) string {
	return table.PeerURL(replica.Place{Zone: vm.Zone, Name: vm.Name}.DNSName("bench"))
}

func (byItself) replace(context.Context, *clientv3.Client, localgce.VMStatus, uint64) (time.Duration, error) {
	return 0, nil
}

func (byItself) promote(context.Context, *clientv3.Client, localgce.VMStatus) error { return nil }
func (byItself) handOver(context.Context, members, int) error                       { return nil }

// byHand is the floor's side: what an operator does who has everything ready and makes no mistake.
type byHand struct{ *world }

func (h byHand) files(vm localgce.VMStatus) certs.Files {
	return certs.Files{Dir: filepath.Join(h.dir, "floor", vm.Name, "pki")}
}

func (h byHand) peerURL(vm localgce.VMStatus) string { return "https://" + vm.Address + ":2380" }

// handPatience is how long the hand tries again what etcd refuses for now.
const handPatience = 20 * time.Second

// replace removes the member that is lost, adds a learner in its place, and tells the VM's etcd that it joins.
func (h byHand) replace(ctx context.Context, c *clientv3.Client, vm localgce.VMStatus, former uint64) (time.Duration,
	error) {
	begin := time.Now()
	_, err := c.MemberRemove(ctx, former)
	for errors.Is(err, rpctypes.ErrUnhealthy) && time.Since(begin) < handPatience {
		// The others have not been connected for the 5 s that etcd asks for.
		if err := sleep(ctx, dialPause); err != nil {
			return 0, err
		}
		_, err = c.MemberRemove(ctx, former)
	}
	if err != nil {
		return 0, fmt.Errorf("remove by hand: %w", err)
	}
	if _, err := c.MemberAddAsLearner(ctx, []string{h.peerURL(vm)}); err != nil {
		return 0, fmt.Errorf("add by hand: %w", err)
	}
	took := time.Since(begin)
	file := filepath.Join(h.dir, "floor", vm.Name, "etcd.args")
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	joins := strings.Replace(string(text), "--initial-cluster-state=new", "--initial-cluster-state=existing", 1)
	return took, os.WriteFile(file, []byte(joins), 0o600)
}

// promote tries until etcd agrees that the learner is ready.
func (h byHand) promote(ctx context.Context, c *clientv3.Client, vm localgce.VMStatus) error {
	for {
		call, cancel := context.WithTimeout(ctx, callLimit)
		list, err := c.MemberList(call)
		if err == nil {
			for _, m := range list.Members {
				if m.GetPeerURLs()[0] == h.peerURL(vm) {
					_, err = c.MemberPromote(call, m.GetID())
				}
			}
		}
		cancel()
		if err == nil {
			return nil
		}
		if sleep(ctx, dialPause) != nil {
			return fmt.Errorf("promote by hand: %w", err)
		}
	}
}

// handOver moves leadership to another member.
func (h byHand) handOver(ctx context.Context, m members, leader int) error {
	other := (leader + 1) % len(m.clients)
	s, err := m.clients[other].Status(ctx, m.clients[other].Endpoints()[0])
	if err != nil {
		return err
	}
	_, err = m.clients[leader].MoveLeader(ctx, s.Header.GetMemberId())
	return err
}
