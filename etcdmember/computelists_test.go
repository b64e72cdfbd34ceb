package etcdmember

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// countedCompute is a Compute API whose lists and single answers a test sets, and which counts its questions.
type countedCompute struct {
	list  []replica.VM
	names map[replica.Place]replica.VM
	err   error // of the single answers
	lists int
	asked int32 // atomic
	// disks are those of the list, unlabelled those that are found by their ids; users is what each is attached to.
	disks, unlabelled []string
	users             map[string][]replica.Place
	at                time.Time // when it says that it answers
}

func (c *countedCompute) VMs(context.Context) ([]replica.VM, time.Time, error) {
	c.lists++
	return c.list, c.at, nil
}

func (c *countedCompute) Disks(context.Context) (out []replica.Disk, err error) {
	for _, id := range c.disks {
		out = append(out, replica.Disk{ID: id, Users: c.users[id]})
	}
	return out, nil
}

func (c *countedCompute) Disk(_ context.Context, id string) (replica.Disk, bool, error) {
	return replica.Disk{ID: id, Users: c.users[id]}, slices.Contains(c.unlabelled, id), c.err
}

// A data disk is gone only if the API says so of its id, and finds this VM's own: a label can be lost.
func TestADiskThatLostItsLabelIsNotGone(t *testing.T) {
	me := replica.VM{Place: pa, InstanceID: "101", Status: "RUNNING"}
	for name, c := range map[string]struct {
		api  countedCompute
		gone bool
		own  string
	}{
		"neither listed nor found by its id": {countedCompute{disks: []string{"d1"}, unlabelled: []string{"d1"}},
			true, "d1"},
		"it lost its label": {countedCompute{disks: []string{"d1"},
			unlabelled: []string{"d1", "d2"}}, false, "d1"},
		"it is listed":                             {countedCompute{disks: []string{"d1", "d2"}}, false, "d1"},
		"all lost their labels":                    {countedCompute{unlabelled: []string{"d1", "d2"}}, false, "d1"},
		"no id is found, not even this VM's own's": {countedCompute{disks: []string{"d1"}}, false, "d1"},
		"ids may not be asked for": {countedCompute{disks: []string{"d1"}, err: errors.New("403")},
			false, "d1"},
		"its own disk is not known, and one that is listed is found by its id":     {countedCompute{disks: []string{"d1"}, unlabelled: []string{"d1"}}, true, ""},
		"its own disk is not known, and one that is listed is not found by its id": {countedCompute{disks: []string{"d1"}}, false, ""},
		"its own disk is not known, and none is listed":                            {countedCompute{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.api.list, c.api.names = []replica.VM{me}, map[replica.Place]replica.VM{pa: me}
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			m.config = func(cfg *Config) { cfg.Compute, cfg.DiskID = &c.api, onDisk(c.own) }
			ms := m.open()
			lost := record.Incarnation{Place: pb, Number: 1, InstanceID: "102", DiskID: "d2"}
			v := record.View{Replicas: map[replica.Place][]record.Incarnation{pa: {{Place: pa, Number: 1,
				InstanceID: "101", DiskID: "d1"}}, pb: {lost}}}
			ms.observer.lists.list(t.Context(), v)
			ms.observer.lists.compute.Second.Time = ms.observer.lists.compute.Second.Time.Add(-listPeriod)
			ms.observer.lists.list(t.Context(), v)
			// of the instance it is known
			for _, l := range []*table.Listing{&ms.observer.lists.compute.First, &ms.observer.lists.compute.Second} {
				l.Instances = instances("101")
			}
			if gone := table.HistoryOf(table.Facts{Me: m.me, Record: v,
				Compute: ms.observer.lists.compute}).GoneWithDisk(lost); gone != c.gone {
				t.Errorf("gone with its disk: %t; the second list: %+v", gone, ms.observer.lists.compute.Second)
			}
		})
	}
}

