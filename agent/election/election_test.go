package election

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/quorate/quorate/agent/lease"
	"github.com/quorate/quorate/internal/replica"
)

// end stops the candidates.
func (w *world) end(all ...*candidate) {
	for _, c := range all {
		c.stop()
	}
	for _, c := range all {
		<-c.done
	}
	w.check()
}

// Whatever happens to networks, machines and children: never two work. What a machine that was frozen does until it is
// asked again is tolerated for one tick.
func TestNeverTwoWork(t *testing.T) {
	for seed := range uint64(walks) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			w.tolerated = 2*tickPeriod + 2*killNow
			w.behind = time.Duration(seed%4) * 2 * time.Second
			var all []*candidate
			for i := range 3 {
				all = append(all, w.candidate(fmt.Sprintf("%c", 'a'+i)).run())
			}
			var events sync.WaitGroup
			for _, c := range all {
				own := rand.New(rand.NewPCG(seed, r.Uint64()))
				events.Go(func() {
					for range 12 {
						time.Sleep(time.Duration(own.IntN(15_000)) * time.Millisecond)
						c.disturb(own)
					}
				})
			}
			events.Wait()
			for _, c := range all {
				c.network(0, 0)
			}
			w.until("somebody works again", time.Minute, func() bool { return w.worker() != "" })
			w.end(all...)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// An election in which nothing happens costs etcd one write each second try, and nothing else: the standbys look into
// the apiserver's memory. With the holder gone they take the Lease as soon as ever, or later by as much as that memory
// is behind.
func TestAnIdleElectionCostsLittle(t *testing.T) {
	for _, behind := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.behind = behind
			all := []*candidate{w.candidate("a").run()}
			w.until("a leads", time.Minute, func() bool { return w.worker() == "a" })
			all = append(all, w.candidate("b").run(), w.candidate("c").run())
			time.Sleep(time.Minute)
			const turns = 60
			count := func(what string, got, most int) {
				if t.Helper(); got > most {
					t.Errorf("memory %s behind: %d %s, at most %d", behind, got, what, most)
				}
			}
			for _, c := range all {
				w.mu.Lock()
				most := 0
				if c == all[0] {
					most = turns/2 + 2
				}
				reads := 3 // two to begin with, and rarely one where tries fall badly
				if behind >= renewPeriod(fast.RetryPeriod) {
					reads = turns / 8 // what it has read may be newer than what its memory shows for two periods
				}
				count("reads of "+c.name, c.reads, reads)
				count("writes of "+c.name, c.written, most)
				w.mu.Unlock()
			}
			gone := w.at()
			all[0].network(time.Hour, 0)
			w.until("another leads", time.Minute, func() bool { return w.worker() != "a" && w.worker() != "" })
			count("ms until another leads", int((w.at()-gone)/time.Millisecond),
				int((fast.LeaseDuration+3*fast.RetryPeriod+behind)/time.Millisecond))
			w.end(all...)
		})
	}
}

// What runs is asked to end once a renewal must have failed for the whole deadline, and is dead a second before the
// Lease is over.
func TestATermHasTheTimesOfItsProfile(t *testing.T) {
	for profile, want := range map[string]lease.Times{
		replica.ElectionFast: {Stop: 5 * time.Second, Kill: 8 * time.Second},
		replica.ElectionSlow: {Stop: 9 * time.Second, Kill: 14 * time.Second},
	} {
		if got := termTimes((&replica.Cluster{Election: profile}).ElectionTimes()); got != want {
			t.Errorf("%s: %+v, want %+v", profile, got, want)
		}
	}
}

// A memory that stands still costs the standbys no second wait for the whole Lease.
func TestAMemoryThatStandsStillIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a").run()
		w.until("a leads", time.Minute, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		time.Sleep(time.Minute)
		reads := func() int { w.mu.Lock(); defer w.mu.Unlock(); return b.reads }
		before, stopped := reads(), w.at()
		w.mu.Lock()
		w.behind = 2 * time.Hour
		w.mu.Unlock()
		w.until("b reads", time.Minute, func() bool { return reads() > before })
		// Two periods without a renewal, and the longest time to the next try (client-go's jitter).
		most := 2*renewPeriod(fast.RetryPeriod) + 2200*fast.RetryPeriod/1000
		if took := w.at() - stopped; took > most+tickPeriod {
			t.Errorf("after %s, at most %s", took, most)
		}
		a.network(time.Hour, 0)
		w.until("b leads", time.Minute, func() bool { return w.worker() == "b" })
		w.end(a, b)
	})
}

