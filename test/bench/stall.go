package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// writePeriod is the time between two new requests: the error of the measurement.
	writePeriod = 10 * time.Millisecond
	// writeBefore and writeAfter are how long the writer writes around the fault; an election takes at most 2 s.
	writeBefore, writeAfter = time.Second, 5 * time.Second
)

// stall is the longest time in which no write was acknowledged while something is done to the members. A new request
// goes out each writePeriod, to one member after the other, whatever became of those before: what is measured is what a
// new request of a client sees, not one that was in flight when its leader died, which etcd leaves unanswered for 7 s.
func stall(ctx context.Context, m members, fault func(context.Context) error) (seconds, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	var acknowledged []time.Time
	var writers sync.WaitGroup
	writers.Go(func() {
		tick := time.NewTicker(writePeriod)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			writers.Go(func() {
				call, cancel := context.WithTimeout(ctx, callLimit)
				defer cancel()
				if _, err := m.clients[n%len(m.clients)].Put(call, "bench", strconv.Itoa(n)); err == nil {
					mu.Lock()
					acknowledged = append(acknowledged, time.Now())
					mu.Unlock()
				}
			})
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	if err := sleep(ctx, writeBefore); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := fault(ctx)
	if rest := writeAfter - time.Since(begin); err == nil && rest > 0 {
		err = sleep(ctx, rest)
	}
	end := time.Now()
	stop()
	writers.Wait()
	return longestGap(acknowledged, begin, end), err
}

// longestGap is the longest time between two acknowledgements from begin to end; the one that is going on at either
// counts.
func longestGap(at []time.Time, begin, end time.Time) seconds {
	slices.SortFunc(at, time.Time.Compare)
	last, longest := begin, time.Duration(0)
	for _, t := range at {
		if t.Before(begin) || t.After(end) {
			continue
		}
		longest, last = max(longest, t.Sub(last)), t
	}
	return seconds(max(longest, end.Sub(last)).Seconds())
}