// What a decision asks of a list besides who is in it: the API's clock, when a VM was stopped, and whom a disk is
// attached to.
func TestAListSaysWhenItWasAnsweredWhoWasStoppedAndWhoHasWhichDisk(t *testing.T) {
	at, stop, named := t0.Add(time.Hour), t0.Add(30*time.Minute), t0.Add(20*time.Minute)
	me := replica.VM{Place: pa, InstanceID: "101", Status: "RUNNING"}
	b := replica.VM{Place: pb, InstanceID: "102", Status: "TERMINATED", LastStop: stop}
	c := replica.VM{Place: pc, InstanceID: "103", Status: "STOPPED", LastStop: named}
	view := record.View{
		Epochs: []record.Epoch{{Number: 2, Outcome: &record.Outcome{Formed: &record.Formed{}}}},
		Replicas: map[replica.Place][]record.Incarnation{
			pa: {{Place: pa, Number: 1, InstanceID: "101", DiskID: "d1", Epoch: 2}},
			pb: {{Place: pb, Number: 1, InstanceID: "92", DiskID: "d0", Epoch: 1},
				{Place: pb, Number: 2, InstanceID: "102", DiskID: "d2", Epoch: 2}},
			pc: {{Place: pc, Number: 1, InstanceID: "93", DiskID: "d4", Epoch: 2},
				{Place: pc, Number: 2, InstanceID: "103", DiskID: "d3", Epoch: 2}},
		},
	}
	users := map[string][]replica.Place{"d1": {pa}, "d2": {}, "d3": {pc}}
	for name, tc := range map[string]struct {
		api   countedCompute
		disks []string // sorted
		users map[string][]replica.Place
	}{
		"all disks are listed": {countedCompute{disks: []string{"d1", "d2", "d3", "d4"}},
			[]string{"d1", "d2", "d3", "d4"},
			map[string][]replica.Place{"d1": {pa}, "d2": {}, "d3": {pc}, "d4": nil}},
		"some are found by their ids, one is gone": {countedCompute{disks: []string{"d2"},
			unlabelled: []string{"d1", "d3"}}, []string{"d1", "d2", "d3"},
			map[string][]replica.Place{"d1": {pa}, "d2": {}, "d3": {pc}}},
		"what cannot be asked for counts as attached": {countedCompute{disks: []string{"d1", "d2"},
			err: errors.New("403")}, []string{"d1", "d2", "d3", "d4"},
			map[string][]replica.Place{"d1": {pa}, "d2": {}, "d3": {pc}, "d4": {pc}}},
		"an API that finds no id knows nothing": {countedCompute{disks: []string{"d2"}},
			[]string{"d1", "d2", "d3", "d4"},
			map[string][]replica.Place{"d1": {pa}, "d2": {}, "d3": {pc}, "d4": {pc}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			tc.api.list, tc.api.at, tc.api.users = []replica.VM{me, b}, at, users
			tc.api.names = map[replica.Place]replica.VM{pa: me, pc: c}
			m.config = func(cfg *Config) { cfg.Compute = &tc.api }
			ms := m.open()
			ms.observer.lists.list(t.Context(), view)
			l := ms.observer.lists.compute.Second
			slices.Sort(l.Disks)
			if diff := cmp.Diff(tc.users, l.Users); !l.ServerTime.Equal(at) || !slices.Equal(l.Disks, tc.disks) ||
				diff != "" {
				t.Errorf("answered at %s, disks %v, users:\n%s", l.ServerTime, l.Disks, diff)
			}
			stops := map[string]time.Time{}
			for _, i := range l.Instances {
				stops[i.InstanceID] = i.LastStop
			}
			want := map[string]time.Time{"101": {}, "102": stop, "103": named}
			if tc.api.err != nil {
				want["103"] = time.Time{}
			}
			if diff := cmp.Diff(want, stops); diff != "" {
				t.Errorf("last stops:\n%s", diff)
			}
		})
	}
}

func (c *countedCompute) VM(_ context.Context, p replica.Place) (replica.VM, bool, error) {
	atomic.AddInt32(&c.asked, 1)
	vm, found := c.names[p]
	return vm, found, c.err
}

