// Package lastwords keeps the ends of a master's logs on its data disk, so that they outlive its boot disk: recreating
// the VM is the repair, and it takes the journal with it.
//
//	agent's log ───┐
//	etcd ──────────┼─► Add: the end of what each source says ──each 2 s──► DIR/NAME.log, and NAME.log.1 before it
//	kube-apiserver ┘        │ what is more is left out, and counted
//	                        ▼
//	the next boot: Open ──► Former: the lines that say how the boot before ended
//
// Guarantees
//   - Whoever logs waits for nothing: Add touches memory alone, also while the disk stands still, is full or is gone.
//     Close waits a second at most. One goroutine alone touches the disk.
//   - It is bounded: MostBytes on the disk, 32 KiB a second of each source, and some 2 MiB of memory.
//   - It writes only while the owner says that there is room. An older line makes way for a newer one.
//   - What was written is on the disk two seconds later. A line that a power cut has torn is ended before the next.
//
// It decides nothing, and it does not know what is secret: the files are for root alone, and who shows what they hold
// filters it. An end of the process waits in the kernel for a disk that stands still, as etcd's does.
package lastwords

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/pattern"
)

const (
	// period is how old words are at most when they come to the disk.
	period = 2 * time.Second
	// mostInPeriod is what of one source is written then. A crash with its stacks is within it.
	mostInPeriod = 64 << 10
	// mostSources is twice what a master runs.
	mostSources = 16
	// fileLimit is the size at which a file is put aside, in place of the one put aside before.
	fileLimit = 2 << 20
	// MostBytes is what all files together take.
	MostBytes = mostSources * 2 * (fileLimit + mostInPeriod)
	// closePatience is how long Close waits for a disk that takes nothing.
	closePatience = time.Second
)

// Boot is a boot of a VM.
type Boot struct {
	// ID is the kernel's, Instance that of the VM.
	ID, Instance string
}

// Place is where words are kept.
type Place struct {
	// Dir is on the data disk. It is made where it is not there.
	Dir string
	// Boot is the running one.
	Boot Boot
	// Room reports whether the disk has room for MostBytes. It is asked before each write.
	Room func() bool
	// Found is called once, by the goroutine that writes, with what an earlier boot left. It must not block.
	Found func(Former)
	// Log hears once that words are lost, and once that they are kept again.
	Log *slog.Logger
}

// Keeper keeps words. Its methods may be called by many at once. A nil Keeper keeps none.
type Keeper struct {
	mu      sync.Mutex
	sources map[string]*words

	// place is there once opened is closed.
	place              *Place
	opened, stop, done chan struct{}
	failing            bool // the log has it; of the writing goroutine
}

// words are the end of what a source says, not written yet.
type words struct {
	text []byte
	lost int  // bytes that made way
	torn bool // the last line has no end
}

// New begins to keep words in memory, until Open says where.
func New() *Keeper {
	k := &Keeper{sources: map[string]*words{}, opened: make(chan struct{}), stop: make(chan struct{}),
		done: make(chan struct{})}
	go k.run()
	return k
}

// validSource is what may be the name of a file.
var validSource = pattern.Of(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Add takes what a source says, in pieces of any size; nil ends a line that has no end. It does not keep text.
func (k *Keeper) Add(source string, text []byte) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.sources[source]
	if w == nil {
		if len(k.sources) >= mostSources || !validSource().MatchString(source) {
			return
		}
		w = &words{}
		k.sources[source] = w
	}
	w.add(text)
}

func (w *words) add(text []byte) {
	if text == nil && w.torn {
		text = []byte("\n")
	}
	if len(text) == 0 {
		return
	}
	w.text = append(w.text, text...)
	w.torn = text[len(text)-1] != '\n'
	if len(w.text) > 2*mostInPeriod {
		w.cut()
	}
}

// cut leaves out whole lines in front. One line that is longer is cut within.
func (w *words) cut() {
	from := len(w.text) - mostInPeriod
	if from <= 0 {
		return
	}
	if end := bytes.IndexByte(w.text[from:], '\n'); end >= 0 && from+end+1 < len(w.text) {
		from += end + 1
	}
	w.lost += from
	w.text = append(w.text[:0], w.text[from:]...)
}

// Of is a stream into the words of a source. Its writes never fail and never wait.
func (k *Keeper) Of(source string) *Stream { return &Stream{k, source} }

// Stream is an io.Writer.
type Stream struct {
	keeper *Keeper
	source string
}

// Write implements io.Writer.
func (s *Stream) Write(text []byte) (int, error) {
	s.keeper.Add(s.source, text)
	return len(text), nil
}

// Open says where words are kept from now on. It is called once, and returns at once.
func (k *Keeper) Open(p Place) {
	if k == nil {
		return
	}
	k.place = &p
	close(k.opened)
}

// Close writes what is left, for a second at most. Words that come later are lost. It is called once.
func (k *Keeper) Close() {
	close(k.stop)
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-k.done:
	case <-timer.C:
	}
}

// run is the only goroutine that touches the disk.
func (k *Keeper) run() {
	defer close(k.done)
	select {
	case <-k.opened:
	case <-k.stop:
		select {
		case <-k.opened:
		default:
			return
		}
	}
	d := newDisk(*k.place)
	k.place.Found(d.former())
	for {
		k.flush(d)
		select {
		case <-k.stop:
			k.flush(d)
			return
		case <-time.After(period):
		}
	}
}

var errNoRoom = errors.New("the data disk has no room for them")

// flush writes what has come since. What cannot be written is lost, because newer words will come.
func (k *Keeper) flush(d *disk) {
	var failed error
	taken := k.take()
	if len(taken) > 0 && !k.place.Room() {
		taken, failed = nil, errNoRoom
	}
	for source, w := range taken {
		failed = errors.Join(failed, d.write(source, w))
	}
	switch {
	case failed != nil && !k.failing:
		k.place.Log.Warn("the ends of the logs are not kept on the data disk", "err", failed.Error())
	case failed == nil && k.failing && len(taken) > 0:
		k.place.Log.Info("the ends of the logs are kept on the data disk again")
	case failed == nil && len(taken) == 0:
		return
	}
	k.failing = failed != nil
}

// take takes what is to be written, of each source its end.
func (k *Keeper) take() map[string]words {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string]words{}
	for source, w := range k.sources {
		if w.cut(); len(w.text) > 0 {
			out[source] = words{text: w.text, lost: w.lost}
			w.text, w.lost = nil, 0
		}
	}
	return out
}
