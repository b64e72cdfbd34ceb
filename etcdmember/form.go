package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// form seeds the epoch of our claim, or goes on with a directory that carries its token: both end with `formed`. Until
// that has been read back nothing may be acknowledged to anybody, because another may still find the epoch abandoned.
func (m *Membership) form(ctx context.Context, f table.Facts, p table.Plan) error {
	if !m.cfg.Child.Running() {
		if p.Act == table.ActSeed {
			if err := m.takeIncarnation(ctx, f, p); err != nil {
				return err
			}
			token := tokenOf(f, p.Epoch)
			if err := m.setAgentAt(StepSeedOnDisk, func(a *table.AgentFile) {
				a.Phase, a.Epoch, a.Token,
					a.MemberID = table.PhaseSeeding, p.Epoch, token, 0
			}); err != nil {
				return err
			}
		}
		cfg := m.memberConfig()
		cfg.New, cfg.Token = p.Act == table.ActSeed, m.agent.Token
		if err := m.startChild(ctx, StepSeedStart, cfg); err != nil {
			return err
		}
	}
	clusterID, memberID, err := m.served(ctx)
	if err != nil {
		return err
	}
	if err := m.at(StepSeedMarker, func() error {
		return m.disk.write(filepath.Join(m.etcdDir(), datadir.Marker), []byte(m.agent.Token+"\n"), 0o600)
	}); err != nil {
		return err
	}
	if err := m.confirmIncarnation(ctx, m.agent.Incarnation, p.Epoch, memberID); err != nil {
		return err
	}
	if err := m.createFormed(ctx, p.Epoch, clusterID, memberID); err != nil {
		return err
	}
	return m.setAgentAt(StepSeedDone, func(a *table.AgentFile) { a.Phase, a.MemberID = table.PhaseStarted, memberID })
}

// createFormed creates the outcome `formed` and accepts it only as it is read back.
func (m *Membership) createFormed(ctx context.Context, epoch uint64, clusterID, memberID record.MemberID) error {
	formed := record.Formed{ClusterID: clusterID, MemberID: memberID}
	var got record.Outcome
	err := m.at(StepFormed, func() (err error) {
		got, _, err = m.cfg.Record.CreateOutcome(ctx, epoch, record.Outcome{Formed: &formed, Time: time.Now()})
		return err
	})
	if err != nil {
		return err
	}
	if got.Formed == nil || *got.Formed != formed {
		return fmt.Errorf("epoch %d was not formed by this member: the record holds another outcome", epoch)
	}
	m.cfg.Log.Info("formed an epoch", "epoch", epoch, "cluster", clusterID.String(), "member", memberID.String())
	return nil
}

// waitServing waits for a linearizable read through the own member.
func (m *Membership) waitServing(ctx context.Context) (clusterID, memberID record.MemberID, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serveTimeout, fmt.Errorf("no linearizable read within %s",
		serveTimeout))
	defer cancel()
	for {
		s, err := m.Status(ctx)
		if err == nil && s.Leader != 0 && s.Ready {
			break
		}
		if !m.cfg.Child.Running() {
			return 0, 0, errors.New("etcd exited before it served: see its log")
		}
		if err := backoff.Sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
	c, err := dial(m.dnsName(), m.local, m.cfg.TLS())
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	clusterID, list, err := members(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		if e.Name == m.cfg.Me.MemberName() {
			return clusterID, e.ID, nil
		}
	}
	return 0, 0, fmt.Errorf("member %s is not in its own list", m.cfg.Me.MemberName())
}

// memberConfig is what every start of the member has in common.
func (m *Membership) memberConfig() MemberConfig {
	e, files := m.cfg.Cluster.Etcd, m.cfg.Files
	return MemberConfig{
		Name: m.cfg.Me.MemberName(), DNSName: m.dnsName(), Dir: m.etcdDir(), Address: m.cfg.Me.Address(),
		PeerLeaf: files.Leaf(peerLeaf), PeerCA: files.CA(peerCA), ServerLeaf: files.Leaf(serverLeaf),
		ClientCA:  files.CA(clientCA),
		Heartbeat: e.Heartbeat.Duration(), Election: e.Election.Duration(),
		Local: m.local, DataCheck: dataCheck, QuotaBytes: e.QuotaBytes, CatchUpEntries: e.CatchUpEntries,
		StatusSocket: m.StatusSocket(),
	}
}

// startChild starts the child as one step: it returns once the process runs.
func (m *Membership) startChild(ctx context.Context, s Step, cfg MemberConfig) error {
	if err := cfg.Save(m.configPath()); err != nil {
		return err
	}
	m.directory = nil
	m.tries.Starts = m.tries.Starts.Again(s == StepStartJoined, time.Now())
	return m.at(s, func() error { return m.cfg.Child.Start(ctx, m.configPath()) })
}
