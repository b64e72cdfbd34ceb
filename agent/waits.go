package agent

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/etcdmember"
)

// waits are what this replica waits for in addition to the rows of the membership's table, in the order in which they
// began. The log hears each reason once, and no line is written under the lock: a log that is stuck keeps no answer
// back.
type waits struct {
	log *slog.Logger

	mu    sync.Mutex
	phase Phase
	list  []etcdmember.Wait
}

// enter notes the phase: it is the row of the waits that begin in it.
func (w *waits) enter(p Phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = p
}

// hold says what is waited for, until release is called.
func (w *waits) hold(name string, cause error, next string) {
	w.mu.Lock()
	row := string(w.phase)
	w.mu.Unlock()
	w.add(etcdmember.Wait{Row: row, Name: name, Reason: cause.Error(), Since: time.Now(), Next: next})
}

// add is hold for a wait whose row and beginning are known. A wait keeps both while its reason changes.
func (w *waits) add(b etcdmember.Wait) {
	if w.put(b) {
		w.log.Warn("blocked", "phase", b.Row, "name", b.Name, "reason", b.Reason, "next", b.Next)
	}
}

func (w *waits) put(b etcdmember.Wait) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.index(b.Name)
	if i < 0 {
		w.list = append(w.list, b)
		return true
	}
	news = w.list[i].Reason != b.Reason
	b.Row, b.Since = w.list[i].Row, w.list[i].Since
	w.list[i] = b
	return news
}

// release ends a wait, if there is one of that name.
func (w *waits) release(name string) {
	if w.remove(name) {
		w.log.Info("no longer blocked", "name", name)
	}
}

func (w *waits) remove(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.index(name)
	if i >= 0 {
		w.list = slices.Delete(w.list, i, i+1)
	}
	return i >= 0
}

func (w *waits) all() []etcdmember.Wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

func (w *waits) index(name string) int {
	return slices.IndexFunc(w.list, func(b etcdmember.Wait) bool { return b.Name == name })
}

// blocked is a wait of no phase.
func blocked(name, reason, next string, since time.Time) *etcdmember.Wait {
	return &etcdmember.Wait{Name: name, Reason: reason, Next: next, Since: since}
}

// oneLine is all faults in one; nil: there is none.
func oneLine(faults []error) error {
	var texts []string
	for _, err := range faults {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}
