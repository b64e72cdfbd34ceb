package ringtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
)

// An older copy of a directory, of the same incarnation and above every mark, is put back in its place while the leader
// to which the member acknowledged more goes on. An agent that hears what the leader knows does not start it; one that
// does not hear it learns it from etcd, which panics each time.
func TestAnOlderCopyIsReplacedByTheLeadersWordOrByEtcds(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	for _, deaf := range []bool{false, true} {
		p := r.follower()
		before, starts := r.ids(p)[p], 0
		a := r.agents[p]
		r.putBack(p, func() { a.deaf, starts = deaf, a.child.starts() })
		r.await(fmt.Sprintf("%s is another member, deaf %t", p, deaf), func() error {
			if s, err := r.status(p); err != nil || s.MemberID == before {
				return fmt.Errorf("%+v, %w", s, err)
			}
			return r.voters(pa, pb, pc)
		})
		a.deaf = false
		archived, err := os.ReadDir(filepath.Join(filepath.Dir(a.etcdDir()), "archive"))
		if err != nil || len(archived) != 1 {
			t.Errorf("archived: %v, %v", archived, err)
		}
		want := 1 // as the new member
		if deaf {
			want += table.UnusableEnds
		}
		if n := a.child.starts() - starts; n < want || !deaf && n != want {
			t.Errorf("deaf %t: etcd was started %d times, want %d", deaf, n, want)
		}
		log, err := os.ReadFile(filepath.Join(a.dir, "etcd.log"))
		if panicked := bytes.Contains(log, []byte("is out of range [lastIndex(")); err != nil || panicked != deaf {
			t.Errorf("deaf %t: etcd has panicked: %t, %v", deaf, panicked, err)
		}
	}
}

// follower is a place that does not lead and has archived nothing.
func (r *ring) follower() replica.Place {
	leader := r.leader()
	for _, p := range []replica.Place{pa, pb, pc} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(r.agents[p].etcdDir()), "archive")); p != leader &&
			errors.Is(err, os.ErrNotExist) {
			return p
		}
	}
	r.t.Fatal("no place is left")
	return replica.Place{}
}

// putBack copies a place's directory, lets its member acknowledge more, and starts the agent, once it is changed, on
// the copy.
func (r *ring) putBack(p replica.Place, change func()) {
	r.t.Helper()
	a := r.agents[p]
	older := filepath.Join(a.dir, "older")
	a.end()
	if err := os.CopyFS(older, os.DirFS(a.etcdDir())); err != nil {
		r.t.Fatal(err)
	}
	a.begin()
	r.await(p.String()+" is back", func() error { return r.voters(pa, pb, pc) })
	client := r.client(p)
	for n := range 50 {
		if err := r.put(client, fmt.Sprintf("after/%d", n), "x"); err != nil {
			r.t.Fatal(err)
		}
	}
	a.end()
	if err := errors.Join(os.RemoveAll(a.etcdDir()), os.Rename(older, a.etcdDir())); err != nil {
		r.t.Fatal(err)
	}
	change()
	a.begin()
}
