package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A member's heap is small, and holds 4.5 MB from the start that its packages made. Go lets as much garbage come
// together as there is in use, so that these count twice: an idle member had 37 MiB besides its program, and etcd's own
// program 29.
const (
	// idleGCPercent is how much garbage there may be, of what is in use, where collecting it costs next to nothing:
	// with it an idle member has what etcd by hand has.
	idleGCPercent, goGCPercent = 45, 100
	// rarely is the time between two collections from which on they cost next to nothing, and smallHeap what is in use
	// at most then: to go through as much takes 10 to 20 ms.
	rarely    = 2 * time.Second
	smallHeap = 32 << 20
	// bootGCs is how many may come faster than that before it counts as load: a member's start has some.
	bootGCs = 10
)

// collectEarly has garbage collected earlier than Go does by itself, while that is rare and the heap is small. Under
// load, and in a large cluster, all is as Go has it. GOGC, where it is set, wins.
func collectEarly() {
	if os.Getenv("GOGC") != "" {
		return
	}
	last, inARow, percent := time.Now(), 0, idleGCPercent
	debug.SetGCPercent(percent)
	afterEachGC(func() {
		quiet := rarely
		if percent == goGCPercent { // they would come more often with less garbage
			quiet = rarely * goGCPercent / idleGCPercent
		}
		now := time.Now()
		if inARow++; now.Sub(last) >= quiet {
			inARow = 0
		}
		last = now
		if next := gcPercent(heapInUse(), inARow); next != percent {
			debug.SetGCPercent(next)
			percent = next
		}
	})
}

// gcPercent is Go's for a heap with so much in use, and so many collections in a row that came soon after another.
func gcPercent(inUse uint64, inARow int) int {
	if inARow > bootGCs || inUse > smallHeap {
		return goGCPercent
	}
	return idleGCPercent
}

// afterEachGC calls f after each collection of garbage, one call after the other: by something that nobody has, which
// each collection finds. One that is over before f has come back is not seen.
func afterEachGC(f func()) {
	found := new([16]byte) // smaller ones share their memory with others
	runtime.AddCleanup(found, func(f func()) { f(); afterEachGC(f) }, f)
}

// heapInUse is what the last collection of garbage has found in use, in bytes.
func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
