package etcdmember

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// poorSource is a record whose snapshot is too large for the disk, or damaged, until it is repaired.
type poorSource struct {
	Record
	large, damaged atomic.Bool
}

func (p *poorSource) Snapshots(ctx context.Context) ([]record.Snapshot, error) {
	list, err := p.Record.Snapshots(ctx)
	if p.large.Load() {
		list[0].Size = 1 << 60
	}
	return list, err
}

func (p *poorSource) ReadSnapshot(ctx context.Context, name string, to io.Writer) (record.Snapshot, error) {
	if p.damaged.Load() {
		return record.Snapshot{}, errors.New("its hash is another")
	}
	return p.Record.ReadSnapshot(ctx, name, to)
}

// A restore that cannot be carried out ends nothing: neither does this place fall silent, where its VM is booted
// meanwhile, too, nor does the order count for the others. Once it can be carried out, the running member accepts it,
// and the next boot carries it out.
func TestARestoreThatCannotSucceedEndsNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want  string
		spoil func(*poorSource, bool)
	}{
		{"too little room", func(p *poorSource, on bool) { p.large.Store(on) }},
		{"its hash is another", func(p *poorSource, on bool) { p.damaged.Store(on) }},
	} {
		m := damaged(t, fromSnapshot)
		m.record.Change(func(v *record.View) { v.Bundle = 1 })
		source := &poorSource{}
		tc.spoil(source, true)
		m.config = func(c *Config) { source.Record, c.Record = c.Record, source }
		ms := m.open()
		if err := boots(t, ms)(); err != nil || !m.child.Running() {
			t.Fatalf("%s: the member does not run: %v", tc.want, err)
		}
		ms.observer.keeping = true
		k := ms.newKeeper()
		k.round.observer.memory.unfit.Until = time.Time{}
		if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil || blockedName(ms) != "restore-unfit" {
			t.Errorf("%s: %v, blocked by %q", tc.want, err, blockedName(ms))
		}
		if b := ms.cfg.Waits.All()[0]; !strings.Contains(b.Reason, tc.want) || !strings.Contains(b.Reason, "order 1") {
			t.Errorf("%+v", b)
		}
		v, _ := m.record.Copied()
		if v.Orders[0].Accepted != nil || v.Epochs[0].Closed != nil || len(v.Epochs) != 1 ||
			len(v.Epochs[0].Stopped) != 1 {
			t.Errorf("%s: it went on: %+v, %+v", tc.want, v.Orders[0], v.Epochs)
		}
		f := ms.reconciler.observe(t.Context())
		f.Me.Place, f.Me.InstanceID = pb, "102"
		if o := table.Classify(f); o.EndedByOrder || o.ToAccept {
			t.Errorf("%s: another replica stops for it: %+v", tc.want, o)
		}
		tc.spoil(source, false)
		k.round.observer.memory.unfit.Until = time.Now().Add(time.Hour)
		if err := k.reconcile(t.Context(),
			table.MemberStatus{}); err != nil || accepted(m) || blockedName(ms) != "restore-unfit" {
			t.Errorf("%s: it was tried again at once, or is not shown while that rests: %v, %q", tc.want, err,
				blockedName(ms))
		}
		k.round.observer.memory.unfit.Until = time.Now()
		if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil || !accepted(m) {
			t.Errorf("%s: not accepted: %v, %q", tc.want, err, blockedName(ms))
		}
		if err := k.reconcile(t.Context(), table.MemberStatus{}); !errors.Is(err, ErrDecideAgain) {
			t.Errorf("%s: it goes on: %v", tc.want, err)
		}
		m.child.Stop(t.Context())
		ms = m.open()
		if err := boots(t, ms)(); err != nil {
			t.Fatal(err)
		}
		endsRestored(t, m, ms, true)
	}
}

func accepted(m *machine) bool {
	v, _ := m.record.Copied()
	return v.Orders[0].Accepted != nil
}

// slowSource is a record in which something happens while the snapshot is read.
type slowSource struct {
	Record
	meanwhile func()
}

func (s *slowSource) ReadSnapshot(ctx context.Context, name string, to io.Writer) (record.Snapshot, error) {
	s.meanwhile()
	return s.Record.ReadSnapshot(ctx, name, to)
}

// The snapshot takes minutes to read: an order that is not the newest any more by then must not begin to stop
// everybody.
func TestAnOrderThatIsNotTheNewestAnyMoreIsNotAccepted(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]record.Order{
		"taken back": {Number: 2, Kind: record.OrderWithdraw, Withdraws: 1},
		"followed up": {Number: 2, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1, Replica: pb,
			From: record.Source{Kind: record.SourceSnapshot, Snapshot: etcdtest.OneSnapshot}}},
	} {
		m := damaged(t, fromSnapshot)
		m.record.Change(func(v *record.View) { v.Bundle = 1 })
		m.config = func(c *Config) {
			c.Record = &slowSource{c.Record,
				func() { m.record.Change(func(v *record.View) { v.Orders = append(v.Orders[:1], next) }) }}
		}
		ms := m.open()
		if err := boots(t, ms)(); err != nil || !m.child.Running() || accepted(m) {
			t.Errorf("%s: accepted %t, the member runs %t: %v", name, accepted(m), m.child.Running(), err)
		}
	}
}

// With a quorum there is time; without one everybody waits for the restore.
func TestATryThatFailedRestsWithAQuorum(t *testing.T) {
	t.Parallel()
	m := damaged(t, fromSnapshot)
	m.record.Change(func(v *record.View) { v.Bundle = 1 })
	m.config = func(c *Config) {
		c.Record = &slowSource{c.Record, func() {
			time.Sleep(20 * time.Millisecond)
			m.record.Change(func(v *record.View) { v.Orders = nil })
		}}
	}
	ms := m.open()
	plan := table.Plan{Act: table.ActAccept, OrderNumber: 1, Source: fromSnapshot.From}
	try := func(f table.Facts) (rests bool) {
		if err := ms.reconciler.act(t.Context(), f, plan); err == nil {
			t.Error("an order that was taken back is accepted")
		}
		unfit := ms.observer.memory.unfit
		return unfit.Order == 1 && time.Now().Before(unfit.Until)
	}
	f := ms.reconciler.observe(t.Context())
	if f.Directory.Running || try(f) {
		t.Error("a replica that does not run rests")
	}
	f.Directory.Running = true
	if try(f) {
		t.Error("it rests without a quorum")
	}
	formed := *m.record.Formed(1)
	f.Answers = []table.Answer{{Place: pa, InstanceID: m.me.InstanceID, Reach: table.ReachLinearizable,
		ClusterID: formed.ClusterID}}
	if !try(f) {
		t.Error("it does not rest where there is a quorum")
	}
}
