package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// ownMember is acts.Member: the child process of this agent.
type ownMember struct {
	cfg Config
	// local is where its clients of this machine come in.
	local netip.Addr
	// starting is called right before each start.
	starting func(joins bool)
	// served waits for a linearizable read.
	served func(ctx context.Context) (clusterID, memberID record.MemberID, err error)
	// told is what the keeper was told last; nil: nothing yet.
	told atomic.Pointer[told]
}

// told is an answer of the running member. Nobody changes it.
type told struct {
	table.MemberStatus
	at time.Time
}

// Status asks the running member; an error means that none answers.
func (o *ownMember) Status(ctx context.Context) (table.MemberStatus, error) {
	return member.ReadStatus(ctx, o.cfg.statusSocket())
}

// lately is Status for what is shown, and for whose turn a snapshot is: the keeper's last answer where that is young.
func (o *ownMember) lately(ctx context.Context) (table.MemberStatus, error) {
	if t := o.told.Load(); t != nil && time.Since(t.at) < toldLately {
		return t.MemberStatus, nil
	}
	return o.Status(ctx)
}

// dial makes a client of it.
func (o *ownMember) dial() (*clientv3.Client, error) {
	return member.Dial(o.cfg.dnsName(), o.local, o.cfg.TLS())
}

// Running is of acts.Member.
func (o *ownMember) Running() bool { return o.cfg.Child.Running() }

// Start writes the configuration where the child will read it, and starts the child.
func (o *ownMember) Start(ctx context.Context, s acts.Start) error {
	cfg := o.config()
	cfg.New, cfg.Token, cfg.MemberID = s.New, s.Token, s.MemberID
	if s.MemberID != 0 {
		cfg.InitialCluster = map[string]string{}
	}
	for _, e := range s.Members {
		if len(e.PeerURLs) > 0 {
			cfg.InitialCluster[initialName(e, s.MemberID, cfg.Name)] = e.PeerURLs[0]
		}
	}
	if err := cfg.Save(o.cfg.configPath()); err != nil {
		return err
	}
	o.starting(s.MemberID != 0)
	return o.cfg.Child.Start(ctx, o.cfg.configPath())
}

// initialName gives a name to every entry: etcd matches by URL alone, but its configuration wants names.
func initialName(e table.Member, own record.MemberID, ownName string) string {
	switch {
	case e.ID == own:
		return ownName
	case e.Name == "":
		return member.NotStarted + e.ID.String()
	default:
		return e.Name
	}
}

// config is what every start of the member has in common.
func (o *ownMember) config() member.Config {
	c := member.ConfigFor(o.cfg.Me, o.cfg.Cluster, o.cfg.Files, o.cfg.RunDir)
	c.Local = o.local
	return c
}

// Served is of acts.Member.
func (o *ownMember) Served(ctx context.Context) (clusterID, memberID record.MemberID, err error) {
	return o.served(ctx)
}

// HandOver is of acts.Member.
func (o *ownMember) HandOver(ctx context.Context) error {
	return member.HandOver(ctx, o.cfg.statusSocket())
}

// Stop is of acts.Member.
func (o *ownMember) Stop(ctx context.Context) error { return o.cfg.Child.Stop(ctx) }

// waitServing waits for a linearizable read through the own member.
func (o *ownMember) waitServing(ctx context.Context) (clusterID, memberID record.MemberID, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serveTimeout, fmt.Errorf("no linearizable read within %s",
		serveTimeout))
	defer cancel()
	for {
		s, err := o.Status(ctx)
		if err == nil && s.Leader != 0 && s.Ready {
			break
		}
		if !o.cfg.Child.Running() {
			return 0, 0, errors.New("etcd exited before it served: see its log")
		}
		if err := backoff.Sleep(ctx, servePause); err != nil {
			return 0, 0, err
		}
	}
	c, err := o.dial()
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	clusterID, list, err := member.List(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		if e.Name == o.cfg.Me.MemberName() {
			return clusterID, e.ID, nil
		}
	}
	return 0, 0, fmt.Errorf("member %s is not in its own list", o.cfg.Me.MemberName())
}
