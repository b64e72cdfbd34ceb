package etcdmember

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

const (
	// callTimeout bounds one change of the membership. A change that is not answered may have happened: list again.
	callTimeout = 5 * time.Second
	// serveTimeout bounds a member's way from its start to a linearizable read.
	serveTimeout = time.Minute
	// stopTimeout bounds the way of everything that uses etcd, and of etcd, out.
	stopTimeout = 75 * time.Second
	// handOverTimeout bounds the attempt to give leadership away before a stop. Without it the others elect after a
	// second or two.
	handOverTimeout = 2 * time.Second
)

// act takes the one step of a plan. Every step is safe to take again, and the caller observes again after it whatever
// it returned.
func (m *Membership) act(ctx context.Context, f table.Facts, p table.Plan) error {
	m.directory = nil
	switch p.Act {
	case table.ActClaim:
		return m.claim(ctx, p)
	case table.ActSeed, table.ActForm:
		return m.form(ctx, f, p)
	case table.ActFormedAgain:
		return m.createFormed(ctx, p.Epoch, p.ClusterID, p.MemberID)
	case table.ActAbandon:
		return m.abandon(ctx, p)
	case table.ActArchive:
		return m.archive()
	case table.ActTakeIncarnation:
		return m.takeIncarnation(ctx, f, p)
	case table.ActConfirmIncarnation:
		return m.confirmIncarnation(ctx, p.Incarnation, p.Epoch, p.MemberID)
	case table.ActStart:
		return m.start(ctx, p)
	case table.ActStop:
		return m.stop(ctx)
	case table.ActRemoveMember:
		return m.removeFormer(ctx, f, p)
	case table.ActMarkAdding:
		return m.setAgentAt(StepMarkAdding, func(a *table.AgentFile) {
			a.Phase, a.Epoch, a.Token, a.MemberID = table.PhaseAdding, p.Epoch, tokenOf(f, p.Epoch), 0
		})
	case table.ActAddLearner:
		return m.addLearner(ctx, f)
	case table.ActStartJoined:
		return m.startJoined(ctx, f)
	case table.ActWriteStopped:
		return m.writeStopped(ctx, f, p)
	case table.ActOrderRestore:
		return m.orderRestore(ctx, p)
	case table.ActAccept:
		return m.accept(ctx, f, p)
	case table.ActSettle:
		return m.settle(ctx, p)
	case table.ActCloseEpoch:
		return m.closeEpoch(ctx, p)
	case table.ActRestore:
		return m.restore(ctx, f, p)
	default:
		return fmt.Errorf("act %q is not one of a boot", p.Act)
	}
}

// abandon gives the epoch up. That it has an outcome already, either one, is no error: the next look sees which.
func (m *Membership) abandon(ctx context.Context, p table.Plan) error {
	return m.at(StepAbandon, func() error {
		_, _, err := m.cfg.Record.CreateOutcome(ctx, p.Epoch, record.Outcome{
			Abandoned: &record.Abandoned{By: m.cfg.Me.MemberName(), Why: p.Reason}, Time: time.Now()})
		return err
	})
}

// removeFormer removes an entry of this place's own past from the member list.
func (m *Membership) removeFormer(ctx context.Context, f table.Facts, p table.Plan) error {
	return m.at(StepRemoveFormer, func() error {
		return m.onQuorum(ctx, f, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberRemove(ctx, uint64(p.MemberID))
			if errors.Is(err, rpctypes.ErrMemberNotFound) {
				return nil // an earlier try took effect after all
			}
			return err
		})
	})
}

// claim races for an epoch. The loser finds the winner's claim at its next look.
func (m *Membership) claim(ctx context.Context, p table.Plan) error {
	token := make([]byte, 16)
	rand.Read(token) // never fails
	mine := record.Claim{
		Token: hex.EncodeToString(token), MaxLearners: table.MaxLearners, Source: p.Source, Time: time.Now(),
		Seeder: record.Seeder{Place: m.cfg.Me.Place, InstanceID: m.cfg.Me.InstanceID},
	}
	var got record.Claim
	var won bool
	err := m.at(StepClaim, func() (err error) {
		got, won, err = m.cfg.Record.CreateClaim(ctx, p.Epoch, mine)
		return err
	})
	if err != nil {
		return err
	}
	m.cfg.Log.Info("claimed an epoch", "epoch", p.Epoch, "won", won, "seeder", got.Seeder.Place.String())
	return nil
}

