package ringtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
)

// A third of the leaf pages of a member's database are zeroed while its agent is away. bbolt panics on them in etcd's
// own goroutine at each start, so that etcd leaves no last word. The agent reads the database whole, also where it ends
// before or after it has written down what it found, and the member is replaced; nothing is lost.
func TestADamagedDatabaseIsReplaced(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	victim := r.follower()
	before, want := r.ids(victim)[victim], r.writeMany(victim)
	a := r.agents[victim]
	starts := a.child.starts()
	a.end()
	if err := datadir.CheckPages(t.Context(), datadir.DatabaseFile(a.etcdDir())); err != nil {
		t.Fatalf("as etcd left it: %v", err)
	}
	zeroThirdOfLeaves(t, a.etcdDir())
	if d, err := datadir.Read(a.etcdDir()); err != nil || d.OpenErr != nil {
		t.Fatalf("its head already says so: %v, %v", d.OpenErr, err)
	}
	r.cutAll(damageSteps)
	a.begin()
	r.await("the member is replaced", func() error {
		if s, err := r.status(victim); err != nil || s.MemberID == before {
			return fmt.Errorf("%s: %+v, %w", victim, s, err)
		}
		return r.voters(pa, pb, pc)
	})
	if err := r.allCut(); err != nil {
		t.Error(err)
	}
	// StartsBeforeCheck for each time that the database is read, which is once again after what was found was not
	// written down, and one of the new member.
	if n := a.child.starts() - starts; n != 2*etcdmember.StartsBeforeCheck+1 {
		t.Errorf("etcd was started %d times", n)
	}
	archived, err := filepath.Glob(filepath.Join(filepath.Dir(a.etcdDir()), "archive", "*"))
	if err != nil || len(archived) != 1 {
		t.Fatalf("archived: %v, %v", archived, err)
	}
	if d, err := datadir.Read(archived[0]); err != nil || d.OpenErr == nil {
		t.Errorf("what was archived counts as whole: %v", err)
	}
	r.holds(victim, want)
}

// Without a quorum a damaged directory is all that there may be: it stays where it is, and its replica says what it
// needs.
func TestADamagedDatabaseIsKeptWithoutAQuorum(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa)
	r.agents[pa].cluster.Replicas = 1
	r.begin(pa)
	r.writeMany(pa)
	r.snapshot()
	a := r.agents[pa]
	a.end()
	zeroThirdOfLeaves(t, a.etcdDir())
	database, err := os.ReadFile(datadir.DatabaseFile(a.etcdDir()))
	if err != nil {
		t.Fatal(err)
	}
	a.begin()
	r.await("it waits", func() error {
		// row 30, and there is a snapshot
		if names := r.blocked(pa); !slices.Equal(names, []string{"restore-offered"}) {
			return fmt.Errorf("blocked by %v", names)
		}
		return nil
	})
	a.end()
	after, err := os.ReadFile(datadir.DatabaseFile(a.etcdDir()))
	if err != nil || !slices.Equal(database, after) {
		t.Errorf("its database is not as it was: %v", err)
	}
}

// writeMany writes keys through a member, for a database of many pages.
func (r *ring) writeMany(p replica.Place) map[string]string {
	r.t.Helper()
	c, want := r.client(p), map[string]string{}
	for i := range 400 {
		key, value := fmt.Sprintf("k/%d", i), fmt.Sprintf("%0500d", i)
		if err := r.put(c, key, value); err != nil {
			r.t.Fatal(err)
		}
		want[key] = value
	}
	return want
}

// holds wants all keys to be read through a member.
func (r *ring) holds(p replica.Place, want map[string]string) {
	r.t.Helper()
	resp, err := r.client(p).Get(r.t.Context(), "k/", clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != len(want) {
		r.t.Fatalf("%s has %d keys of %d: %v", p, len(resp.Kvs), len(want), err)
	}
	for _, kv := range resp.Kvs {
		if want[string(kv.Key)] != string(kv.Value) {
			r.t.Errorf("%s has %q as %s", p, kv.Value, kv.Key)
		}
	}
}

// zeroThirdOfLeaves zeroes every third leaf of a stopped member's database that is in use.
func zeroThirdOfLeaves(t *testing.T, dir string) {
	t.Helper()
	path, n := datadir.DatabaseFile(dir), 0
	for i, page := range etcdtest.Pages(t, path, "leaf") {
		if i%3 == 1 {
			etcdtest.DamagePage(t, path, page, func(p []byte) { clear(p) })
			n++
		}
	}
	if n < 3 {
		t.Fatal("a database of a few pages")
	}
}
