package etcdmember

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// taken is how often an act was taken with an outcome.
func (m *Membership) taken(act table.Act, outcome string) uint64 {
	m.reported.mu.Lock()
	defer m.reported.mu.Unlock()
	for _, s := range m.reported.steps {
		if s.Act == act && s.Outcome == outcome {
			return s.Count
		}
	}
	return 0
}

func TestTheReportSaysWhatWasDone(t *testing.T) {
	m, ms, k := kept(t)
	r := ms.Report(t.Context())
	if r.Etcd.RecordRead == nil || ms.taken(table.ActSeed, "done") != 1 || ms.taken(table.ActSeed, "failed") != 0 ||
		r.Etcd.LeaderRow != "" || r.Etcd.Explanation.Leader != nil {
		t.Errorf("after a first boot: %+v", r)
	}
	before := *r.Etcd.RecordRead
	m.record.Fail(errors.New("503"))
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatal(err)
	}
	k.round.step(t.Context(), table.Facts{Now: time.Now()}, table.Plan{Row: 11, Act: table.ActAbandon, Epoch: 1})
	r = ms.Report(t.Context())
	if r.Etcd.Row != "1" || !r.Etcd.RecordRead.Equal(before) || ms.taken(table.ActAbandon, "failed") != 1 {
		t.Errorf("with a record that fails: %+v", r)
	}
	ms.reported.noteLeader(t0, leader.Ring{}, threeVoters(), table.Plan{Row: 45})
	if r := ms.Report(t.Context()); r.Etcd.LeaderRow != "45" || r.Etcd.Explanation.Leader.Plan.Row != 45 {
		t.Errorf("of the leader loop: %+v", r)
	}
	// It is plain data: who reads its JSON has all of it.
	r = ms.Report(t.Context())
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read Report
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, read); d != "" {
		t.Errorf("-written +read\n%s", d)
	}
	k.leader.forget()
	if r := ms.Report(t.Context()); r.Etcd.LeaderRow != "" || r.Etcd.Explanation.Leader != nil {
		t.Errorf("it leads no more: %+v", r)
	}
}

// The report takes what the keeper was told a moment ago, and asks where that is old or was nothing.
func TestTheReportTakesWhatTheKeeperWasTold(t *testing.T) {
	_, ms, _ := kept(t)
	s, err := ms.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := s.MemberID.String()
	for name, c := range map[string]struct {
		told *told
		want string
	}{
		"nothing": {nil, asked},
		"old":     {&told{table.MemberStatus{MemberID: 0xa}, time.Now().Add(-toldLately)}, asked},
		"young":   {&told{table.MemberStatus{MemberID: 0xa}, time.Now()}, record.MemberID(0xa).String()},
	} {
		ms.own.told.Store(c.told)
		if got := ms.Report(t.Context()).Etcd.Member; got != c.want {
			t.Errorf("%s: member %q, want %q", name, got, c.want)
		}
	}
}

// The leader alone knows how far the others' logs are behind its own.
func TestTheLagIsWhatTheLeaderKnows(t *testing.T) {
	s := table.MemberStatus{MemberID: 0xa1, Leader: 0xa1, Members: []table.Member{{ID: 0xa1, Name: "a"},
		{ID: 0xb1, Name: "b"},
		{ID: 0xc1, Learner: true}, {ID: 0xd1}}}
	for _, r := range memberReports(s) {
		if r.Lag != nil {
			t.Errorf("a follower knows the lag of %s: %d", r.ID, *r.Lag)
		}
	}
	s.Progress = map[record.MemberID]table.PeerProgress{0xa1: {Match: 70},
		0xb1: {Match: 64, RecentActive: true}, 0xc1: {}}
	want := []MemberReport{
		{Name: "a", ID: "a1", Role: "voter", Leader: true, Started: true, Lag: new(uint64(0)),
			Heard: new(true)},
		{Name: "b", ID: "b1", Role: "voter", Started: true, Lag: new(uint64(6)), Heard: new(true)},
		{ID: "c1", Role: "learner", Lag: new(uint64(70)), Heard: new(false)}, {ID: "d1", Role: "voter"},
	}
	if d := cmp.Diff(want, memberReports(s)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A learner that has not caught up knows its own configuration alone, in which every member is a voter.
func TestAJoinersConfigurationIsNotReported(t *testing.T) {
	for _, name := range []string{"member-b1", member.NotStarted + "b1"} {
		s := table.MemberStatus{MemberID: 0xa1, Members: []table.Member{{ID: 0xa1, Name: "a"}, {ID: 0xb1, Name: name}}}
		if got := memberReports(s); got == nil || len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
