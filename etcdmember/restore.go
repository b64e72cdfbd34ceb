package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// settle lets the record say whether the order to restore is carried out. Whichever of the two verdicts was there first
// counts, and the next observation reads it back: nobody closes the epoch, or starts again, before that.
func (m *Membership) settle(ctx context.Context, p table.Plan) error {
	v := record.Verdict{Closing: p.Closing, Withdrawn: !p.Closing, By: m.cfg.Me.MemberName(), Time: time.Now()}
	return m.at(StepSettle, func() error {
		got, _, err := m.cfg.Record.SettleOrder(ctx, p.OrderNumber, v)
		if err == nil {
			m.cfg.Log.Info("settled an order to restore", "order", p.OrderNumber, "closing", got.Closing)
		}
		return err
	})
}

// closeEpoch ends the epoch: the record is never of no epoch again, and the next claim must name a source.
func (m *Membership) closeEpoch(ctx context.Context, p table.Plan) error {
	return m.at(StepClose, func() error {
		_, _, err := m.cfg.Record.CreateClosed(ctx, p.Epoch, record.Closed{By: m.cfg.Me.MemberName(),
			Order: p.OrderNumber, Time: time.Now()})
		return err
	})
}

// orderRestore writes the order that a policy wants. Another agent may write one at the same moment: the newest counts,
// and all see the same one. Whether a write that failed took effect, the next look sees: there is an order then, and no
// policy acts.
func (m *Membership) orderRestore(ctx context.Context, p table.Plan) error {
	return m.at(StepOrder, func() error {
		o, err := m.cfg.Record.CreateOrder(ctx, record.Order{
			Kind: record.OrderRestore, By: policyName + m.cfg.Me.MemberName(), Reason: p.Reason, Restore: p.Order,
			Time: time.Now()})
		if err == nil {
			m.cfg.Log.Info("ordered a restore", "order", o.Number, "replica", p.Order.Replica.String(), "reason",
				p.Reason)
		}
		return err
	})
}

// policyName begins the name of the writer of an order that no person gave.
const policyName = "policy of "

// restore makes the directory of the claimed epoch, step 4 of a restore. It is made beside the one that it is made of,
// which is only read, and takes its place once it is whole: until then whatever fails leaves everything where it was.
func (m *Membership) restore(ctx context.Context, f table.Facts, p table.Plan) error {
	work, err := m.makeBeside(ctx, f, p)
	if err != nil {
		return err
	}
	if f.Directory.Exists {
		if err := m.archive(); err != nil {
			return err
		}
	}
	if err := m.takeIncarnation(ctx, f, p); err != nil {
		return err
	}
	if err := m.setAgentAt(StepRestoreOnDisk, func(a *table.AgentFile) {
		a.Phase, a.Epoch, a.Token, a.MemberID = table.PhaseSeeding, p.Epoch, work.Token, 0
	}); err != nil {
		return err
	}
	if err := m.at(StepRestoreMarker, func() error {
		return m.disk.write(filepath.Join(work.Out, datadir.Marker), []byte(work.Token+"\n"), 0o600)
	}); err != nil {
		return err
	}
	if err := m.at(StepRestoreRename, func() error { return m.disk.rename(work.Out, m.etcdDir()) }); err != nil {
		return fmt.Errorf("put the restored directory in place: %w", err)
	}
	m.cfg.Log.Info("restored", "epoch", p.Epoch, "from", string(p.Source.Kind), "order", p.OrderNumber)
	return nil
}

// scratchDir holds copies that a restore works on, and nothing else: it may be emptied at any time.
func (m *Membership) scratchDir() string { return filepath.Join(m.cfg.Cluster.Etcd.DataDir, "restore") }

// makeBeside makes the new directory in the scratch folder. What an attempt that was broken off has left there goes
// first.
func (m *Membership) makeBeside(ctx context.Context, f table.Facts, p table.Plan) (Making, error) {
	work := Making{
		Scratch: m.scratchDir(), Out: filepath.Join(m.scratchDir(), "etcd"),
		Name: m.cfg.Me.MemberName(), DNSName: m.dnsName(), Token: tokenOf(f, p.Epoch),
		Epochs: p.Epoch - sourceEpoch(f, p),
	}
	err := m.at(StepRestoreMake, func() error {
		if err := errors.Join(os.RemoveAll(work.Scratch), os.MkdirAll(work.Scratch, 0o700)); err != nil {
			return fmt.Errorf("make room for the restore: %w", err)
		}
		if err := m.fetchSource(ctx, p, &work); err != nil {
			return err
		}
		begin := time.Now()
		if err := m.cfg.MakeDirectory(ctx, work); err != nil {
			return err
		}
		m.cfg.Log.Info("made the directory of the restore", "took", time.Since(begin).Round(time.Millisecond).String())
		return nil
	})
	return work, err
}