// A label can be lost and a list can be late: an instance is gone only where the API says so of its very name as well.
func TestAnInstanceThatIsNotListedIsAskedForByName(t *testing.T) {
	me := replica.VM{Place: pa, InstanceID: "101", Status: "RUNNING"}
	b := func(id string) replica.VM { return replica.VM{Place: pb, InstanceID: id, Status: "TERMINATED"} }
	named := func(vms ...replica.VM) map[replica.Place]replica.VM {
		out := map[replica.Place]replica.VM{}
		for _, vm := range vms {
			out[vm.Place] = vm
		}
		return out
	}
	for name, c := range map[string]struct {
		api  countedCompute
		gone bool
	}{
		"neither listed nor found by its name": {countedCompute{list: []replica.VM{me}, names: named(me)}, true},
		"another instance has its name": {countedCompute{list: []replica.VM{me}, names: named(me, b("202"))},
			true},
		"it lost its label": {countedCompute{list: []replica.VM{me}, names: named(me, b("102"))},
			false},
		"it is shown with the instance before it": {countedCompute{list: []replica.VM{me}, names: named(me, b("92"))},
			false},
		"no name is found, not even this very VM's": {countedCompute{list: []replica.VM{me}}, false},
		"names may not be asked for": {countedCompute{list: []replica.VM{me}, names: named(me),
			err: errors.New("403")}, false},
		"the list lacks this very VM, and it is no list": {countedCompute{list: []replica.VM{b("999")},
			names: named(me)},
			false},
		"it is listed": {countedCompute{list: []replica.VM{me, b("102")},
			names: named(me, b("102"))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			m.config = func(cfg *Config) { cfg.Compute = &c.api }
			ms := m.open()
			v := record.View{Replicas: map[replica.Place][]record.Incarnation{
				pa: {{Place: pa, Number: 1, InstanceID: "101"}},
				pb: {{Place: pb, Number: 1, InstanceID: "92"}, {Place: pb, Number: 2, InstanceID: "102"}},
			}}
			ms.observer.lists.list(t.Context(), v)
			ms.observer.lists.compute.Second.Time = ms.observer.lists.compute.Second.Time.Add(-listPeriod)
			ms.observer.lists.list(t.Context(), v)
			if c.api.lists != 2 || ms.observer.lists.compute.First.Time.IsZero() {
				t.Fatalf("%d lists", c.api.lists)
			}
			gone := table.HistoryOf(table.Facts{Me: m.me, Record: v, Compute: ms.observer.lists.compute}).Gone(pb, "102")
			if gone != c.gone {
				t.Errorf("gone: %t; the second list: %+v", gone, ms.observer.lists.compute.Second)
			}
			if gone && c.api.asked == 0 {
				t.Error("it was not asked for by its name")
			}
		})
	}
}

// The Compute API is asked only while a voter has been away for so long that its death matters, and ever less often.
func TestTheComputeAPIIsAskedOnlyWhenAVoterIsAway(t *testing.T) {
	api := &countedCompute{list: []replica.VM{{Place: pa, InstanceID: "101"}}}
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	m.config = func(cfg *Config) { cfg.Compute = api }
	l := m.open().newLeaderLoop()
	s := table.MemberStatus{MemberID: 0xa1, Leader: 0xa1, Members: []table.Member{{ID: 0xa1}, {ID: 0xb1},
		{ID: 0xc1, Learner: true}}}
	now := time.Now()
	l.pace.unreachable[0xc1] = now.Add(-time.Hour) // a learner's end is no voter's
	for _, step := range []struct {
		name string
		away time.Duration // of b; 0: it is in reach
		ago  time.Duration // of the newest list
		asks bool
	}{
		{"nobody is away", 0, time.Hour, false},
		{"it may be booting", 20 * time.Second, time.Hour, false},
		{"the first list", 30 * time.Second, time.Hour, true},
		{"not at once again", 32 * time.Second, 2 * time.Second, false},
		{"the second", 41 * time.Second, 10 * time.Second, true},
		{"it has been away for long: not every ten seconds", time.Hour, 30 * time.Second, false},
		{"but every minute", time.Hour, time.Minute, true},
	} {
		delete(l.pace.unreachable, 0xb1)
		if step.away > 0 {
			l.pace.unreachable[0xb1] = now.Add(-step.away)
		}
		l.lists.compute.Second = table.Listing{Time: now.Add(-step.ago)}
		before := api.lists
		l.listGone(t.Context(), now, s)
		if asks := api.lists > before; asks != step.asks {
			t.Errorf("%s: asked %t", step.name, asks)
		}
	}
}