// What the holder's glance shows, nobody has to wait for: another that has the Lease all the same, by a person's hand.
func TestAGlanceShowsThatTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a")
		a.dies = 0
		a.run()
		w.until("a leads", time.Minute, func() bool { return w.worker() == "a" })
		written := func() int { w.mu.Lock(); defer w.mu.Unlock(); return a.written }
		before := written()
		w.until("a renews", time.Minute, func() bool { return written() > before }) // the next try is a glance
		w.mu.Lock()
		by := *w.record
		by.HolderIdentity = "a person's"
		w.put(by)
		w.mu.Unlock()
		changed := w.at()
		w.until("a ends", time.Minute, func() bool { return w.worker() == "" })
		if took := w.at() - changed; took > fast.RetryPeriod+2*tickPeriod {
			t.Errorf("a went on for %s", took)
		}
		w.end(a)
	})
}

// script is the case for which client-go's deadline is not enough: the last renewal takes effect at once and is
// answered just within the deadline, then nothing is answered any more. As cluster-autoscaler's, a's client has no
// limit of its own.
func (w *world) script(a *candidate, times replica.ElectionTimes) {
	a.mu.Lock()
	a.patience = time.Minute
	a.mu.Unlock()
	late := times.RenewDeadline - 100*time.Millisecond
	a.network(0, late)
	time.Sleep(times.RetryPeriod + late)
	a.network(time.Hour, 0)
}

func TestALateAnswerDoesNotMakeTwoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a")
		a.dies = time.Hour // it has to be killed
		a.run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		w.script(a, fast)
		w.until("b works", 20*time.Second, func() bool { return w.worker() == "b" })
		w.end(a, b)
	})
}

// The same with client-go's elector alone, for a child that takes dies to end. It returns when two worked, and what
// happened.
func clientGoAlone(t *testing.T, times replica.ElectionTimes, dies time.Duration, release bool) (two, all []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alone := func(c *candidate) {
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{Lock: c,
				LeaseDuration: times.LeaseDuration, RenewDeadline: times.RenewDeadline,
				RetryPeriod: times.RetryPeriod, ReleaseOnCancel: release,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { c.startChild() },
					OnStoppedLeading: func() { _ = c.stopChild(time.Hour) }}})
			if err != nil {
				t.Fatal(err)
			}
			go func() { defer close(c.done); elector.Run(c.ctx) }()
		}
		a, b := w.candidate("a"), w.candidate("b")
		a.dies = dies
		alone(a)
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		alone(b)
		w.script(a, times)
		time.Sleep(20 * time.Second)
		a.stop()
		b.stop()
		<-a.done
		<-b.done
		two, all = w.overlaps, w.history
	})
	return two, all
}

// long are times whose deadline is too long for the lease.
var long = replica.ElectionTimes{LeaseDuration: 8 * time.Second, RenewDeadline: 4 * time.Second,
	RetryPeriod: time.Second}

// A child that takes as long to end as the agent's may: two work. It shows that the term is needed, and that the world
// notices.
func TestClientGoAloneLetsTwoWork(t *testing.T) {
	if two, all := clientGoAlone(t, long, patience, false); len(two) == 0 {
		t.Errorf("never two: %q", all)
	}
}

// A program that elects itself ends its work when client-go has let go, after it has tried to give the lease back. The
// profiles' times are such that nobody works before; with a longer deadline somebody does.
func TestWhoElectsItselfEndsBeforeItsLease(t *testing.T) {
	slow := (&replica.Cluster{Election: replica.ElectionSlow}).ElectionTimes()
	for _, times := range []replica.ElectionTimes{fast.WithoutTimeLimit(), slow.WithoutTimeLimit()} {
		if two, all := clientGoAlone(t, times, 0, true); len(two) != 0 {
			t.Errorf("%+v: two worked: %q", times, all)
		}
	}
	if two, all := clientGoAlone(t, long, 0, true); len(two) == 0 {
		t.Errorf("%+v: never two: %q", long, all)
	}
}

