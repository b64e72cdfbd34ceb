// Package asynclog is a log on a stream that may be slow, full or gone, as a journal or a terminal is at times.
//
//	slog, log, klog, gRPC ──► Write: a queue of whole lines ──► one goroutine ──► the stream
//	                              │ full: dropped, counted
//	                              ▼
//	                          "log lines were dropped", once lines flow again
//
// Guarantees
//   - Who logs never waits for the stream, whatever becomes of it.
//   - Lines keep their order, and none is cut short by another.
//   - What is dropped is counted. As soon as the log flows again, it says how many lines are missing, and of which
//     time.
//   - Close gives the stream a bounded time for what is still queued.
//
// It does not keep dropped lines elsewhere, and it does not open a stream anew. A crash loses what is queued.
package asynclog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// queueLength is how many lines may wait. A boot writes about a hundred, of some hundred bytes each.
	queueLength = 1024
	// flushPatience is how long Close waits for a stream that takes nothing: every stop with such a stream takes that
	// longer.
	flushPatience = time.Second
)

// Log is the log. Its methods may be called by many at once, also after Close.
type Log struct {
	*slog.Logger
	to         io.Writer
	also       []io.Writer
	lines      chan []byte
	stop, done chan struct{}

	mu     sync.Mutex
	lost   Lost
	unsaid gap
}

// Lost is what the stream did not take since the log began.
type Lost struct {
	// Lines counts what was dropped.
	Lines uint64
	// Err is why the line before could not be written; nil while lines flow, and while the stream only hangs.
	Err error
}

// gap is what was dropped since the log last said so.
type gap struct {
	lines       uint64
	first, last time.Time
}

// New begins a log of text lines on a stream. Each line has its time: the journal's own stamp is late where lines
// waited. The further writers get each line at once, from who logs, so they must not block.
func New(to io.Writer, also ...io.Writer) *Log {
	l := &Log{to: to, also: also, lines: make(chan []byte, queueLength), stop: make(chan struct{}),
		done: make(chan struct{})}
	l.Logger = slog.New(slog.NewTextHandler(l, nil))
	go l.run()
	return l
}

// Write queues one or more whole lines, or drops them. It never fails and never waits.
func (l *Log) Write(text []byte) (int, error) {
	for _, w := range l.also {
		_, _ = w.Write(text) // each keeps what it can
	}
	select {
	case l.lines <- bytes.Clone(text):
	default:
		l.drop(text, nil)
	}
	return len(text), nil
}

// Lost says what was dropped so far.
func (l *Log) Lost() Lost {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Close writes what is queued, for a second at most. It is called once.
func (l *Log) Close() {
	close(l.stop)
	timer := time.NewTimer(flushPatience)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}

// run is the only goroutine that touches the stream.
func (l *Log) run() {
	defer close(l.done)
	for {
		select {
		case text := <-l.lines:
			l.put(text)
		case <-l.stop:
			for len(l.lines) > 0 {
				l.put(<-l.lines)
			}
			return
		}
	}
}

// put writes to the stream. Of what was dropped it speaks once the queue is empty: not once a line while many are lost.
func (l *Log) put(text []byte) {
	_, err := l.to.Write(text)
	if err != nil {
		l.drop(text, err)
		return
	}
	l.mu.Lock()
	l.lost.Err = nil
	unsaid := l.unsaid
	l.mu.Unlock()
	if unsaid.lines > 0 && len(l.lines) == 0 {
		l.say(unsaid)
	}
}

func (l *Log) drop(text []byte, err error) {
	n := uint64(max(1, bytes.Count(text, []byte("\n"))))
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsaid.lines == 0 {
		l.unsaid.first = now
	}
	l.unsaid.lines += n
	l.unsaid.last = now
	l.lost.Lines += n
	if err != nil {
		l.lost.Err = err
	}
}

// say writes past the queue that lines are missing. Where that fails it stays unsaid.
func (l *Log) say(missing gap) {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped because nobody took them in time", 0)
	r.Add("lines", missing.lines, "first", missing.first, "last", missing.last)
	if slog.NewTextHandler(l.to, nil).Handle(context.Background(), r) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsaid.lines -= missing.lines
	l.unsaid.first = l.unsaid.last // of those that were dropped meanwhile only the last one's time is known
}
