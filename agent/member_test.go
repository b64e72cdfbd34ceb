package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// answeringMember imitates the process in which etcd runs: it says how it is, and notes what it is asked for.
type answeringMember struct {
	mu     sync.Mutex
	status table.MemberStatus
	asked  []string
}

// newMember has a member answer for an agent, which gets its membership.
func newMember(t *testing.T, a *Agent, in identified, status table.MemberStatus) *answeringMember {
	t.Helper()
	a.membership = membershipOf(a, in)
	l, err := net.Listen("unix", a.membership.StatusSocket())
	if err != nil {
		t.Fatal(err)
	}
	m := &answeringMember{status: status}
	server := &http.Server{Handler: m}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return m
}

func (m *answeringMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r.Method+" "+r.URL.Path)
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	json.NewEncoder(w).Encode(m.status)
}

func (m *answeringMember) is(change func(*table.MemberStatus)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.status)
}

func (m *answeringMember) wasAsked(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.asked, what)
}

// Three members: the own one, the leader, and one that only follows.
const own, leading, following record.MemberID = 0xa1, 0xb1, 0xc1

func threeOf(change func(*table.MemberStatus)) table.MemberStatus {
	s := table.MemberStatus{MemberID: own, Leader: leading, Ready: true, Members: []table.Member{
		{ID: own, Name: "us-central1-a.master-a.101"}, {ID: following, Name: "us-central1-c.master-c.103"},
		{ID: leading, Name: "us-central1-b.master-b.102"},
	}}
	if change != nil {
		change(&s)
	}
	return s
}

// formed is a record whose epoch is older than the interval of its snapshots.
func formed(v *vm) {
	v.record.view.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t", MaxLearners: 4},
		Outcome: &record.Outcome{
			Formed: &record.Formed{ClusterID: 1, MemberID: leading}, Time: time.Now().Add(-24 * time.Hour)}}}
}

// Snapshots and archives are maintained from the moment the member runs: a snapshot matters most where
// there is no apiserver.
func TestTheMembersSnapshotsAndArchivesNeedNoControlPlane(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	a, in := v.identified()
	formed(v)
	newMember(t, a, in, threeOf(nil))
	saved := make(chan string, 1)
	a.snapshots.save = func(_ context.Context, why string) error { saved <- why; return errBroken }
	ctx, end := context.WithCancelCause(t.Context())
	defer a.keepMember(ctx, joined{certified{recorded: recorded{identified: in, membership: a.membership}}}, end)()
	eventually(t, "the archives are listed", func() bool { return a.status(t.Context()).Archives != nil })
	select {
	case why := <-saved:
		if why != snapshot.WhySchedule {
			t.Errorf("saved for %q", why)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("no snapshot is saved: %+v", a.status(t.Context()).Snapshots)
	}
	if ctx.Err() != nil {
		t.Errorf("it ended: %v", context.Cause(ctx))
	}
}

// A row that wants a step ends what was built on the member, with its reason: only a boot takes steps.
func TestARowThatWantsAStepStartsTheReplicaAgain(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	v.established(v.self.Place, "started")
	formed(v)
	v.record.view.Epochs[0].Closed = &record.Closed{By: "101"}
	a.membership = membershipOf(a, in)
	ctx, end := context.WithCancelCause(t.Context())
	defer a.keepMember(ctx, joined{certified{recorded: recorded{identified: in, membership: a.membership}}}, end)()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("its epoch has ended, and it goes on: %+v", a.tracker.All())
	}
	if err := context.Cause(ctx); !errors.Is(err, ErrStartAgain) || !errors.Is(err, etcdmember.ErrDecideAgain) {
		t.Errorf("it ended with %v", err)
	}
}
