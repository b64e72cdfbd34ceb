package acts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Orders of events around stopped/, restores and two hosts that were each a hole: they split a history, lost an
// acknowledged write, or left whole disks without a way back. They are told in the walk's world and under its
// invariants, as those of walkscript_test.go.
var holes = []struct {
	name   string
	places int
	whole  bool   // it begins with a cluster that is whole
	rule   string // which of walkreverted_test.go's rules keeps it closed; empty: more than one, or another
	run    func(s script)
}{
	{"a joiner stops for a restore that is taken back, joins, and a later restore waits for it", 3, false, "H1",
		func(s script) {
			a, rest := s.stoppedWhileJoining()
			for _, v := range rest {
				i := s.incarnation(v.place, v.disk.agent.Incarnation)
				s.want("it runs under an incarnation that has not ended", s.epoch(1).StoppedBy(*i) == nil)
				v.side, v.blind = 1, true // they serve, and neither a nor the record is in their reach
			}
			s.goOn(time.Hour)
			a.etcd.leads = false
			s.elect(rest[0])
			s.lead(rest[0])
			s.lead(rest[0])
			s.want("ordered", s.orderFrom(a))
			for range 60 {
				s.goOn(300 * time.Millisecond)
				s.step(a)
			}
			s.want("the restorer waits for them", s.epoch(1).Closed == nil && a.blocked.Name == "restore-waits")
			for _, v := range rest {
				v.side, v.blind = 0, false
			}
			s.ends(2)
		}},
	{"the same, and the two that stopped before come to have the longest log", 3, false, "", func(s script) {
		a, rest := s.stoppedWhileJoining()
		s.alone(a, rest[0], rest[1])
		a.side = 0
		s.want("ordered", s.orderNewest(a))
		s.ends(2)
	}},
	{"all have stopped for a restore that is taken back", 3, true, "", func(s script) {
		s.restoreFrom(0)
		s.vm(0).suspended = true // before it closes the epoch
		s.until("accepted by nobody yet",
			func() bool { s.vm(0).suspended = false; s.step(s.vm(0)); return s.view.Orders[0].Accepted != nil })
		for range 20 {
			for p := range 3 {
				if s.epoch(1).Closed == nil && s.view.Orders[0].Verdict == nil && len(s.epoch(1).Stopped) < 3 {
					s.step(s.vm(p))
				}
			}
		}
		s.want("all have stopped", len(s.epoch(1).Stopped) == 3 && s.epoch(1).Closed == nil)
		s.world.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: 1}, promise{})
		s.ends(1)
		s.want("the verdict says so", s.view.Orders[0].Verdict.Withdrawn)
	}},
	{"a restore is taken back while its epoch is being closed", 3, true, "the race", func(s script) {
		s.restoreFrom(0)
		a := s.vm(0)
		s.until("about to settle", func() bool { return a.act == table.ActSettle && a.busy() })
		s.world.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: 1}, promise{})
		for range 60 { // the two others alone: they read of it, and go on
			s.goOn(300 * time.Millisecond)
			for p := 1; p < 3; p++ {
				s.step(s.vm(p))
			}
		}
		s.want("they go on", s.vm(1).etcd != nil && s.vm(2).etcd != nil)
		s.ends(1)
		s.want("nothing is closed", s.epoch(1).Closed == nil)
	}},
	{"a withdrawal comes once the record says that the epoch is being closed", 3, true, "", func(s script) {
		s.restoreFrom(0)
		s.until("settled", func() bool { return s.view.Orders[0].Verdict != nil })
		s.world.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: 1}, promise{})
		s.ends(2)
	}},
	{"one VM, whose disk is blank for one boot", 1, true, "H2", blankOnce},
	{"three VMs, whose disks are all blank for one boot", 3, true, "H2", blankOnce},
	{"one of three is down, and another's disk is blank for one boot", 3, true, "H2", func(s script) {
		s.off(s.vm(1))
		c := s.vm(2)
		disk := c.disk
		c.disk = s.blankDisk()
		s.boot(c)
		s.turns(60)
		c.disk = disk
		s.boot(c)
		s.until("the two are a quorum again", func() bool { return s.reigning() != nil })
		s.boot(s.vm(1))
		s.ends(1)
	}},
	{"a disk with the longest log comes back after a blank boot, and a restore takes the longest", 3, true, "",
		func(s script) {
			a, b, c := s.vm(0), s.vm(1), s.vm(2)
			s.alone(a, b, c)
			s.lose(1)
			disk := c.disk
			s.drop(c)
			s.create(2, s.blankDisk())
			a.side = 0
			s.turns(30)
			s.drop(s.vm(2))
			s.create(2, disk)
			s.turns(30)
			s.want("ordered", s.orderNewest(a))
			s.turns(150)
			s.recreateLost(1)
			s.ends(2)
		}},
	{"one instance on two hosts, the former one's disk is fenced", 3, true, "S1", func(s script) { s.twoHosts(true) }},
	{"one instance on two hosts, the former one runs on a copy of the disk", 3, true, "S1",
		func(s script) { s.twoHosts(false) }},
	{"a survivor holds an acknowledged write, and does not know that it was committed", 3, true, "a restore reads",
		func(s script) {
			l := s.reigning()
			b := s.vm((l.place + 1) % 3)
			s.append(l, logEntry{kind: write})
			n := len(l.etcd.log)
			s.replicate(l, b.etcd.id, n)
			s.commitAll(l)
			s.want("acknowledged, and b does not know", len(s.acked[b.etcd.cid]) == n && len(b.etcd.log) == n &&
				b.etcd.commit < n)
			for p := range 3 {
				if p != b.place {
					s.lose(p)
					s.recreateLost(p)
				}
			}
			s.want("ordered", s.orderNewest(b))
			s.ends(2)
		}},
	{"a record that an earlier version wrote: a successor with an empty disk has spoken for the member", 3, true, "",
		func(s script) {
			s.off(s.vm(1))
			s.off(s.vm(2))
			a := s.vm(0)
			e := s.epoch(1)
			e.Stopped = append(e.Stopped, record.Stopped{Place: places[0], Incarnation: a.disk.agent.Incarnation,
				InstanceID: "another", MemberID: a.etcd.id})
			s.turns(10)
			s.boot(s.vm(1))
			s.boot(s.vm(2))
			s.ends(1)
		}},
}

