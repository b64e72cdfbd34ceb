package acts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Orders of events that were each a hole in an earlier specification of the membership, or in the code: told step by
// step, in the walk's world and under its invariants. Each ends whole.
var scripts = []struct {
	name   string
	places int
	run    func(s script)
}{
	{"a restore while an old member's record is unreadable and its agent restarts", 3, func(s script) {
		s.vm(2).blind = true
		s.restoreFrom(0)
		s.turns(60)
		s.crash(s.vm(2))
		s.turns(60)
		s.want("the unreadable member goes on", s.vm(2).etcd != nil && s.epoch(1).Closed == nil &&
			s.vm(0).blocked.Name == "restore-waits")
		s.vm(2).blind = false
		s.ends(2)
	}},
	{"the restorer's VM is recreated between claim and first write, its disk kept", 3, func(s script) {
		s.restoreFrom(0)
		s.until("claimed", func() bool { return s.epoch(2) != nil })
		s.recreate(0, true)
		s.ends(2)
	}},
	{"the restorer's VM is recreated between claim and first write, its disk lost", 3, func(s script) {
		s.save(s.vm(1))
		s.orderSnapshot(s.vm(0), s.snapshots[0])
		s.until("claimed", func() bool { return s.epoch(2) != nil })
		s.recreate(0, false)
		s.ends(3)
		s.want("the claim is abandoned", s.epoch(2).Outcome.Abandoned != nil)
	}},
	{"the survivor's VM is recreated right after closed.json", 3, func(s script) {
		s.restoreFrom(0)
		s.until("closed", func() bool { return s.epoch(1).Closed != nil })
		s.recreate(0, true)
		s.ends(2)
	}},
	{"one VM is lost between two promotions", 0, func(s script) {
		s.until("promoted", func() bool { l := s.reigning(); return l != nil && len(l.etcd.conf.voters) == 2 })
		s.want("a learner is left", len(s.reigning().etcd.conf.learners) == 1)
		for p := range 3 {
			if !slices.Contains(s.reigning().etcd.conf.voters, s.vm(p).etcd.id) {
				s.recreate(p, false)
				break
			}
		}
		s.ends(1)
	}},
	{"a promotion's entry in the log of a survivor that does not know whether it committed, while the promoted " +
		"learner acknowledged more", 3, func(s script) {
		s.survivors = true
		c := s.vm(2).etcd.id
		l := s.reigning()
		s.want("the seeder leads", l == s.vm(0))
		s.demote(2)
		a, b := s.vm(0), s.vm(1) // a leads; b will be the survivor
		learner := a.etcd.conf.learners[0]
		s.want("another learner", learner != c && len(a.etcd.conf.voters) == 2)
		s.append(a, logEntry{kind: addVoter, id: learner})
		n := len(a.etcd.log)
		s.replicate(a, b.etcd.id, n)
		s.commitAll(a)
		s.want("committed, and b does not know", a.etcd.commit == n && b.etcd.commit == n-1)
		s.append(a, logEntry{kind: write})
		s.replicate(a, learner, n+1)
		s.commitAll(a)
		s.want("the promoted learner acknowledged more", a.etcd.commit == n+1 && len(b.etcd.log) == n)
		s.lose(0)
		s.lose(2)
		s.reboot(b)
		s.turns(60)
		s.want("one of a possible three is not enough", b.blocked != nil && b.blocked.Name == "survivors-not-enough" &&
			len(s.view.Orders) == 0)
		s.recreateLost(0)
		s.recreateLost(2)
		s.orderFrom(b)
		s.ends(2)
	}},
	{"a corrupt clone of another replica's disk", 3, func(s script) {
		id := s.vm(0).etcd.id
		s.vm(1).disk = s.clone(s.vm(0).disk)
		s.vm(1).disk.dir.corrupt = true
		s.reboot(s.vm(1))
		s.ends(1)
		s.want("the other's member is untouched", s.vm(0).etcd.id == id &&
			slices.Contains(s.reigning().etcd.conf.voters, id))
	}},
	{"the disks of two stopped VMs are swapped and swapped back", 3, func(s script) {
		a, b := s.vm(0), s.vm(1)
		ids := []record.MemberID{a.etcd.id, b.etcd.id, s.vm(2).etcd.id}
		for range 2 {
			s.off(a)
			s.off(b)
			a.disk, b.disk = b.disk, a.disk
			s.boot(a)
			s.boot(b)
			s.turns(30)
		}
		s.ends(1)
		s.want("the same three members", a.etcd.id == ids[0] && b.etcd.id == ids[1] && s.vm(2).etcd.id == ids[2] &&
			len(a.disk.archives)+len(b.disk.archives) == 0)
	}},
	{"a disk is emptied in place on the same VM", 3, func(s script) {
		id := s.vm(0).etcd.id
		s.vm(0).disk = &data{id: s.vm(0).disk.id}
		s.reboot(s.vm(0))
		s.ends(1)
		s.want("a new member", s.vm(0).etcd.id != id && s.reigning().etcd.conf.removed[id])
	}},
	{"outcome.json is lost and the seeder recreated", 3, func(s script) {
		for p := range 3 {
			s.mark(s.vm(p))
		}
		s.epoch(1).Outcome = nil
		s.recreate(0, false)
		s.turns(40)
		s.want("formed again, by who holds the token", s.epoch(1).Outcome.Formed != nil && s.epoch(2) == nil)
		s.ends(1)
	}},
	{"the record is rolled back to its inception while the cluster serves", 3, func(s script) {
		whole := s.view
		s.noMarks = true // they would prove that the epoch was formed
		s.view = record.View{Inception: whole.Inception, Replicas: map[replica.Place][]record.Incarnation{},
			Marks: map[record.MemberID]record.Mark{}}
		s.turns(20)
		s.recreate(0, false)
		s.turns(60)
		s.want("somebody answers, so nobody seeds", len(s.view.Epochs) == 0 && s.vm(0).row == 15)
		s.vm(2).disk.archive() // about to join again, with only agent.json to tell, and nobody answers
		reset(&s.vm(2).disk.agent)
		s.reboot(s.vm(2))
		s.off(s.vm(1))
		s.off(s.vm(0))
		s.turns(60)
		s.want("nobody seeds", len(s.view.Epochs) == 0 && s.vm(2).row == 6)
		s.boot(s.vm(1))
		s.boot(s.vm(0))
		s.view, s.noMarks = whole, false
		s.lose(0)
		s.recreateLost(0)
		s.turns(60)
		s.orderFrom(s.vm(1))
		s.ends(2)
	}},
	{"a place stands between join steps 7 and 8 when a restore begins", 3, func(s script) {
		s.recreate(1, false)
		s.until("confirmed", func() bool { return s.vm(1).act == table.ActStartJoined && s.vm(1).busy() })
		s.restoreFrom(0)
		s.ends(2)
	}},
	{"the same, and its agent restarts", 3, func(s script) {
		s.recreate(1, false)
		s.until("confirmed", func() bool { return s.vm(1).act == table.ActStartJoined && s.vm(1).busy() })
		s.restoreFrom(0)
		s.crash(s.vm(1))
		s.ends(2)
	}},
	{"a VM that two lists call TERMINATED is started right before the order", 2, func(s script) {
		a, b := s.vm(0), s.vm(1)
		s.want("a is the voter", len(a.etcd.conf.voters) == 1 && a.etcd.conf.voters[0] == a.etcd.id)
		s.off(a)
		s.turns(30)
		s.boot(a)
		for range 20 {
			if a.etcd == nil {
				s.step(a)
			}
		}
		s.want("it runs", a.etcd != nil)
		s.elect(a)
		s.orderFrom(b)
		for range 40 { // b alone, in less time than a takes to its next look
			s.now = s.now.Add(50 * time.Millisecond)
			s.step(b)
		}
		s.propose(a, logEntry{kind: write})
		s.ends(2)
	}},
}