// takeIncarnation creates the next incarnation of this place, or finds that it is there as ours, and only then writes
// its number to the disk.
func (m *Membership) takeIncarnation(ctx context.Context, f table.Facts, p table.Plan) error {
	mine := record.Incarnation{
		Place: m.cfg.Me.Place, Number: p.Incarnation, InstanceID: m.cfg.Me.InstanceID, BootID: m.cfg.Me.BootID,
		Epoch: p.Epoch, MemberID: p.MemberID, DiskID: f.DiskID, Addresses: m.cfg.Me.Addresses,
		Time:      afterOthers(f.Record, m.cfg.Me, f.Now),
		EmptyDisk: !f.Directory.Exists,
	}
	var got record.Incarnation
	var won bool
	err := m.at(StepIncarnation, func() (err error) {
		got, won, err = m.cfg.Record.CreateIncarnation(ctx, mine)
		return err
	})
	if err != nil {
		return err
	}
	otherDisk := got.DiskID != "" && mine.DiskID != "" && got.DiskID != mine.DiskID // one that is not known is no other
	if !won && (got.InstanceID != mine.InstanceID || got.BootID != mine.BootID || otherDisk ||
		got.Epoch != mine.Epoch) {
		return fmt.Errorf("incarnation %d of this place was taken by instance %s", p.Incarnation, got.InstanceID)
	}
	return m.setAgentAt(StepTenureOnDisk, func(a *table.AgentFile) {
		a.Begin(m.cfg.Me, p.Incarnation, f.Record.Inception.UID)
	})
}

func (m *Membership) confirmIncarnation(ctx context.Context, number, epoch uint64, id record.MemberID) error {
	return m.at(StepConfirm, func() error {
		_, _, err := m.cfg.Record.ConfirmIncarnation(ctx, m.cfg.Me.Place, number,
			record.Started{Epoch: epoch, MemberID: id, DiskID: m.diskID(), Time: time.Now()})
		return err
	})
}

// archive puts the directory away. agent.json is reset first: a crash before the rename leaves a directory that says
// so.
func (m *Membership) archive() error {
	if err := m.setAgentAt(StepArchiveOnDisk, func(a *table.AgentFile) {
		*a = table.AgentFile{ClusterUID: a.ClusterUID, Replica: a.Replica, InstanceID: a.InstanceID, BootID: a.BootID,
			NewestEpoch: a.NewestEpoch, Phase: table.PhaseArchiving, Ended: a.Ended}
	}); err != nil {
		return err
	}
	dir := m.etcdDir()
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(m.archivesDir(), 0o700); err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	to := filepath.Join(m.archivesDir(), datadir.ArchiveName(time.Now()))
	if err := m.at(StepArchive, func() error { return m.disk.rename(dir, to) }); err != nil {
		return fmt.Errorf("archive etcd's directory: %w", err)
	}
	m.cfg.Log.Info("archived etcd's directory", "to", to)
	return forgetEnd(m.StatusSocket())
}

// stop takes etcd out and keeps every byte. Nothing here uses it: only a boot takes this step, and the control plane
// comes after that.
func (m *Membership) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	handOver, cancelHandOver := context.WithTimeout(ctx, handOverTimeout)
	defer cancelHandOver()
	if err := m.at(StepHandOver, func() error { return HandOver(handOver, m.StatusSocket()) }); err != nil {
		m.cfg.Log.Warn("hand over leadership", "err", err.Error())
	}
	return m.at(StepStopEtcd, func() error { return m.cfg.Child.Stop(ctx) })
}

// writeStopped says that this replica's incarnation has ended. The phase is on the disk before the object is in the
// record, with the order for which it ended: only the end of that order lets the directory go on.
func (m *Membership) writeStopped(ctx context.Context, f table.Facts, p table.Plan) error {
	d := f.Directory
	s := record.Stopped{Place: m.cfg.Me.Place, Incarnation: p.Incarnation, InstanceID: m.cfg.Me.InstanceID,
		BootID: m.cfg.Me.BootID, MemberID: p.MemberID, Time: f.Now}
	if m.agentErr == nil && m.agent.Replica == m.cfg.Me.Place {
		err := m.setAgentAt(StepStoppedOnDisk, func(a *table.AgentFile) { a.End(p, d.Exists) })
		if err != nil {
			return err
		}
	}
	if p.WithLog { // a directory that was rolled back must not count as one that holds everything
		s.Term, s.LastIndex, s.CommitIndex = d.LastTerm, d.LastIndex, d.Commit
		s.Voters, s.Learners, s.Changes = d.Voters, d.Learners, d.Changes
	}
	return m.at(StepStopped, func() error {
		got, _, err := m.cfg.Record.CreateStopped(ctx, p.Epoch, s)
		if err == nil && got.InstanceID != "" && got.InstanceID != s.InstanceID {
			err = fmt.Errorf("instance %s has spoken for incarnation %d of this place", got.InstanceID, p.Incarnation)
		}
		return err
	})
}

// tokenOf is the token of an epoch's claim.
func tokenOf(f table.Facts, epoch uint64) string {
	if e := f.Record.Epoch(epoch); e != nil && e.Claim != nil {
		return e.Claim.Token
	}
	return ""
}