// TestOrdersOfEventsAroundRestores tells each of them. With its rule taken out each of the first is a hole again
// (walkreverted_test.go).
func TestOrdersOfEventsAroundRestores(t *testing.T) {
	for _, c := range holes {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldOf(1, asItIs, c.places)
			if broken := w.tell(t, c.whole, c.run); broken != nil {
				t.Fatalf("%v\n%s%s", broken, strings.Join(w.history, "\n"), w)
			}
		})
	}
}

// TestTheHolesOpenWithoutTheirRules: told with its rule taken out, none of them ends well.
func TestTheHolesOpenWithoutTheirRules(t *testing.T) {
	for _, c := range holes {
		n := slices.IndexFunc(reverted, func(f plantedFault) bool {
			return c.rule != "" &&
				strings.HasPrefix(f.name, c.rule)
		})
		if n < 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if newWorldOf(1, reverted[n].by, c.places).tell(t, c.whole, c.run) == nil {
				t.Errorf("it ends well without the rule of %s", reverted[n].name)
			}
		})
	}
}

// tell runs a script in this world, in which nothing happens by chance, and returns what it broke.
func (w *world) tell(t *testing.T, whole bool, run func(s script)) (broken any) {
	w.calm, w.faults, w.survivors, w.asks = true, 0, false, 9
	defer func() { broken = recover() }()
	if whole {
		w.rounds()
	}
	w.log("begins")
	run(script{w, t})
	return nil
}

// blankOnce takes every disk out of its place for one boot.
func blankOnce(s script) {
	var disks []*data
	for p := range s.places {
		v := s.vm(p)
		disks = append(disks, v.disk)
		s.drop(v)
		s.create(p, s.blankDisk())
	}
	s.turns(40)
	for p := range s.places {
		s.want("it waits", s.vm(p).blocked != nil && s.vm(p).blocked.Name == "no-quorum-empty-disk")
		v := s.vm(p)
		s.drop(v)
		s.create(p, disks[p])
	}
	s.ends(1)
}

