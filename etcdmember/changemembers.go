package etcdmember

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// changes is acts.Cluster: etcd's client of one member that answered through quorum.
type changes struct {
	cluster string // its name
	dnsName string // this replica's
	tls     func() *tls.Config
	adds    int // tries to add this replica
}

// AddLearner pauses after a refusal.
func (c *changes) AddLearner(ctx context.Context, via table.Answer) (id record.MemberID, err error) {
	c.adds++
	adding := ctx
	if c.adds == 1 {
		var cancel context.CancelFunc
		adding, cancel = context.WithTimeout(ctx, firstAddTimeout)
		defer cancel()
	}
	err = c.call(adding, via, func(ctx context.Context, to *clientv3.Client) error {
		resp, err := to.MemberAddAsLearner(ctx, []string{table.PeerURL(c.dnsName)})
		if err == nil {
			id = record.MemberID(resp.Member.GetID())
		}
		return err
	})
	if err != nil {
		err = errors.Join(err, backoff.Sleep(ctx, pauseAfter(err)))
	}
	return id, err
}

// pauseAfter is how long to wait after a learner was refused.
func pauseAfter(err error) time.Duration {
	switch {
	case errors.Is(err, rpctypes.ErrMemberNotFound): // etcd's word for a removed id (v3rpc/util.go)
		return removedIDPause
	case errors.Is(err, rpctypes.ErrTooManyLearners), errors.Is(err, rpctypes.ErrUnhealthy):
		return firstSpread + rand.N(lastSpread-firstSpread)
	}
	return 0
}

// RemoveMember is of acts.Cluster.
func (c *changes) RemoveMember(ctx context.Context, via table.Answer, id record.MemberID) error {
	return c.call(ctx, via, func(ctx context.Context, to *clientv3.Client) error {
		_, err := to.MemberRemove(ctx, uint64(id))
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil // an earlier try took effect after all
		}
		return err
	})
}

// call calls with a client of the member that answered.
func (c *changes) call(ctx context.Context, via table.Answer, do func(context.Context, *clientv3.Client) error) error {
	to, err := member.Dial(via.DNSName(c.cluster), via.Address, c.tls())
	if err != nil {
		return err
	}
	defer to.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return do(ctx, to)
}
