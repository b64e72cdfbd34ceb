package test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The faults that are planted: what an etcd that forgets, or members that answer for themselves, would show.
const (
	staleRead = "reads return the value before the last"
	lostWrite = "writes are acknowledged and not done"
	twice     = "writes without an answer are done, and again much later"
)

// memory is a store that is linearizable, but for the fault that a test plants in it.
type memory struct {
	fault string
	from  time.Time // all is well until then
	late  sync.WaitGroup

	mu      sync.Mutex
	values  map[string]string
	before  map[string]string    // what each key held before its last change
	changed map[string]time.Time // when that was
	planted int
}

func (m *memory) close() {}

// carry takes its time before and after the operation. Of twenty one is not answered, and one more is done at a time of
// its own.
func (m *memory) carry(_ context.Context, o operation) (operation, bool) {
	time.Sleep(rand.N(20 * time.Millisecond))
	luck := rand.IntN(20)
	if luck > 1 {
		m.apply(&o, true)
		time.Sleep(rand.N(20 * time.Millisecond))
		return o, true
	}
	if late := o; luck == 1 {
		m.late.Go(func() {
			time.Sleep(rand.N(3 * time.Second))
			m.apply(&late, false)
			if m.fault == twice && late.kind == opPut && time.Now().After(m.from) {
				time.Sleep(10 * time.Second)
				m.apply(&late, false)
			}
		})
	}
	o.outcome = unknown
	return o, true
}

// plants says whether the fault is to be made now. Some are made, because one can pass without a trace: a lost write
// that another follows before anybody reads, a stale read while the last write was never answered. m.mu is held.
func (m *memory) plants(fault string) bool {
	if m.fault != fault || m.planted >= 20 || time.Now().Before(m.from) {
		return false
	}
	m.planted++
	return true
}

// apply does an operation. A write may only be lost where it is answered: one without an answer may be done or not.
func (m *memory) apply(o *operation, answered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.values[o.key]
	o.outcome = done
	switch {
	case o.kind == opRead:
		o.found = now
		if time.Since(m.changed[o.key]) > time.Second && m.before[o.key] != "" && m.plants(staleRead) {
			o.found = m.before[o.key]
		}
		return
	case o.kind == opSwap && now != o.old:
		o.outcome, o.found = refused, now
		return
	case answered && m.plants(lostWrite):
		return
	}
	m.before[o.key], m.values[o.key], m.changed[o.key] = now, o.value, time.Now()
}

// TestPlantedFaultsAreFound runs the very clients that the scenarios run, for five minutes of a clock that does not
// wait, on a store that is right, and on stores that are wrong a few times in the last minute.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, fault := range []string{"", staleRead, lostWrite, twice} {
		t.Run("planted: "+fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{values: map[string]string{}, before: map[string]string{}, changed: map[string]time.Time{},
					fault: fault}
				m.from = time.Now().Add(4 * time.Minute)
				l := startClients(t.Context(), "load", func(int) store { return m })
				time.Sleep(5 * time.Minute)
				l.stop()
				m.late.Wait()
				all := l.history.whole()
				if rate := len(all) / 300; rate < 20 || rate > 50 {
					t.Errorf("%d operations a second", rate)
				}
				if err := linearizable(all); (err == nil) != (fault == "") {
					t.Errorf("the verdict on %d operations is %.2000v", len(all), err)
				}
			})
		})
	}
}