// A machine that was suspended kills what ran under its lease as soon as it goes on: its clock counts the suspend.
func TestASuspendedMachineKillsWhatRan(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		kills bool
	}{
		"a moment":       {2 * time.Second, false},
		"beyond a lease": {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.tolerated = tickPeriod + killNow
				a := w.candidate("a").run()
				w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
				b := w.candidate("b").run()
				time.Sleep(3 * time.Second)
				a.network(0, 100*time.Millisecond) // its clock is faster than any answer
				a.freeze(c.lasts)
				time.Sleep(2 * tickPeriod)
				a.mu.Lock()
				if a.child == c.kills {
					t.Errorf("its child is there: %t, asked to end %v", a.child, a.asked)
				}
				a.mu.Unlock()
				if c.kills != (w.worker() == "b") {
					t.Errorf("%q works", w.worker())
				}
				w.end(a, b)
			})
		})
	}
}

// A planned stop gives the Lease back as soon as nothing runs under it any more, and not before.
func TestAPlannedStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a")
		a.dies = 1500 * time.Millisecond
		a.run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		time.Sleep(10 * time.Second)
		begin := w.at()
		a.stop()
		<-a.done
		if took := w.at() - begin; took < a.dies || took > a.dies+200*time.Millisecond {
			t.Errorf("the stop took %s", took)
		}
		w.until("b works", 2*fast.RetryPeriod+500*time.Millisecond, func() bool { return w.worker() == "b" })
		w.end(b)
	})
}

// A child that does not end in order is killed, and the Lease is kept while it lives.
func TestAPlannedStopKillsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a")
		a.dies = time.Hour
		a.run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		begin := w.at()
		a.stop()
		<-a.done
		if took := w.at() - begin; took < patience || took > patience+200*time.Millisecond {
			t.Errorf("the stop took %s", took)
		}
		w.end(b)
	})
}

// A child that was asked to end in order is killed as soon as the Lease says so: while it ends, renewals may stop, and
// its time may be over earlier than its patience.
func TestAnEndThatHasBegunIsCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world, a *candidate, slept *atomic.Int64)
		within  time.Duration
	}{
		"another has the Lease": {func(w *world, a *candidate, _ *atomic.Int64) {
			w.mu.Lock()
			defer w.mu.Unlock()
			taken := *w.record
			taken.HolderIdentity = "b"
			w.candidate("b").write(taken)
		}, fast.RetryPeriod*6/5 + 2*tickPeriod}, // client-go adds up to a fifth
		"the machine was suspended": {func(_ *world, a *candidate, slept *atomic.Int64) {
			a.network(time.Hour, 0)
			slept.Store(int64(time.Minute))
		}, 2 * tickPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.candidate("a")
				var slept atomic.Int64
				a.clock = func() time.Duration { return w.at() + time.Duration(slept.Load()) }
				a.dies = time.Hour
				a.run()
				w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
				a.e.Yield("for a test", time.Minute)
				time.Sleep(2 * tickPeriod)
				c.happens(w, a, &slept)
				time.Sleep(c.within)
				a.mu.Lock()
				if a.child || !slices.Equal(a.asked, []time.Duration{patience, killNow}) {
					t.Errorf("its child is there: %t, asked to end %v", a.child, a.asked)
				}
				a.mu.Unlock()
				w.end(a)
			})
		})
	}
}

// Who sees that another has the Lease has no time left, however long ago its own last renewal was.
func TestALeaseThatIsAnothersIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tolerated = fast.RetryPeriod + tickPeriod // a person has done it: that is when a can see it
		a := w.candidate("a").run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		time.Sleep(2 * time.Second)
		b := w.candidate("b")
		w.mu.Lock()
		taken := *w.record
		taken.HolderIdentity = "b"
		b.write(taken)
		w.mu.Unlock()
		b.run()
		w.until("b works", 3*time.Second, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			_,
				ok := w.working["b"]
			return ok
		})
		time.Sleep(fast.RetryPeriod + tickPeriod)
		a.mu.Lock()
		if a.child || len(a.asked) == 0 || a.asked[0] != killNow {
			t.Errorf("its child is there: %t, asked to end %v", a.child, a.asked)
		}
		a.mu.Unlock()
		w.end(a, b)
	})
}

// An agent that was started again is the same holder: it goes on without waiting for its own Lease to run out.
func TestAnAgentThatWasStartedAgainGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a").run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		a.network(time.Hour, 0) // its crash: nothing of it reaches the apiserver any more
		a.stop()
		<-a.done
		again := w.candidate("a").run()
		w.until("it works again", time.Second, func() bool { return w.worker() == "a" })
		w.end(again)
	})
}

