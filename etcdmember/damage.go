package etcdmember

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/storage/datadir"

	"github.com/quorate/quorate/etcdmember/table"
)

// damageFile is the file inside etcd's directory that says what was found when its database was read whole. It goes
// where the directory goes, into an archive too, and an agent that starts again, or finds no quorum for a year, need
// not find it out again.
const damageFile = "quorate-damaged.json"

// startsBeforeCheck is how often etcd is started on a directory, one soon after the other and for nothing, before the
// database is read whole: that takes as long as reading all of it, and what ends etcd once or twice is most often not
// on the disk.
const startsBeforeCheck = 3

// PageDamage is why a database can be used by nobody.
type PageDamage struct {
	Text string    `json:"text"`
	Time time.Time `json:"time"`
	// Database is which file it was found in, as it was (databaseKey): one that is repaired, or another that is put in
	// its place, is not condemned.
	Database string `json:"database"`
}

// readDamage returns what is known of a directory's database; the zero value: nothing.
func readDamage(dir string) PageDamage {
	var d PageDamage
	b, err := os.ReadFile(filepath.Join(dir, damageFile))
	if err != nil || json.Unmarshal(b, &d) != nil || d.Database != databaseKey(dir) {
		return PageDamage{}
	}
	return d
}

// databaseKey tells a database file, as it is, from another and from what it becomes when it is written to. Empty:
// there is none.
func databaseKey(dir string) string {
	info, err := os.Stat(datadir.ToBackendFileName(dir))
	if err != nil {
		return ""
	}
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino // not the device, whose number may be another after a boot
	}
	return fmt.Sprintf("%d %d %d", inode, info.Size(), info.ModTime().UnixNano())
}

// error is the damage as the reason why a directory cannot be opened; nil: there is none.
func (d PageDamage) error() error {
	if d.Text == "" {
		return nil
	}
	return fmt.Errorf("read the database: %s", d.Text)
}

// checkDue: etcd has ended on the directory so often that its database is to be read whole. One that was sound, or
// could not be read, is read again after twice as many starts.
func (m *Membership) checkDue() bool {
	if m.starts.runs < startsBeforeCheck {
		m.checkedAt, m.checked = 0, ""
	}
	return m.starts.runs >= max(startsBeforeCheck, 2*m.checkedAt)
}

// lookForDamage reads the database whole where that is due, and makes the damage that it finds part of what the
// directory is. The member is stopped. That etcd ended is only why it is looked for: nothing but the pages themselves
// condemns them.
func (m *Membership) lookForDamage(ctx context.Context, d *table.Directory) {
	if !m.checkDue() || !d.Exists || d.OpenErr != nil {
		return
	}
	begin := time.Now()
	err := checkPages(ctx, datadir.ToBackendFileName(m.etcdDir()))
	if ctx.Err() != nil {
		return
	}
	m.checkedAt = m.starts.runs
	if page := (*damagedPage)(nil); errors.As(err, &page) {
		found := PageDamage{Text: page.Error(), Time: begin, Database: databaseKey(m.etcdDir())}
		d.OpenErr = found.error()
		m.damage = &found
		return
	}
	m.checked = "its database was read whole, and is sound"
	if err != nil {
		m.checked = fmt.Sprintf("its database could not be read whole, which says nothing of what it holds: %v", err)
	}
	m.cfg.Log.Info("read the database whole", "starts", m.starts.runs, "found", m.checked, "took",
		time.Since(begin).Round(time.Millisecond).String())
}

// noteDamage writes it beside what it is about. Where that fails this agent knows it all the same, and the next one
// finds it again.
func (m *Membership) noteDamage(d PageDamage) {
	m.cfg.Log.Warn("the database is damaged", "found", d.Text)
	b, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		err = m.at(StepNoteDamage, func() error {
			return m.disk.write(filepath.Join(m.etcdDir(), damageFile), b,
				0o600)
		})
	}
	if err != nil {
		m.cfg.Log.Warn("note the damage", "err", err.Error())
	}
}
