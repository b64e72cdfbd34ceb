package etcdmember

import (
	"context"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// slowRecord stands still for a while before it answers.
type slowRecord struct {
	Record
	answered time.Time
}

func (r *slowRecord) View(ctx context.Context) (record.View, error) {
	time.Sleep(20 * time.Millisecond)
	r.answered = time.Now()
	return r.Record.View(ctx)
}

// A VM that stands still while it reads the record must not take the mark that it finds for one that it has known ever
// since it began, or its writer would count as silent at once.
func TestAMarkIsSeenWhenTheRecordIsRead(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	m.record.Change(func(v *record.View) {
		v.Marks = map[record.MemberID]record.Mark{0xb1: {MemberID: 0xb1, BootID: "boot1", Written: time.Now()}}
	})
	var slow slowRecord
	m.config = func(c *Config) { slow.Record, c.Record = c.Record, &slow }
	f := m.open().reconciler.observe(t.Context())
	if seen := f.Beats[table.BeatKey{MemberID: 0xb1,
		BootID: "boot1"}].Seen; seen.Before(slow.answered) || !f.Now.Before(slow.answered) {
		t.Errorf("decided as of %s, the mark seen %s, the record read %s", f.Now, seen, slow.answered)
	}
}

// The list that is remembered is the newest one by a quorum. Where there is none, the one before it is still older
// than the record.
func TestSilenceTheListIsRemembered(t *testing.T) {
	m := &remembered{}
	f := three()
	answerThrough(&f)
	m.noteList(f)
	if len(m.listed) != 3 || m.listed[0xb1] != pb.String()+".102" {
		t.Errorf("%v", m.listed)
	}
	f.Answers = []table.Answer{{Place: pb, InstanceID: "102", Reach: table.ReachAnswers}}
	m.noteList(f)
	if len(m.listed) != 3 {
		t.Errorf("an answer that is none: %v", m.listed)
	}
	answerThrough(&f, entry(pb, "102", 0xb1))
	m.noteList(f)
	if len(m.listed) != 1 {
		t.Errorf("a shorter list: %v", m.listed)
	}
}