// What is blocked in the kernel although it was killed lets the Lease run out: it is not given back, and this replica
// does not stand again before it is gone.
func TestAChildThatCannotBeKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a")
		a.stuck = make(chan struct{})
		a.run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		a.e.Yield("for a test", time.Second)
		time.Sleep(10 * time.Second)
		w.mu.Lock()
		if holder := w.record.HolderIdentity; holder != "a" {
			t.Errorf("%q holds the lease while it is being killed", holder)
		}
		w.tolerated = time.Hour // it does nothing any more
		w.mu.Unlock()
		time.Sleep(15 * time.Second)
		w.mu.Lock()
		if holder := w.record.HolderIdentity; holder != "b" {
			t.Errorf("%q holds the lease", holder)
		}
		w.mu.Unlock()
		close(a.stuck)
		w.end(a, b)
	})
}

// Nothing is started at the end of a term, nor without one.
func TestNothingIsStartedWithoutTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a")
		if a.e.Held() {
			t.Error("held before the election began")
		}
		a.run()
		w.until("held", 5*time.Second, a.e.Held)
		a.network(time.Hour, 0)
		begin := w.at()
		w.until("not held", 7*time.Second, func() bool { return !a.e.Held() })
		if after := w.at() - begin; after > 5*time.Second {
			t.Errorf("still held %s after the last renewal", after)
		}
		w.end(a)
	})
}

// Yield lets another take the Lease, and stands aside.
func TestAReplicaYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a").run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		a.e.Yield("its component is not ready", time.Minute)
		w.until("b works", 5*time.Second, func() bool { return w.worker() == "b" })
		w.end(a, b)
	})
}

// Also a replica that does not hold the Lease stands aside when it is told to: it does not take it from the one that
// leaves, nor right after.
func TestAStandbyThatYieldsDoesNotTakeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a").run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		b := w.candidate("b").run()
		time.Sleep(10 * time.Second)
		b.e.Yield("it leaves", time.Minute)
		w.end(a)
		for range 58 {
			time.Sleep(time.Second)
			if b.e.Held() {
				t.Fatal("a standby that was told to stand aside takes the lease")
			}
		}
		w.until("it stands again", 10*time.Second, func() bool { return w.worker() == "b" })
		w.end(b)
	})
}

// A word of the term before the last ends no later one.
func TestWhatEndedATermEndsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.candidate("a").run()
		w.until("a works", 5*time.Second, func() bool { return w.worker() == "a" })
		for range 5 { // the second is said while the term ends
			a.e.Yield("for a test", time.Second)
			time.Sleep(time.Millisecond)
		}
		w.until("a works again", 10*time.Second, func() bool { return w.worker() == "a" })
		for range 30 {
			time.Sleep(time.Second)
			if !a.e.Held() {
				t.Fatal("a former word ends this term")
			}
		}
		w.end(a)
	})
}

// The clock counts what Go's does not, and nothing sets it.
func TestTheClockGoesOn(t *testing.T) {
	begin, wall := SinceBoot(), time.Now()
	time.Sleep(20 * time.Millisecond)
	if d, want := SinceBoot()-begin, time.Since(wall); d < 20*time.Millisecond || d > want+10*time.Millisecond {
		t.Errorf("%s, want %s", d, want)
	}
}

// The alarm goes off at its time, also where that is past, and again where it is set again.
func TestTheAlarmGoesOffInTime(t *testing.T) {
	a := newBootAlarm()
	for _, in := range []time.Duration{20 * time.Millisecond, -time.Hour, 0, 40 * time.Millisecond} {
		begin := SinceBoot()
		a.set(begin + time.Hour)
		a.set(begin + in)
		<-a.goes
		if took := SinceBoot() - begin; took < in || took > max(0, in)+10*time.Second {
			t.Errorf("set for %s it went off after %s", in, took)
		}
	}
	a.stop()
}

// A term on the machine's own clock ends when its Lease was not renewed for too long, and nothing else happens.
func TestATermEndsByTheAlarm(t *testing.T) {
	const stop = 50 * time.Millisecond
	l := newLock(nil, SinceBoot, time.Second)
	l.renewed, l.held = SinceBoot(), true
	begun := New(Config{})
	term := &term{times: lease.Times{Stop: stop, Kill: time.Hour}, lock: l, now: begun.cfg.Now,
		newAlarm: begun.cfg.newAlarm}
	err := term.watch(t.Context(), nil, nil)
	if took := SinceBoot() - l.renewed; err == nil || took < stop || took > stop+10*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}
