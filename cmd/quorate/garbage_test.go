package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"
)

func TestGarbageIsCollectedEarlyWhereThatCostsLittle(t *testing.T) {
	for _, c := range []struct {
		inUse  uint64
		inARow int
		want   int
	}{
		{15 << 20, 0, idleGCPercent},
		{15 << 20, bootGCs, idleGCPercent},
		{15 << 20, bootGCs + 1, goGCPercent},
		{smallHeap + 1, 0, goGCPercent},
	} {
		if got := gcPercent(c.inUse, c.inARow); got != c.want {
			t.Errorf("%d bytes in use, %d collections in a row: %d %%, want %d", c.inUse, c.inARow, got, c.want)
		}
	}
	if inUse := heapInUse(); inUse == 0 || inUse > 1<<30 {
		t.Errorf("%d bytes are in use", inUse)
	}
}

func TestTheCollectorFollowsTheLoad(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(goGCPercent) })
	if runtime.GC(); heapInUse() > smallHeap {
		t.Fatalf("other tests have left %d bytes in use: nothing can be seen of the load", heapInUse())
	}
	debug.SetGCPercent(goGCPercent)
	t.Setenv("GOGC", "200")
	if collectEarly(); percentInForce() != goGCPercent {
		t.Fatalf("GOGC is set, and %d %% is in force", percentInForce())
	}
	t.Setenv("GOGC", "")
	if collectEarly(); percentInForce() != idleGCPercent {
		t.Fatalf("at the start it is %d %%", percentInForce())
	}
	for begin := time.Now(); percentInForce() != goGCPercent; runtime.GC() {
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("garbage is collected again and again, and %d %% is in force", percentInForce())
		}
	}
	const pause = rarely * goGCPercent / idleGCPercent
	for begin := time.Now(); percentInForce() != idleGCPercent; time.Sleep(pause) {
		runtime.GC()
		if time.Since(begin) > 10*pause {
			t.Fatalf("garbage is collected rarely, and %d %% is in force", percentInForce())
		}
	}
}

func percentInForce() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

func TestCollectionsAreSeen(t *testing.T) {
	var seen atomic.Int32
	afterEachGC(func() { seen.Add(1) })
	for begin := time.Now(); seen.Load() < 3; runtime.GC() {
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("garbage is collected again and again, and %d collections are seen", seen.Load())
		}
	}
}
