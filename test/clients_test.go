package test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// writers is how many clients there are, each with a connection of its own to one endpoint at a time.
	writers = 6
	// keyCount is how many keys they share: few enough that they meet.
	keyCount = 20
	// pace is a client's mean pause between two operations: some 40 operations a second in all, which keeps a history
	// of minutes checkable, and the machine free for what is tested.
	pace = 150 * time.Millisecond
	// operationTimeout is a client's patience. What has no answer by then may still happen.
	operationTimeout = time.Second
)

// store is what the clients work on. Each client has its own; it is used by one goroutine.
type store interface {
	// carry sends one operation and returns it with found and outcome filled in. sent is false where it certainly never
	// left.
	carry(ctx context.Context, o operation) (_ operation, sent bool)
	close()
}

// clients put, swap and read at random, and write down what they see.
type clients struct {
	name    string // the prefix of their keys and of the values that they write: no two loads share one
	history *history
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	mu     sync.Mutex
	writes pulse
	reads  pulse
}

// startClients begins the load. open makes a client's store. ctx ends it, and so does stop.
func startClients(ctx context.Context, name string, open func(client int) store) *clients {
	ctx, cancel := context.WithCancel(ctx)
	now := time.Now()
	l := &clients{name: name, history: newHistory(), cancel: cancel, writes: pulse{last: now}, reads: pulse{last: now}}
	for client := range writers {
		l.wait.Go(func() {
			s := open(client)
			defer s.close()
			l.run(ctx, client, s)
		})
	}
	return l
}

func (l *clients) run(ctx context.Context, client int, s store) {
	seen := map[string]string{} // what this client knows of each key
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(rand.N(2 * pace))
		o := l.next(client, n, seen)
		o.call = l.history.now()
		o, sent := s.carry(context.WithoutCancel(ctx), o) // what was sent is waited for
		o.end = l.history.now()
		if !sent {
			continue
		}
		l.history.add(o)
		l.beat(o)
		switch {
		case o.outcome == unknown:
			delete(seen, o.key)
		case o.kind == opRead || o.outcome == refused:
			seen[o.key] = o.found
		default:
			seen[o.key] = o.value
		}
	}
}

func (l *clients) key(i int) string { return fmt.Sprintf("%s/keys/%02d", l.name, i) }

// next is a random operation on a random key.
func (l *clients) next(client, n int, seen map[string]string) operation {
	o := operation{client: client, key: l.key(rand.IntN(keyCount)), kind: opRead}
	if p := rand.IntN(10); p < 3 {
		o.kind = opPut
	} else if p < 6 {
		o.kind, o.old = opSwap, seen[o.key]
	}
	if o.kind != opRead {
		o.value = fmt.Sprintf("%s/acks/%d-%d", l.name, client, n)
	}
	return o
}

func (l *clients) beat(o operation) {
	if o.outcome == unknown {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.kind == opRead {
		l.reads.beat(time.Now())
	} else {
		l.writes.beat(time.Now())
	}
}

// stall is the longest time in which no client's write succeeded, since it was asked last.
func (l *clients) stall() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := max(l.writes.longest, time.Since(l.writes.last))
	l.writes.longest = 0
	return longest.Round(time.Millisecond)
}

// gaps are the times without a successful write that were at least so long.
func (l *clients) gaps(least time.Duration) (gaps []gap) {
	var last time.Duration
	history := l.history.whole()
	slices.SortFunc(history, func(a, b operation) int { return cmp.Compare(a.end, b.end) })
	for _, o := range history {
		if o.kind == opRead || o.outcome == unknown {
			continue
		}
		if o.end-last >= least {
			gaps = append(gaps, gap{l.history.begin.Add(last), l.history.begin.Add(o.end)})
		}
		last = o.end
	}
	return gaps
}

// goOn says what is missing to a write and a read that succeeded after a moment.
func (l *clients) goOn(since time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes.last.Before(since) || l.reads.last.Before(since) {
		return fmt.Errorf("the last write succeeded %s ago, the last read %s ago", time.Since(l.writes.last),
			time.Since(l.reads.last))
	}
	return nil
}

// stop ends the clients and waits for them.
func (l *clients) stop() {
	l.cancel()
	l.wait.Wait()
}
