package ringtest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
)

// corrupt changes one value in a stopped member's database, as a bad disk would.
func corrupt(t *testing.T, dir, payload string) {
	t.Helper()
	db, err := bbolt.Open(datadir.DatabaseFile(dir), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	err = db.Update(func(tx *bbolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		return keys.ForEach(func(k, v []byte) error {
			if n := bytes.Index(v, []byte(payload)); n >= 0 && changed == 0 {
				changed++
				other := slices.Clone(v)
				other[n] ^= 1
				return keys.Put(slices.Clone(k), other)
			}
			return nil
		})
	})
	if err = errors.Join(err, db.Close()); err != nil || changed != 1 {
		t.Fatalf("%d values changed, %v", changed, err)
	}
}

func TestACorruptMemberIsReplacedAndItsAlarmDisarmed(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	// A check that comes before all have compacted finds no majority, and blames nobody: rare enough at this period.
	r.change = func(c *member.Config) { c.HashCheck = 2 * time.Second }
	r.begin(pa, pb, pc)
	victim := pc
	if r.leader() == victim {
		victim = pb
	}
	c := r.client(pa)
	for i := range 20 {
		if err := r.put(c, fmt.Sprintf("k%d", i), fmt.Sprintf("payload-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	before, err := r.status(victim)
	if err != nil {
		t.Fatal(err)
	}
	r.agents[victim].end()
	corrupt(t, r.agents[victim].etcdDir(), "payload-7")
	r.agents[victim].begin()
	r.await("the corrupt member is back", func() error { return r.voters(pa, pb, pc) })
	s, _ := r.status(pa)
	if _, err := c.Compact(t.Context(), s.Revision-2); err != nil {
		t.Fatal(err)
	}
	r.await("etcd raises the alarm", func() error {
		if s, err := r.status(r.leader()); err != nil || len(s.Alarms) != 1 ||
			s.Alarms[0] != (table.Alarm{MemberID: before.MemberID, Kind: table.AlarmCorrupt}) {
			return fmt.Errorf("alarms %+v, %w", s.Alarms, err)
		}
		return nil
	})
	if err := r.put(c, "refused", "x"); !errors.Is(err, rpctypes.ErrCorrupt) {
		t.Errorf("a write while the alarm stands: %v", err)
	}
	r.await("the member was replaced, and the alarm is gone", func() error {
		now, err := r.status(victim)
		if err != nil || now.MemberID == before.MemberID || len(now.Alarms) > 0 {
			return fmt.Errorf("%+v, %w", now, err)
		}
		return r.voters(pa, pb, pc)
	})
	if err := r.put(r.client(victim), "after", "x"); err != nil {
		t.Errorf("a write after it: %v", err)
	}
	got, err := r.client(victim).Get(t.Context(), "k7")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "payload-7" {
		t.Errorf("the value is %v, %v", got, err)
	}
	if archived, err := filepath.Glob(filepath.Join(r.agents[victim].dir, "data", "archive", "*")); err != nil ||
		len(archived) != 1 {
		t.Errorf("archived: %v, %v", archived, err)
	}
}

// Each step of the repair is also where an agent ends, before it and after it.
func TestAFullClusterHealsOnceThereIsHistoryToGiveUp(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.change = func(c *member.Config) { c.QuotaBytes = 6 << 20 }
	r.history = 5 * time.Second
	r.begin(pa, pb, pc)
	c := r.client(pa)
	r.fill(c)
	r.cutAll(roomSteps)
	r.await("all is cut", r.allCut)
	r.hasRoom(c)
}

// etcd does not defragment a learner for another, and one that stays full raises the alarm again with the next write.
func TestAFullPairHealsOnceThereIsHistoryToGiveUp(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb)
	r.change = func(c *member.Config) { c.QuotaBytes = 6 << 20 }
	r.history = 5 * time.Second
	for _, a := range r.agents {
		a.cluster.Replicas = 2
		a.begin()
	}
	r.await("one votes, and the other is a learner", func() error { return r.voterCount(1, pa, pb) })
	before, err := r.status(pa)
	if err != nil {
		t.Fatal(err)
	}
	c := r.client(r.leader())
	r.fill(c)
	r.await("all databases are full", func() error {
		for p := range r.agents {
			if s, err := r.status(p); err != nil || !leader.IsFull(s) {
				return fmt.Errorf("%s: %+v, %w", p, s.Database, err)
			}
		}
		return nil
	})
	r.cutAll(pairSteps)
	r.await("all is cut", r.allCut)
	r.hasRoom(c)
	for p := range r.agents {
		s, err := r.status(p)
		// What a learner has given back before the history was given up may be just enough: that is room, too.
		if err != nil || !s.Learner && s.Database.Bytes > 4<<20 || s.Database.Bytes*10 >= s.Database.Quota*9 {
			t.Errorf("%s: %+v, %v", p, s.Database, err)
		}
		if !slices.EqualFunc(s.Members, before.Members, func(a, b table.Member) bool { return a.ID == b.ID }) {
			t.Errorf("members %+v, before %+v", s.Members, before.Members)
		}
	}
}

// fill writes the same keys again and again until the quota is reached.
func (r *ring) fill(c *clientv3.Client) {
	r.t.Helper()
	big := strings.Repeat("x", 100<<10)
	writes := 0
	r.await("the quota is reached", func() error {
		for range 10 {
			if err := r.put(c, fmt.Sprintf("k%d", writes%4), big+fmt.Sprint(writes)); err != nil {
				if errors.Is(err, rpctypes.ErrNoSpace) {
					return nil
				}
				return err
			}
			writes++
		}
		return errors.New("there is room")
	})
}

// hasRoom: writes go on, and no alarm comes back.
func (r *ring) hasRoom(c *clientv3.Client) {
	r.t.Helper()
	r.await("writes go on, and no alarm is left", func() error {
		if err := r.put(c, "after", "x"); err != nil {
			return err
		}
		for p := range r.agents {
			if s, err := r.status(p); err != nil || len(s.Alarms) > 0 {
				return fmt.Errorf("%s: %+v, %w", p, s.Alarms, err)
			}
		}
		return nil
	})
}

func TestTwoMembersThatDifferAreLeftAlone(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.change = func(c *member.Config) { c.HashCheck = 300 * time.Millisecond }
	r.begin(pa, pb, pc)
	r.record.Change(func(v *record.View) {
		v.Orders = append(v.Orders, record.Order{Number: 1, Kind: record.OrderLeave, Place: &pc})
	})
	r.await("c has left by order", func() error {
		if got := r.blocked(pc); !slices.Contains(got, "left") {
			return fmt.Errorf("c is blocked by %v", got)
		}
		return r.voters(pa, pb)
	})
	c := r.client(pa)
	for i := range 20 {
		if err := r.put(c, fmt.Sprintf("k%d", i), fmt.Sprintf("payload-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	r.agents[pb].end()
	corrupt(t, r.agents[pb].etcdDir(), "payload-7")
	r.agents[pb].begin()
	r.await("the corrupt member is back", func() error { return r.voters(pa, pb) })
	s, _ := r.status(pa)
	if _, err := c.Compact(t.Context(), s.Revision-2); err != nil {
		t.Fatal(err)
	}
	r.await("etcd raises the alarm, and all stands still", func() error {
		if got := r.blocked(r.leader()); !slices.Contains(got, "corrupt") {
			return fmt.Errorf("the leader is blocked by %v", got)
		}
		return nil
	})
	alarmed, _ := r.status(pa)
	r.stays("the alarms stand, and nobody is removed", r.leader(), 2, func() error {
		if s, err := r.status(pa); err != nil || !slices.Equal(s.Alarms, alarmed.Alarms) || len(s.Alarms) == 0 {
			return fmt.Errorf("%+v, %w; the alarms were %+v", s, err, alarmed.Alarms)
		}
		return r.voters(pa, pb)
	})
	if err := r.put(c, "refused", "x"); !errors.Is(err, rpctypes.ErrCorrupt) {
		t.Errorf("a write while nobody knows who is right: %v", err)
	}
}
