// Package waits tracks what a replica waits for: since when, and that the log hears when it begins and ends.
//
// A wait is known by its source and its name. It keeps its beginning while its row and its reason change. One that
// begins again soon after its end goes on: a replica whose member starts and ends again and again has one wait with a
// growing age, and not a new one each time. That holds for the agent after this one, too. What a later agent has to
// know is in a file on a tmpfs, so it is of one boot of the VM, and a full data disk does not matter.
//
// It does not know what the names mean, and it decides nothing.
package waits

import (
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// sameWait is how soon after its end a wait that begins again is the same one. It is longer than a member that does not
// stay up runs, and than an agent takes to come to where the one before it was.
const sameWait = 2 * time.Minute

// Tracker is all that a replica waits for. It may be used by several goroutines. No line is logged and no file is
// written under the lock that All takes: what is stuck there keeps no answer back.
type Tracker struct {
	log  *slog.Logger
	path string

	mu      sync.Mutex
	sources []*Source
	// spans are the waits that are told, and those that ended a short while ago.
	spans []span

	saving sync.Mutex
}

// span is when a wait was told. Until is zero while it is.
type span struct {
	Source string    `json:"source"`
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"`
}

// New makes a tracker that goes on from what an earlier one has left at path; empty: it neither reads nor writes.
func New(log *slog.Logger, path string) *Tracker {
	t := &Tracker{log: log, path: path}
	if path == "" {
		return t
	}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &t.spans) != nil {
		t.spans = nil // the first agent of this boot, or a file of no use
	}
	now := time.Now()
	for n := range t.spans {
		if t.spans[n].Until.IsZero() {
			t.spans[n].Until = now // what was told then goes on if it begins again soon
		}
	}
	return t
}

// Source is one of those who wait, with waits of its own names.
type Source struct {
	t *Tracker
	// id tells it from the others, in the file too. row is what its rows are called in the log.
	id, row  string
	patience time.Duration

	list  []replica.Wait
	found found
}

// found is the wait that Only was last given, which may not be told yet.
type found struct {
	name string
	at   time.Time
}

// Source adds one, after those that are there. Its rows are called row in the log. What Only is given is told once it
// has lasted for patience.
func (t *Tracker) Source(id, row string, patience time.Duration) *Source {
	s := &Source{t: t, id: id, row: row, patience: patience}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sources = append(t.sources, s)
	return s
}

// All are the waits that are told, source after source, each in the order in which they began.
func (t *Tracker) All() []replica.Wait {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []replica.Wait{}
	for _, s := range t.sources {
		out = append(out, s.list...)
	}
	return out
}

// Hold says that w is waited for, until Release. It began now, where w does not say when. While it lasts it keeps its
// row and its beginning; the log hears each new reason.
func (s *Source) Hold(w replica.Wait) {
	news, begins := s.hold(w)
	if begins {
		s.t.save()
	}
	if news {
		s.t.log.Warn("blocked", s.row, w.Row, "name", w.Name, "reason", w.Reason, "next", w.Next)
	}
}

func (s *Source) hold(w replica.Wait) (news, begins bool) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if i := s.index(w.Name); i >= 0 {
		news = s.list[i].Reason != w.Reason
		w.Row, w.Since = s.list[i].Row, s.list[i].Since
		s.list[i] = w
		return news, false
	}
	now := time.Now()
	if w.Since.IsZero() {
		w.Since = now
	}
	w.Since = s.begin(w.Name, w.Since, now)
	s.list = append(s.list, w)
	return true, true
}

// Release ends the wait of a name, if there is one.
func (s *Source) Release(name string) {
	if !s.remove(name, time.Now()) {
		return
	}
	s.t.save()
	s.t.log.Info("no longer blocked", "name", name)
}

func (s *Source) remove(name string, now time.Time) bool {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	i := s.index(name)
	if i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
		s.end(name, now)
	}
	return i >= 0
}

// Only says that nothing but w is waited for by this source; nil: nothing is. The log hears when its name or its row
// changes.
func (s *Source) Only(w *replica.Wait, now time.Time) {
	before, told := s.only(w, now)
	if before.Name != told.Name {
		s.t.save()
	}
	switch {
	case told.Name == "" && before.Name != "":
		s.t.log.Info("no longer blocked", s.row, before.Row, "name", before.Name)
	case told.Name != "" && (told.Name != before.Name || told.Row != before.Row):
		s.t.log.Warn("blocked", s.row, told.Row, "name", told.Name, "reason", told.Reason, "next", told.Next)
	}
}

func (s *Source) only(w *replica.Wait, now time.Time) (before, told replica.Wait) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if len(s.list) > 0 {
		before = s.list[0]
	}
	if w = s.lasting(w, now); w != nil {
		told = *w
	}
	switch {
	case told.Name == before.Name:
		told.Since = before.Since
	case told.Name != "":
		told.Since = s.begin(told.Name, s.found.at, now)
	}
	if before.Name != "" && before.Name != told.Name {
		s.end(before.Name, now)
	}
	if s.list = nil; told.Name != "" {
		s.list = []replica.Wait{told}
	}
	return before, told
}

// lasting is the wait, if it has lasted for as long as it must to be told; else nil.
func (s *Source) lasting(w *replica.Wait, now time.Time) *replica.Wait {
	if w == nil {
		s.found = found{}
		return nil
	}
	if s.found.name != w.Name {
		s.found = found{w.Name, now}
	}
	if now.Sub(s.found.at) < max(s.patience, w.Patience) {
		return nil
	}
	return w
}

func (s *Source) index(name string) int {
	return slices.IndexFunc(s.list, func(w replica.Wait) bool { return w.Name == name })
}

// begin is since when a wait is told that is told from now on: since the one of its name began that it goes on with, if
// that is earlier.
func (s *Source) begin(name string, since, now time.Time) time.Time {
	s.t.forget(now)
	if n := s.span(name); n >= 0 {
		p := &s.t.spans[n]
		if p.Since.Before(since) {
			since = p.Since
		}
		p.Since, p.Until = since, time.Time{}
		return since
	}
	s.t.spans = append(s.t.spans, span{Source: s.id, Name: name, Since: since})
	return since
}

func (s *Source) end(name string, now time.Time) {
	if n := s.span(name); n >= 0 {
		s.t.spans[n].Until = now
	}
	s.t.forget(now)
}

func (s *Source) span(name string) int {
	return slices.IndexFunc(s.t.spans, func(p span) bool { return p.Source == s.id && p.Name == name })
}

// forget drops what ended too long ago for another to go on with it. A clock that was set back drops nothing too early.
func (t *Tracker) forget(now time.Time) {
	t.spans = slices.DeleteFunc(t.spans, func(p span) bool { return !p.Until.IsZero() && now.Sub(p.Until) > sameWait })
}

// save writes what a later tracker goes on from. That it cannot be written costs the waits' ages, and nothing else.
func (t *Tracker) save() {
	if t.path == "" {
		return
	}
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	b, err := json.Marshal(t.spans)
	t.mu.Unlock()
	if err == nil {
		err = durable.WriteFile(t.path, b, 0o600)
	}
	if err != nil {
		t.log.Warn("a restart of the agent will not know since when it waits", "err", err.Error())
	}
}