// sourceEpoch is the epoch whose history the source holds: a snapshot's by its name, a directory's by its cluster.
// Where neither is known it is taken for the first, so that the revisions grow by more than they have to.
func sourceEpoch(f table.Facts, p table.Plan) uint64 {
	cluster := f.Directory.ClusterID
	if p.Source.Kind == record.SourceSnapshot {
		if n := slices.IndexFunc(f.Snapshots,
			func(s record.Snapshot) bool { return s.Name == p.Source.Snapshot }); n >= 0 {
			return f.Snapshots[n].Epoch
		}
		return 0
	}
	if p.Archive != "" {
		cluster = 0
	}
	for _, a := range f.Directory.Archives {
		if p.Archive != "" && a.Name == p.Archive {
			cluster = a.ClusterID
		}
	}
	return record.NumberOf(f.Record.OfCluster(cluster))
}

// fetchSource brings the source within reach: a snapshot is read from the record to a file, a directory stays where it
// is.
func (m *Membership) fetchSource(ctx context.Context, p table.Plan, work *Making) error {
	if p.Source.Kind == record.SourceSnapshot {
		work.Snapshot = filepath.Join(work.Scratch, "snapshot.db")
		return m.fetchSnapshot(ctx, p.Source.Snapshot, work.Snapshot)
	}
	work.Directory = m.etcdDir()
	if p.Archive != "" {
		work.Directory = filepath.Join(m.archivesDir(), p.Archive)
	}
	return m.roomForDirectory(work.Scratch, work.Directory)
}

func (m *Membership) fetchSnapshot(ctx context.Context, name, file string) (err error) {
	if err := m.roomForSnapshot(ctx, filepath.Dir(file), name); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("fetch snapshot %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = m.cfg.Record.ReadSnapshot(ctx, name, out)
	return err
}

// dropScratch gives the room of a making back.
func (m *Membership) dropScratch() {
	if err := os.RemoveAll(m.scratchDir()); err != nil {
		m.cfg.Log.Warn("give the room of a restore back", "err", err.Error())
	}
}

// clearOvertaken gives back the room of a restore that another replica has made instead: a join needs it.
func (m *Membership) clearOvertaken(f table.Facts) {
	h := table.HistoryOf(f)
	if m.opened && !f.Directory.Running && f.RecordErr == nil && table.Fault(f, h) == "" && h.Formed != nil &&
		!h.RestoreInSight() {
		m.dropScratch()
	}
}

// completeRestores is the end of a restore, once the new epoch's member serves: the room of the making is given back,
// and the record says that the restore orders of epochs before it are done with. The replica that formed the epoch says
// so, again until it is written.
func (m *Membership) completeRestores(ctx context.Context, f table.Facts) {
	h := table.HistoryOf(f)
	if f.RecordErr != nil || h.Formed == nil || h.Formed.Claim == nil ||
		h.Formed.Claim.Seeder.Place != m.cfg.Me.Place ||
		m.agent.Phase != table.PhaseStarted || m.agent.Epoch != h.Formed.Number || !f.Directory.Running {
		return
	}
	m.dropScratch()
	for _, o := range h.Orders.All {
		if o.Restore == nil || o.Done != nil || o.Restore.Ends >= h.Formed.Number {
			continue
		}
		what := fmt.Sprintf("epoch %d was formed by order %d instead", h.Formed.Number, h.Formed.Claim.Source.Order)
		if o.Number == h.Formed.Claim.Source.Order {
			what = fmt.Sprintf("epoch %d is formed", h.Formed.Number)
		}
		err := m.at(StepCompleteOrder, func() error {
			_, _, err := m.cfg.Record.CompleteOrder(ctx, o.Number, record.Done{By: m.cfg.Me.MemberName(),
				Time: time.Now(), What: what})
			return err
		})
		if err != nil {
			m.cfg.Log.Warn("complete the order", "order", o.Number, "err", err.Error())
		}
	}
}
