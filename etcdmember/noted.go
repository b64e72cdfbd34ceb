package etcdmember

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What an agent remembers of its observations because one observation cannot show it: that a mark is not written any
// more, that list after list lacks an instance, and which members were listed before the record was read. All of it can
// only hold a step back: an agent that has just started has seen none of it, and waits.

// noteSuperseded lets the rest of this boot know that this replica was superseded, also an agent that is started again
// while the record cannot be read: row 1 would start the member beside the one that has taken its place. It lies on the
// tmpfs.
func (m *Membership) noteSuperseded(o table.Observation) {
	if !o.Superseded || m.superseded {
		return
	}
	m.superseded = true
	if err := os.WriteFile(m.supersededPath(), []byte(m.cfg.Me.BootID+"\n"), 0o600); err != nil {
		m.cfg.Log.Warn("note that this replica is superseded", "err", err.Error())
	}
}

// wasSuperseded reads what noteSuperseded wrote in this boot.
func (m *Membership) wasSuperseded() bool {
	b, err := os.ReadFile(m.supersededPath())
	return err == nil && strings.TrimSpace(string(b)) == m.cfg.Me.BootID
}

func (m *Membership) supersededPath() string { return filepath.Join(m.cfg.RunDir, "superseded") }

// noteList remembers the linearizable list for the next observation, whose record is newer than it.
func (m *Membership) noteList(f table.Facts) {
	a, ok := table.QuorumAnswer(f)
	if !ok {
		return
	}
	m.listed = map[record.MemberID]string{}
	for _, e := range a.Members {
		m.listed[e.ID] = e.Name
	}
}
