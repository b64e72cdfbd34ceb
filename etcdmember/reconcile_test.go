package etcdmember

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// A boot that did not know its disk's id takes an incarnation without one. The observation after the id is known
// completes it, once, and it is no other disk.
func TestADiskIDThatIsLearnedLateCompletesTheIncarnation(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	id := ""
	m.config = func(c *Config) { c.DiskID = func() string { return id } }
	ms := m.open()
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	ms.observer.keeping = true
	k := ms.newKeeper()
	recorded := func() []record.Incarnation {
		v, err := m.record.Copied()
		if err != nil {
			t.Fatal(err)
		}
		return v.Replicas[pa]
	}
	poll := func() {
		t.Helper()
		if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
			t.Fatal(err)
		}
	}
	poll()
	if all := recorded(); len(all) != 1 || all[0].DiskID != "" {
		t.Fatalf("while it is not known: %+v", all)
	}
	id = "d1"
	m.record.Change(func(v *record.View) { v.Replicas[pa][0].BootID = "another" })
	ms.reconciler.noteDisk(t.Context(), table.Facts{DiskID: id, Record: record.View{Replicas: m.record.Seen.Replicas}})
	if all := recorded(); all[0].DiskID != "" {
		t.Fatalf("another boot's incarnation was completed: %+v", all)
	}
	m.record.Change(func(v *record.View) { v.Replicas[pa][0].BootID = m.me.BootID })
	ms.reconciler.noteDisk(t.Context(), table.Facts{DiskID: id, Record: record.View{Replicas: m.record.Seen.Replicas},
		RecordErr: errors.New("503")})
	if all := recorded(); all[0].DiskID != "" {
		t.Fatalf("on a record that was not read: %+v", all)
	}
	poll()
	poll()
	if all := recorded(); len(all) != 1 || all[0].DiskID != "d1" {
		t.Fatalf("once it is known: %+v", all)
	}
}

// A take whose answer was lost is found again after a restart of the agent, which knows more or less of the disk than
// the one before it.
func TestAnIncarnationOfThisBootIsFoundAgainWhetherOrNotTheDiskIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		recorded, mine string
		taken          bool
	}{
		"not known then, known now": {"", "d1", true},
		"known then, not known now": {"d1", "", true},
		"never known":               {"", "", true},
		"the same":                  {"d1", "d1", true},
		"another disk":              {"d7", "d1", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			ms := m.open()
			m.record.Change(func(v *record.View) {
				v.Replicas[pa] = []record.Incarnation{{Place: pa, Number: 1, InstanceID: m.me.InstanceID,
					BootID: m.me.BootID, Epoch: 1, DiskID: c.recorded}}
			})
			ms.disk.open()
			f := table.Facts{Now: t0, DiskID: c.mine, Record: m.record.Seen}
			err := ms.reconciler.act(t.Context(), f, table.Plan{Act: table.ActTakeIncarnation, Epoch: 1,
				Incarnation: 1})
			if (err == nil) != c.taken || c.taken && ms.disk.agent.File.Incarnation != 1 {
				t.Errorf("taken %t: %v, agent.json: %+v", c.taken, err, ms.disk.agent.File)
			}
		})
	}
}
