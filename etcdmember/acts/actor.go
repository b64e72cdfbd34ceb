// Package acts takes the steps that the table decides on.
//
//	table.Plan ── Actor.Take ──┬── Record    write-once objects in the bucket
//	                           ├── Disk      agent.json, etcd's directory, the directory of a restore
//	                           ├── Member    etcd's process on this VM
//	                           └── Cluster   changes of the member list, through a quorum
//
// An act is a few writes in a certain order (Step). It may be broken off at any of them, and each may fail before or
// after it takes effect. The next observation shows what has happened, and the table decides on what is left.
//
// It decides nothing, and what it writes to is behind the four interfaces. The adapters are in etcdmember. The random
// walks (walk_test.go) run the same code over a world in memory, and stop it before each of its writes.
package acts

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// StopTimeout bounds the way of everything that uses etcd, and of etcd, out.
	StopTimeout = 75 * time.Second
)

// Actor takes steps for one replica, one at a time. All fields but AtStep are needed.
type Actor struct {
	Log     *slog.Logger
	Me      replica.Identity
	Record  Record
	Disk    Disk
	Member  Member
	Cluster Cluster
	// Agent is agent.json. Whoever observes reads it, too.
	Agent *AgentStore
	// DiskID returns the id of the data disk; empty: it is not known yet.
	DiskID func() string
	// Now is this VM's clock.
	Now func() time.Time
	// Choosing is held while a source is accepted, so that it is not purged meanwhile.
	Choosing sync.Locker
	// AtStep is called before and after each step, for tests that end the agent there; nil in production.
	AtStep func(s Step, m Moment)
}

// Take takes the one step of a plan. Every step is safe to take again, and the caller observes again after it whatever
// it returned.
func (a *Actor) Take(ctx context.Context, f table.Facts, p table.Plan) error {
	switch p.Act {
	case table.ActClaim:
		return a.claim(ctx, p)
	case table.ActSeed, table.ActForm:
		return a.form(ctx, f, p)
	case table.ActFormedAgain:
		return a.createFormed(ctx, p.Epoch, p.ClusterID, p.MemberID)
	case table.ActAbandon:
		return a.abandon(ctx, p)
	case table.ActArchive:
		return a.archive()
	case table.ActTakeIncarnation:
		return a.takeIncarnation(ctx, f, p)
	case table.ActConfirmIncarnation:
		return a.confirmIncarnation(ctx, p.Incarnation, p.Epoch, p.MemberID)
	case table.ActStart:
		return a.start(ctx, p)
	case table.ActStop:
		return a.stop(ctx)
	case table.ActRemoveMember:
		return a.removeFormer(ctx, f, p)
	case table.ActMarkAdding:
		return a.setAgent(StepMarkAdding, func(d *table.AgentFile) {
			d.Phase, d.Epoch, d.Token, d.MemberID = table.PhaseAdding, p.Epoch, tokenOf(f, p.Epoch), 0
		})
	case table.ActAddLearner:
		return a.addLearner(ctx, f)
	case table.ActStartJoined:
		return a.startJoined(ctx, f)
	case table.ActWriteStopped:
		return a.writeStopped(ctx, f, p)
	case table.ActOrderRestore:
		return a.orderRestore(ctx, p)
	case table.ActAccept:
		return a.accept(ctx, f, p)
	case table.ActSettle:
		return a.settle(ctx, p)
	case table.ActCloseEpoch:
		return a.closeEpoch(ctx, p)
	case table.ActRestore:
		return a.restore(ctx, f, p)
	default:
		return fmt.Errorf("act %q is not one of a boot", p.Act)
	}
}

// at takes one step.
func (a *Actor) at(s Step, do func() error) error { return s.Take(a.AtStep, do) }

// setAgent changes agent.json as a step.
func (a *Actor) setAgent(s Step, change func(*table.AgentFile)) error {
	return a.at(s, func() error { return a.Agent.Set(change) })
}

// abandon gives the epoch up. That it has an outcome already, either one, is no error: the next observation sees which.
func (a *Actor) abandon(ctx context.Context, p table.Plan) error {
	return a.at(StepAbandon, func() error {
		_, _, err := a.Record.CreateOutcome(ctx, p.Epoch, record.Outcome{
			Abandoned: &record.Abandoned{By: a.Me.MemberName(), Why: p.Reason}, Time: a.Now()})
		return err
	})
}

