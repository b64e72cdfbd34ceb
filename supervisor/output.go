package supervisor

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chunkSize is how much of a process's output is read at once: a quarter of a pipe.
	chunkSize = 16 << 10
	// queueLength is how many chunks may wait for a slow sink, at most 1 MiB for each process. What comes then is
	// dropped: a process whose output nobody takes would stand still, and so would a supervisor that waited for the
	// disk.
	queueLength = 64
	// tailSize is how much is kept in memory of what a run wrote last.
	tailSize = 64 << 10
)

// output takes what all runs of one process write to its sink, without ever making a run wait.
type output struct {
	name    string
	log     *slog.Logger
	queue   chan []byte  // nil: a run has ended
	dropped atomic.Int64 // bytes
	begun   sync.Once
	sink    sink
	words   func(process string, text []byte) // Config.Words
	done    chan struct{}                     // closed when all is written
}

// sink is where output goes. Only one goroutine uses it; it may block.
type sink interface {
	io.WriteCloser
	// endRun says that a run has ended, perhaps within a line: what is written next is another run's.
	endRun()
}

func newOutput(name string, to sink, log *slog.Logger) *output {
	return &output{name: name, log: log, sink: to, queue: make(chan []byte, queueLength), done: make(chan struct{})}
}

// follow begins to read what a run writes.
func (o *output) follow(reader *os.File) *follower {
	o.begun.Do(func() { go o.write() })
	f := &follower{file: reader, output: o, done: make(chan struct{})}
	go f.read()
	return f
}

// put hands a chunk over to the sink, or drops it. nil ends a run.
func (o *output) put(chunk []byte) {
	if o.words != nil {
		o.words(o.name, chunk)
	}
	select {
	case o.queue <- chunk:
	default:
		o.dropped.Add(int64(len(chunk)))
	}
}

// write is the goroutine of the sink. It says once that writing fails, and once that it works again.
func (o *output) write() {
	defer close(o.done)
	failing, said := false, int64(0)
	for chunk := range o.queue {
		if chunk == nil {
			o.sink.endRun()
			continue
		}
		n, err := o.sink.Write(chunk)
		dropped := o.dropped.Add(int64(len(chunk) - n))
		switch {
		case err != nil && !failing:
			o.log.Warn("the output of a process cannot be written and is dropped", "process", o.name, "error", err)
		case err == nil && len(o.queue) == 0 && dropped > said: // once it has caught up, not once a chunk
			o.log.Warn("output of a process was dropped", "process", o.name, "bytes", dropped-said)
			said = dropped
		}
		failing = err != nil
	}
	_ = o.sink.Close() // nothing was promised about the last bytes
}

// close ends the sink's goroutine and waits for what is queued, but not for a sink that hangs.
func (o *output) close() {
	o.begun.Do(func() { go o.write() })
	close(o.queue)
	select {
	case <-o.done:
	case <-time.After(lingerPatience / 2):
	}
}

// follower reads the output of one run.
type follower struct {
	file   *os.File
	output *output
	tail   []byte // of the reading goroutine until done is closed
	done   chan struct{}
}

// read ends with the pipe, or when finish has lost patience.
func (f *follower) read() {
	defer close(f.done)
	defer f.file.Close()
	buffer := make([]byte, chunkSize)
	for {
		n, err := f.file.Read(buffer)
		if n > 0 {
			chunk := append([]byte(nil), buffer[:n]...)
			f.keep(chunk)
			f.output.put(chunk)
		}
		if err != nil {
			f.output.put(nil)
			return
		}
	}
}

// keep adds to the tail, which is cut only at twice its size: else each chunk would move all of it.
func (f *follower) keep(chunk []byte) {
	f.tail = append(f.tail, chunk...)
	if len(f.tail) > 2*tailSize {
		// one more: it tells whether a line begins after it
		f.tail = append(f.tail[:0], f.tail[len(f.tail)-tailSize-1:]...)
	}
}

// finish returns the last that the run wrote. It reads what is still in the pipe, and gives up on an end of it that
// does not come because somebody outside the group holds the pipe open.
func (f *follower) finish(patience time.Duration) string {
	_ = f.file.SetReadDeadline(time.Now().Add(patience)) // a pipe can do that; if it were closed, read would be done
	<-f.done
	cut := len(f.tail) - tailSize
	if cut <= 0 {
		return string(f.tail)
	}
	if f.tail[cut-1] != '\n' {
		cut += bytes.IndexByte(f.tail[cut:], '\n') + 1 // none: one long line, of which a part is better than nothing
	}
	return string(f.tail[cut:])
}
