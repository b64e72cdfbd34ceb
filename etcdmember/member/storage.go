package member

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// storageWatch asks the member's storage for its revision, one question at a time. The storage answers only between two
// commits of the database to the disk (etcd's backend holds its read lock meanwhile), so no status may wait for it.
type storageWatch struct {
	// rev asks; it may take any time.
	rev func() int64

	mu       sync.Mutex
	revision int64
	asked    time.Time
	answered chan struct{} // of the question that is open; nil: none is
}

// ask is the newest revision that the storage has reported, and how long the newest question has been open; 0: it was
// answered.
func (w *storageWatch) ask() (revision int64, open time.Duration) {
	w.mu.Lock()
	if w.answered == nil {
		w.answered, w.asked = make(chan struct{}), time.Now()
		go w.question(w.answered)
	}
	answered := w.answered
	w.mu.Unlock()
	select {
	case <-answered:
	case <-time.After(storageAnswers):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered == answered {
		open = time.Since(w.asked)
	}
	return w.revision, open
}

func (w *storageWatch) question(answered chan struct{}) {
	revision := w.rev()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision, w.answered = revision, nil
	close(answered)
}

// serveAlive answers whether another start could help: raft's loop does not answer (then this does not either), or the
// storage is stuck.
func (w *storageWatch) serveAlive(rw http.ResponseWriter, _ *http.Request) {
	localRaft()
	if _, open := w.ask(); open > storagePatience {
		http.Error(rw, fmt.Sprintf("the storage has not answered for %s", open.Truncate(time.Second)),
			http.StatusServiceUnavailable)
	}
}
