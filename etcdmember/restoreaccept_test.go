package etcdmember

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

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

// A restore that cannot be carried out ends nothing: neither does this place fall silent, nor does the order count for the others.
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
		m.record.change(func(v *record.View) { v.Bundle = 1 })
		source := &poorSource{}
		tc.spoil(source, true)
		m.config = func(c *Config) { source.Record, c.Record = c.Record, source }
		ms := m.open()
		booted := boots(t, ms)
		eventually(t, "restore-unfit", func() bool { return blockedName(ms) == "restore-unfit" })
		if b := ms.Shown().Blocked[0]; !strings.Contains(b.Reason, tc.want) || !strings.Contains(b.Reason, "order 1") {
			t.Errorf("%+v", b)
		}
		v, _ := m.record.copied()
		if v.Orders[0].Accepted != nil || v.Epochs[0].Closed != nil || len(v.Epochs) != 1 || len(v.Epochs[0].Stopped) != 1 {
			t.Errorf("%s: it went on: %+v, %+v", tc.want, v.Orders[0], v.Epochs)
		}
		f := ms.observe(t.Context())
		f.Me.Place, f.Me.InstanceID = pb, "102"
		if o := Classify(f); o.EndedByOrder || o.ToAccept {
			t.Errorf("%s: another replica stops for it: %+v", tc.want, o)
		}
		tc.spoil(source, false)
		if err := booted(); err != nil {
			t.Fatal(err)
		}
		endsRestored(t, m, ms, true)
	}
}