// script is a world in which nothing happens by chance.
type script struct {
	*world
	t *testing.T
}

func TestOrdersOfEvents(t *testing.T) {
	for _, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldOf(1, asItIs, max(c.places, 1))
			if c.places == 0 {
				w = newWorldOf(1, asItIs, 3)
			}
			w.calm, w.faults, w.survivors = true, 0, false
			s := script{w, t}
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("%v\n%s%s", r, strings.Join(w.history, "\n"), w)
				}
			}()
			if c.places > 0 {
				w.rounds()
			}
			w.log("begins")
			c.run(s)
		})
	}
}

// vm is the one in a place that has no successor.
func (s script) vm(place int) *vm { return s.inPlace(&record.RestoreOrder{Replica: places[place]}) }

func (s script) want(what string, is bool) {
	if !is {
		panic("not so: " + what)
	}
}

// turns lets everybody take one event after the other.
func (s script) turns(n int) {
	for i := range n {
		s.goOn(300 * time.Millisecond)
		if i%10 == 9 {
			s.goOn(10 * time.Second)
		}
		for _, v := range slices.Clone(s.vms) {
			s.step(v)
		}
		for _, v := range s.vms {
			if v.etcd != nil && !s.expelled(v) && s.leaderOf(v) == nil {
				s.elect(v)
			}
			if v.etcd != nil && v.etcd.leads {
				s.lead(v)
			}
		}
	}
}

func (s script) until(what string, is func() bool) {
	for range 400 {
		if is() {
			return
		}
		s.turns(1)
	}
	panic("never " + what)
}

// ends: the world becomes whole, in this epoch.
func (s script) ends(epoch uint64) {
	s.world.rounds()
	if f := table.HistoryOf(table.Facts{Now: s.now, Record: s.view}).Formed; !s.whole() || f.Number != epoch {
		panic("it does not end whole")
	}
}

func (s script) restoreFrom(place int) { s.want("ordered", s.orderFrom(s.vm(place))) }

func (s script) reboot(v *vm) { s.boot(v) }

func (s script) recreate(place int, keep bool) {
	v := s.vm(place)
	s.drop(v)
	if keep {
		s.create(place, v.disk)
		return
	}
	delete(s.disks, v.disk.id)
	s.create(place, s.blankDisk())
}

// lose deletes a VM with its disk; recreateLost makes it again.
func (s script) lose(place int) {
	v := s.vm(place)
	s.drop(v)
	delete(s.disks, v.disk.id)
}

func (s script) recreateLost(place int) { s.create(place, s.blankDisk()) }

// demote has a replica join again and stops where it is a learner that has caught up.
func (s script) demote(place int) {
	s.recreate(place, false)
	s.until("a learner", func() bool {
		l := s.reigning()
		return l != nil && len(l.etcd.conf.learners) == 1 && s.vm(place).etcd != nil &&
			s.vm(place).etcd.commit == l.etcd.commit
	})
}
