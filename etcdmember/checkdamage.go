package etcdmember

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
)

// startsBeforeCheck is how often etcd is started on a directory, one soon after the other and for nothing, before the
// database is read whole: that takes as long as reading all of it, and what ends etcd once or twice is most often not
// on the disk.
const startsBeforeCheck = 3

// checkDue: etcd has ended on the directory so often that its database is to be read whole. One that was sound, or
// could not be read, is read again after twice as many starts.
func (m *Membership) checkDue() bool {
	if m.tries.Starts.Runs < startsBeforeCheck {
		m.checkedAt, m.tries.Checked = 0, ""
	}
	return m.tries.Starts.Runs >= max(startsBeforeCheck, 2*m.checkedAt)
}

// lookForDamage reads the database whole where that is due, and makes the damage that it finds part of what the
// directory is. The member is stopped. That etcd ended is only why it is looked for: nothing but the pages themselves
// condemns them.
func (m *Membership) lookForDamage(ctx context.Context, d *table.Directory) {
	if !m.checkDue() || !d.Exists || d.OpenErr != nil {
		return
	}
	begin := time.Now()
	found, err := datadir.FindDamage(ctx, m.cfg.dir().Etcd())
	if ctx.Err() != nil {
		return
	}
	m.checkedAt = m.tries.Starts.Runs
	if found != nil {
		d.OpenErr = found.Err()
		m.damage = found
		return
	}
	m.tries.Checked = "its database was read whole, and is sound"
	if err != nil {
		m.tries.Checked = fmt.Sprintf("its database could not be read whole, which says nothing of what it holds: %v", err)
	}
	m.cfg.Log.Info("read the database whole", "starts", m.tries.Starts.Runs, "found", m.tries.Checked, "took",
		time.Since(begin).Round(time.Millisecond).String())
}

// noteDamage writes it beside what it is about. Where that fails this agent knows it all the same, and the next one
// finds it again.
func (m *Membership) noteDamage(d datadir.Damage) {
	m.cfg.Log.Warn("the database is damaged", "found", d.Text)
	err := m.at(acts.StepNoteDamage, func() error { return d.Save(m.cfg.dir().Etcd(), m.disk.write) })
	if err != nil {
		m.cfg.Log.Warn("note the damage", "err", err.Error())
	}
}