// claim races for an epoch. The loser finds the winner's claim at its next observation.
func (a *Actor) claim(ctx context.Context, p table.Plan) error {
	token := make([]byte, 16)
	rand.Read(token) // never fails
	mine := record.Claim{
		Token: hex.EncodeToString(token), MaxLearners: table.MaxLearners, Source: p.Source, Time: a.Now(),
		Seeder: record.Seeder{Place: a.Me.Place, InstanceID: a.Me.InstanceID},
	}
	var got record.Claim
	var won bool
	err := a.at(StepClaim, func() (err error) {
		got, won, err = a.Record.CreateClaim(ctx, p.Epoch, mine)
		return err
	})
	if err != nil {
		return err
	}
	a.Log.Info("claimed an epoch", "epoch", p.Epoch, "won", won, "seeder", got.Seeder.Place.String())
	return nil
}

// takeIncarnation creates the next incarnation of this place, or finds that it is there as ours, and only then writes
// its number to the disk.
func (a *Actor) takeIncarnation(ctx context.Context, f table.Facts, p table.Plan) error {
	mine := record.Incarnation{
		Place: a.Me.Place, Number: p.Incarnation, InstanceID: a.Me.InstanceID, BootID: a.Me.BootID,
		Epoch: p.Epoch, MemberID: p.MemberID, DiskID: f.DiskID, Addresses: a.Me.Addresses,
		Time:      AfterOthers(f.Record, a.Me, f.Now),
		EmptyDisk: !f.Directory.Exists,
	}
	var got record.Incarnation
	var won bool
	err := a.at(StepIncarnation, func() (err error) {
		got, won, err = a.Record.CreateIncarnation(ctx, mine)
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
	return a.setAgent(StepIncarnationOnDisk, func(d *table.AgentFile) {
		d.Begin(a.Me, p.Incarnation, f.Record.Inception.UID)
	})
}

func (a *Actor) confirmIncarnation(ctx context.Context, number, epoch uint64, id record.MemberID) error {
	return a.at(StepConfirm, func() error {
		_, _, err := a.Record.ConfirmIncarnation(ctx, a.Me.Place, number,
			record.Started{Epoch: epoch, MemberID: id, DiskID: a.DiskID(), Time: a.Now()})
		return err
	})
}

// archive puts the directory away. agent.json is reset first: a crash before the rename leaves a directory that says
// so.
func (a *Actor) archive() error {
	if err := a.setAgent(StepArchiveOnDisk, reset); err != nil {
		return err
	}
	if !a.Disk.HasDirectory() {
		return nil
	}
	return a.at(StepArchive, a.Disk.Archive)
}

// reset leaves what agent.json says of this replica and of the record, and nothing of a directory.
func reset(d *table.AgentFile) {
	*d = table.AgentFile{ClusterUID: d.ClusterUID, Replica: d.Replica, InstanceID: d.InstanceID, BootID: d.BootID,
		NewestEpoch: d.NewestEpoch, Phase: table.PhaseArchiving, Ended: d.Ended}
}

// start goes on with the directory as it is.
func (a *Actor) start(ctx context.Context, p table.Plan) error {
	if err := a.setAgent(StepStartOnDisk, func(d *table.AgentFile) {
		d.Phase, d.MemberID = table.PhaseStarted, p.MemberID
	}); err != nil {
		return err
	}
	return a.at(StepStart, func() error { return a.Member.Start(ctx, Start{}) })
}

// stop takes etcd out and keeps every byte. Nothing here uses it: only a boot takes this step, and the control plane
// comes after that.
func (a *Actor) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StopTimeout)
	defer cancel()
	if err := a.at(StepHandOver, func() error { return a.Member.HandOver(ctx) }); err != nil {
		a.Log.Warn("hand over leadership", "err", err.Error())
	}
	return a.at(StepStopEtcd, func() error { return a.Member.Stop(ctx) })
}

// writeStopped says that this replica's incarnation has ended. The phase is on the disk before the object is in the
// record, with the order for which it ended: only the end of that order lets the directory go on.
func (a *Actor) writeStopped(ctx context.Context, f table.Facts, p table.Plan) error {
	d := f.Directory
	s := record.Stopped{Place: a.Me.Place, Incarnation: p.Incarnation, InstanceID: a.Me.InstanceID,
		BootID: a.Me.BootID, MemberID: p.MemberID, Time: f.Now}
	if a.Agent.Err == nil && a.Agent.File.Replica == a.Me.Place {
		err := a.setAgent(StepStoppedOnDisk, func(file *table.AgentFile) { file.End(p, d.Exists) })
		if err != nil {
			return err
		}
	}
	if p.WithLog { // a directory that was rolled back must not count as one that holds everything
		s.Term, s.LastIndex, s.CommitIndex = d.LastTerm, d.LastIndex, d.Commit
		s.Voters, s.Learners, s.Changes = d.Voters, d.Learners, d.Changes
	}
	return a.at(StepStopped, func() error {
		got, _, err := a.Record.CreateStopped(ctx, p.Epoch, s)
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

// errNoQuorum: the plan needed a member that answers through quorum, and none did when it was made.
var errNoQuorum = errors.New("no member of this epoch answers through quorum")
