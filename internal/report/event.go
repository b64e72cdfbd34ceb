package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Kind is what an event is about.
type Kind string

// The kinds of event.
const (
	// Began: an agent has begun. Its text has what the report before it said.
	Began Kind = "began"
	// Phase: the boot has come to another phase. Ready: it is done. Stopping: the replica was asked to stop.
	// Stopped: it has stopped. Unstopped: it ends, but something that it runs could not be stopped. Restarting: its
	// agent ends without being asked to, and is started again.
	Phase      Kind = "phase"
	Ready      Kind = "ready"
	Stopping   Kind = "stopping"
	Stopped    Kind = "stopped"
	Unstopped  Kind = "unstopped"
	Restarting Kind = "restarting"
	// Place: the replica has another incarnation.
	Place Kind = "place"
	// Waiting and Resumed: a wait began, and ended. Their subject is the wait's name.
	Waiting Kind = "waiting"
	Resumed Kind = "resumed"
	// Row: another row of the membership's table holds. Did: an act was taken, its subject.
	Row Kind = "row"
	Did Kind = "did"
	// Joined: the own member is what it was not: learner or voter. Leads: it leads etcd, or knows of no leader.
	// Follows: another member leads.
	Joined  Kind = "joined"
	Leads   Kind = "leads"
	Follows Kind = "follows"
	// Elected: a process of the replica leads with the lease that is the subject. Unelected: it does not any more.
	Elected   Kind = "elected"
	Unelected Kind = "unelected"
	// Silent and Heard: the leader does not hear of a member, its subject, or hears of it again.
	Silent Kind = "silent"
	Heard  Kind = "heard"
	// ComponentState: a process, its subject, came into another state. StartedAgain: it was started again.
	ComponentState Kind = "component"
	StartedAgain   Kind = "startedAgain"
	// LastWords: what the boot before this one left of its logs on the data disk. Its subject is whose log it is.
	LastWords Kind = "words"
	// Dropped: events were not written, because there were too many.
	Dropped Kind = "dropped"
)

// Event is one thing that happened, as one replica noticed it.
type Event struct {
	// At is when it was noticed, by the replica's clock.
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Subject is what it is about: a wait, a component, an act, a member's place; empty: the replica itself.
	Subject string `json:"subject,omitempty"`
	// State is a component's new state, where the event is about one.
	State string `json:"state,omitempty"`
	// Text is what a person reads after the replica's name.
	Text string `json:"text"`
	// Since is when what it is about began, where that was earlier: a wait that an agent finds again goes on.
	Since time.Time `json:"since,omitzero"`
	// Before is when the report before this agent's was written, where the event is about that.
	Before time.Time `json:"before,omitzero"`
}

// Batch is some events of one replica, in one object that is written once.
type Batch struct {
	replica.Place
	InstanceID  string `json:"instanceID"`
	BootID      string `json:"bootID"`
	Incarnation uint64 `json:"incarnation,omitempty"`
	// Number counts the batches of one agent. At is that of the first event.
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Events []Event   `json:"events"`
}

// Changes are the events between two reports of one replica; before is the zero Report for an agent's first.
func Changes(before, after Report) []Event {
	var out []Event
	add := func(k Kind, subject, format string, args ...any) *Event {
		out = append(out, Event{At: after.At, Kind: k, Subject: subject, Text: Clean(fmt.Sprintf(format, args...))})
		return &out[len(out)-1]
	}
	if before.BootID == "" {
		add(Began, "", "its agent began: instance %s, boot %.8s, version %s", after.InstanceID, after.BootID,
			orDash(after.Version))
	}
	phaseChanges(before, after, add)
	if after.Incarnation != before.Incarnation && after.Incarnation != 0 {
		add(Place, "", "has incarnation %d", after.Incarnation)
	}
	stepChanges(before, after, add)
	memberChanges(before, after, add)
	waitChanges(before, after, add)
	rowChanges(before, after, add)
	componentChanges(before, after, add)
	electionChanges(before, after, add)
	return out
}

type adder func(k Kind, subject, format string, args ...any) *Event

func phaseChanges(before, after Report, add adder) {
	switch {
	case after.Phase == before.Phase:
	case after.AskedToStop():
		add(Stopping, "", "was asked to stop; it stops in order")
	case after.StartsAgain != "":
		add(Restarting, "", "stops its processes and starts again: %s", after.StartsAgain)
	case after.Ready:
		add(Ready, "", "is ready")
	default:
		add(Phase, "", "phase %s", after.Phase)
	}
}

// acts says what an act did, for people.
var acts = map[string]string{
	"archive":       "put its former etcd directory into archive/ on its data disk",
	"remove member": "removed a former member", "add learner": "was added to etcd as a learner",
	"take incarnation": "wrote its incarnation into the record",
	"start joined":     "started its new member", "start": "started its member on the disk's directory",
	"seed": "made a new etcd with one member", "form": "wrote that the epoch is formed",
	"claim": "claimed an epoch", "promote": "promoted a learner to a voter",
	"restore": "built the directory of the next epoch", "close epoch": "closed the epoch",
	"move leader": "handed etcd's leadership over", "stop": "stopped its member",
	"create formed again": "wrote again into the record that the epoch is formed",
	"abandon":             "wrote that the epoch is given up",
	"confirm incarnation": "confirmed its incarnation in the record",
	"mark adding":         "noted on its disk that it adds a member",
	"write stopped":       "wrote into the record that its etcd has stopped",
	"order restore":       "ordered a restore, as the policy says",
	"accept the restore":  "checked whether the restore can be carried out here",
	"settle the restore":  "wrote whether the restore goes on",
	"disarm":              "disarmed an alarm of etcd's",
	"compact":             "compacted etcd's history",
	"defragment":          "defragmented a member's database",
	"complete order":      "wrote that an order is done",
}