// stoppedWhileJoining forms a cluster of three, of which two stopped for a restore, and said so, while their
// incarnations were pending. It was taken back.
func (s script) stoppedWhileJoining() (a *vm, rest []*vm) {
	s.until("formed by somebody", func() bool { return len(s.view.Epochs) > 0 && s.view.Epochs[0].Outcome != nil })
	a = s.byInstance(s.view.Epochs[0].Claim.Seeder.InstanceID)
	for i := 0; a.disk.agent.Phase != table.PhaseStarted && i < 20; i++ {
		s.step(a)
	}
	s.lead(a)
	for _, v := range s.vms {
		if v == a {
			continue
		}
		rest = append(rest, v)
		for i := 0; i < 50 && v.disk.agent.Incarnation != 1; i++ {
			s.goOn(300 * time.Millisecond)
			s.lead(a)
			s.step(v)
		}
		v.breakOff()
	}
	s.want("ordered", s.orderFrom(a))
	s.now1(a)
	s.want("accepted", s.view.Orders[0].Accepted != nil)
	for _, v := range rest {
		for range 3 {
			s.now1(v)
		}
	}
	s.want("both have stopped", len(s.epoch(1).Stopped) == 2)
	s.world.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: 1}, promise{})
	s.turns(80)
	l := s.reigning()
	s.want("three voters", l != nil && len(l.etcd.conf.voters) == 3)
	return a, rest
}

// now1 lets one VM decide, and take its whole act, before anybody else does anything.
func (s script) now1(v *vm) {
	s.decide(v)
	for i := 0; v.busy() && i < 20; i++ {
		s.step(v)
	}
}

// alone cuts a off, and lets the two others acknowledge what it does not have.
func (s script) alone(a, leads, follows *vm) {
	a.side = 1
	a.etcd.leads = false
	s.elect(leads)
	for range 5 {
		s.lead(leads)
		s.propose(follows, logEntry{kind: write})
	}
	s.lead(leads)
	s.want("the others acknowledged more", len(s.acked[a.etcd.cid]) > len(a.etcd.log) &&
		len(follows.etcd.log) >= len(s.acked[a.etcd.cid]))
}

// orderNewest orders a restore from a VM's directory, or from the one that turns out to reach furthest, which holds
// everything.
func (s script) orderNewest(v *vm) bool {
	f := table.HistoryOf(table.Facts{Now: s.now, Record: s.view}).Formed
	d := v.etcd.dir
	r := &record.RestoreOrder{Ends: f.Number, Replica: places[v.place], Term: d.lastTerm(),
		Commit: uint64(len(d.log)) * indexUnit, Newest: true,
		From: record.Source{Kind: record.SourceDirectory, MemberID: d.id, DiskID: v.disk.id}}
	s.world.order(record.Order{Kind: record.OrderRestore, By: "person", Restore: r}, promise{all: true})
	return true
}

// twoHosts starts the leader's instance on another host while the former one runs on.
func (s script) twoHosts(fenced bool) {
	v := s.reigning()
	u := &vm{place: v.place, id: v.id, disk: v.disk.copied(v.disk.id)}
	v.ghost, v.newer, v.fenced, v.disk.dir.left = true, u, fenced, true
	s.vms = append(s.vms, u)
	s.boot(u)
	s.until("the newer boot runs", func() bool { return u.etcd != nil })
	for range 3 {
		s.step(v)
	}
	s.want("the older one runs nothing", v.etcd == nil && v.row == 0)
	s.crash(v) // its agent is started again, and cannot read the record
	v.blind = true
	for range 10 {
		s.step(v)
	}
	s.want("nor does it after a restart", v.etcd == nil)
	s.drop(v)
	s.ends(1)
	s.want("the same member", slices.Contains(s.reigning().etcd.conf.voters, u.etcd.id))
}
