package ringtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// order gives one, as the operator's command does.
func (r *ring) order(o record.Order) {
	r.record.Change(func(v *record.View) {
		o.Number, o.Time = uint64(len(v.Orders)+1), time.Now()
		v.Orders = append(slices.Clone(v.Orders), o)
	})
}

// writer writes one key after the other through whichever member serves, and remembers what was acknowledged.
type writer struct {
	acknowledged []string
	longest      time.Duration // without a write
	stop         func()
}

func (r *ring) write(places ...replica.Place) *writer {
	var clients []*clientv3.Client
	for _, p := range places {
		clients = append(clients, r.client(p))
	}
	w := &writer{}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		last := time.Now()
		for i := 0; ctx.Err() == nil; i++ {
			key := fmt.Sprintf("w%06d", i)
			one, done := context.WithTimeout(ctx, 500*time.Millisecond)
			_, err := clients[i%len(clients)].Put(one, key, key)
			done()
			if err == nil {
				w.acknowledged = append(w.acknowledged, key)
				w.longest, last = max(w.longest, time.Since(last)), time.Now()
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	w.stop = sync.OnceFunc(func() { cancel(); wait.Wait() })
	r.t.Cleanup(w.stop)
	return w
}

// voterCount says why not exactly these places are members, as many of them voters as said.
func (r *ring) voterCount(voters int, places ...replica.Place) error {
	s, err := r.status(places[0])
	if err != nil {
		return err
	}
	n := 0
	for _, m := range s.Members {
		if !m.Learner {
			n++
		}
	}
	if n != voters || len(s.Members) != len(places) {
		return fmt.Errorf("%d voters of %d members, want %d of %d", n, len(s.Members), voters, len(places))
	}
	return nil
}

// By orders from one replica to five and back to one, with writes going on: none that was acknowledged is lost, and it
// is one cluster.
func TestTheClusterGrowsAndShrinksByOrdersWhileItIsWrittenTo(t *testing.T) {
	if os.Getenv("QUORATE_CHAOS") != "1" {
		t.Skip("it takes a minute: `make chaos` runs it")
	}
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	pd, pe := replica.Place{Zone: "us-central1-a", Name: "m-d"}, replica.Place{Zone: "us-central1-b", Name: "m-e"}
	places := []replica.Place{pa, pb, pc, pd, pe}
	r := newRing(t, places...)
	for _, a := range r.agents {
		a.cluster.Replicas = 1
	}
	size := func(n, voters int, members ...replica.Place) {
		t.Helper()
		r.await(fmt.Sprintf("%d of %d are voters", voters, n), func() error { return r.voterCount(voters, members...) })
	}
	r.agents[pa].begin()
	size(1, 1, pa)
	first, err := r.status(pa)
	if err != nil {
		t.Fatal(err)
	}
	w := r.write(places...)
	for n := 2; n <= 5; n++ {
		r.order(record.Order{Kind: record.OrderReplicas, Replicas: n})
		r.agents[places[n-1]].begin()
		size(n, map[int]int{2: 1, 3: 3, 4: 4, 5: 5}[n], places[:n]...)
	}
	leave := func(p replica.Place) { r.order(record.Order{Kind: record.OrderLeave, Place: &p}) }
	r.order(record.Order{Kind: record.OrderReplicas, Replicas: 3})
	r.await("nobody is taken out for a number", func() error {
		if got := r.blocked(r.leader()); !slices.Contains(got, "replicas-above-wanted") {
			return fmt.Errorf("the leader is blocked by %v", got)
		}
		return nil
	})
	leave(pe)
	r.await("a snapshot comes first", func() error {
		if got := r.blocked(r.leader()); !slices.Contains(got, "snapshot-first") {
			return fmt.Errorf("the leader is blocked by %v", got)
		}
		return r.voterCount(5, places...)
	})
	r.snapshot()
	size(4, 4, pa, pb, pc, pd)
	leave(r.leader()) // it hands over before it goes
	r.await("the leader has left", func() error {
		for _, p := range []replica.Place{pa, pb, pc, pd} {
			if slices.Contains(r.blocked(p), "left") {
				places = slices.DeleteFunc([]replica.Place{pa, pb, pc, pd},
					func(x replica.Place) bool { return x == p })
				return r.voterCount(3, places...)
			}
		}
		return errors.New("nobody is out")
	})
	r.order(record.Order{Kind: record.OrderReplicas, Replicas: 2})
	leave(places[2])
	size(2, 1, places[:2]...)
	r.order(record.Order{Kind: record.OrderReplicas, Replicas: 1})
	voter := r.leader()
	other := places[0]
	if other == voter {
		other = places[1]
	}
	leave(voter) // the voter of the pair: its learner is promoted, leads, and removes it
	size(1, 1, other)
	time.Sleep(time.Second)
	w.stop()
	last, err := r.status(other)
	if err != nil || last.ClusterID != first.ClusterID {
		t.Errorf("cluster %s, at first %s, %v", last.ClusterID, first.ClusterID, err)
	}
	r.wantWrites(other, w)
}

// wantWrites fails for an acknowledged write that a place's member does not hold.
func (r *ring) wantWrites(p replica.Place, w *writer) {
	t := r.t
	t.Helper()
	w.stop()
	got, err := r.client(p).Get(t.Context(), "w", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, kv := range got.Kvs {
		there[string(kv.Key)] = true
	}
	for _, key := range w.acknowledged {
		if !there[key] {
			t.Fatalf("%s was acknowledged and is not there", key)
		}
	}
	t.Logf("%d writes were acknowledged and are there; the longest time without one was %s", len(w.acknowledged),
		w.longest.Round(time.Millisecond))
}

// snapshot is what the snapshot duty leaves in the record.
func (r *ring) snapshot() {
	r.record.Change(func(v *record.View) {
		v.Snapshots, v.Taken = []uint64{1}, append(slices.Clone(v.Taken), record.Taken{Name: "s", Epoch: 1, Revision: 1,
			Time: time.Now()})
	})
}