// The seeder of the newest claim is asked for, too. Where its place has had other instances since, the API shows one of
// those under its name, and it is gone; a restore of an epoch whose seeder had been recreated waited for it for ever.
func TestASeederWhosePlaceHasAnotherInstanceIsGone(t *testing.T) {
	me := replica.VM{Place: pa, InstanceID: "103", Status: "RUNNING"}
	before := replica.VM{Place: pa, InstanceID: "91", Status: "RUNNING"}
	for name, c := range map[string]struct {
		taken []string // the instances of the incarnations of the place
		shown replica.VM
		gone  bool
	}{
		"this very VM is its successor":                           {[]string{"101", "102", "103"}, me, true},
		"an instance from before it is shown: the answer is late": {[]string{"91", "101", "103"}, before, false},
		"it took the place again, after its successor":            {[]string{"101", "103", "101", "103"}, me, false},
		"it never took an incarnation":                            {[]string{"103"}, me, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			m.me.InstanceID = "103"
			api := &countedCompute{list: []replica.VM{me}, names: map[replica.Place]replica.VM{pa: c.shown}}
			m.config = func(cfg *Config) { cfg.Compute = api }
			ms := m.open()
			v := record.View{Replicas: map[replica.Place][]record.Incarnation{},
				Epochs: []record.Epoch{{Number: 1,
					Claim: &record.Claim{Seeder: record.Seeder{Place: pa, InstanceID: "101"}}}}}
			for n, id := range c.taken {
				v.Replicas[pa] = append(v.Replicas[pa], record.Incarnation{Place: pa, Number: uint64(n + 1),
					InstanceID: id})
			}
			ms.observer.lists.list(t.Context(), v)
			ms.observer.lists.compute.Second.Time = ms.observer.lists.compute.Second.Time.Add(-listPeriod)
			ms.observer.lists.list(t.Context(), v)
			if gone := table.HistoryOf(table.Facts{Me: m.me, Record: v,
				Compute: ms.observer.lists.compute}).Unlisted("101"); gone != c.gone {
				t.Errorf("gone: %t; the second list: %+v", gone, ms.observer.lists.compute.Second)
			}
		})
	}
}

// slowCompute is a Compute API on which each question takes a time, as on GCE, and which counts those at one time.
type slowCompute struct {
	etcdtest.Compute
	takes, list time.Duration // a question; the list of VMs, where that takes longer
	mu          sync.Mutex
	now, most   int
}

func (c *slowCompute) ask(ctx context.Context, takes time.Duration) error {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	err := backoff.Sleep(ctx, takes)
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
	return err
}

func (c *slowCompute) VMs(ctx context.Context) ([]replica.VM, time.Time, error) {
	if err := c.ask(ctx, max(c.takes, c.list)); err != nil {
		return nil, time.Time{}, err
	}
	return c.Compute.VMs(ctx)
}

func (c *slowCompute) VM(ctx context.Context, p replica.Place) (replica.VM, bool, error) {
	if err := c.ask(ctx, c.takes); err != nil {
		return replica.VM{}, false, err
	}
	return c.Compute.VM(ctx, p)
}

func (c *slowCompute) Disks(ctx context.Context) ([]replica.Disk, error) {
	if err := c.ask(ctx, c.takes); err != nil {
		return nil, err
	}
	return c.Compute.Disks(ctx)
}