// explained are the acts that take something away, or put something else in its place: a person asks why.
var explained = []string{"archive", "remove member", "abandon", "restore", "move leader", "stop", "defragment"}

func stepChanges(before, after Report, add adder) {
	for _, s := range after.Steps {
		i := slices.IndexFunc(before.Steps, func(b Step) bool { return b.Act == s.Act && b.Outcome == s.Outcome })
		n := s.Count
		if i >= 0 && before.Steps[i].Count <= n {
			n -= before.Steps[i].Count
		}
		text, known := acts[s.Act]
		switch {
		case n == 0:
			continue
		case s.Outcome != "done":
			text = fmt.Sprintf("did not get through with %q, and observes again", s.Act)
		case !known:
			text = fmt.Sprintf("took the step %q", s.Act)
		case s.Reason != "" && slices.Contains(explained, s.Act):
			text += ": " + s.Reason
		}
		if n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		add(Did, s.Act, "%s", text)
	}
}

func memberChanges(before, after Report, add adder) {
	if own, was := after.Own(), before.Own(); own.Role != was.Role && own.Role != "" {
		add(Joined, own.ID, "its member %s is a %s", own.ID, own.Role)
	}
	switch now, was := after.Leader(), before.Leader(); {
	case now.ID == was.ID:
	case now.ID == "" && after.Member != "" && before.Member != "":
		add(Leads, "", "knows of no etcd leader")
	case now.ID != "" && now.ID == after.Member:
		add(Leads, now.Name, "leads etcd")
	case now.ID != "":
		add(Follows, now.Name, "follows %s, which leads etcd", now.Name)
	}
	for _, m := range after.Members {
		if m.Heard == nil || m.ID == after.Member || !m.Started {
			continue
		}
		heard := heardBefore(before, m.ID)
		switch {
		case !*m.Heard && (heard == nil || *heard):
			add(Silent, m.Name, "hears nothing of %s any more", m.Name)
		case *m.Heard && heard != nil && !*heard:
			add(Heard, m.Name, "hears of %s again", m.Name)
		}
	}
}

func heardBefore(r Report, id string) *bool {
	for _, m := range r.Members {
		if m.ID == id {
			return m.Heard
		}
	}
	return nil
}

func waitChanges(before, after Report, add adder) {
	has := func(r Report, name string) bool {
		return slices.ContainsFunc(r.Waits, func(w replica.Wait) bool { return w.Name == name })
	}
	for _, w := range after.Waits {
		if !has(before, w.Name) {
			add(Waiting, w.Name, "waits, %s: %s", w.Name, w.Reason).Since = w.Since
		}
	}
	for _, w := range before.Waits {
		if !has(after, w.Name) {
			add(Resumed, w.Name, "does not wait any more: %s", w.Name)
		}
	}
}

func rowChanges(before, after Report, add adder) {
	if after.Row != before.Row && after.Row != "" {
		add(Row, after.Row, "row %s holds", after.Row)
	}
	if after.LeaderRow != before.LeaderRow && after.LeaderRow != "" {
		add(Row, after.LeaderRow, "row %s of the leader's holds", after.LeaderRow)
	}
}

func componentChanges(before, after Report, add adder) {
	for _, c := range after.Components {
		i := slices.IndexFunc(before.Components, func(b Component) bool { return b.Name == c.Name })
		var was Component
		if i >= 0 {
			was = before.Components[i]
		}
		if c.State == was.State && c.Restarts == was.Restarts {
			continue
		}
		kind, text := ComponentState, c.Name+" is "+c.StateText()
		starts := c.State == "starting" || c.State == "waiting" // that it is not up yet is no news
		if c.Restarts > was.Restarts && c.State != "stopped" {
			kind, text, starts = StartedAgain, text+", started again", false
		}
		if c.Reason != "" && !starts {
			text += ": " + c.Reason
		}
		add(kind, c.Name, "%s", text).State = c.State
	}
}

func electionChanges(before, after Report, add adder) {
	for _, lease := range after.Elected {
		if !slices.Contains(before.Elected, lease) {
			add(Elected, lease, "leads %s", lease)
		}
	}
	for _, lease := range before.Elected {
		if !slices.Contains(after.Elected, lease) {
			add(Unelected, lease, "does not see itself lead %s any more", lease)
		}
	}
}

// Important reports whether an event is worth being told where others look, too: the boot, waits, what was done to the
// membership, who leads, and what was started again. What repeats while all is well is not, nor a step on the way.
func (e Event) Important() bool {
	switch e.Kind {
	case Ready, Stopping, Stopped, Unstopped, Restarting, Waiting, Resumed, Joined, Leads, Elected, Silent, Heard,
		StartedAgain, LastWords, Dropped, Gone:
		return true
	case Began:
		return e.Subject == "" // what the report before said is in the text of the end
	case Did:
		return !slices.Contains(onTheWay, e.Subject)
	}
	return false
}

// onTheWay are acts that others follow at once, or that repeat while all is well.
var onTheWay = []string{"claim", "take incarnation", "confirm incarnation", "mark adding", "start", "start joined",
	"complete order", "compact", "defragment"}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
