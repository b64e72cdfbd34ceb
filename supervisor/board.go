package supervisor

import (
	"fmt"
	"slices"
	"sync"
)

// board is what everybody may see of all processes: each process's goroutine writes its own line, all others read.
type board struct {
	mu      sync.Mutex
	lines   []Status // in start order
	exits   map[string]Exit
	changed chan struct{} // closed and replaced at each change
}

func newBoard() *board {
	return &board{exits: map[string]Exit{}, changed: make(chan struct{})}
}

// Status returns all processes in the order in which their names were first started.
func (s *Supervisor) Status() []Status {
	all := s.board.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, st := range all {
		if p := s.find(st.Name); p != nil {
			all[i].OutputDropped = p.launcher.dropped()
		}
	}
	return all
}

// StatusOf returns the process of a name, and false if none was ever started.
func (s *Supervisor) StatusOf(name string) (Status, bool) {
	for _, st := range s.Status() {
		if st.Name == name {
			return st, true
		}
	}
	return Status{}, false
}

// Changed returns a channel that is closed at the next change of any process. To miss none, call it before looking:
//
//	for {
//		changed := s.Changed()
//		... s.Status() ...
//		<-changed
//	}
func (s *Supervisor) Changed() <-chan struct{} { return s.board.Changed() }

// Exited returns how the process ended last, and false if it has never ended. Exit.Run tells one end from the next.
func (s *Supervisor) Exited(name string) (Exit, bool) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	exit, ok := s.board.exits[name]
	return exit, ok
}

// Changed is Supervisor.Changed.
func (b *board) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *board) all() []Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lines)
}

func (b *board) get(name string) (Status, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.index(name); i >= 0 {
		return b.lines[i], true
	}
	return Status{}, false
}

// write replaces the process's line, and its last exit if one is given, and wakes those who wait if anything is
// different. Both change together, so who sees a new state also sees the exit that caused it.
func (b *board) write(st Status, exit *Exit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.index(st.Name)
	switch {
	case i < 0:
		b.lines = append(b.lines, st)
	case b.lines[i] == st && exit == nil:
		return
	default:
		b.lines[i] = st
	}
	if exit != nil {
		b.exits[st.Name] = *exit
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// missing says which of the names are not ready, and what they are instead.
func (b *board) missing(names []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var missing []string
	for _, name := range names {
		if i := b.index(name); i < 0 {
			missing = append(missing, name)
		} else if st := b.lines[i]; st.State != Ready {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, st.State))
		}
	}
	return missing
}

func (b *board) index(name string) int {
	return slices.IndexFunc(b.lines, func(st Status) bool { return st.Name == name })
}
