package etcdmember

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// What an agent remembers of its observations because one observation cannot show it: that a mark is not written any
// more, that list after list lacks an instance, and which members were listed before the record was read. All of it can
// only hold a step back: an agent that has just started has seen none of it, and waits.

// noteBeats remembers when a mark was first found to have been written anew.
func (m *Membership) noteBeats(v record.View, now time.Time) {
	for id, mark := range v.Marks {
		written := mark.Written
		if written.IsZero() {
			written = mark.Beat
		}
		key := BeatKey{id, mark.BootID}
		if b, ok := m.beats[key]; !ok || !b.Written.Equal(written) {
			m.beats[key] = Beat{Written: written, Seen: now}
		}
	}
}

// noteRuns goes on with the runs of lists by the newest one, which has to be whole: an instance that it does not call
// what its run calls it begins another run, or none. v was read before the list was made: an instance that it does not
// name may be younger than the list.
func noteRuns(runs map[string]Run, l Listing, v record.View, me string) {
	if l.Err != nil || !lists(l, me) {
		return
	}
	for _, incarnations := range v.Replicas {
		for _, i := range incarnations {
			kind := runKind(status(l, i.InstanceID))
			switch run, ok := runs[i.InstanceID]; {
			case kind == "":
				delete(runs, i.InstanceID)
			case !ok || run.Kind != kind:
				runs[i.InstanceID] = Run{kind, l.Time}
			}
		}
	}
}

// runKind is what a list says of an instance, as far as it may prove that it does not run. STOPPING, SUSPENDED and any
// word that is not known prove nothing.
func runKind(status string) RunKind {
	switch status {
	case "":
		return RunAbsent
	case "TERMINATED", "STOPPED":
		return RunStopped
	}
	return ""
}

// forgetStops ends the runs of lists that call an instance stopped: a VM that was stopped before an order was given, or
// accepted, may have been started since without having read it. One that is absent never comes back under its id.
func forgetStops(runs map[string]Run) {
	maps.DeleteFunc(runs, func(_ string, r Run) bool { return r.Kind == RunStopped })
}

// noteSuperseded lets the rest of this boot know that this replica was superseded, also an agent that is started again
// while the record cannot be read: row 1 would start the member beside the one that has taken its place. It lies on the
// tmpfs.
func (m *Membership) noteSuperseded(o Observation) {
	if !o.Superseded || m.superseded {
		return
	}
	m.superseded = true
	if err := os.WriteFile(m.supersededPath(), []byte(m.cfg.Me.BootID+"\n"), 0o600); err != nil {
		m.cfg.Log.Warn("note that this replica is superseded", "err", err.Error())
	}
}

// wasSuperseded reads what noteSuperseded wrote in this boot.
func (m *Membership) wasSuperseded() bool {
	b, err := os.ReadFile(m.supersededPath())
	return err == nil && strings.TrimSpace(string(b)) == m.cfg.Me.BootID
}

func (m *Membership) supersededPath() string { return filepath.Join(m.cfg.RunDir, "superseded") }

// noteList remembers the linearizable list for the next observation, whose record is newer than it.
func (m *Membership) noteList(f Facts) {
	a, ok := quorumAnswer(f)
	if !ok {
		return
	}
	m.listed = map[record.MemberID]string{}
	for _, e := range a.Members {
		m.listed[e.ID] = e.Name
	}
}