func (c *slowCompute) Disk(ctx context.Context, id string) (replica.Disk, bool, error) {
	if err := c.ask(ctx, c.takes); err != nil {
		return replica.Disk{}, false, err
	}
	return c.Compute.Disk(ctx, id)
}

// With GCE's latency a list that has to ask for everything by name is whole within a poll's patience: no two questions
// wait for each other but those that need an answer.
func TestAListOfSlowAnswersIsWholeInOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowCompute{takes: 1500 * time.Millisecond,
			Compute: etcdtest.Compute{{Place: pa, InstanceID: "101", Status: "RUNNING"}}}
		c := newComputeLists(api, replica.Identity{Place: pa, InstanceID: "101"}, onDisk("d1"))
		v := record.View{Replicas: map[replica.Place][]record.Incarnation{
			pa: {{Place: pa, Number: 1, InstanceID: "101", DiskID: "d1"}},
			pb: {{Place: pb, Number: 1, InstanceID: "102", DiskID: "d2"}},
			pc: {{Place: pc, Number: 1, InstanceID: "103", DiskID: "d3"}},
		}}
		begin := time.Now()
		c.list(t.Context(), v)
		if l := c.compute.Second; l.Err != nil || l.DisksErr != nil || len(l.Instances) != 1 || len(l.Disks) != 1 {
			t.Errorf("%+v", l)
		}
		if took := time.Since(begin); took > 3*api.takes || api.most < 4 {
			t.Errorf("it took %s, with %d questions at one time", took, api.most)
		}
	})
}

// A list that takes longer than a poll waits is taken by a later poll, whole, and counts from its beginning.
func TestAListThatTakesLongIsTakenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowCompute{Compute: etcdtest.Compute{{Place: pa, InstanceID: "101", Status: "RUNNING"}}}
		c := newComputeLists(api, replica.Identity{Place: pa, InstanceID: "101"}, nil)
		v := record.View{Replicas: map[replica.Place][]record.Incarnation{
			pa: {{Place: pa, Number: 1, InstanceID: "101"}}}}
		whole := func(l table.Listing) bool { return l.Err == nil && table.InList(l, "101") }
		c.list(t.Context(), v)
		first := c.compute.Second
		time.Sleep(listPeriod)

		api.list = 12 * time.Second
		begin := time.Now()
		c.list(t.Context(), v)
		if took := time.Since(begin); took != listPatience || c.compute.Second.Time != first.Time {
			t.Errorf("after %s: %+v; want the list before it", took, c.compute)
		}
		c.collect()
		c.list(t.Context(), v)
		c.list(t.Context(), v)
		if !whole(c.compute.First) || !whole(c.compute.Second) || c.compute.Second.Time != begin {
			t.Errorf("in the end: %+v", c.compute)
		}
		time.Sleep(listKept)

		api.list = time.Hour // more than a list may take
		begin = time.Now()
		c.list(t.Context(), v)
		if c.compute.Second.Err == nil || !whole(c.compute.First) {
			t.Errorf("without an answer, and with an old list: %+v", c.compute)
		}
		for c.making != nil && time.Since(begin) < time.Minute {
			c.list(t.Context(), v)
		}
		if c.making != nil || c.compute.Second.Time != begin || c.compute.Second.Err == nil {
			t.Errorf("a list of more than %s: %+v", listTimeout, c.compute.Second)
		}

		api.list = 8 * time.Second
		c.list(t.Context(), v)
		c.noteInstances(record.View{Epochs: []record.Epoch{{Claim: &record.Claim{Seeder: record.Seeder{
			InstanceID: "107"}}}}})
		if c.making != nil || !c.compute.Second.Time.IsZero() {
			t.Error("a list from before an instance was made counts")
		}

		c.list(t.Context(), v)
		time.Sleep(time.Hour) // and nobody comes for it
		begin = time.Now()
		c.list(t.Context(), v)
		if c.compute.Second.Time.Before(begin) {
			t.Errorf("a list of an hour ago: %+v", c.compute.Second)
		}
		c.drop()
	})
}
